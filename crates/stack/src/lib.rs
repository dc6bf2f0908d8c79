//! One host: IP, ARP, ICMP, UDP, many TCP connections, and what it asks of a link.
//!
//! Time, randomness and bytes come in as arguments. Nothing here knows about file descriptors,
//! threads, any particular link, or that a simulator exists.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address_table;
mod arp;
mod config;
mod counters;
mod demux;
mod echo;
mod error;
mod event;
mod host;
mod icmp;
mod interface;
mod ipv4;
mod isn;
mod keys;
mod link;
mod list;
mod listen;
mod neighbor;
mod packet_queue;
mod path_mtu;
mod ports;
mod ready;
mod receive;
mod route;
mod slab;
mod sockets;
mod stack;
mod tcp;
mod timer_wheel;
mod token_bucket;
mod transmit;
mod udp;
mod udp_sockets;

pub use config::{Limits, StackConfig};
pub use counters::{
    Counters, IcmpCounters, InterfaceCounters, IpCounters, NeighborCounters, TcpCounters, TcpExtraCounters,
    UdpCounters,
};
pub use error::Error;
pub use event::{EchoError, EchoReply, Event, UdpEvent};
pub use host::{Budget, Host, Turn};
pub use link::{Capabilities, Link, LinkError, Medium, RxChecksum, RxFrame, TxFrame};
pub use listen::ListenOptions;
pub use neighbor::NeighborLimits;
pub use route::Route;
pub use sockets::{ListenHandle, TcpHandle, UdpHandle};
pub use stack::Stack;
pub use tcp::ConnectOptions;
pub use udp::UdpOptions;
