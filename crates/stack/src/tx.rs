//! The outcomes and parameters of transmission: replies, scatter-gather, next hops.

use crate::link::TxFrame;
use core::net::IpAddr;
use linerate_tcp::ZeroCopyRange;
use linerate_wire::MacAddress;

/// A queued reply of the host itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// An IP packet.
    Packet,
    /// An ARP packet to this MAC address.
    Arp(MacAddress),
}

/// The use of scatter-gather for the current frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScatterGather {
    /// The payload is in the frame.
    Off,
    /// The payload may stay in the send buffer.
    Allowed,
    /// The payload is in the send buffer of this connection.
    Payload(u32, ZeroCopyRange),
}

/// The outcome of a sender's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransmitOutcome {
    /// A frame was written.
    Frame(TxFrame),
    /// The packet was queued for its neighbour, or dropped.
    QueuedOrDropped,
    /// There was nothing to send.
    Nothing,
}

/// The link address of a packet's next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// The MAC address; unused on links without link addresses.
    Mac(MacAddress),
    /// The neighbour with this address is being resolved.
    Resolving(IpAddr),
    /// There is no route.
    NoRoute,
}
