//! A fast parser for the most common packets: unfragmented IPv4 without options, with a TCP
//! segment.

use crate::checksum::{SHORT, copy_and_sum, sum_short};
use crate::ipv4::fixed_header;
use crate::{Ipv4Header, Protocol, Sum, TcpHeader, TcpOptions, TypeOfService};

/// A mask for version, header length and fragment fields in the first eight bytes.
const SHAPE: u64 = u64::from_ne_bytes([0xff, 0, 0, 0, 0, 0, 0x3f, 0xff]);
/// Version 4, a header of five words, no fragment.
const PLAIN: u64 = u64::from_ne_bytes([0x45, 0, 0, 0, 0, 0, 0, 0]);

/// The length of both headers without options, in bytes.
const HEADERS: usize = Ipv4Header::LENGTH + TcpHeader::LENGTH;

/// The length of a TCP header whose only option is timestamps, in bytes.
const TIMESTAMPED: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// A TCP packet without IP options, fragmentation and padding. Fields are parsed when they are
/// asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainPacket<'a> {
    /// Invariant: at least both headers.
    bytes: &'a [u8],
}

impl<'a> PlainPacket<'a> {
    /// Parses the packet at the start of `bytes`. Returns `None` for packets of another shape and
    /// for malformed ones; [`crate::Ipv4Packet::parse`] distinguishes them, and accepts every
    /// packet that this function accepts.
    #[inline(always)]
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let head = bytes.first_chunk::<HEADERS>()?;
        let (words, _) = head.as_chunks::<8>();
        let first = u64::from_ne_bytes(words[0]);
        if first & SHAPE != PLAIN || head[9] != Protocol::TCP.number() {
            return None;
        }
        let end = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if end < HEADERS {
            return None;
        }
        let bytes = bytes.get(..end)?;
        let sum = add(add(first, u64::from_ne_bytes(words[1])), low_word(words[2]));
        is_valid(sum).then_some(Self { bytes })
    }

    /// Returns the [ends](Self::ends) of the packet at the start of `bytes`, if it has the shape of
    /// a plain packet. Verifies nothing.
    #[inline(always)]
    #[must_use]
    pub fn glance(bytes: &[u8]) -> Option<[u8; 12]> {
        let head = bytes.first_chunk::<HEADERS>()?;
        if head[0] != 0x45 || head[9] != Protocol::TCP.number() {
            return None;
        }
        head[12..].first_chunk().copied()
    }

    #[inline(always)]
    fn head(&self) -> &'a [u8; HEADERS] {
        match self.bytes.first_chunk() {
            Some(head) => head,
            None => unreachable!("a plain packet has both headers"),
        }
    }

    /// Returns the differentiated services code point and the ECN field.
    #[inline(always)]
    #[must_use]
    pub fn type_of_service(&self) -> TypeOfService {
        TypeOfService::from_byte(self.head()[1])
    }

    /// Returns both addresses, then both ports, as in the packet.
    #[inline(always)]
    #[must_use]
    pub fn ends(&self) -> [u8; 12] {
        self.head()[12..].first_chunk().copied().unwrap_or_default()
    }

    /// Returns both addresses, as in the packet.
    #[inline(always)]
    #[must_use]
    pub fn addresses(&self) -> [u8; 8] {
        self.ends().as_chunks().0[0]
    }

    /// Parses the IP header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> Ipv4Header {
        let (fixed, _) =
            self.head().split_first_chunk().unwrap_or_else(|| unreachable!("it begins with that"));
        fixed_header(fixed)
    }

    /// Returns the packet, from the IP header on.
    #[inline(always)]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the TCP segment.
    #[inline(always)]
    #[must_use]
    pub fn segment(&self) -> &'a [u8] {
        // Lets the compiler know the minimum length, so that the caller's parser need not check it.
        self.head();
        &self.bytes[Ipv4Header::LENGTH..]
    }

    /// Is the checksum of the segment right?
    #[inline(always)]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let segment = self.segment();
        // Short segments are summed inline and unfolded: a call takes as long as a few words.
        let sum = if segment.len() < SHORT {
            sum_short(segment)
        } else {
            Sum::of(segment).native().into()
        };
        self.is_right(sum)
    }

    /// Copies the end of the segment to `to`: its data, which begin at an even offset. Returns
    /// their sum if the checksum of the segment is right.
    ///
    /// # Panics
    /// If `to` is longer than the segment.
    #[inline(always)]
    #[must_use]
    pub fn copy_intact(&self, to: &mut [u8]) -> Option<Sum> {
        let segment = self.segment();
        let (header, data) = segment.split_at(segment.len() - to.len());
        let data = copy_and_sum(data, to);
        // The common case: a header of constant length needs no loop.
        let header = match <&[u8; TIMESTAMPED]>::try_from(header) {
            Ok(header) => sum_short(header),
            Err(_) => sum_short(header),
        };
        self.is_right(add(header, data.native().into())).then_some(data)
    }

    /// Is the checksum of the segment right, given the sum over its bytes?
    #[inline(always)]
    fn is_right(&self, sum: u64) -> bool {
        let (addresses, segment) = (u64::from_ne_bytes(self.addresses()), self.segment());
        // Length and protocol of the pseudo-header. The length fits: it is twenty less than the
        // packet's.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        let rest = (segment.len() as u16).wrapping_add(Protocol::TCP.number().into());
        is_valid(add(addresses, add(rest.to_be().into(), sum)))
    }
}

/// Returns the first four of eight bytes, as an addend.
#[inline(always)]
pub(crate) fn low_word(bytes: [u8; 8]) -> u64 {
    u64::from(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Adds two numbers in 64-bit ones' complement, which preserves them modulo 65,535.
#[inline(always)]
pub(crate) const fn add(left: u64, right: u64) -> u64 {
    let (sum, carry) = left.overflowing_add(right);
    sum + carry as u64
}

/// Does a non-zero sum fold to all ones? The sum over a valid packet is never zero, because the
/// version or the protocol is part of it.
#[inline(always)]
pub(crate) const fn is_valid(sum: u64) -> bool {
    sum.is_multiple_of(0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Packet, Segment};
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    /// Returns a packet with a segment of 30 bytes, and six bytes of padding.
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
    fn a_plain_packet_is_parsed_like_the_full_parser_does() {
        let bytes = packet();
        let plain = PlainPacket::read(&bytes).unwrap();
        assert_eq!(plain.ends(), [192, 0, 2, 1, 198, 51, 100, 2, 156, 65, 0, 80]);
        assert_eq!(
            (plain.addresses(), plain.segment().len()),
            ([192, 0, 2, 1, 198, 51, 100, 2], 30)
        );
        assert!(plain.is_intact());
        let mut spoilt = bytes;
        spoilt[45] ^= 1;
        assert!(!PlainPacket::read(&spoilt).unwrap().is_intact());
    }

    #[test]
    fn other_packets_are_left_to_the_full_parser() {
        for (at, value) in
            [(0, 0x46), (0, 0x65), (6, 0x20), (7, 1), (9, 17), (3, 57), (3, 39), (3, 19), (10, 0)]
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
        assert_eq!(PlainPacket::read(&packet()[..39]), None);
    }

    proptest! {
        #[test]
        fn accepted_packets_are_parsed_like_the_full_parser_does(
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
                prop_assert_eq!(header.addresses(), plain.addresses());
                prop_assert_eq!(header.type_of_service, plain.type_of_service());
                prop_assert_eq!(packet.payload, plain.segment());
                if let Ok(segment) = Segment::parse(plain.segment()) {
                    let ports = [segment.source_port, segment.destination_port];
                    let ports = ports.map(u16::to_be_bytes);
                    prop_assert_eq!(ports.as_flattened(), &plain.ends()[8..]);
                }
                let careful = header.pseudo_header(packet.payload.len()) + Sum::of(packet.payload);
                prop_assert_eq!(careful.is_valid(), plain.is_intact());
                if let Ok(segment) = Segment::parse(plain.segment()) {
                    let mut copy = [0; 56];
                    let copy = &mut copy[..segment.payload.len()];
                    let sum = plain.copy_intact(copy);
                    prop_assert_eq!(sum, careful.is_valid().then(|| Sum::of(segment.payload)));
                    prop_assert_eq!(segment.payload, &*copy);
                }
            }
        }
    }
}
