//! Raw IP sockets: their options and queues.

use crate::collections::packet_queue::PacketQueue;
use core::net::IpAddr;
use linerate_wire::{Protocol, TypeOfService};

/// The options of a raw socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawOptions {
    /// Limit of the receive queue in bytes; packets beyond it are dropped. A packet counts 64 bytes
    /// beside its payload.
    pub receive_bytes: usize,
    /// Limit of the send queue in bytes; packets beyond it are refused. A packet counts 64 bytes
    /// beside its IP header and payload.
    pub send_bytes: usize,
    /// The TTL or hop limit of sent packets.
    pub hops: u8,
    /// The type of service or traffic class of sent packets.
    pub type_of_service: TypeOfService,
}

impl Default for RawOptions {
    fn default() -> Self {
        Self {
            receive_bytes: 208 << 10,
            send_bytes: 208 << 10,
            hops: 64,
            type_of_service: TypeOfService::default(),
        }
    }
}

/// The header of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawPacket {
    /// The sender.
    pub source: IpAddr,
    /// The receiver: an address of this host, or a group or broadcast address.
    pub destination: IpAddr,
    /// The TTL or hop limit.
    pub hops: u8,
    /// The type of service or traffic class.
    pub type_of_service: TypeOfService,
    /// The time of arrival.
    pub arrived: linerate_units::Instant,
}

/// A raw socket of this host.
#[derive(Debug)]
pub(crate) struct RawSocket {
    /// Does it receive packets of IPv6? Otherwise of IPv4.
    pub(crate) is_ipv6: bool,
    pub(crate) protocol: Protocol,
    pub(crate) hops: u8,
    pub(crate) type_of_service: TypeOfService,
    /// Payloads of received packets.
    pub(crate) received: PacketQueue<RawPacket>,
    /// Packets ready to be sent.
    pub(crate) to_send: PacketQueue<()>,
    /// Was a packet refused because the send queue was full, without a writable event since then?
    pub(crate) wants_writable: bool,
}

impl RawSocket {
    pub(crate) const fn new(is_ipv6: bool, protocol: Protocol, options: &RawOptions) -> Self {
        Self {
            is_ipv6,
            protocol,
            hops: options.hops,
            type_of_service: options.type_of_service,
            received: PacketQueue::new(options.receive_bytes),
            to_send: PacketQueue::new(options.send_bytes),
            wants_writable: false,
        }
    }
}
