//! Types for the transmission of frames: replies, scatter-gather, outcomes and next hops.

use crate::link::TxFrame;
use core::net::IpAddr;
use linerate_tcp::ZeroCopyRange;
use linerate_wire::MacAddress;

/// The kind of a packet in the reply queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// An IP packet.
    Packet,
    /// An ARP packet to this MAC address.
    Arp(MacAddress),
}

/// The use of scatter-gather for the frame that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScatterGather {
    /// Scatter-gather is not permitted, so the payload must be copied into the frame.
    Off,
    /// Scatter-gather is permitted: the payload may stay in the send buffer.
    Allowed,
    /// The payload of the frame is this range of the send buffer of the connection at this index.
    Payload(u32, ZeroCopyRange),
}

/// The outcome of asking a sender for its next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransmitOutcome {
    /// A frame was written, with this metadata.
    Frame(TxFrame),
    /// No frame was written. The packet was queued until the MAC address of its next hop is known,
    /// or the packet was dropped.
    QueuedOrDropped,
    /// The sender had nothing to send.
    Nothing,
}

/// The link address of a packet's next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// The MAC address of the next hop. It is unused on links without MAC addresses.
    Mac(MacAddress),
    /// The MAC address of this neighbour is not known yet. Address resolution is in progress.
    Resolving(IpAddr),
    /// There is no route to the destination.
    NoRoute,
}
