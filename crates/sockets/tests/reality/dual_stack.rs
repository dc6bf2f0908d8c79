//! Sockets that serve both IP versions (RFC 3493 §3.7). A test program runs on the kernel's sockets
//! and on ours, each time over the loopback interface. It must get equal addresses and kinds of
//! errors from both.

use linerate_link::memory::{MemoryConfig, pair};
use linerate_link::namespace::isolated_test;
use linerate_link::{KernelInterface, Readiness};
use linerate_sockets::{ListenOptions, Net, StackConfig, UdpOptions};
use linerate_stack::Link;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The name of a step, and its result: an address without its port, a number, or an error.
type Seen = (String, Result<String, ErrorKind>);

/// Runs the test program, and returns the results of its steps. It is a macro because the kernel's
/// sockets and ours have different types. Its arguments are the functions that open sockets.
macro_rules! outcomes {
    ($connect:expr, $listen:expr, $udp:expr) => {{
        let (connect, listen, udp) = ($connect, $listen, $udp);
        let mut all: Vec<Seen> = Vec::new();
        let mut note = |what: String, outcome: io::Result<String>| {
            all.push((what, outcome.map_err(|error| kind(&error))));
        };
        let ip = |end: io::Result<SocketAddr>| end.map(|end| end.ip().to_string());
        let only = |flag: io::Result<bool>| flag.map(|flag| flag.to_string());
        let second = Some(Duration::from_secs(1));
        for (local, only_v6) in [
            ("[::]", false),
            ("[::]", true),
            ("[::1]", false),
            ("[::ffff:127.0.0.1]", false),
            ("[::ffff:0.0.0.0]", false),
            ("[::ffff:127.0.0.1]", true),
            ("[fe80::1%99]", false),
        ] {
            let case = format!("{local} {only_v6}");
            let listener = match listen(&format!("{local}:0"), only_v6) {
                Ok(listener) => listener,
                Err(error) => {
                    note(format!("listen {case}"), Err(error));
                    note(
                        format!("udp {case}"),
                        udp(&format!("{local}:0"), only_v6).map(|_| String::new()),
                    );
                    continue;
                }
            };
            note(format!("listener {case}"), ip(listener.local_addr()));
            note(format!("only_v6 of listener {case}"), only(listener.excludes_ipv4()));
            let port = listener.local_addr().unwrap().port();
            for to in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
                let client = match connect(&format!("{to}:{port}")) {
                    Ok(client) => client,
                    Err(error) => {
                        note(format!("{case}: connect to {to}"), Err(error));
                        continue;
                    }
                };
                note(format!("{case}: client to {to}"), ip(client.local_addr()));
                note(format!("{case}: peer of client to {to}"), ip(client.peer_addr()));
                let (server, peer) = listener.accept().unwrap();
                assert_eq!(peer.port(), client.local_addr().unwrap().port());
                note(format!("{case}: accepted from {to}"), Ok(peer.ip().to_string()));
                note(format!("{case}: server to {to}"), ip(server.local_addr()));
            }
            // If the first listener is bound to all addresses, the program tries to bind others to
            // the same port. This is skipped if the first listener is bound to a single address. In
            // that case our host would allow a second listener at all addresses, and Linux would
            // refuse it; both are legitimate.
            let is_at_all = ["[::]", "[::ffff:0.0.0.0]"].contains(&local);
            let others: &[&str] =
                if is_at_all { &["0.0.0.0", "[::]", "[::ffff:0.0.0.0]"] } else { &[] };
            for other in others {
                let second = listen(&format!("{other}:{port}"), false).map(|_| String::new());
                note(format!("{case}: listen at {other}"), second);
            }

            let socket = udp(&format!("{local}:0"), only_v6).unwrap();
            socket.set_read_timeout(second).unwrap();
            note(format!("udp {case}"), ip(socket.local_addr()));
            note(format!("only_v6 of udp {case}"), only(socket.excludes_ipv4()));
            let port = socket.local_addr().unwrap().port();
            for home in ["127.0.0.1", "[::1]"] {
                let peer = udp(&format!("{home}:0"), false).unwrap();
                peer.set_read_timeout(second).unwrap();
                let peer_port = peer.local_addr().unwrap().port();
                let forms: &[&str] =
                    if home == "[::1]" { &["[::1]"] } else { &["127.0.0.1", "[::ffff:127.0.0.1]"] };
                for form in forms {
                    let sent = socket.send_to(b"datagram", format!("{form}:{peer_port}"));
                    let arrived = sent.is_ok();
                    note(format!("{case}: send to {form}"), sent.map(|sent| sent.to_string()));
                    if arrived {
                        let from = peer.recv_from(&mut [0; 9]).map(|(_, from)| from);
                        note(format!("{case}: {form} received from"), ip(from));
                        peer.send_to(b"answer", format!("{home}:{port}")).unwrap();
                        let from = socket.recv_from(&mut [0; 9]).map(|(_, from)| from);
                        note(format!("{case}: answer of {form} from"), ip(from));
                    }
                }
            }
            for (peer, form) in [("127.0.0.1", "[::ffff:127.0.0.1]"), ("[::1]", "[::1]")] {
                let socket = udp(&format!("{local}:0"), only_v6).unwrap();
                socket.set_read_timeout(second).unwrap();
                // `closed` is a port at which nothing receives: a socket was bound to it, and
                // closed at once. So the datagram that is sent to this port below must be refused.
                let closed = udp(&format!("{peer}:0"), false).unwrap().local_addr().unwrap().port();
                if let Err(error) = socket.connect(format!("{form}:{closed}")) {
                    note(format!("{case}: connect UDP to {form}"), Err(error));
                    continue;
                }
                note(format!("{case}: connected to {form}"), ip(socket.local_addr()));
                note(format!("{case}: peer {form}"), ip(socket.peer_addr()));
                socket.send(b"anyone?").unwrap();
                let refused = socket.recv(&mut [0]).map(|length| length.to_string());
                note(format!("{case}: refused by {form}"), refused);
            }
        }
        note("unknown zone".to_owned(), connect("[fe80::1%99]:9").map(|_| String::new()));
        all
    }};
}

/// Returns the kind of an error. `std` has no kind for two errors of the kernel: a wrong IP
/// version, and an unknown interface of a bound socket. They are mapped to the kinds that our host
/// reports.
fn kind(error: &io::Error) -> ErrorKind {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AFNOSUPPORT) => ErrorKind::InvalidInput,
        Some(Errno::NODEV) => ErrorKind::NetworkUnreachable,
        _ => error.kind(),
    }
}

/// Opens a listener or a UDP socket of the kernel, with the options that `std` sets, and with
/// `IPV6_V6ONLY` as given.
fn kernels(given: &str, only_v6: bool, kind: SocketType) -> io::Result<OwnedFd> {
    let address: SocketAddr = given.parse().unwrap();
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, kind, None)?;
    if kind == SocketType::STREAM {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, only_v6)?;
    }
    rustix::net::bind(&socket, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, 16)?;
    }
    Ok(socket)
}

/// Reads the option `IPV6_V6ONLY` of listeners and UDP sockets, both the kernel's and ours.
trait Ipv6Only {
    fn excludes_ipv4(&self) -> io::Result<bool>;
}

impl Ipv6Only for TcpListener {
    fn excludes_ipv4(&self) -> io::Result<bool> {
        Ok(sockopt::ipv6_v6only(self)?)
    }
}

impl Ipv6Only for UdpSocket {
    fn excludes_ipv4(&self) -> io::Result<bool> {
        Ok(sockopt::ipv6_v6only(self)?)
    }
}

impl Ipv6Only for linerate_sockets::TcpListener {
    fn excludes_ipv4(&self) -> io::Result<bool> {
        self.only_v6()
    }
}

impl Ipv6Only for linerate_sockets::UdpSocket {
    fn excludes_ipv4(&self) -> io::Result<bool> {
        self.only_v6()
    }
}

fn of_the_kernel() -> Vec<Seen> {
    outcomes!(
        |address: &str| TcpStream::connect(address),
        |address: &str, only_v6| kernels(address, only_v6, SocketType::STREAM)
            .map(TcpListener::from),
        |address: &str, only_v6| kernels(address, only_v6, SocketType::DGRAM).map(UdpSocket::from)
    )
}

fn of_ours(net: &Net) -> Vec<Seen> {
    outcomes!(
        |address: &str| net.connect(address),
        |address: &str, only_v6| {
            net.bind_with(address, &ListenOptions { only_v6, ..ListenOptions::default() })
        },
        |address: &str, only_v6| {
            net.bind_udp_with(address, &UdpOptions { only_v6, ..UdpOptions::default() })
        }
    )
}

/// Returns a network of ours on this link, on which there are no other hosts.
fn alone(link: impl Link + Readiness + Send + 'static) -> Net {
    let network = "192.0.2.1/24".parse().unwrap();
    let config = StackConfig::new("02:00:00:00:00:01".parse().unwrap(), network);
    Net::builder(link, config).start().unwrap()
}

#[test]
fn both_versions_look_as_on_the_kernels_sockets() {
    isolated_test(|| {
        KernelInterface::loopback().unwrap().set_up().unwrap();
        let (link, _other) = pair(MemoryConfig::default()).unwrap();
        let ours = of_ours(&alone(link));
        let kernels = of_the_kernel();
        // Each list contains the results of all steps, one for our host and one for the kernel.
        // Only the first difference is shown, because it causes differences in later steps.
        let first = ours.iter().zip(&kernels).find(|(one, other)| one != other);
        assert_eq!(first, None, "ours, and the kernel's");
        assert_eq!(ours.len(), kernels.len());
    });
}
