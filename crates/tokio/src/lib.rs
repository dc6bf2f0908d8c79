//! The sockets of `tokio::net` over a TCP/IP stack inside the program, and networks for
//! deterministic tests.
//!
//! [`net`] has the types of `tokio::net`, so a program only changes its `use` line. Its sockets
//! belong to a host, of which there are two kinds. A host on a real link is driven by a task of the
//! runtime ([`Net::builder`]). A host of a simulated network ([`sim`]) runs a complete linerate
//! stack in virtual time.
//!
//! ```
//! use linerate_tokio::{net::TcpListener, net::TcpStream, sim};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let link = "loss=1%,delay=10ms".parse().unwrap();
//! let network = sim::Network::builder().seed(7).link(link).build();
//! network.host("server").spawn(async {
//!     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
//!     let (mut stream, _) = listener.accept().await.unwrap();
//!     stream.write_all(&[7; 100_000]).await.unwrap();
//! });
//! let received = network.host("client").run(async {
//!     let mut stream = TcpStream::connect("server:80").await.unwrap();
//!     let mut received = Vec::new();
//!     stream.read_to_end(&mut received).await.unwrap();
//!     received.len()
//! });
//! assert_eq!(received, 100_000);
//! ```

#![forbid(unsafe_code)]

mod address;
mod builder;
mod error;
mod host;
pub mod net;
mod reactor;
pub mod sim;
mod socket;
mod waiters;

pub use address::ToSocketAddrs;
pub use builder::Builder;
pub use error::{End, Error};
pub use host::{Entered, Net, Scoped, SocketEntry};
pub use linerate_stack::{
    AddressOptions, AddressOrigin, AddressState, Autoconfiguration, Budget, Counters, Destinations,
    DhcpConfig, DhcpLease, EchoPolicy, ForwardOptions, ForwardStatistics, Fragmentation,
    InterfaceAddress, InterfaceConfig, ListenOptions, Opening, Rejection, Route, StackConfig,
    Transport, UdpOptions, Verdict,
};
pub use linerate_tcp::{
    Acknowledged, Config, CongestionName, Controller, CustomCongestion, FastRecovery, Lost,
    RateSample, Window,
};
pub use linerate_wire::{IpCidr, Unreachable};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/tokio.md")]
struct Book;
