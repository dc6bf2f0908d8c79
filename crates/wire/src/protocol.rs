//! The protocol numbers of IP payloads.

use core::fmt;

/// The protocol number of an IP payload: the protocol field of an IPv4 header, or a Next Header
/// field of IPv6. Every number is valid, because any can be received.
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

    /// The number that announces no further header and no payload (RFC 8200 §4.7).
    pub const NO_NEXT_HEADER: Self = Self(59);

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

    /// Is this the number of an IPv6 extension header (RFC 8200 §4), other than AH and ESP of
    /// IPsec?
    #[must_use]
    #[inline]
    pub const fn is_ipv6_extension(self) -> bool {
        matches!(
            self,
            Self::HOP_BY_HOP | Self::ROUTING | Self::FRAGMENT | Self::DESTINATION_OPTIONS
        )
    }

    /// Does `payload`, the data of a first fragment, contain the whole header of this protocol? A
    /// first fragment with less can evade filters, because they look for ports and flags there (RFC
    /// 1858, RFC 7112 §5).
    #[must_use]
    pub fn has_whole_header(self, payload: &[u8]) -> bool {
        let length = match self {
            Self::TCP => match payload.get(12) {
                Some(byte) => 20.max(usize::from(byte >> 4) * 4),
                None => 20,
            },
            Self::UDP | Self::ICMP | Self::ICMPV6 => 8,
            _ => 0,
        };
        payload.len() >= length
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
