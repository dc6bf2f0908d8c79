//! A packet of a capture, with its metadata.

use linerate_stack::Medium;
use linerate_units::Duration;

/// A packet that was read from a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface that captured the packet, counted from 0 in its section of the file.
    pub interface: u32,
    /// The kind of the packet's first header.
    pub link_type: LinkType,
    /// The time of the packet since 1970-01-01 00:00 UTC, if the file contains it.
    pub time: Option<Duration>,
    /// The direction of the packet, if the file contains it.
    pub direction: Option<Direction>,
    /// The length that the packet had on the wire, in bytes. It exceeds the length of `bytes` if
    /// the capture program stored only the start of the packet.
    pub original_length: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

/// The kind of a packet's first header. Files contain it as a number of the list at
/// <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
    /// Another kind of header, with its link type number.
    Other(u16),
}

impl LinkType {
    /// Returns the link type of packets that are captured on this medium.
    #[must_use]
    pub const fn of(medium: Medium) -> Self {
        match medium {
            Medium::Ethernet => Self::Ethernet,
            Medium::Ip => Self::Ip,
        }
    }

    pub(super) const fn number(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::Other(number) => number,
        }
    }

    pub(super) const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Ethernet,
            // Number 101 is the link type of raw IP, 228 that of IPv4 and 229 that of IPv6. Some
            // programs write their internal number for raw IP (DLT_RAW) instead: 14 on OpenBSD, 12
            // on other systems.
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            other => Self::Other(other),
        }
    }
}

/// The direction of a packet, seen from the host of the captured link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The host received the packet.
    Received,
    /// The host sent the packet.
    Sent,
}
