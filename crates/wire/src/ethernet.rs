//! Ethernet II frames, with or without 802.1Q tags (RFC 894).

use crate::layout::{half, octets, room, split_fixed};
use crate::{MacAddress, Malformed, VlanTag, VlanTags};
use core::fmt;

/// What a frame carries. A number below 1,536 is the length of an 802.3 frame instead.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct EtherType(u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// Address resolution (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// IPv6 (RFC 2464).
    pub const IPV6: Self = Self(0x86dd);
    /// A tag of IEEE 802.1Q.
    pub const VLAN: Self = Self(0x8100);
    /// A provider's tag of IEEE 802.1ad.
    pub const SERVICE_VLAN: Self = Self(0x88a8);
    /// A provider's tag as it was written before 802.1ad.
    pub const OLD_SERVICE_VLAN: Self = Self(0x9100);

    /// The type with this number on the wire.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Does a tag follow?
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN | Self::OLD_SERVICE_VLAN)
    }

    /// Is the number a length, and the frame one of 802.3 with an LLC header?
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

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Whom it is for.
    pub destination: MacAddress,
    /// Who sent it.
    pub source: MacAddress,
    /// The virtual network it belongs to.
    pub tags: VlanTags,
    /// What the payload is.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Bytes of a header without tags.
    pub const LENGTH: usize = 14;
    /// Bytes of a header with the most tags that are read.
    pub const MAX_LENGTH: usize = Self::LENGTH + VlanTags::MOST * VlanTag::LENGTH;

    /// Bytes that [`EthernetHeader::emit`] writes.
    #[must_use]
    pub const fn length(&self) -> usize {
        Self::LENGTH + self.tags.length()
    }

    /// Writes the header to the start of `bytes` and returns its length; the payload goes behind it.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`EthernetHeader::length`].
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        let addresses = room::<12>(bytes);
        addresses[..6].copy_from_slice(&self.destination.octets());
        addresses[6..].copy_from_slice(&self.source.octets());
        let mut at = addresses.len();
        let mut put = |number: u16| {
            bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
            at += 2;
        };
        for tag in self.tags.iter() {
            put(tag.kind().number());
            put(tag.control());
        }
        put(self.ether_type.number());
        at
    }
}

/// A frame as it came, without the check sequence, which hardware keeps to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetFrame<'a> {
    /// The header.
    pub header: EthernetHeader,
    /// What follows the header, with the padding of a short frame still behind it.
    pub payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Reads the header and up to two tags at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] if the header or a tag reaches beyond `bytes`.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, mut payload) =
            split_fixed::<{ EthernetHeader::LENGTH }>("Ethernet header", bytes)?;
        let mut ether_type = EtherType(half(fixed, 12));
        let mut tags = VlanTags::NONE;
        for _ in 0..VlanTags::MOST {
            if !ether_type.is_vlan() {
                break;
            }
            let (tag, rest) = split_fixed::<{ VlanTag::LENGTH }>("802.1Q tag", payload)?;
            tags.extend(VlanTag::read(ether_type, half(tag, 0)));
            (ether_type, payload) = (EtherType(half(tag, 2)), rest);
        }
        let (destination, source) =
            (MacAddress::new(octets(fixed, 0)), MacAddress::new(octets(fixed, 6)));
        Ok(Self { header: EthernetHeader { destination, source, tags, ether_type }, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTAGGED: EthernetHeader = EthernetHeader {
        destination: MacAddress::BROADCAST,
        source: MacAddress::new([2, 0, 0, 0, 0, 1]),
        tags: VlanTags::NONE,
        ether_type: EtherType::IPV4,
    };

    fn tag(id: u16) -> VlanTag {
        VlanTag::new(3, id).unwrap()
    }

    #[test]
    fn the_bytes_stand_where_rfc_894_puts_them() {
        let mut bytes = [0; 16];
        assert_eq!(UNTAGGED.emit(&mut bytes), 14);
        assert_eq!(bytes, [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0, 0, 0]);
        assert_eq!(
            EthernetFrame::parse(&bytes),
            Ok(EthernetFrame { header: UNTAGGED, payload: &[0, 0] })
        );
    }

    #[test]
    fn a_payload_is_found_behind_one_tag_and_behind_two() {
        for tags in [VlanTags::one(tag(7)), VlanTags::stacked(tag(9).as_service_tag(), tag(7))] {
            let header = EthernetHeader { tags, ..UNTAGGED };
            let mut bytes = [0xee; 30];
            let length = header.emit(&mut bytes);
            let frame = EthernetFrame::parse(&bytes).unwrap();
            assert_eq!((frame.header, frame.payload), (header, &bytes[length..]));
        }
    }

    #[test]
    fn a_third_tag_is_the_payload_of_an_unknown_type() {
        let mut bytes = [0; 30];
        let tags = VlanTags::stacked(tag(1), tag(2));
        EthernetHeader { tags, ether_type: EtherType::VLAN, ..UNTAGGED }.emit(&mut bytes);
        bytes[22..26].copy_from_slice(&[0, 3, 8, 0]);
        let frame = EthernetFrame::parse(&bytes).unwrap();
        assert_eq!((frame.header.ether_type, frame.payload.len()), (EtherType::VLAN, 8));
    }

    #[test]
    fn a_tag_that_is_cut_short_is_malformed() {
        let mut bytes = [0; 18];
        EthernetHeader { tags: VlanTags::one(tag(1)), ..UNTAGGED }.emit(&mut bytes);
        assert!(EthernetFrame::parse(&bytes[..17]).is_err());
        assert!(EthernetFrame::parse(&bytes[..13]).is_err());
    }
}
