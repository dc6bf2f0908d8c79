//! A host without I/O of its own (sans-IO): IP, ARP, ICMP, UDP and TCP for many connections, and
//! the trait [`Link`] for the link of the host.
//!
//! The caller passes time, randomness and received bytes as arguments. So this crate uses no clock,
//! no file descriptors and no threads, and works with any kind of link.
//!
//! A [`Stack`] has three groups of methods: methods for applications (`tcp_*`, `udp_*`, `echo_*`),
//! methods for the program that drives the host ([`Stack::turn`], or `handle_*` for input and
//! `poll_*` for output), and getters. Two hosts and a loop that carries their frames form a
//! network:
//!
//! ```
//! use core::net::SocketAddr;
//! use linerate_stack::{ConnectOptions, Event, ListenOptions, RxFrame, Stack, StackConfig};
//! use linerate_units::{Duration, Instant};
//! use linerate_wire::MacAddress;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = |number: u8, address: &str| {
//!     let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
//!     // A real host draws its seed from the operating system's random numbers. This example uses
//!     // fixed seeds, so that each run sends the same bytes.
//!     let config = StackConfig::new(mac, address.parse()?);
//!     Ok::<_, Box<dyn std::error::Error>>(Stack::new(config, [number; 32]))
//! };
//! let mut here = host(1, "192.0.2.1/24")?;
//! let mut there = host(2, "192.0.2.2/24")?;
//! let mut now = Instant::ZERO;
//!
//! // Carries the frames of each host to the other host, until both hosts have nothing to send.
//! fn carry<'a>(now: Instant, mut from: &'a mut Stack, mut to: &'a mut Stack) {
//!     let (mut frame, mut idle) = ([0; 1_514], 0);
//!     while idle < 2 {
//!         idle += 1;
//!         while let Some(sent) = from.poll_transmit(now, &mut frame) {
//!             let bytes = &frame[..sent.length];
//!             to.handle_frame(now, RxFrame::plain(bytes, now));
//!             idle = 0;
//!         }
//!         core::mem::swap(&mut from, &mut to);
//!     }
//! }
//!
//! // Send an echo request. The hosts first resolve each other's MAC address by ARP.
//! here.echo_send(now, [192, 0, 2, 2], 7, 1, b"are you there?")?;
//! carry(now, &mut here, &mut there);
//! let reply = here.poll_event();
//! assert!(matches!(reply, Some(Event::EchoReply(reply)) if reply.data == b"are you there?"));
//!
//! // Open a connection, and send nine bytes over it.
//! let address: SocketAddr = "192.0.2.2:80".parse()?;
//! let listener = there.tcp_listen(address, &ListenOptions::default())?;
//! let client = here.tcp_connect(now, address, &ConnectOptions::default())?;
//! here.tcp_write(now, client, b"line rate")?;
//! carry(now, &mut here, &mut there);
//! let (server, _peer) = there.tcp_accept(listener).ok_or("no connection")?;
//! let mut received = [0; 16];
//! assert_eq!(there.tcp_read(now, server, &mut received)?, 9);
//! assert_eq!(&received[..9], b"line rate");
//!
//! // Time advances only through the argument `now`. The FIN below is lost, and is retransmitted
//! // after a second without an acknowledgement.
//! here.tcp_close(now, client)?;
//! let mut lost = [0; 1_514];
//! while here.poll_transmit(now, &mut lost).is_some() {}
//! now += Duration::from_secs(1);
//! here.handle_timeout(now, 100);
//! carry(now, &mut here, &mut there);
//! there.tcp_close(now, server)?;
//! carry(now, &mut here, &mut there);
//! assert_eq!(here.counters().tcp.retransmitted_segments, 1);
//! assert_eq!(there.counters().tcp.currently_established, 0);
//! println!("{}", here.counters());
//! # Ok(())
//! # }
//! ```
//!
//! On a real link, [`Host::turn`] is the loop: it receives frames, runs timers and sends frames.
//! Implement [`Link`] to attach a host to another kind of link.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod collections;
mod config;
mod counters;
mod demux;
mod dhcp;
mod error;
#[cfg(feature = "std")]
mod error_kind;
mod ethernet;
mod event;
mod forward;
mod handle;
mod host;
mod icmp;
mod ip;
mod keys;
mod link;
mod ports;
mod raw;
mod ready;
mod rx;
mod services;
mod sockets;
mod stack;
mod steering;
mod tcp;
mod tx;
mod udp;

pub use collections::token_bucket::RateLimit;
pub use config::{InterfaceConfig, Limits, StackConfig};
pub use counters::{
    Counters, DhcpCounters, GroupCounters, IcmpCounters, IpCounters, NeighborCounters,
    NeighborDiscoveryCounters, ReceiveCounters, TcpCounters, TcpExtraCounters, TransmitCounters,
    UdpCounters,
};
pub use dhcp::DhcpConfig;
pub use dhcp::lease::DhcpLease;
pub use error::Error;
pub use ethernet::neighbor::NeighborLimits;
pub use event::{EchoError, EchoReply, Event, RawEvent, ReportedError, UdpEvent};
pub use forward::{
    Destinations, EchoPolicy, ForwardEvent, ForwardOptions, ForwardStatistics, Opening, Rejection,
    Transport, Verdict,
};
pub use handle::{DeferredHandle, ListenHandle, RawHandle, TcpHandle, UdpHandle};
pub use host::Host;
pub use ip::address::{AddressOptions, AddressOrigin, AddressState, InterfaceAddress};
pub use ip::autoconfiguration::Autoconfiguration;
pub use ip::reassembly::ReassemblyLimits;
pub use ip::route::Route;
pub use ip::routers::DefaultRouter;
pub use ip::zone::FIRST_INTERFACE;
pub use link::gso::segment_gso_frame;
pub use link::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, Medium, Offloads,
    PartialChecksum, PlainFrame, RxChecksum, RxFrame, SMALLEST_MTU, TxChecksum, TxFrame,
    ZeroCopyFrame,
};
pub use raw::{RawOptions, RawPacket};
pub use stack::Stack;
pub use stack::groups::MulticastInterface;
pub use stack::turn::{Budget, InterfaceLink, Turn};
pub use steering::{FIRST_SHARD, Shard, Steered, Steering};
pub use tcp::connect_options::ConnectOptions;
pub use tcp::fast_open::cookie::FastOpenKeys;
pub use tcp::listen::{ListenOptions, ListenStatistics, SynCookies};
pub use udp::{Fragmentation, ReceivedSegments, UdpOptions};
