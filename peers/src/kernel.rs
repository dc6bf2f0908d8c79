//! The kernel's TCP, over a virtual cable between two networks of its own without any offload. It
//! lives in a process of its own, this program started again, because it leaves the network that the
//! others are in.

use crate::build::program;
use crate::child::Child;
use crate::contender::{Candidate, Missing, Taken};
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
/// The word that makes this program the kernel's.
pub const SERVE: &str = "serve-kernel";
const LEFT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 9);
/// What a network card would do for the kernel, and does not for the others.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];
// `SOL_SOCKET`, `SO_SNDBUF` and `SO_RCVBUF` of Linux.
const SOCKET: i32 = 1;
const SEND_BUFFER: i32 = 7;
const RECEIVE_BUFFER: i32 = 8;

/// The kernel, if this process may have a network of its own.
pub fn candidate() -> Candidate {
    let start = || {
        program("ethtool", &["--version"])
            .map_err(|reason| format!("{reason}; install ethtool (Debian: ethtool)"))?;
        let own = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
        let mut command = Command::new(own);
        command.arg(SERVE);
        Child::start(NAME, command, &[Work::Bulk, Work::PingPong, Work::Connect], 8)
    };
    start().map(|child| Box::new(child) as _).map_err(|reason| Missing { name: NAME, reason })
}

/// Does what standard input says, until it ends.
///
/// # Errors
/// A sentence that says why this machine does not let it.
pub fn serve() -> Result<(), String> {
    let cable = match Cable::new() {
        Ok(cable) => cable,
        Err(reason) => return answer(&format!("error {reason}")),
    };
    answer(&format!("Linux {}, a virtual cable without offloads", facts::kernel()))?;
    for line in io::stdin().lines() {
        let line = line.map_err(sentence)?;
        let taken = cable.run(&line);
        answer(&taken.map_or_else(
            |reason| format!("error {reason}"),
            |taken| format!("ok {} {} {}", taken.nanoseconds, taken.frames_out, taken.frames_back),
        ))?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(sentence)
}

/// Two networks, and the cable between them.
struct Cable {
    listener: TcpListener,
    /// Its thread has to live as long as the sockets that were opened by it are used.
    _right: Network,
}

impl Cable {
    fn new() -> Result<Self, String> {
        enter_private_network().map_err(sentence)?;
        let right = Network::new().map_err(sentence)?;
        let (left_end, right_end) = KernelInterface::create_veth("left", "right").map_err(sentence)?;
        right_end.move_to_process(right.id()).map_err(sentence)?;
        set_up(&left_end, LEFT)?;
        let listener = right.run(|| {
            set_up(&KernelInterface::named("right").map_err(sentence)?, *PORT.ip())?;
            TcpListener::bind(PORT).map_err(sentence)
        })?;
        Ok(Self { listener, _right: right })
    }

    fn run(&self, line: &str) -> Result<Taken, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[work, amount, verify] = &words[..] else { return Err(format!("`{line}` is no run")) };
        let amount: u64 = amount.parse().map_err(sentence)?;
        let before = frames()?;
        let stopwatch = Stopwatch::start();
        match work {
            "bulk" => self.bulk(amount, verify != "0"),
            "ping-pong" => self.ping_pong(amount),
            "connect" => self.connect(amount),
            _ => Err(format!("there is no work called {work}")),
        }?;
        let processor = stopwatch.elapsed();
        let after = frames()?;
        Ok(Taken::new(processor, amount, [after[0] - before[0], after[1] - before[1]]))
    }

    fn open(&self) -> Result<(TcpStream, TcpStream), String> {
        let client = TcpStream::connect(PORT).map_err(sentence)?;
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
        let (pattern, mut heard) = (Pattern::new(), vec![0; PIECE]);
        let total = amount * SEGMENT;
        let (mut written, mut read) = (0, 0);
        while read < total {
            while written < total
                && let Some(count) = unless_it_would_wait(client.write(pattern.at(written, total - written)))?
            {
                written += count as u64;
                if written == total {
                    client.shutdown(Shutdown::Write).map_err(sentence)?;
                }
            }
            while read < total
                && let Some(count) = unless_it_would_wait(server.read(&mut heard))?
            {
                if verify {
                    pattern.verify(read, &heard[..count])?;
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

    /// The server closes first, and the client when it has heard of that. What waits in TIME-WAIT stays.
    fn connect(&self, amount: u64) -> Result<(), String> {
        for _ in 0..amount {
            let (mut client, server) = self.open()?;
            drop(server);
            if client.read(&mut [0]).map_err(sentence)? != 0 {
                return Err("the server has closed, and the client has heard something else".to_owned());
            }
        }
        Ok(())
    }
}

/// Gives an end of the cable its address, and takes from it what it would save the kernel.
fn set_up(end: &KernelInterface, address: Ipv4Addr) -> Result<(), String> {
    end.disable_ipv6().map_err(sentence)?;
    end.add_address(address, 24).map_err(sentence)?;
    let mut arguments = vec!["-K", end.name()];
    for offload in OFFLOADS {
        arguments.extend([offload, "off"]);
    }
    program("ethtool", &arguments)?;
    end.set_up().map_err(sentence)
}

/// Packets that the left end has sent and received.
fn frames() -> Result<[u64; 2], String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").map_err(sentence)?;
    let counts = text.lines().find_map(|line| line.trim_start().strip_prefix("left:"));
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
