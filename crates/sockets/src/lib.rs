//! Blocking sockets with the API of `std::net`, on a network inside the program.
//!
//! A [`Net`] is one host on one link, and a thread that drives the host: it receives frames, runs
//! timers, and transmits frames. A link with several queues can have a thread and a shard of the
//! host for each queue ([`Builder::queues`]). Methods of `Net` replace the free functions of
//! `std::net`. They return sockets that are used like the sockets of `std::net`, and report the
//! same kinds of errors. This crate adds threads, wake-ups and the errors of `std` to the host of
//! [`linerate_stack`], which contains the protocols. It has no async runtime.
//!
//! This example connects two networks through a link in memory, which needs no privileges:
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
//! // An echo server, written as for `std::net`.
//! let listener = server.bind("10.0.0.1:7")?;
//! let echo = thread::spawn(move || -> io::Result<u64> {
//!     let (mut stream, _peer) = listener.accept()?;
//!     io::copy(&mut stream.try_clone()?, &mut stream)
//! });
//!
//! // A client that sends some bytes, closes its sending direction, and reads the echo.
//! let mut stream = client.connect("10.0.0.1:7")?;
//! stream.write_all(b"line rate")?;
//! stream.shutdown(std::net::Shutdown::Write)?;
//! let mut received = String::new();
//! stream.read_to_string(&mut received)?;
//! assert_eq!(received, "line rate");
//! assert_eq!(echo.join().unwrap()?, 9);
//!
//! // Errors have the kinds that the system's sockets report.
//! let refused = client.connect("10.0.0.1:8").unwrap_err();
//! assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
//!
//! // Dropping the last `Net` ends its thread.
//! drop((server, client));
//! assert_eq!(stream.read(&mut [0])?, 0, "received data can still be read");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Custom links
//!
//! Everything that carries packets can be a link, for example a VPN tunnel or the queue of a
//! virtual machine. It must never block, and must have a file descriptor to wait for. Such a link
//! implements [`Link`](linerate_stack::Link), which moves frames, and
//! [`Readiness`](linerate_link::Readiness), which provides the descriptor. In this example, each
//! datagram between two Unix sockets carries an IP packet. One of the hosts uses BBR as its
//! congestion control.
//!
//! ```
//! use linerate_link::{MonotonicClock, Readiness};
//! use linerate_sockets::{CongestionName, Net, StackConfig};
//! use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
//! use linerate_units::{Clock, Instant};
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
//!     fn receive(
//!         &mut self,
//!         budget: usize,
//!         mut on_frame: impl FnMut(RxFrame<'_>),
//!     ) -> Result<usize, LinkError> {
//!         for received in 0..budget {
//!             match self.socket.recv(&mut self.packet) {
//!                 Ok(length) => {
//!                     on_frame(RxFrame::plain(&self.packet[..length], MonotonicClock.now()));
//!                 }
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
//!                 // The packet is lost, as on any full link. TCP retransmits it.
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
//!
//!     // The descriptor signals every event, so the remaining methods do nothing.
//!     fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
//!         None
//!     }
//!
//!     fn is_ready(&mut self) -> bool {
//!         false
//!     }
//!
//!     fn prepare_to_sleep(&mut self) -> bool {
//!         true
//!     }
//!
//!     fn awake(&mut self, _signalled: bool) {}
//!
//!     fn next_deadline(&self) -> Instant {
//!         Instant::NEVER
//!     }
//! }
//!
//! let tunnel = |socket: UnixDatagram| {
//!     socket.set_nonblocking(true)?;
//!     Ok::<_, std::io::Error>(Tunnel { socket, packet: [0; MTU], is_full: false })
//! };
//! let (left, right) = UnixDatagram::pair()?;
//! // An IP link carries no MAC addresses, but a host needs one in any case.
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
mod event_count;
mod forwarder;
mod multicast;
mod net;
mod poller;
mod reactor;
mod shared;
mod socket;
mod tcp_listener;
mod tcp_stream;
mod timeouts;
mod udp_socket;
mod waiters;

pub use builder::Builder;
pub use error::{End, Error};
pub use forwarder::{Flow, Forwarder, Handshake};
pub use net::Net;
pub use poller::{Event, Interest, Poller, Source};
pub use reactor::Activity;
pub use tcp_listener::{Incoming, TcpListener};
pub use tcp_stream::TcpStream;
pub use udp_socket::UdpSocket;

// Types of other crates that are parameters or results of this crate's API.
pub use linerate_link::shard::Handovers;
pub use linerate_stack::{
    AddressOptions, AddressOrigin, AddressState, Autoconfiguration, Budget, ConnectOptions,
    Counters, Destinations, DhcpConfig, DhcpLease, EchoPolicy, ForwardOptions, ForwardStatistics,
    Fragmentation, InterfaceAddress, InterfaceConfig, Limits, ListenOptions, ListenStatistics,
    NeighborLimits, Opening, RateLimit, ReassemblyLimits, Rejection, Route, StackConfig,
    SynCookies, Transport, UdpOptions, Verdict,
};
pub use linerate_tcp::{
    AckRule, Acknowledged, BufferSize, Config, CongestionName, Controller, CustomCongestion,
    EcnRule, FastRecovery, Information, KeepAlive, Lost, NagleRule, PacingRule, PathSearch,
    Profile, RateSample, RtoLimits, State, Statistics, TimeLimits, Window,
};
pub use linerate_wire::{IpCidr, Ipv4Cidr, MacAddress, Unreachable};
