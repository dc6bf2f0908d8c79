//! Tests of `linerate gateway`. The clients are in one network namespace. The servers are in
//! another, behind a veth pair.

use super::folder::fail;
use super::support::{Background, finished, linerate};
use linerate_link::namespace::{Network, isolated_test};
use linerate_link::{KernelInterface, MonotonicClock, StreamLink, Waiter};
use linerate_stack::{ConnectOptions, Error, Host, Medium, Route, Stack, StackConfig, TcpHandle};
use linerate_units::Clock;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::thread;
use tempfile::TempDir;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
const NEAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x88, 0, 0, 0, 0, 1);
const FAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x88, 0, 0, 0, 0, 2);
/// The server's address of each IP version.
const FARS: [IpAddr; 2] = [IpAddr::V4(FAR), IpAddr::V6(FAR_IPV6)];

/// Creates the namespace of the servers behind a veth pair, with addresses of both IP versions.
fn far_network() -> Network {
    let (near, far) = Network::behind_veth(["left", "right"], FAR).unwrap();
    near.add_address(NEAR, 24).unwrap();
    near.enable_ipv6().unwrap();
    near.add_address(NEAR_IPV6, 64).unwrap();
    far.run(|| {
        let end = KernelInterface::named("right").unwrap();
        end.enable_ipv6().unwrap();
        end.add_address(FAR_IPV6, 64).unwrap();
    });
    far
}

/// A gateway process whose clients are in a namespace. The process is killed when this value is
/// dropped.
struct Gateway(Child, BufReader<std::process::ChildStderr>);

impl Gateway {
    fn into(network: &Network, words: &[&str]) -> Self {
        let into = network.id().to_string();
        let words = [&["gateway", "--metrics", "127.0.0.1:0", "--into", &into], words].concat();
        let mut child =
            linerate(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self(child, errors)
    }

    /// Waits until clients can connect, and returns the address of the metrics. The gateway prints
    /// this address at that moment.
    fn metrics(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics at http://").expect(&line);
        address.strip_suffix("/metrics").unwrap().to_owned()
    }

    fn interrupt(&self) {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    }

    fn finish(mut self) -> (i32, String) {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.0.wait().unwrap().code().unwrap(), text)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Starts a TCP echo server in a network, and returns its address.
fn echo_server(network: &Network, address: IpAddr) -> SocketAddr {
    network.run(move || {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut piece = vec![0; 64 << 10];
                    while let Ok(count @ 1..) = stream.read(&mut piece) {
                        if stream.write_all(&piece[..count]).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        server
    })
}

fn has_interface() -> bool {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap().contains("lr0")
}

#[test]
fn a_command_reaches_the_network_through_the_gateway() {
    isolated_test(|| {
        let far = far_network();
        for listen in FARS.map(|address| SocketAddr::new(address, 0).to_string()) {
            let mut sink = far.run(move || Background::start(&["sink", "--listen", &listen]));
            let address = sink.address().to_string();
            let program = env!("CARGO_BIN_EXE_linerate");
            for mtu in ["1500", "65520"] {
                let words = ["gateway", "--mtu", mtu, "--", program, "source", &address];
                let words = [&words[..], &["--bytes", "20MB", "--verify"]].concat();
                let (code, _, errors) = finished(&linerate(&words).output().unwrap());
                assert_eq!((code, &*errors), (0, ""), "{address} {mtu}");
            }
            let (lines, _) = sink.interrupt();
            let intact = lines.iter().filter(|line| line.contains("all data intact")).count();
            assert_eq!(intact, 2, "{lines:?}");
        }
    });
}

#[test]
fn the_true_reason_of_a_failure_reaches_the_client() {
    isolated_test(|| {
        let _far = far_network();
        let clients = Network::new().unwrap();
        let denied = ["--deny", "192.0.2.0/24", "--deny", "2001:db8:dead::/48"];
        let mut gateway = Gateway::into(&clients, &denied);
        gateway.metrics();
        for (to, expected) in [
            ("10.88.0.2", ErrorKind::ConnectionRefused),
            ("203.0.113.7", ErrorKind::NetworkUnreachable),
            ("192.0.2.7", ErrorKind::ConnectionRefused),
            ("10.0.2.2", ErrorKind::ConnectionRefused),
            ("2001:db8:88::2", ErrorKind::ConnectionRefused),
            ("2001:db8:7::7", ErrorKind::NetworkUnreachable),
            ("2001:db8:dead:7::7", ErrorKind::ConnectionRefused),
            ("fd00::2", ErrorKind::ConnectionRefused),
        ] {
            let to = SocketAddr::new(to.parse().unwrap(), 9);
            let kind = clients.run(move || TcpStream::connect(to).unwrap_err().kind());
            assert_eq!(kind, expected, "{to}");
            // A TCP socket reports all errors that this test expects. A UDP socket reports only
            // `ConnectionRefused`. For this error, the test also uses UDP.
            if expected == ErrorKind::ConnectionRefused {
                let kind = clients.run(move || {
                    let socket = datagrams(to.ip());
                    socket.connect(to).unwrap();
                    socket.send(b"anyone?").unwrap();
                    socket.recv(&mut [0; 8]).unwrap_err().kind()
                });
                assert_eq!(kind, expected, "{to} over UDP");
            }
        }
    });
}

/// Opens a UDP socket of the IP version of `address`.
fn datagrams(address: IpAddr) -> UdpSocket {
    UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap()
}

#[test]
fn datagrams_and_queries_are_relayed() {
    isolated_test(|| {
        let far = far_network();
        far.run(|| {
            for address in FARS {
                let server = UdpSocket::bind((address, 53)).unwrap();
                thread::spawn(move || {
                    let mut data = [0; 2_000];
                    while let Ok((length, from)) = server.recv_from(&mut data) {
                        server.send_to(&data[..length], from).unwrap();
                    }
                });
            }
        });
        let clients = Network::new().unwrap();
        let mut gateway = Gateway::into(&clients, &["--dns", &FAR.to_string()]);
        let metrics = gateway.metrics();
        clients.run(|| {
            let name_servers = ["10.0.2.3", "fd00::3"].map(|text| text.parse().unwrap());
            for to in FARS.into_iter().chain(name_servers) {
                let socket = datagrams(to);
                socket.connect((to, 53)).unwrap();
                for size in [0, 1, 512, 1_452] {
                    socket.send(&vec![7; size]).unwrap();
                    let mut data = [0; 2_000];
                    assert_eq!(socket.recv(&mut data).unwrap(), size);
                    assert_eq!(data[..size], vec![7; size]);
                }
            }
        });
        let text = get(&metrics);
        assert!(text.contains("linerate_gateway_flows{state=\"udp\"} 4"), "{text}");
        assert!(text.contains("bytes_total{protocol=\"udp\",direction=\"down\"} 7860"), "{text}");
    });
}

#[test]
fn a_stopped_gateway_lets_connections_finish_and_rejects_new_ones() {
    isolated_test(|| {
        let far = far_network();
        let server = echo_server(&far, FARS[1]);
        let clients = Network::new().unwrap();
        let mut gateway = Gateway::into(&clients, &["--drain", "60"]);
        let metrics = gateway.metrics();
        let mut stream = clients.run(move || TcpStream::connect(server).unwrap());
        stream.write_all(b"before").unwrap();
        stream.read_exact(&mut [0; 6]).unwrap();
        assert!(get(&metrics).contains("flows{state=\"tcp\"} 1"));
        gateway.interrupt();
        // The gateway refuses new connections only after it has handled the signal, which may take
        // a moment. The test therefore opens connections until one is refused.
        let mut attempts = 0;
        while let Ok(another) = clients.run(move || TcpStream::connect(server)) {
            drop(another);
            attempts += 1;
            assert!(attempts < 10_000, "new connections are not rejected");
        }
        stream.write_all(b"after").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        drop(stream);
        let (code, text) = gateway.finish();
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("connections and 0 UDP flows relayed"), "{text}");
        assert!(!clients.run(has_interface), "the device is gone");
    });
}

#[test]
fn a_killed_gateway_leaves_no_device_behind() {
    isolated_test(|| {
        let far = far_network();
        let server = echo_server(&far, FARS[0]);
        let clients = Network::new().unwrap();
        let mut gateway = Gateway::into(&clients, &[]);
        gateway.metrics();
        assert!(clients.run(has_interface));
        let mut stream = clients.run(move || TcpStream::connect(server).unwrap());
        let mut sender = stream.try_clone().unwrap();
        let sending = thread::spawn(move || while sender.write_all(&[7; 65_536]).is_ok() {});
        stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
        gateway.0.kill().unwrap();
        gateway.0.wait().unwrap();
        assert!(!clients.run(has_interface), "the device went with its process");
        let routes = clients.run(|| fs::read_to_string("/proc/thread-self/net/route").unwrap());
        assert_eq!(routes.lines().count(), 1, "no route is left: {routes}");
        let routes =
            clients.run(|| fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap());
        assert!(!routes.contains("lr0"), "no route is left: {routes}");
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        sending.join().unwrap();
    });
}

/// A linerate host that takes the place of a virtual machine. It is connected to the gateway by a
/// Unix stream socket.
struct Machine {
    host: Host<StreamLink>,
    waiter: Waiter,
}

impl Machine {
    fn run<T>(&mut self, mut done: impl FnMut(&mut Stack) -> Option<T>) -> T {
        loop {
            let turn = self.host.turn(MonotonicClock.now()).unwrap();
            if let Some(result) = done(self.host.stack_mut()) {
                return result;
            }
            if !turn.more && !self.host.stack().wants_turn_since(&turn) {
                self.waiter.wait(self.host.link_mut(), turn.next).unwrap();
            }
        }
    }

    fn exchange(&mut self, client: TcpHandle, data: &[u8]) {
        let (mut sent, mut received) = (0, 0);
        let mut piece = vec![0; 64 << 10];
        self.run(|stack| {
            let now = MonotonicClock.now();
            sent += stack.tcp_write(now, client, &data[sent..]).unwrap();
            while received < data.len() {
                match stack.tcp_read(now, client, &mut piece) {
                    Ok(count) => {
                        assert_eq!(piece[..count], data[received..received + count]);
                        received += count;
                    }
                    Err(Error::WouldBlock) => return None,
                    Err(error) => panic!("{error}"),
                }
            }
            Some(())
        });
    }
}

#[test]
fn a_virtual_machine_is_served_over_a_unix_stream() {
    isolated_test(|| {
        let far = far_network();
        let servers = FARS.map(|address| echo_server(&far, address));
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("net.sock");
        let words = ["gateway", "--unix", path.to_str().unwrap()];
        let gateway = linerate(&words).stdout(Stdio::piped()).spawn().unwrap();
        let stream = loop {
            match UnixStream::connect(&path) {
                Ok(stream) => break stream,
                Err(_) => thread::yield_now(),
            }
        };
        let mut config =
            StackConfig::new("02:00:00:00:00:09".parse().unwrap(), "10.0.2.15/24".parse().unwrap());
        config.addresses.push("fd00::15/64".parse().unwrap());
        config.routes = vec![
            Route::via("0.0.0.0/0".parse().unwrap(), Ipv4Addr::new(10, 0, 2, 2)),
            Route::via("::/0".parse().unwrap(), "fd00::2".parse::<Ipv6Addr>().unwrap()),
        ];
        let link = StreamLink::new(stream, Medium::Ethernet, 1_500).unwrap();
        let mut machine = Machine {
            host: Host::new(Stack::new(config, [9; 32]), link),
            waiter: Waiter::new().unwrap(),
        };
        let data: Vec<u8> = (0..3_000_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        for server in servers {
            let stack = machine.host.stack_mut();
            let now = MonotonicClock.now();
            let client = stack.tcp_connect(now, server, &ConnectOptions::default()).unwrap();
            machine.run(|stack| {
                let state = stack.tcp(client).unwrap().state();
                (state == linerate_tcp::State::Established).then_some(())
            });
            machine.exchange(client, &data);
        }
        drop(machine);
        let output = gateway.wait_with_output().unwrap();
        let (code, text, _) = finished(&output);
        assert_eq!(code, 0);
        assert!(text.contains("2 connections") && text.contains("6000000 bytes up"), "{text}");
        assert!(!path.exists());
    });
}

#[test]
fn wrong_links_are_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    for (words, expected) in [
        (&["gateway"][..], "no clients were named"),
        (&["gateway", "--fd", "0"], "is no TUN device"),
        (&["gateway", "--fd", "77"], "descriptor 77 cannot be used"),
        (&["gateway", "--into", "1", "--fd", "0"], "cannot be used with"),
        (&["gateway", "--unix", "/nowhere/socket"], "no socket can be at /nowhere/socket"),
        (&["gateway", "--fd", "0", "--deny", "10.0.0.0"], "write a prefix with its length"),
        (&["gateway", "--fd", "0", "--address", "10.0.2.2/32"], "leaves no room"),
        (&["gateway", "--into", "4194305"], "cannot be joined"),
        (&["gateway", "--fd", "0", "--deny", "fd00::/129"], "write a prefix with its length"),
        (&["gateway", "--fd", "0", "--address", "fd00::2/126"], "leaves no room"),
        (&["gateway", "--mtu", "1000", "--address", "fd00::2/64", "--", "true"], "IPv6 needs"),
        (&["gateway", "--address", "fe80::2%3/64", "--", "true"], "prefix length"),
        (&["gateway", "--address", "::1/64", "--", "true"], "is reserved"),
        (&["gateway", "--client", "fd00::2", "--", "true"], "is the address of the gateway"),
    ] {
        let line = fail(folder.path(), words, 2);
        assert!(line.contains(expected) && line.lines().count() == 1, "{words:?}: {line}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    isolated_test(|| {
        let code = |words: &[&str]| linerate(words).stderr(Stdio::null()).status().unwrap().code();
        assert_eq!(code(&["gateway", "--", "sh", "-c", "exit 7"]), Some(7));
        assert_eq!(code(&["gateway", "--", "/nowhere/program"]), Some(2));
        assert!(KernelInterface::named("lr0").is_err());
    });
}
