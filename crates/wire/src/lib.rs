//! The layout of bytes on the wire: headers, options, checksums and serial-number arithmetic.
//!
//! Nothing here knows about time, connections, or who is talking, and nothing allocates. Every
//! parser takes the bytes as they came and answers with a value that cannot be wrong, or with a
//! [`Malformed`] that says which rule they broke; no input panics.

#![no_std]
#![deny(unsafe_code)]

mod arp;
pub mod checksum;
mod error;
mod ethernet;
mod icmp;
mod ipv4;
mod ipv4_cidr;
mod layout;
mod mac_address;
mod protocol;
mod seq;
mod tcp;
mod tcp_options;
mod type_of_service;
mod udp;
mod vlan;

pub use arp::{ArpOperation, ArpPacket};
pub use checksum::Sum;
pub use error::Malformed;
pub use ethernet::{EtherType, EthernetFrame, EthernetHeader};
pub use icmp::{Echo, IcmpError, IcmpMessage, Quote, Redirect, TimeExceeded, Unreachable};
pub use ipv4::{Ipv4Header, Ipv4Packet};
pub use ipv4_cidr::{Ipv4Cidr, ParseIpv4CidrError};
pub use mac_address::{MacAddress, ParseMacAddressError};
pub use protocol::Protocol;
pub use seq::SeqNum;
pub use tcp::{Segment, TcpFlags, TcpHeader};
pub use tcp_options::{SackBlock, SackBlocks, TIMESTAMPS_PREFIX, TcpOptions, Timestamps};
pub use type_of_service::{Ecn, TypeOfService};
pub use udp::{UdpDatagram, UdpHeader};
pub use vlan::{VlanTag, VlanTags};
