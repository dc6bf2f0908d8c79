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

#![forbid(unsafe_code)]

mod address;
mod builder;
mod error;
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
pub use linerate_stack::{
    Budget, ConnectOptions, Counters, Limits, ListenOptions, ListenStatistics, Route, StackConfig,
    SynCookies, UdpOptions,
};
pub use linerate_tcp::{BufferSize, Config, Information, KeepAlive, Profile, State, Statistics};
pub use linerate_wire::{Ipv4Cidr, MacAddress};
