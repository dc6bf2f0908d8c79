//! Blocking sockets with the shapes of `std::net`, on a network of the program's own.
//!
//! A [`Net`] is one host on one link, and one thread that turns it: frames in, timers, frames out. A link of
//! several queues can have a thread and a shard of the host for each ([`Builder::queues`]).
//! Where `std::net` has free functions, a `Net` has methods; what they return is used like what
//! `std::net` returns, down to the kinds of errors. This crate knows threads, wake-ups and the errors of
//! `std`, and neither an async runtime nor what TCP does inside.
//!
//! Two networks at the ends of one cable, which is memory here, and no privileges needed:
//!
//! ```
//! use linerate_link::memory::{MemoryConfig, pair};
//! use linerate_sockets::{Net, StackConfig};
//! use std::io::{self, Read, Write};
//! use std::thread;
//!
//! let (left, right) = pair(MemoryConfig::default())?;
//! let one = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
//! let two = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
//! let server = Net::builder(left, one).name("server").start()?;
//! let client = Net::builder(right, two).name("client").start()?;
//!
//! // A server that sends back whatever it reads, as it would be written over `std::net`.
//! let listener = server.bind("10.0.0.1:7")?;
//! let echo = thread::spawn(move || -> io::Result<u64> {
//!     let (mut stream, _peer) = listener.accept()?;
//!     io::copy(&mut stream.try_clone()?, &mut stream)
//! });
//!
//! // A client that says a word, says that it was its last, and hears all of it again.
//! let mut stream = client.connect("10.0.0.1:7")?;
//! stream.write_all(b"line rate")?;
//! stream.shutdown(std::net::Shutdown::Write)?;
//! let mut heard = String::new();
//! stream.read_to_string(&mut heard)?;
//! assert_eq!(heard, "line rate");
//! assert_eq!(echo.join().unwrap()?, 9);
//!
//! // A mistake is answered as the system's sockets would answer it.
//! let refused = client.connect("10.0.0.1:8").unwrap_err();
//! assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
//!
//! // With the last `Net` its thread ends; nothing keeps running.
//! drop((server, client));
//! assert_eq!(stream.read(&mut [0])?, 0, "what had arrived can still be read");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A link of one's own
//!
//! Whatever carries packets can be a link, if it never waits and has a descriptor to wait for: the tunnel of a VPN,
//! the queue of a virtual machine. It implements [`Link`](linerate_stack::Link), which moves frames, and
//! [`Readiness`](linerate_link::Readiness), which says what to wait for. Here a datagram between two sockets is an IP
//! packet; and one of the hosts has rules of TCP that are not the usual ones.
//!
//! ```
//! use linerate_link::{MonotonicClock, Readiness};
//! use linerate_sockets::{CongestionName, Net, StackConfig};
//! use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
//! use linerate_units::Clock;
//! use std::io::{ErrorKind, Read, Write};
//! use std::os::fd::{AsFd, BorrowedFd};
//! use std::os::unix::net::UnixDatagram;
//! use std::thread;
//!
//! const MTU: usize = 1_400;
//!
//! struct Tunnel {
//!     socket: UnixDatagram,
//!     packet: [u8; MTU],
//!     is_full: bool,
//! }
//!
//! impl Link for Tunnel {
//!     fn receive(&mut self, budget: usize, mut on_frame: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError> {
//!         for received in 0..budget {
//!             match self.socket.recv(&mut self.packet) {
//!                 Ok(length) => on_frame(RxFrame::plain(&self.packet[..length], MonotonicClock.now())),
//!                 Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(received),
//!                 Err(_) => return Err(LinkError::Down),
//!             }
//!         }
//!         Ok(budget)
//!     }
//!
//!     fn transmit(
//!         &mut self,
//!         budget: usize,
//!         mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
//!     ) -> Result<usize, LinkError> {
//!         self.is_full = false;
//!         for sent in 0..budget {
//!             let Some(frame) = fill(&mut self.packet) else { return Ok(sent) };
//!             match self.socket.send(&self.packet[..frame.length]) {
//!                 Ok(_) => {}
//!                 // Lost, as on any full link: TCP sends it again.
//!                 Err(error) if error.kind() == ErrorKind::WouldBlock => {
//!                     self.is_full = true;
//!                     return Ok(sent + 1);
//!                 }
//!                 Err(_) => return Err(LinkError::Down),
//!             }
//!         }
//!         Ok(budget)
//!     }
//!
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::new(Medium::Ip, MTU)
//!     }
//! }
//!
//! impl Readiness for Tunnel {
//!     fn fd(&self) -> BorrowedFd<'_> {
//!         self.socket.as_fd()
//!     }
//!
//!     fn wants_room(&self) -> bool {
//!         self.is_full
//!     }
//! }
//!
//! let tunnel = |socket: UnixDatagram| {
//!     socket.set_nonblocking(true)?;
//!     Ok::<_, std::io::Error>(Tunnel { socket, packet: [0; MTU], is_full: false })
//! };
//! let (left, right) = UnixDatagram::pair()?;
//! // No frame has a station on such a link; the host is asked for its own all the same.
//! let one = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
//! let mut two = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
//! two.tcp.congestion = CongestionName::Bbr;
//! let server = Net::builder(tunnel(left)?, one).start()?;
//! let client = Net::builder(tunnel(right)?, two).start()?;
//!
//! let listener = server.bind("10.0.0.1:80")?;
//! let reader = thread::spawn(move || {
//!     let (mut stream, _peer) = listener.accept()?;
//!     let mut data = Vec::new();
//!     stream.read_to_end(&mut data)
//! });
//! let mut stream = client.connect("10.0.0.1:80")?;
//! stream.write_all(&[7; 100_000])?;
//! drop(stream);
//! assert_eq!(reader.join().unwrap()?, 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod address;
mod builder;
#[cfg(doctest)]
mod documents;
mod error;
mod freed_memory;
mod gate;
mod net;
mod patience;
mod reactor;
mod shared;
mod socket;
mod tcp_listener;
mod tcp_stream;
mod udp_socket;
mod waiters;

pub use builder::Builder;
pub use error::{End, Error};
pub use net::Net;
pub use reactor::Activity;
pub use tcp_listener::{Incoming, TcpListener};
pub use tcp_stream::TcpStream;
pub use udp_socket::UdpSocket;

// What these sockets are configured with, and what they tell of themselves.
pub use linerate_link::shard::Handovers;
pub use linerate_stack::{
    Budget, ConnectOptions, Counters, Limits, ListenOptions, ListenStatistics, NeighborLimits,
    Route, StackConfig, SynCookies, UdpOptions,
};
pub use linerate_tcp::{
    AckRule, BufferSize, Config, CongestionName, EcnRule, Information, KeepAlive, NagleRule,
    PacingRule, PathSearch, Profile, RtoLimits, State, Statistics,
};
pub use linerate_wire::{Ipv4Cidr, MacAddress};
