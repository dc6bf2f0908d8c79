//! What is sent next: replies of the host itself, zero-copy payloads, and resolved next hops.

use crate::link::TxFrame;
use core::net::Ipv4Addr;
use linerate_tcp::Lent;
use linerate_wire::MacAddress;

/// Something that the host itself has to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// An IP packet.
    Packet,
    /// An ARP packet to this station.
    Arp(MacAddress),
}

/// Where the data of the frame that is written are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// In the frame: nobody gathers.
    Unwanted,
    /// In the frame, but they need not be.
    Wanted,
    /// In the send buffer of this connection.
    Of(u32, Lent),
}

/// What became of a sender's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// It wrote a frame.
    Frame(TxFrame),
    /// It had a packet, which waits for a neighbour now, or had to be dropped.
    Elsewhere,
    /// It had nothing.
    Nothing,
}

/// The station that a packet is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Station {
    /// This one; without meaning where the medium has no stations.
    Known(MacAddress),
    /// That of the neighbour with this address, which has been asked.
    Asked(Ipv4Addr),
    /// None: no route leads on.
    NoRoute,
}
