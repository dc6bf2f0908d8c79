//! The types of Ethernet payloads.

use core::fmt;

/// The `EtherType` of a frame: the protocol of its payload. A number below 1,536 is the length of
/// an IEEE 802.3 frame instead.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct EtherType(u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// The Address Resolution Protocol (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// IPv6 (RFC 2464).
    pub const IPV6: Self = Self(0x86dd);
    /// A customer VLAN tag (IEEE 802.1Q).
    pub const VLAN: Self = Self(0x8100);
    /// A provider VLAN tag (IEEE 802.1ad).
    pub const SERVICE_VLAN: Self = Self(0x88a8);
    /// A provider VLAN tag with the number that vendors used before IEEE 802.1ad.
    pub const OLD_SERVICE_VLAN: Self = Self(0x9100);

    /// Creates the `EtherType` with this number on the wire.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Is this the type of a VLAN tag, which is followed by the type of the payload?
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN | Self::OLD_SERVICE_VLAN)
    }

    /// Is the number a length? Then the frame has the IEEE 802.3 format, with an LLC header.
    #[must_use]
    pub const fn is_length(self) -> bool {
        self.0 < 1_536
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::IPV4 => f.pad("IPv4"),
            Self::ARP => f.pad("ARP"),
            Self::IPV6 => f.pad("IPv6"),
            Self(number) => write!(f, "{number:#06x}"),
        }
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
