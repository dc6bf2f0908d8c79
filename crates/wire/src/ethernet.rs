//! Ethernet II frames, with or without 802.1Q tags (RFC 894).

use crate::layout::{half, octets, room, split_fixed};
use crate::{EtherType, MacAddress, Malformed, VlanTag, VlanTags};

/// The header of an Ethernet frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthernetHeader {
    /// The MAC address of the receiver.
    pub destination: MacAddress,
    /// The MAC address of the sender.
    pub source: MacAddress,
    /// The VLAN tags, which follow the addresses.
    pub tags: VlanTags,
    /// The protocol of the payload.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// The length of a header without tags, in bytes.
    pub const LENGTH: usize = 14;
    /// The length of a header with the largest supported number of VLAN tags, in bytes.
    pub const MAX_LENGTH: usize = Self::LENGTH + VlanTags::MOST * VlanTag::LENGTH;

    /// Returns the number of bytes that [`EthernetHeader::emit`] writes.
    #[must_use]
    pub const fn length(&self) -> usize {
        Self::LENGTH + self.tags.length()
    }

    /// Writes the header to the start of `bytes`, and returns its length.
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

/// A received frame, without its frame check sequence, which the NIC removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetFrame<'a> {
    /// The Ethernet header, with its VLAN tags.
    pub header: EthernetHeader,
    /// The payload, including the padding of a short frame.
    pub payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Parses the header at the start of `bytes`, with up to two VLAN tags.
    ///
    /// # Errors
    /// [`Malformed`] if the header or a tag is cut short.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, mut payload) =
            split_fixed::<{ EthernetHeader::LENGTH }>("Ethernet header", bytes)?;
        let mut ether_type = EtherType::new(half(fixed, 12));
        let mut tags = VlanTags::NONE;
        for _ in 0..VlanTags::MOST {
            if !ether_type.is_vlan() {
                break;
            }
            let (tag, rest) = split_fixed::<{ VlanTag::LENGTH }>("802.1Q tag", payload)?;
            tags.extend(VlanTag::read(ether_type, half(tag, 0)));
            (ether_type, payload) = (EtherType::new(half(tag, 2)), rest);
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
    fn the_header_has_the_layout_of_rfc_894() {
        let mut bytes = [0; 16];
        assert_eq!(UNTAGGED.emit(&mut bytes), 14);
        assert_eq!(bytes, [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0, 0, 0]);
        assert_eq!(
            EthernetFrame::parse(&bytes),
            Ok(EthernetFrame { header: UNTAGGED, payload: &[0, 0] })
        );
    }

    #[test]
    fn the_payload_follows_one_tag_or_two() {
        for tags in [VlanTags::one(tag(7)), VlanTags::stacked(tag(9).as_service_tag(), tag(7))] {
            let header = EthernetHeader { tags, ..UNTAGGED };
            let mut bytes = [0xee; 30];
            let length = header.emit(&mut bytes);
            let frame = EthernetFrame::parse(&bytes).unwrap();
            assert_eq!((frame.header, frame.payload), (header, &bytes[length..]));
        }
    }

    #[test]
    fn a_third_tag_remains_in_the_payload() {
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
