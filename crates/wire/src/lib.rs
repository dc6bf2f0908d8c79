//! The layout of bytes on the wire: headers, options, checksums and serial-number arithmetic.
//!
//! This crate uses no clock, keeps no connection state, and does not allocate. Every parser returns
//! a valid value, or a [`Malformed`] that names the violated rule; no input causes a panic. Every
//! `emit` function writes to the start of a buffer. It panics if the buffer is too short, which is
//! an error of the caller.
//!
//! # Emitting and parsing a packet
//!
//! The checksum of a transport protocol covers the payload, so it is filled in last.
//!
//! ```
//! use linerate_wire::{
//!     EtherType, EthernetFrame, EthernetHeader, FrameLine, Ipv4Header, Ipv4Packet, MacAddress,
//!     Protocol, Segment, SeqNum, Sum, TcpFlags, TcpHeader, VlanTags,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ethernet = EthernetHeader {
//!     destination: "02:00:00:00:00:02".parse()?,
//!     source: "02:00:00:00:00:01".parse()?,
//!     tags: VlanTags::NONE,
//!     ether_type: EtherType::IPV4,
//! };
//! let ip = Ipv4Header::new("192.0.2.1".parse()?, "192.0.2.2".parse()?, Protocol::TCP);
//! let tcp = TcpHeader {
//!     source_port: 49_152,
//!     destination_port: 9,
//!     seq: SeqNum::new(u32::MAX - 2),
//!     ack: SeqNum::new(17),
//!     flags: TcpFlags::PSH | TcpFlags::ACK,
//!     window: 8_192,
//!     urgent: 0,
//! };
//! let data = b"line rate";
//!
//! let mut frame = vec![0; 14 + 20 + 20 + data.len()];
//! let ip_at = ethernet.emit(&mut frame);
//! let tcp_at = ip_at + ip.emit(20 + data.len(), &mut frame[ip_at..]);
//! let segment = &mut frame[tcp_at..];
//! tcp.emit(0, segment);
//! segment[20..].copy_from_slice(data);
//! let (pseudo, sum) = (ip.pseudo_header(segment.len()), Sum::of(segment));
//! TcpHeader::fill_checksum(segment, pseudo, sum);
//!
//! let line = "IP 192.0.2.1.49152 > 192.0.2.2.9: \
//!             Flags [P.], seq 4294967293:6, ack 17, win 8192, length 9";
//! assert_eq!(FrameLine(&frame).to_string(), line);
//!
//! let frame = EthernetFrame::parse(&frame)?;
//! assert_eq!(frame.header.source, MacAddress::new([2, 0, 0, 0, 0, 1]));
//! let packet = Ipv4Packet::parse(frame.payload)?;
//! TcpHeader::verify_checksum(packet.payload, packet.header.pseudo_header(packet.payload.len()))?;
//! let segment = Segment::parse(packet.payload)?;
//! assert!(segment.seq.before(segment.seq + segment.sequence_length()), "also across the wrap");
//! assert_eq!(segment.payload, data);
//! # Ok(())
//! # }
//! ```

#![no_std]
#![deny(unsafe_code)]

mod accurate_ecn;
mod arp;
pub mod checksum;
pub mod dhcp;
mod error;
mod ether_type;
mod ethernet;
mod fast_open;
pub mod group_membership;
mod icmp;
mod icmpv6;
pub mod igmp;
mod ip_cidr;
mod ip_header;
mod ipv4;
mod ipv4_cidr;
mod ipv4_options;
mod ipv6;
pub mod ipv6_multicast;
mod layout;
mod mac_address;
mod neighbor_discovery;
mod next_ack;
mod next_packet;
mod plain_packet;
#[allow(unsafe_code, reason = "the prefetch instruction takes a raw address")]
mod prefetch;
mod print;
mod protocol;
mod seq;
mod slip;
mod tcp;
mod tcp_options;
mod type_of_service;
mod udp;
mod version;
mod vj;
mod vlan;

pub use accurate_ecn::{EcnCounts, EcnOrder};
pub use arp::{ArpOperation, ArpPacket};
pub use checksum::Sum;
pub use error::Malformed;
pub use ether_type::EtherType;
pub use ethernet::{EthernetFrame, EthernetHeader};
pub use fast_open::FastOpenCookie;
pub use group_membership::{
    GroupMessage, GroupQuery, GroupRecord, GroupRecordKind, GroupRecords, GroupReport,
    GroupSources, GroupVersion,
};
pub use icmp::{Echo, IcmpError, IcmpMessage, Quote, Redirect, TimeExceeded, Unreachable};
pub use icmpv6::mld;
pub use icmpv6::{Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, Ipv6Quote};
pub use ip_cidr::{IpCidr, ParseIpCidrError};
pub use ip_header::IpHeader;
pub use ipv4::{Ipv4Header, Ipv4Packet};
pub use ipv4_cidr::{Ipv4Cidr, ParseIpv4CidrError};
pub use ipv4_options::{Ipv4Option, Ipv4Options};
pub use ipv6::{
    Ipv6Content, Ipv6Extension, Ipv6Extensions, Ipv6Fragment, Ipv6Header, Ipv6Option,
    Ipv6OptionAction, Ipv6Options, Ipv6Packet, Ipv6Piece, Ipv6Refusal,
};
pub use mac_address::{MacAddress, ParseMacAddressError};
pub use neighbor_discovery::{
    NdMessage, NdOption, NdOptions, PrefixInformation, RouterAdvertisement, RouterPreference,
};
pub use next_ack::{LaterAck, NextAck};
pub use next_packet::{NextPacket, PacketOfRun};
pub use plain_packet::PlainPacket;
pub use prefetch::prefetch_through;
pub use print::{FrameLine, PacketLine, RelativeLine, SequenceBases};
pub use protocol::Protocol;
pub use seq::SeqNum;
pub use slip::{SlipDecoder, slip_bytes};
pub use tcp::{Segment, TcpFlags, TcpHeader};
pub use tcp_options::{SackBlock, SackBlocks, TcpOptions, Timestamps, UserTimeout};
pub use type_of_service::{Ecn, TypeOfService};
pub use udp::{UdpDatagram, UdpHeader};
pub use version::{IpVersion, V4, V6};
pub use vj::{VJ_SLOTS, VjCompressor, VjDecompressor, VjError};
pub use vlan::{ParseVlanError, VlanTag, VlanTags};
