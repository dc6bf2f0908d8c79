//! The protocol numbers of IP payloads.

use core::fmt;

/// The number in the protocol field of an IPv4 header, or the next header field of an IPv6 header.
/// Any number can be received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Protocol(u8);

impl Protocol {
    /// The Internet Control Message Protocol (RFC 792).
    pub const ICMP: Self = Self(1);
    /// The Internet Group Management Protocol (RFC 3376).
    pub const IGMP: Self = Self(2);
    /// The Transmission Control Protocol (RFC 9293).
    pub const TCP: Self = Self(6);
    /// The User Datagram Protocol (RFC 768).
    pub const UDP: Self = Self(17);
    /// The Internet Control Message Protocol for IPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// The Hop-by-Hop Options header (RFC 8200 §4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    /// The Routing header (RFC 8200 §4.4).
    pub const ROUTING: Self = Self(43);
    /// The Fragment header (RFC 8200 §4.5).
    pub const FRAGMENT: Self = Self(44);
    /// The Destination Options header (RFC 8200 §4.6).
    pub const DESTINATION_OPTIONS: Self = Self(60);

    /// Creates the protocol with this number on the wire.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ICMP => f.pad("ICMP"),
            Self::IGMP => f.pad("IGMP"),
            Self::TCP => f.pad("TCP"),
            Self::UDP => f.pad("UDP"),
            Self::ICMPV6 => f.pad("ICMPv6"),
            Self(number) => write!(f, "protocol {number}"),
        }
    }
}
