//! Raw IP sockets: their options, and their queues of packets.

use crate::collections::packet_queue::PacketQueue;
use crate::ip::egress::Egress;
use core::net::IpAddr;
use linerate_wire::{Protocol, TypeOfService};

/// The options of a raw socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawOptions {
    /// Maximum size of the receive queue in bytes. Packets that do not fit are dropped. Each packet
    /// counts as its payload plus 64 bytes.
    pub receive_bytes: usize,
    /// Maximum size of the send queue in bytes. Packets that do not fit are refused. Each packet
    /// counts as its IP header and payload plus 64 bytes.
    pub send_bytes: usize,
    /// TTL or hop limit of sent packets.
    pub hops: u8,
    /// Type of service or traffic class of sent packets.
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

/// Fields of a received packet's IP header, and its time of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawPacket {
    /// Source address of the packet.
    pub source: IpAddr,
    /// Destination address of the packet: an address of this host, a multicast group or a broadcast
    /// address.
    pub destination: IpAddr,
    /// TTL or hop limit of the packet.
    pub hops: u8,
    /// Type of service or traffic class of the packet.
    pub type_of_service: TypeOfService,
    /// Time at which the packet arrived.
    pub arrived: linerate_units::Instant,
}

/// A raw socket of this host.
#[derive(Debug)]
pub(crate) struct RawSocket {
    /// Whether the socket is an IPv6 socket, and not an IPv4 socket.
    pub(crate) is_ipv6: bool,
    pub(crate) protocol: Protocol,
    pub(crate) hops: u8,
    pub(crate) type_of_service: TypeOfService,
    /// The receive queue: payloads of received packets.
    pub(crate) received: PacketQueue<RawPacket>,
    /// The send queue: complete IP packets.
    pub(crate) to_send: PacketQueue<()>,
    /// The egress of the first packet in the send queue: an interface, or this host itself.
    pub(crate) egress: Egress,
    /// Whether the application waits for room in the send queue: a packet did not fit, and
    /// [`RawEvent::Writable`](crate::RawEvent::Writable) was not reported since.
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
            egress: Egress::FIRST,
            wants_writable: false,
        }
    }
}
