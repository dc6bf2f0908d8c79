//! Recognition of a data packet that continues a GRO run.
//!
//! The packets of a bulk transfer differ in the sequence number, both checksums, the identification
//! and PSH. Everything else is compared in a few words and not parsed again: the packet before was
//! valid, so a packet like it is valid if the fields that differ are.

use crate::checksum::copy_and_sum;
use crate::layout::{half, word};
use crate::plain_packet::{PlainPacket, add, is_valid, low_word};
use crate::{Ipv4Header, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};

/// The length of both headers with timestamps and no other option, in bytes.
pub(crate) const HEADERS: usize =
    Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
/// The offsets of the sequence number and of the control bits in the headers.
const SEQ: usize = Ipv4Header::LENGTH + 4;
const FLAGS: usize = Ipv4Header::LENGTH + 13;
/// The byte with the data offset of such a TCP header.
const OFFSET: u8 = 8 << 4;

/// The bits that may differ in each eight bytes of the headers: in the first and second the
/// identification and the header checksum, in the fifth PSH and the segment's checksum.
const MAY_DIFFER: [u64; 5] = [
    u64::from_ne_bytes([0, 0, 0, 0, 0xff, 0xff, 0, 0]),
    u64::from_ne_bytes([0, 0, 0xff, 0xff, 0, 0, 0, 0]),
    0,
    0,
    u64::from_ne_bytes([0, PUSH, 0, 0, 0xff, 0xff, 0, 0]),
];

#[allow(clippy::cast_possible_truncation, reason = "the flag is in the lower eight bits")]
const PUSH: u8 = TcpFlags::PSH.bits() as u8;

/// The expected headers of the next packet in a run.
#[derive(Clone, Copy, Debug)]
pub struct NextPacket {
    /// The headers of the last packet, with the sequence number of the next one.
    headers: [u8; HEADERS],
    /// The bytes of data in each packet.
    length: usize,
    /// The sum over the varying fields of an intact segment, and over what shares their words.
    sum: u64,
}

/// A packet that continues a run, but whose checksum is not verified yet.
#[derive(Clone, Copy, Debug)]
pub struct PacketOfRun<'a> {
    /// The sum over the varying fields of its headers, including the control bits.
    sum: u64,
    flags: u8,
    /// Its data.
    pub data: &'a [u8],
}

impl NextPacket {
    /// Begins a run after `packet`, which is intact and whose data have the sum `data`. Returns
    /// `None` unless its TCP header has timestamps and no other option.
    #[inline(always)]
    #[must_use]
    pub fn after(packet: &PlainPacket<'_>, data: Sum) -> Option<Self> {
        let (&headers, rest) = packet.bytes().split_first_chunk::<HEADERS>()?;
        if !is_timestamped(&headers) {
            return None;
        }
        let words = words(&headers);
        let mut next = Self { headers, length: rest.len(), sum: own_sum(&words, data) };
        next.count();
        Some(next)
    }

    /// Returns the bytes of data in each packet.
    #[inline(always)]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the header of the last segment, without its data.
    #[inline(always)]
    #[must_use]
    pub fn last_segment(&self) -> Option<Segment<'_>> {
        let segment = Segment::parse(&self.headers[Ipv4Header::LENGTH..]).ok()?;
        Some(Segment { seq: segment.seq - self.data_length(), ..segment })
    }

    /// Returns addresses and ports of the packets, like [`PlainPacket::ends`].
    #[inline(always)]
    #[must_use]
    pub fn ends(&self) -> [u8; 12] {
        self.headers[12..].first_chunk().copied().unwrap_or_default()
    }

    /// Returns SEG.SEQ of the next packet, and its data offset and control bits. PSH is assumed to
    /// be unchanged.
    #[inline(always)]
    #[must_use]
    pub fn next_header(&self) -> (SeqNum, u16) {
        let fixed: &[u8; TcpHeader::LENGTH] = match self.headers[Ipv4Header::LENGTH..].first_chunk()
        {
            Some(fixed) => fixed,
            None => unreachable!("both headers are there"),
        };
        (SeqNum::new(word(fixed, 4)), half(fixed, 12))
    }

    /// Returns the length of each packet in bytes.
    #[inline(always)]
    #[must_use]
    pub const fn packet_length(&self) -> usize {
        HEADERS + self.length
    }

    /// Parses the packet that fills `bytes`, if it continues the run.
    #[inline(always)]
    #[must_use]
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Option<PacketOfRun<'a>> {
        let (headers, data) = bytes.split_first_chunk::<HEADERS>()?;
        let is_next = data.len() == self.length && is_like(&self.headers, headers, &MAY_DIFFER);
        let words = words(headers);
        is_next.then(|| PacketOfRun { sum: add(words[3], words[4]), flags: headers[FLAGS], data })
    }

    /// Copies the data of `packet` to `to`, and returns whether the packet is intact. If so, it
    /// becomes the last packet.
    ///
    /// # Panics
    /// If the length of `to` is not that of the data.
    #[inline(always)]
    #[must_use]
    pub fn take(&mut self, packet: PacketOfRun<'_>, to: &mut [u8]) -> bool {
        let PacketOfRun { sum, flags, data } = packet;
        let sum = add(sum, copy_and_sum(data, to).native().into());
        let is_intact = is_valid(add(!self.sum, sum));
        if is_intact {
            self.headers[FLAGS] = flags;
            self.count();
        }
        is_intact
    }

    /// Advances the sequence number by the data of a packet.
    #[inline(always)]
    fn count(&mut self) {
        let length = self.data_length();
        if let Some(place) = self.headers[SEQ..].first_chunk_mut() {
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

/// Does the TCP header have the length of one with only timestamps?
#[inline(always)]
pub(crate) const fn is_timestamped(headers: &[u8; HEADERS]) -> bool {
    headers[Ipv4Header::LENGTH + 12] & 0xf0 == OFFSET
}

/// Returns the words of the headers, except the last four bytes.
#[inline(always)]
pub(crate) fn words(headers: &[u8; HEADERS]) -> [u64; 6] {
    let (words, _) = headers.as_chunks::<8>();
    core::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}

/// Do the headers in `found` differ from the valid ones in `known` only in the bits that
/// `may_differ` in their first five words, and is the IP header valid?
#[inline(always)]
pub(crate) fn is_like(known: &[u8; HEADERS], found: &[u8; HEADERS], may_differ: &[u64; 5]) -> bool {
    // The IP header hardly ever differs at all.
    let same = [0, 0, may_differ[2], may_differ[3], may_differ[4]];
    differ_only(known, found, &same)
        || (differ_only(known, found, may_differ) && is_header_intact(found))
}

/// Do the headers differ in no other bits?
#[inline(always)]
fn differ_only(known: &[u8; HEADERS], found: &[u8; HEADERS], may_differ: &[u64; 5]) -> bool {
    let (known_words, found_words) = (words(known), words(found));
    let differs = |at: usize| known_words[at] ^ found_words[at];
    let must_be_same = |at: usize| differs(at) & !may_differ[at];
    let wrong = must_be_same(0)
        | must_be_same(1)
        | must_be_same(2)
        | must_be_same(3)
        | must_be_same(4)
        | differs(5)
        | (options(known) ^ options(found));
    wrong == 0
}

/// Is the checksum of the IP header right? Out of line, since the IP header hardly ever differs.
#[cold]
#[inline(never)]
fn is_header_intact(headers: &[u8; HEADERS]) -> bool {
    let [first, second, third, ..] = words(headers);
    is_valid(add(add(first, second), low_word(third.to_ne_bytes())))
}

/// Returns the last eight bytes of the headers.
#[inline(always)]
fn options(headers: &[u8; HEADERS]) -> u64 {
    headers.last_chunk().copied().map_or(0, u64::from_ne_bytes)
}

/// Returns the sum over the varying fields of a segment: sequence number, control bits, checksum
/// and data.
#[inline(always)]
fn own_sum(words: &[u64; 6], data: Sum) -> u64 {
    add(add(words[3], words[4]), data.native().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Packet, Protocol, Timestamps, TypeOfService};
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    const DATA: usize = 40;
    const LENGTH: usize = HEADERS + DATA;

    /// Returns a packet with this sequence number and identification, and six bytes of padding.
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
        let packet = PlainPacket::read(bytes).unwrap();
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
            let is_push = (at, 1 << bit) == (FLAGS, PUSH);
            assert_eq!(
                read(&bytes),
                matches!(at, 36 | 37) || is_push,
                "bit {bit} of byte {at}, checksums not updated"
            );
            mend_packet(&mut bytes);
            assert_eq!(read(&bytes), may_differ(at) || is_push, "bit {bit} of byte {at}");
            // Errors at the same position of two words do not cancel out.
            for other in at + 1..HEADERS {
                let mut bytes = bytes;
                bytes[other] ^= 1 << bit;
                mend_packet(&mut bytes);
                let is_push = is_push || (other, 1 << bit) == (FLAGS, PUSH);
                let both = [at, other].map(|at| may_differ(at) || (is_push && at == FLAGS));
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
            let packet = PlainPacket::read(&bytes).unwrap();
            assert!(NextPacket::after(&packet, Sum::default()).is_none());
        }
    }

    proptest! {
        /// For any change to a packet: an accepted packet is intact, and has the expected headers.
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
                prop_assert!(bytes.len() != LENGTH, "nothing is wrong with it");
            }
        }
    }
}
