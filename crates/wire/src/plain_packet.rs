//! A fast parser for the most common packets: IPv4 without options and fragmentation, or IPv6
//! without extension headers, with a TCP segment.

use crate::checksum::{SHORT, copy_and_sum, sum_short};
use crate::version::{IpVersion, TIMESTAMPED, V4};
use crate::{Ipv4Header, Protocol, Sum, TcpHeader, TypeOfService};
use core::marker::PhantomData;

/// The offset in the TCP header of the byte whose upper four bits are the data offset.
const DATA_OFFSET: usize = 12;

/// A TCP packet without IP options, extension headers, fragmentation and padding ("plain"). Fields
/// are parsed when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainPacket<'a, V: IpVersion = V4> {
    /// The packet. Invariant: it contains at least an IP header and a TCP header.
    bytes: &'a [u8],
    version: PhantomData<V>,
}

impl<'a, V: IpVersion> PlainPacket<'a, V> {
    /// The length of the IP and TCP headers without options, in bytes.
    const HEADERS: usize = V::HEADER + TcpHeader::LENGTH;

    /// Parses the packet at the start of `bytes`. Returns `None` if the packet is malformed or not
    /// plain. To tell these cases apart, use [`crate::Ipv4Packet::parse`] or
    /// [`crate::Ipv6Packet::parse`], which accept every plain packet.
    #[inline(always)]
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let length = V::plain_length(V::head(bytes)?)?;
        if length < Self::HEADERS {
            return None;
        }
        let bytes = bytes.get(..length)?;
        Some(Self { bytes, version: PhantomData })
    }

    /// Returns the [addresses and ports](Self::ends) of the packet at the start of `bytes`, if it
    /// looks like a plain packet. The packet can still turn out malformed, because its lengths and
    /// checksums are not verified.
    #[inline(always)]
    #[must_use]
    pub fn glance(bytes: &[u8]) -> Option<V::Ends> {
        let head = V::head(bytes)?;
        V::is_plain(head).then(|| V::ends(head))
    }

    #[inline(always)]
    fn head(&self) -> &'a V::Head {
        match V::head(self.bytes) {
            Some(head) => head,
            None => unreachable!("a plain packet has both headers"),
        }
    }

    /// Returns the differentiated services code point and the ECN field.
    #[inline(always)]
    #[must_use]
    pub fn type_of_service(&self) -> TypeOfService {
        V::type_of_service(self.head())
    }

    /// Returns the TTL or hop limit.
    #[inline(always)]
    #[must_use]
    pub fn ttl(&self) -> u8 {
        V::time_to_live(self.head())
    }

    /// Returns the source and destination addresses, then the source and destination ports, as
    /// bytes of the packet.
    #[inline(always)]
    #[must_use]
    pub fn ends(&self) -> V::Ends {
        V::ends(self.head())
    }

    /// Returns the source and destination addresses, as bytes of the packet.
    #[inline(always)]
    #[must_use]
    pub fn addresses(&self) -> V::Addresses {
        V::addresses(self.head())
    }

    /// Returns the whole packet, beginning with the IP header.
    #[inline(always)]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the TCP segment.
    #[inline(always)]
    #[must_use]
    pub fn segment(&self) -> &'a [u8] {
        // This call tells the compiler the minimum length of the packet, so that it can omit length
        // checks in the caller's parser.
        self.head();
        &self.bytes[V::HEADER..]
    }

    /// Does the segment contain data? The result is meaningless if the segment's data offset is
    /// invalid.
    #[inline(always)]
    #[must_use]
    pub fn has_data(&self) -> bool {
        let segment = self.segment();
        segment.len() > usize::from(segment[DATA_OFFSET] >> 4) * 4
    }

    /// Is the TCP checksum correct?
    #[inline(always)]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let segment = self.segment();
        // A short segment is summed inline, and the sum is not folded to 16 bits. Calling `Sum::of`
        // takes as long as summing several words.
        let sum = if segment.len() < SHORT {
            sum_short(segment)
        } else {
            Sum::of(segment).native().into()
        };
        self.is_right(sum)
    }

    /// Copies the data of the segment to `to`, whose length must be that of the data. The data must
    /// begin at an even offset. Returns the sum over the data if the TCP checksum is correct.
    ///
    /// # Panics
    /// If `to` is longer than the segment.
    #[inline(always)]
    #[must_use]
    pub fn copy_intact(&self, to: &mut [u8]) -> Option<Sum> {
        let segment = self.segment();
        let (header, data) = segment.split_at(segment.len() - to.len());
        let data = copy_and_sum(data, to);
        // Both arms compute the sum over the header in the same way. In the first, the compiler
        // knows the length of the header, and generates no loop. Most headers have timestamps only,
        // and take this arm.
        let header = match <&[u8; TIMESTAMPED]>::try_from(header) {
            Ok(header) => sum_short(header),
            Err(_) => sum_short(header),
        };
        self.is_right(add(header, data.native().into())).then_some(data)
    }

    /// Is the TCP checksum correct, if the sum over the segment is `sum`?
    #[inline(always)]
    fn is_right(&self, sum: u64) -> bool {
        let (addresses, segment) = (V::address_sum(&self.addresses()), self.segment());
        // `rest` is the sum of the pseudo-header's fields for the length and the protocol. IPv6 has
        // 32 bits for the length, but sixteen suffice, because a packet is not longer.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        let rest = (segment.len() as u16).wrapping_add(Protocol::TCP.number().into());
        is_valid(add(addresses, add(rest.to_be().into(), sum)))
    }
}

impl PlainPacket<'_, V4> {
    /// Parses the IPv4 header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> Ipv4Header {
        V4::header(self.head())
    }
}

/// Returns the first four of eight bytes, as a number that can be added to a ones'-complement sum.
#[inline(always)]
pub(crate) fn low_word(bytes: [u8; 8]) -> u64 {
    u64::from(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Adds two numbers in 64-bit ones' complement. The sum is preserved modulo 65,535.
#[inline(always)]
pub(crate) const fn add(left: u64, right: u64) -> u64 {
    let (sum, carry) = left.overflowing_add(right);
    sum + carry as u64
}

/// Does `sum` fold to all ones, which means that the packet's checksum is correct? All multiples of
/// 65,535 do, except zero. No caller's sum is zero, because it includes a header field that is
/// never zero.
#[inline(always)]
pub(crate) const fn is_valid(sum: u64) -> bool {
    sum.is_multiple_of(0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::V6;
    use crate::{Ipv4Packet, Ipv6Header, Ipv6Packet, Segment};
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;

    /// Returns an IPv4 packet with a TCP segment of 30 bytes, and six bytes of padding.
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
        let plain = PlainPacket::<V4>::read(&bytes).unwrap();
        assert_eq!(plain.ends(), [192, 0, 2, 1, 198, 51, 100, 2, 156, 65, 0, 80]);
        assert_eq!(
            (plain.addresses(), plain.segment().len()),
            ([192, 0, 2, 1, 198, 51, 100, 2], 30)
        );
        assert!(plain.is_intact());
        let mut spoilt = bytes;
        spoilt[45] ^= 1;
        assert!(!PlainPacket::<V4>::read(&spoilt).unwrap().is_intact());
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
            assert_eq!(PlainPacket::<V4>::read(&bytes), None, "byte {at}");
        }
        assert_eq!(PlainPacket::<V4>::read(&packet()[..39]), None);
    }

    /// Returns an IPv6 packet with a TCP segment of 30 bytes, and six bytes of padding.
    fn ipv6_packet() -> [u8; 76] {
        let [source, destination] = [Ipv6Addr::from_bits(7 << 90), Ipv6Addr::from_bits(9 << 80)];
        let header = Ipv6Header::new(source, destination, Protocol::TCP);
        let mut bytes = [0xee; 76];
        header.emit(30, &mut bytes);
        let segment = &mut bytes[40..70];
        TcpHeader::default().emit(0, segment);
        let sum = TcpHeader::fill_ports(segment, 40_001, 80, Sum::of(segment));
        TcpHeader::fill_checksum(segment, header.pseudo_header(Protocol::TCP, 30), sum);
        bytes
    }

    proptest! {
        #[test]
        fn accepted_ipv6_packets_are_parsed_like_the_full_parser_does(
            spoilt in prop::collection::vec((0_usize..64, any::<u8>()), 0..4),
            length in 0_usize..76,
        ) {
            let mut bytes = ipv6_packet();
            let is_whole = length >= 70 && spoilt.is_empty();
            for (at, value) in spoilt {
                bytes[at] = value;
            }
            let Some(plain) = PlainPacket::<V6>::read(&bytes[..length]) else {
                prop_assert!(!is_whole, "a valid packet was rejected");
                return Ok(());
            };
            let packet = Ipv6Packet::parse(&bytes[..length]).unwrap();
            let header = packet.header;
            prop_assert!(packet.extensions.is_empty() && packet.protocol == Protocol::TCP);
            let addresses = [header.source.octets(), header.destination.octets()];
            prop_assert_eq!(addresses.as_flattened(), &plain.addresses());
            prop_assert_eq!(header.traffic_class, plain.type_of_service());
            prop_assert_eq!(header.hop_limit, plain.ttl());
            prop_assert_eq!(packet.payload, plain.segment());
            prop_assert_eq!(&plain.ends()[..32], &plain.addresses());
            prop_assert_eq!(&plain.ends()[32..], &plain.segment()[..4]);
            let careful = header.pseudo_header(Protocol::TCP, packet.payload.len())
                + Sum::of(packet.payload);
            prop_assert_eq!(careful.is_valid(), plain.is_intact());
        }
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
            if let Some(plain) = PlainPacket::<V4>::read(&bytes[..length]) {
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
