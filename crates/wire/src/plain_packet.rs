//! The TCP segment of an IPv4 packet like nearly all, read in three words: whole, and without options.

use crate::{Protocol, Sum, TypeOfService, checksum};
use core::net::Ipv4Addr;

/// Version, header length, and what only fragments have.
const SHAPE: u64 = 0xff00_0000_0000_3fff;
/// Version 4, five words, no fragment.
const PLAIN: u64 = 0x4500_0000_0000_0000;

/// What such a packet says of its segment. Everything else about it is as of all packets of this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainPacket<'a> {
    /// How routers should treat the packet, and whether one was congested.
    pub type_of_service: TypeOfService,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// Whom it is for.
    pub destination: Ipv4Addr,
    /// SRC port.
    pub source_port: u16,
    /// DST port.
    pub destination_port: u16,
    /// The segment, ports and all.
    pub segment: &'a [u8],
}

impl<'a> PlainPacket<'a> {
    /// Reads the packet at the start of `bytes`. `None` says only that it is not of this shape, or that
    /// something is wrong: [`crate::Ipv4Packet::parse`] tells what, and reads every packet that this does.
    #[inline]
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<24>()?;
        let [first, second, third] = [0, 1, 2].map(|at| word(head, at));
        if first & SHAPE != PLAIN || low_byte(second >> 48) != Protocol::TCP.number() {
            return None;
        }
        let segment = bytes.get(20..usize::from(low_half(first >> 32)))?;
        let halves = [first >> 32, first, second >> 32, second, third >> 32].map(low_word);
        if segment.len() < 4 || !Sum::of_words(halves).is_valid() {
            return None;
        }
        Some(Self {
            type_of_service: TypeOfService::from_byte(low_byte(first >> 48)),
            source: Ipv4Addr::from_bits(low_word(second)),
            destination: Ipv4Addr::from_bits(low_word(third >> 32)),
            source_port: low_half(third >> 16),
            destination_port: low_half(third),
            segment,
        })
    }

    /// Is the segment what its checksum says?
    #[inline(always)]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let length = self.segment.len();
        let pseudo = checksum::pseudo_header_v4(self.source, self.destination, Protocol::TCP, length);
        (pseudo + Sum::of(self.segment)).is_valid()
    }
}

#[inline]
fn word(head: &[u8; 24], at: usize) -> u64 {
    let (words, _) = head.as_chunks::<8>();
    u64::from_be_bytes(words[at])
}

#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
const fn low_byte(word: u64) -> u8 {
    word as u8
}

#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
const fn low_half(word: u64) -> u16 {
    word as u16
}

#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
const fn low_word(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Header, Ipv4Packet, Segment, TcpHeader};
    use proptest::prelude::*;

    /// A packet with a segment of 30 bytes, and six of padding.
    fn packet() -> [u8; 56] {
        let [source, destination] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2)];
        let header = Ipv4Header::new(source, destination, Protocol::TCP);
        let mut bytes = [0xee; 56];
        header.emit(30, &mut bytes);
        let segment = &mut bytes[20..50];
        TcpHeader::default().emit(0, segment);
        let sum = TcpHeader::fill_ports(segment, 40_001, 80, Sum::of(segment));
        TcpHeader::fill_checksum(segment, header.pseudo_header(30), sum);
        bytes
    }

    #[test]
    fn a_plain_packet_is_read_as_the_careful_reader_reads_it() {
        let bytes = packet();
        let plain = PlainPacket::read(&bytes).unwrap();
        assert_eq!((plain.source_port, plain.destination_port, plain.segment.len()), (40_001, 80, 30));
        assert!(plain.is_intact());
        let mut spoilt = bytes;
        spoilt[45] ^= 1;
        assert!(!PlainPacket::read(&spoilt).unwrap().is_intact());
    }

    #[test]
    fn what_is_no_whole_tcp_packet_without_options_is_left_to_the_careful_reader() {
        for (at, value) in
            [(0, 0x46), (0, 0x65), (6, 0x20), (7, 1), (9, 17), (3, 57), (3, 23), (3, 19), (10, 0)]
        {
            let mut bytes = packet();
            bytes[at] = value;
            if at != 10 {
                bytes[10..12].fill(0);
                let checksum = Sum::of(&bytes[..20]).finish();
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            assert_eq!(PlainPacket::read(&bytes), None, "byte {at}");
        }
        assert_eq!(PlainPacket::read(&packet()[..23]), None);
    }

    proptest! {
        #[test]
        fn what_is_read_at_once_is_what_the_careful_reader_reads(
            spoilt in prop::collection::vec((0_usize..24, any::<u8>()), 0..4),
            is_mended: bool,
            length in 0_usize..56,
        ) {
            let mut bytes = packet();
            for (at, value) in spoilt {
                bytes[at] = value;
            }
            if is_mended {
                bytes[10..12].fill(0);
                let checksum = Sum::of(&bytes[..20]).finish();
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            if let Some(plain) = PlainPacket::read(&bytes[..length]) {
                let packet = Ipv4Packet::parse(&bytes[..length]).unwrap();
                let header = packet.header;
                prop_assert!(!header.is_fragment() && header.protocol == Protocol::TCP);
                prop_assert_eq!((header.source, header.destination), (plain.source, plain.destination));
                prop_assert_eq!(header.type_of_service, plain.type_of_service);
                prop_assert_eq!(packet.payload, plain.segment);
                if let Ok(segment) = Segment::parse(plain.segment) {
                    let ports = (segment.source_port, segment.destination_port);
                    prop_assert_eq!(ports, (plain.source_port, plain.destination_port));
                }
                let careful = header.pseudo_header(packet.payload.len()) + Sum::of(packet.payload);
                prop_assert_eq!(careful.is_valid(), plain.is_intact());
            }
        }
    }
}
