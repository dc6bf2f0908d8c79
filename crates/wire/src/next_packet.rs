//! Recognition of a data packet that continues a GRO run: consecutive segments of one flow.
//!
//! The packets of a bulk transfer differ in the sequence number, the checksums, PSH, and with IPv4
//! the identification. The other fields are not parsed again, but compared with those of the
//! previous packet, several at a time. The previous packet was valid, so only the fields that
//! differ must be verified.

use crate::checksum::copy_and_sum;
use crate::layout::{half, word};
use crate::plain_packet::{PlainPacket, add, is_valid};
use crate::version::{IpVersion, TIMESTAMPED, V4, word_at};
use crate::{Segment, SeqNum, Sum, TcpHeader};

/// Offsets in the TCP header: of the sequence number, the data offset, and the control bits.
const SEQ: usize = 4;
const OFFSET: usize = 12;
const FLAGS: usize = 13;
/// The value of the byte with the data offset, in a TCP header with timestamps and no other option.
const WITH_TIMESTAMPS: u8 = 8 << 4;

/// The expected headers of the next packet in a GRO run.
#[derive(Clone, Copy, Debug)]
pub struct NextPacket<V: IpVersion = V4> {
    /// The headers of the most recent packet of the run, but with the sequence number that the next
    /// packet must have.
    headers: V::Headers,
    /// The number of data bytes in each packet of the run.
    length: usize,
    /// The ones'-complement sum over the data of the run's first packet and bytes 4 to 19 of its
    /// TCP header. All other bytes that the checksum covers are equal in the packets of the run.
    /// The first packet was valid, so a later packet is valid if it has the same sum.
    sum: u64,
}

/// A packet whose headers continue a GRO run. Its checksum has not been verified yet; if it is
/// wrong, the packet is not part of the run.
#[derive(Clone, Copy, Debug)]
pub struct PacketOfRun<'a> {
    /// The ones'-complement sum over bytes 4 to 19 of the TCP header, which contain all fields that
    /// may differ from the expected header.
    sum: u64,
    flags: u8,
    /// The data of the packet.
    pub data: &'a [u8],
}

impl<V: IpVersion> NextPacket<V> {
    /// The length of the IP and TCP headers in bytes.
    const HEADERS: usize = V::HEADER + TIMESTAMPED;

    /// Begins a GRO run with the valid `packet`. `data` is the ones'-complement sum over its data.
    /// Returns `None` unless its TCP header has timestamps and no other option.
    #[inline(always)]
    #[must_use]
    pub fn after(packet: &PlainPacket<'_, V>, data: Sum) -> Option<Self> {
        let (&headers, rest) = V::split(packet.bytes())?;
        if !is_timestamped::<V>(&headers) {
            return None;
        }
        let sum = add(varying_sum::<V>(&headers), data.native().into());
        let mut next = Self { headers, length: rest.len(), sum };
        next.count();
        Some(next)
    }

    /// Returns the number of data bytes in each packet of the run.
    #[inline(always)]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the header of the most recent segment of the run, without its data.
    #[inline(always)]
    #[must_use]
    pub fn last_segment(&self) -> Option<Segment<'_>> {
        let segment = Segment::parse(&self.headers.as_ref()[V::HEADER..]).ok()?;
        Some(Segment { seq: segment.seq - self.data_length(), ..segment })
    }

    /// Returns the addresses and ports of the flow, in the form of [`PlainPacket::ends`].
    #[inline(always)]
    #[must_use]
    pub fn ends(&self) -> V::Ends {
        V::ends_of(&self.headers)
    }

    /// Returns the expected sequence number of the next packet, and the expected 16 bits with its
    /// data offset and control bits. PSH in these bits is that of the most recent packet, and may
    /// differ in the next packet.
    #[inline(always)]
    #[must_use]
    pub fn next_header(&self) -> (SeqNum, u16) {
        let fixed: &[u8; TcpHeader::LENGTH] = match self.headers.as_ref()[V::HEADER..].first_chunk()
        {
            Some(fixed) => fixed,
            None => unreachable!("both headers are there"),
        };
        (SeqNum::new(word(fixed, 4)), half(fixed, 12))
    }

    /// Returns the length of each packet of the run in bytes, headers included.
    #[inline(always)]
    #[must_use]
    pub const fn packet_length(&self) -> usize {
        Self::HEADERS + self.length
    }

    /// Parses the packet that fills `bytes`. Returns `None` if it does not continue the run.
    #[inline(always)]
    #[must_use]
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Option<PacketOfRun<'a>> {
        let (headers, data) = V::split(bytes)?;
        let is_next = data.len() == self.length && V::is_next_data(&self.headers, headers);
        is_next.then(|| PacketOfRun {
            sum: varying_sum::<V>(headers),
            flags: headers.as_ref()[V::HEADER + FLAGS],
            data,
        })
    }

    /// Copies the data of `packet` to `to`, and verifies the checksum. If it is correct, makes
    /// `packet` the most recent packet of the run, and returns true.
    ///
    /// # Panics
    /// If the length of `to` differs from the length of the data.
    #[inline(always)]
    #[must_use]
    pub fn take(&mut self, packet: PacketOfRun<'_>, to: &mut [u8]) -> bool {
        let PacketOfRun { sum, flags, data } = packet;
        let sum = add(sum, copy_and_sum(data, to).native().into());
        let is_intact = is_valid(add(!self.sum, sum));
        if is_intact {
            self.headers.as_mut()[V::HEADER + FLAGS] = flags;
            self.count();
        }
        is_intact
    }

    /// Advances the expected sequence number by the data of one packet.
    #[inline(always)]
    fn count(&mut self) {
        let length = self.data_length();
        if let Some(place) = self.headers.as_mut()[V::HEADER + SEQ..].first_chunk_mut() {
            *place = u32::from_be_bytes(*place).wrapping_add(length).to_be_bytes();
        }
    }

    #[inline(always)]
    fn data_length(&self) -> u32 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        let length = self.length as u32;
        length
    }
}

/// Does the TCP header have the length of a header with timestamps and no other option?
#[inline(always)]
pub(crate) fn is_timestamped<V: IpVersion>(headers: &V::Headers) -> bool {
    headers.as_ref()[V::HEADER + OFFSET] & 0xf0 == WITH_TIMESTAMPS
}

/// Returns the ones'-complement sum over bytes 4 to 19 of the TCP header. They contain all fields
/// in which the packets of a GRO run may differ: sequence number, PSH and checksum.
#[inline(always)]
pub(crate) fn varying_sum<V: IpVersion>(headers: &V::Headers) -> u64 {
    let headers = headers.as_ref();
    add(word_at(headers, V::HEADER + SEQ), word_at(headers, V::HEADER + OFFSET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{TIMESTAMPED_V4 as HEADERS, V6};
    use crate::{
        Ipv4Header, Ipv4Packet, Ipv6Header, Protocol, TcpFlags, Timestamps, TypeOfService,
    };
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;

    const DATA: usize = 40;
    const LENGTH: usize = HEADERS + DATA;

    /// Returns an IPv4 packet with this sequence number and identification, and six bytes of
    /// padding.
    fn packet(seq: u32, identification: u16, flags: TcpFlags) -> [u8; LENGTH + 6] {
        let [source, destination] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2)];
        let header =
            Ipv4Header { identification, ..Ipv4Header::new(source, destination, Protocol::TCP) };
        let mut bytes = [0xee; LENGTH + 6];
        header.emit(LENGTH - Ipv4Header::LENGTH, &mut bytes);
        let segment = &mut bytes[Ipv4Header::LENGTH..LENGTH];
        let [source_port, destination_port] = [40_001, 80];
        let header = TcpHeader {
            source_port,
            destination_port,
            seq: SeqNum::new(seq),
            ack: SeqNum::new(7),
            flags,
            window: 900,
            urgent: 0,
        };
        header.emit_timestamped(Timestamps { value: 3, echo: 4 }, segment);
        mend_segment(&mut bytes);
        bytes
    }

    fn mend_packet(bytes: &mut [u8]) {
        bytes[10..12].fill(0);
        let checksum = Sum::of(&bytes[..Ipv4Header::LENGTH]).finish();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn mend_segment(bytes: &mut [u8]) {
        let Ok(Ipv4Packet { header, payload, .. }) = Ipv4Packet::parse(bytes) else { return };
        if payload.len() < TcpHeader::LENGTH {
            return;
        }
        let (pseudo, length) = (header.pseudo_header(payload.len()), payload.len());
        let segment = &mut bytes[Ipv4Header::LENGTH..][..length];
        segment[16..18].fill(0);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, pseudo, sum);
    }

    fn after(bytes: &[u8]) -> Option<NextPacket> {
        let packet = PlainPacket::<V4>::read(bytes).unwrap();
        let data = packet.copy_intact(&mut [0; DATA]).unwrap();
        NextPacket::after(&packet, data)
    }

    const ACK: TcpFlags = TcpFlags::ACK;

    #[test]
    fn the_packets_of_a_run_are_parsed_and_its_last_header_is_known() {
        let mut next = after(&packet(u32::MAX - 39, 0, ACK)).unwrap();
        for (seq, identification, flags) in
            [(0, 0, ACK), (40, 77, ACK | TcpFlags::PSH), (80, u16::MAX, ACK)]
        {
            let bytes = packet(seq, identification, flags);
            let mut data = [0; DATA];
            let found = next.read(&bytes[..LENGTH]).unwrap();
            assert!(next.take(found, &mut data));
            assert_eq!(data, bytes[HEADERS..LENGTH]);
            let last = next.last_segment().unwrap();
            assert_eq!((last.seq, last.flags(), next.length()), (SeqNum::new(seq), flags, DATA));
            assert_eq!((last.window, last.ack, last.payload), (900, SeqNum::new(7), &[][..]));
            assert_eq!(next.next_header(), (SeqNum::new(seq + 40), last.offset_and_flags));
            assert_eq!(next.ends(), bytes[12..24]);
        }
    }

    #[test]
    fn packets_with_other_differences_are_left_to_the_full_parser() {
        let next = after(&packet(60, 0, ACK)).unwrap();
        let read = |bytes: &[u8]| next.read(&bytes[..LENGTH]).is_some();
        assert!(read(&packet(100, 0, ACK)));
        assert!(!read(&packet(101, 0, ACK)), "another number");
        assert!(!read(&packet(100, 0, ACK | TcpFlags::FIN)));
        for length in [LENGTH - 1, LENGTH + 1] {
            assert!(
                next.read(&packet(100, 0, ACK)[..length]).is_none(),
                "cut, or padded by the medium"
            );
        }
        let may_differ = |at| matches!(at, 4 | 5 | 10 | 11 | 36 | 37);
        for (at, bit) in (0..HEADERS).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = packet(100, 0, ACK);
            bytes[at] ^= 1 << bit;
            let is_push = (at, 1 << bit) == (V4::HEADER + FLAGS, 8);
            assert_eq!(
                read(&bytes),
                matches!(at, 36 | 37) || is_push,
                "bit {bit} of byte {at}, checksums not updated"
            );
            mend_packet(&mut bytes);
            assert_eq!(read(&bytes), may_differ(at) || is_push, "bit {bit} of byte {at}");
            // The parser compares headers by words of eight bytes, and combines the differences of
            // all words. Equal differences in two words must not cancel out. The test therefore
            // also inverts this bit in two bytes at once, for each pair of bytes.
            for other in at + 1..HEADERS {
                let mut bytes = bytes;
                bytes[other] ^= 1 << bit;
                mend_packet(&mut bytes);
                let is_push = is_push || (other, 1 << bit) == (V4::HEADER + FLAGS, 8);
                let both =
                    [at, other].map(|at| may_differ(at) || (is_push && at == V4::HEADER + FLAGS));
                assert_eq!(read(&bytes), both == [true; 2], "bit {bit} of bytes {at} and {other}");
            }
        }
        let mut bytes = packet(100, 9, ACK);
        bytes[10] ^= 1;
        assert!(!read(&bytes), "a wrong sum over another identification");
    }

    #[test]
    fn other_options_than_timestamps_begin_no_run() {
        for words in [5, 7, 9] {
            let mut bytes = packet(60, 0, ACK);
            bytes[32] = words << 4;
            mend_segment(&mut bytes);
            let packet = PlainPacket::<V4>::read(&bytes).unwrap();
            assert!(NextPacket::after(&packet, Sum::default()).is_none());
        }
    }

    /// Returns an IPv6 packet with this sequence number, and padding after it.
    fn ipv6_packet(seq: u32, flags: TcpFlags) -> [u8; LENGTH + 20] {
        let [source, destination] = [Ipv6Addr::from_bits(7 << 90), Ipv6Addr::from_bits(9 << 80)];
        let header = Ipv6Header::new(source, destination, Protocol::TCP);
        let mut bytes = [0xee; LENGTH + 20];
        let length = LENGTH - Ipv4Header::LENGTH;
        header.emit(length, &mut bytes);
        let segment = &mut bytes[Ipv6Header::LENGTH..];
        let tcp = TcpHeader {
            seq: SeqNum::new(seq),
            ack: SeqNum::new(7),
            flags,
            window: 900,
            ..TcpHeader::default()
        };
        tcp.emit_timestamped(Timestamps { value: 3, echo: 4 }, segment);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, header.pseudo_header(Protocol::TCP, length), sum);
        bytes
    }

    #[test]
    fn ipv6_packets_continue_a_run_and_every_other_bit_ends_it() {
        let first = ipv6_packet(60, ACK);
        let plain = PlainPacket::<V6>::read(&first).unwrap();
        let data = plain.copy_intact(&mut [0; DATA]).unwrap();
        let mut next = NextPacket::after(&plain, data).unwrap();
        for (at, bit) in (0..HEADERS + 20).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = ipv6_packet(100, ACK);
            bytes[at] ^= 1 << bit;
            let is_checksum = matches!(at, 56 | 57);
            let is_push = (at, 1 << bit) == (V6::HEADER + FLAGS, 8);
            assert_eq!(next.read(&bytes).is_some(), is_checksum || is_push, "{bit} of {at}");
            if let Some(found) = next.read(&bytes) {
                assert!(!next.take(found, &mut [0; DATA]), "the checksum is wrong");
            }
        }
        for seq in [100, 140] {
            let bytes = ipv6_packet(seq, ACK | TcpFlags::PSH);
            let mut data = [0; DATA];
            let found = next.read(&bytes).unwrap();
            assert!(next.take(found, &mut data));
            assert_eq!(data, bytes[HEADERS + 20..]);
            assert_eq!(next.ends(), bytes[8..44]);
            let last = next.last_segment().unwrap();
            assert_eq!((last.seq, last.flags()), (SeqNum::new(seq), ACK | TcpFlags::PSH));
        }
    }

    proptest! {
        /// If `NextPacket::read` accepts a changed packet and its checksum is correct, the full
        /// parser accepts it, too, and its headers are the expected ones.
        #[test]
        fn accepted_packets_are_valid_for_the_full_parser(
            spoilt in prop::collection::vec((0..LENGTH, any::<u8>()), 0..4),
            identification: u16,
            mends: [bool; 2],
            cut in 0..12_usize,
        ) {
            let first = packet(60, 1, ACK);
            let mut next = after(&first).unwrap();
            let mut bytes = packet(100, identification, ACK | TcpFlags::PSH);
            for &(at, value) in &spoilt {
                bytes[at] = value;
            }
            if mends[0] {
                mend_packet(&mut bytes);
            }
            if mends[1] {
                mend_segment(&mut bytes);
            }
            let bytes = &bytes[..bytes.len() - cut];
            let mut data = [0; DATA];
            let expected_next = next.next_header();
            let taken = match next.read(bytes) {
                Some(found) => next.take(found, &mut data),
                None => false,
            };
            let is_unchanged = next.next_header() == expected_next;
            prop_assert!(taken || is_unchanged, "a rejected packet is not the last one");
            let careful = Ipv4Packet::parse(bytes).ok().filter(|found| {
                let pseudo = found.header.pseudo_header(found.payload.len());
                (pseudo + Sum::of(found.payload)).is_valid()
            });
            if taken {
                let found = careful.unwrap();
                let segment = Segment::parse(found.payload).unwrap();
                let expected = Ipv4Packet::parse(&first).unwrap();
                let identification = found.header.identification;
                let header = Ipv4Header { identification, ..expected.header };
                prop_assert_eq!((found.header, found.options), (header, expected.options));
                let before = Segment::parse(expected.payload).unwrap();
                prop_assert_eq!(segment.seq, before.seq + 40);
                prop_assert_eq!(segment.flags() - TcpFlags::PSH, before.flags());
                prop_assert_eq!(segment.offset_and_flags >> 9, before.offset_and_flags >> 9);
                prop_assert_eq!(
                    (segment.ack, segment.window, segment.urgent, segment.options),
                    (before.ack, before.window, before.urgent, before.options)
                );
                prop_assert_eq!(segment.payload, &data);
                prop_assert_eq!(next.last_segment().unwrap().flags(), segment.flags());
                prop_assert_eq!(TypeOfService::default(), found.header.type_of_service);
            } else if spoilt.is_empty() {
                prop_assert!(bytes.len() != LENGTH, "a valid packet was rejected");
            }
        }
    }
}
