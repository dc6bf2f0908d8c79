//! The kernel's TCP as a contender, over veth pairs between network namespaces. One veth pair has
//! no offloads, and one has all offloads.
//!
//! The contender needs a network namespace of its own, which a process enters for good. It
//! therefore runs in a child process: this program, started a second time.

use crate::build::program;
use crate::child::{Child, serve};
use crate::contender::{Candidate, Missing, Run, Taken};
use crate::facts;
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{BUFFER, PIECE, SEGMENT, Work};
use linerate_link::namespace::{Network, enter_private_network};
use linerate_link::{KernelInterface, kernel_socket};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::process::Command;

const NAME: &str = "kernel";
/// Argument with which this program runs as the child process of this contender.
pub const SERVE: &str = "serve-kernel";
const PORT: u16 = 9;
/// The workloads of the kernel. The kernel performs the workloads for TAP devices, packet sockets
/// and AF_XDP over a veth pair. Its time is the reference for the other stacks.
const WORKS: [Work; 9] = [
    Work::Bulk,
    Work::PingPong,
    Work::Connect,
    Work::TapVnetSend,
    Work::TapVnetReceive,
    Work::PacketVnetSend,
    Work::PacketVnetReceive,
    Work::XdpSend,
    Work::XdpReceive,
];
/// The offloads that are switched on or off, by their names in `ethtool -K`. They are what a NIC
/// would provide to the kernel, while the other contenders have no such help.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];
// Values of `SOL_SOCKET`, `SO_SNDBUF` and `SO_RCVBUF` on Linux.
const SOCKET: i32 = 1;
const SEND_BUFFER: i32 = 7;
const RECEIVE_BUFFER: i32 = 8;

/// Returns the kernel as a contender, if this process may create a network namespace.
pub fn candidate() -> Candidate {
    let start = || {
        program("ethtool", &["--version"])
            .map_err(|reason| format!("{reason}; install ethtool (Debian: ethtool)"))?;
        let own = std::env::current_exe()
            .map_err(|error| format!("this program is not found: {error}"))?;
        let mut command = Command::new(own);
        command.arg(SERVE);
        Child::start(NAME, command, &WORKS, 8)
    };
    start().map(|child| Box::new(child) as _).map_err(|reason| Missing { name: NAME, reason })
}

/// Performs the runs that arrive on standard input until it ends.
///
/// # Errors
/// A message that the parent process has closed its pipe.
pub fn serve_veth_pairs() -> Result<(), String> {
    serve(
        || {
            enter_private_network().map_err(sentence)?;
            choose_control()?;
            let cables = [Cable::new(WITHOUT)?, Cable::new(WITH)?];
            Ok((format!("Linux {}, veth pairs", facts::kernel()), cables))
        },
        |[without, with], run| {
            if run.work.has_offloads() { with.run(run) } else { without.run(run) }
        },
    )
}

/// Selects CUBIC as congestion control, or Reno if the network namespace does not permit CUBIC.
/// Without loss, the two behave alike. The machine's default is not used, because it may pace
/// segments: the thread would then have to poll until delayed segments leave.
pub fn choose_control() -> Result<(), String> {
    let choose = |name| std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name);
    choose("cubic").or_else(|_| choose("reno")).map_err(sentence)
}

/// The properties of a veth pair.
#[derive(Clone, Copy)]
struct Kind {
    /// Names of the interfaces at both ends of the veth pair.
    ends: [&'static str; 2],
    /// Addresses of the client and of the server.
    addresses: [Ipv4Addr; 2],
    /// Whether both interfaces have all offloads, or none.
    offloads: bool,
}

/// The veth pair without offloads, for which the kernel segments and computes checksums in
/// software.
const WITHOUT: Kind = Kind {
    ends: ["left", "right"],
    addresses: [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)],
    offloads: false,
};
/// The veth pair with all offloads, which carries GSO frames without checksums.
const WITH: Kind = Kind {
    ends: ["near", "far"],
    addresses: [Ipv4Addr::new(192, 0, 3, 1), Ipv4Addr::new(192, 0, 3, 2)],
    offloads: true,
};

/// A veth pair with the kernel's TCP at both ends, which are in different network namespaces.
struct Cable {
    listener: TcpListener,
    /// Address at which `listener` accepts connections.
    server: SocketAddrV4,
    /// Name of the client's interface, whose packets are counted.
    near: &'static str,
    /// Network namespace of the server. It contains a thread that must live as long as the sockets
    /// that were opened in the namespace. This field keeps the thread alive.
    _right: Network,
}

impl Cable {
    fn new(kind: Kind) -> Result<Self, String> {
        let right = Network::new().map_err(sentence)?;
        let [near, far] = kind.ends;
        let server = SocketAddrV4::new(kind.addresses[1], PORT);
        let (left_end, right_end) = KernelInterface::create_veth(near, far).map_err(sentence)?;
        right_end.move_to_process(right.id()).map_err(sentence)?;
        set_up(&left_end, kind.addresses[0], kind.offloads)?;
        let listener = right.run(move || {
            set_up(&KernelInterface::named(far).map_err(sentence)?, *server.ip(), kind.offloads)?;
            TcpListener::bind(server).map_err(sentence)
        })?;
        Ok(Self { listener, server, near, _right: right })
    }

    fn run(&self, run: Run) -> Result<Taken, String> {
        let before = frames(self.near)?;
        let stopwatch = Stopwatch::start();
        match run.work {
            Work::PingPong => self.ping_pong(run.amount),
            Work::Connect => self.connect(run.amount),
            _ => self.bulk(run.amount, run.verify),
        }?;
        let processor = stopwatch.elapsed();
        let after = frames(self.near)?;
        Ok(Taken::new(processor, run.amount, [after[0] - before[0], after[1] - before[1]]))
    }

    fn open(&self) -> Result<(TcpStream, TcpStream), String> {
        let client = TcpStream::connect(self.server).map_err(sentence)?;
        let (server, _) = self.listener.accept().map_err(sentence)?;
        Ok((client, server))
    }

    fn bulk(&self, amount: u64, verify: bool) -> Result<(), String> {
        let (mut client, mut server) = self.open()?;
        for stream in [&client, &server] {
            stream.set_nonblocking(true).map_err(sentence)?;
            for option in [SEND_BUFFER, RECEIVE_BUFFER] {
                kernel_socket::set_option(stream, SOCKET, option, &(BUFFER as i32).to_ne_bytes())
                    .map_err(sentence)?;
            }
        }
        let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
        let total = amount * SEGMENT;
        let (mut written, mut read) = (0, 0);
        while read < total {
            while written < total
                && let Some(count) =
                    unless_it_would_wait(client.write(pattern.at(written, total - written)))?
            {
                written += count as u64;
                if written == total {
                    client.shutdown(Shutdown::Write).map_err(sentence)?;
                }
            }
            while read < total
                && let Some(count) = unless_it_would_wait(server.read(&mut received))?
            {
                if verify {
                    pattern.verify(read, &received[..count])?;
                }
                read += count as u64;
            }
        }
        Ok(())
    }

    fn ping_pong(&self, amount: u64) -> Result<(), String> {
        let (mut client, mut server) = self.open()?;
        for stream in [&client, &server] {
            stream.set_nodelay(true).map_err(sentence)?;
        }
        let mut byte = [7];
        for _ in 0..amount {
            client.write_all(&byte).map_err(sentence)?;
            server.read_exact(&mut byte).map_err(sentence)?;
            server.write_all(&byte).map_err(sentence)?;
            client.read_exact(&mut byte).map_err(sentence)?;
        }
        Ok(())
    }

    /// Opens and closes `amount` connections one after the other. The server closes first, and the
    /// client closes when it has read the end of the stream. The function does not wait for
    /// connections in TIME-WAIT.
    fn connect(&self, amount: u64) -> Result<(), String> {
        for _ in 0..amount {
            let (mut client, server) = self.open()?;
            drop(server);
            if client.read(&mut [0]).map_err(sentence)? != 0 {
                return Err(
                    "the server has closed, and the client has read something else".to_owned()
                );
            }
        }
        Ok(())
    }
}

/// Configures the interface at one end of the veth pair: its address and its offloads.
fn set_up(end: &KernelInterface, address: Ipv4Addr, offloads: bool) -> Result<(), String> {
    end.disable_ipv6().map_err(sentence)?;
    end.add_address(address, 24).map_err(sentence)?;
    let mut arguments = vec!["-K", end.name()];
    for offload in OFFLOADS {
        arguments.extend([offload, if offloads { "on" } else { "off" }]);
    }
    program("ethtool", &arguments)?;
    end.set_up().map_err(sentence)
}

/// Returns the numbers of packets that the interface `near` has sent and received.
fn frames(near: &str) -> Result<[u64; 2], String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").map_err(sentence)?;
    let counts =
        text.lines().find_map(|line| line.trim_start().strip_prefix(near)?.strip_prefix(':'));
    let counts: Vec<u64> =
        counts.unwrap_or("").split_whitespace().filter_map(|count| count.parse().ok()).collect();
    match (counts.get(9), counts.get(1)) {
        (Some(&sent), Some(&received)) => Ok([sent, received]),
        _ => Err("the kernel does not count the cable's packets where it used to".to_owned()),
    }
}

fn unless_it_would_wait(outcome: io::Result<usize>) -> Result<Option<usize>, String> {
    match outcome {
        Ok(0) => Err("the connection has ended too early".to_owned()),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(sentence(error)),
    }
}

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}
