//! The TCP header (RFC 9293 §3.1).

use crate::layout::{half, room, split_fixed, word};
use crate::tcp_options::{TIMESTAMPS_PREFIX, words_of_syn};
use crate::{Malformed, SackBlocks, SeqNum, Sum, TcpOptions, Timestamps};
use bitflags::bitflags;
use core::fmt;
use core::num::NonZeroU16;

bitflags! {
    /// The control bits of a TCP segment.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct TcpFlags: u16 {
        /// The sender has no more data.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// Push: deliver the data without waiting for more.
        const PSH = 0x08;
        /// The acknowledgement field is valid.
        const ACK = 0x10;
        /// The urgent pointer is valid.
        const URG = 0x20;
        /// ECN echo (RFC 3168).
        const ECE = 0x40;
        /// Congestion window reduced (RFC 3168).
        const CWR = 0x80;
        /// Accurate ECN (RFC 9768): on a SYN, part of a request together with CWR and ECE; on later
        /// segments, the highest bit of the ACE counter.
        const AE = 0x100;
        /// The bits of the ACE counter: see [`TcpFlags::ace`].
        const ACE = 0x1c0;
    }
}

impl TcpFlags {
    /// The position of the lowest bit of the ACE counter.
    const ACE_SHIFT: u32 = Self::ECE.bits().trailing_zeros();

    /// Returns AE, CWR and ECE as one number from 0 to 7: the ACE field (RFC 9768 §3.2.2).
    #[must_use]
    pub const fn ace(self) -> u16 {
        self.intersection(Self::ACE).bits() >> Self::ACE_SHIFT
    }

    /// Does a SYN with these flags request accurate ECN? Two combinations of AE, CWR and ECE do
    /// not: none set, and CWR with ECE, which requests classic ECN. All others do, including the
    /// reserved ones (RFC 9768 §3.1.3).
    #[must_use]
    pub const fn asks_for_accurate_ecn(self) -> bool {
        !matches!(self.ace(), 0b000 | 0b011)
    }

    /// Returns the flags AE, CWR and ECE that encode the low three bits of `count`.
    #[must_use]
    pub const fn of_ace(count: u32) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "three bits")]
        let count = (count & 7) as u16;
        Self::from_bits_retain(count << Self::ACE_SHIFT)
    }
}

/// A received TCP segment. The numbers are copied from the header; options and payload are
/// borrowed.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK; valid only with [`TcpFlags::ACK`].
    pub ack: SeqNum,
    /// Bytes 12 and 13 of the header: data offset, reserved bits and control bits. They are one
    /// number, so that header prediction can compare all of them at once.
    pub offset_and_flags: u16,
    /// SEG.WND as in the header, before scaling.
    pub window: u16,
    /// SEG.UP; valid only with [`TcpFlags::URG`].
    pub urgent: u16,
    /// The options with their padding: a multiple of four bytes, at most forty.
    pub options: &'a [u8],
    /// The data of the segment.
    pub payload: &'a [u8],
    /// The number of data bytes in each of the segments that the link has coalesced into this one
    /// (GRO). Only the final segment may have had fewer. `None` if the link has coalesced nothing.
    /// The header does not contain this number, so [`parse`](Self::parse) sets it to `None`.
    pub joined: Option<NonZeroU16>,
}

impl<'a> Segment<'a> {
    /// Parses the header at the start of `bytes`; the rest is the payload. Does not verify the
    /// checksum, because that requires the IP addresses, and the link may have verified it already.
    ///
    /// # Errors
    /// [`Malformed`] if the header extends beyond `bytes`, or the data offset is less than five
    /// words.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = split_fixed::<{ TcpHeader::LENGTH }>("TCP header", bytes)?;
        let offset_and_flags = half(fixed, 12);
        let header_length = usize::from(offset_and_flags >> 12) * 4;
        let Some(options_length) = header_length.checked_sub(TcpHeader::LENGTH) else {
            return Err(Malformed::Field {
                what: "TCP header",
                field: "data offset",
                value: u32::from(fixed[12] >> 4),
            });
        };
        let Some((options, payload)) = rest.split_at_checked(options_length) else {
            return Err(Malformed::Truncated {
                what: "TCP options",
                needed: header_length,
                had: bytes.len(),
            });
        };
        Ok(Self {
            source_port: half(fixed, 0),
            destination_port: half(fixed, 2),
            seq: SeqNum::new(word(fixed, 4)),
            ack: SeqNum::new(word(fixed, 8)),
            offset_and_flags,
            window: half(fixed, 14),
            urgent: half(fixed, 18),
            options,
            payload,
            joined: None,
        })
    }

    /// Returns the number of segments that the link has coalesced into this segment; one without
    /// coalescing.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.joined.map_or(1, |size| {
            let count = self.payload.len().div_ceil(usize::from(size.get())).max(1);
            u32::try_from(count).unwrap_or(u32::MAX)
        })
    }

    /// Returns the number of data bytes in the largest of the segments that the link coalesced into
    /// this segment. Without coalescing, returns the length of the payload.
    #[must_use]
    pub fn largest_piece(&self) -> usize {
        self.joined
            .map_or(self.payload.len(), |size| self.payload.len().min(usize::from(size.get())))
    }

    /// Returns the control bits.
    #[must_use]
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags::from_bits_truncate(self.offset_and_flags)
    }

    /// Parses the options of the segment.
    #[must_use]
    pub fn options(&self) -> TcpOptions {
        TcpOptions::parse(self.options)
    }

    /// Returns the value of the timestamps option, if the segment has one.
    #[inline]
    #[must_use]
    pub fn timestamps(&self) -> Option<Timestamps> {
        Timestamps::among(self.options)
    }

    /// Returns the blocks of the SACK option, if the segment has one.
    #[inline]
    #[must_use]
    pub fn sack_blocks(&self) -> SackBlocks {
        if Timestamps::alone(self.options).is_some() {
            SackBlocks::default()
        } else {
            SackBlocks::among(self.options)
        }
    }

    /// Returns SEG.LEN: the length in sequence numbers, including SYN and FIN.
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        let controls = (self.flags() & (TcpFlags::SYN | TcpFlags::FIN)).bits().count_ones();
        // The conversion cannot fail, because an IP packet has at most 65,535 bytes.
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(controls)
    }
}

impl fmt::Debug for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}→{} {:?} seq {} ack {} win {} len {} {:?}",
            self.source_port,
            self.destination_port,
            self.flags().0,
            self.seq,
            self.ack,
            self.window,
            self.payload.len(),
            self.options(),
        )
    }
}

/// The fixed part of a TCP header to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: TcpFlags,
    /// SEG.WND, already scaled.
    pub window: u16,
    /// SEG.UP.
    pub urgent: u16,
}

impl TcpHeader {
    /// The length of the fixed part in bytes.
    pub const LENGTH: usize = 20;
    /// The length of the longest header in bytes, options included.
    pub const MAX_LENGTH: usize = 60;
    /// The offset of the checksum in the header.
    pub const CHECKSUM_OFFSET: usize = 16;

    /// Writes the fixed part to the start of `bytes`, with zero for the checksum. Does not write
    /// options: `options_length`, their length in bytes, only determines the data offset.
    ///
    /// # Panics
    /// If `bytes` is shorter than the fixed part, or `options_length` is no multiple of four or
    /// more than forty.
    pub fn emit(&self, options_length: usize, bytes: &mut [u8]) {
        assert!(
            options_length.is_multiple_of(4) && options_length <= 40,
            "options are up to ten words of four bytes"
        );
        let fixed = room::<{ Self::LENGTH }>(bytes);
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.number().to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.number().to_be_bytes());
        #[allow(clippy::cast_possible_truncation, reason = "at most fifteen words, asserted above")]
        let words = ((Self::LENGTH + options_length) / 4) as u8;
        let [reserved, flags] = self.flags.bits().to_be_bytes();
        fixed[12] = words << 4 | reserved;
        fixed[13] = flags;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..18].fill(0);
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
    }

    /// Writes a header of 32 bytes whose only option is timestamps, with zero for the checksum.
    /// Returns the ones'-complement sum over the header. [`emit`](Self::emit) and
    /// [`TcpOptions::emit`](crate::TcpOptions::emit) together do the same, but more slowly. Most
    /// segments of a bulk transfer have this form, so it has a function of its own.
    ///
    /// # Panics
    /// If `bytes` is shorter than 32 bytes.
    #[inline]
    pub fn emit_timestamped(&self, timestamps: Timestamps, bytes: &mut [u8]) -> Sum {
        let [a, b, c, d, e] = self.words(8);
        emit_words([a, b, c, d, e, TIMESTAMPS_PREFIX, timestamps.value, timestamps.echo], bytes)
    }

    /// Writes the header of a SYN with the usual options: MSS, window scale, SACK-permitted and
    /// timestamps. It has 40 bytes, with zero for the checksum. Returns the ones'-complement sum
    /// over the header.
    ///
    /// # Panics
    /// If `bytes` is shorter than 40 bytes.
    #[inline]
    pub fn emit_syn(&self, mss: u16, shift: u8, timestamps: Timestamps, bytes: &mut [u8]) -> Sum {
        let ([a, b, c, d, e], [f, g, h, i, j]) =
            (self.words(10), words_of_syn(mss, shift, timestamps));
        emit_words([a, b, c, d, e, f, g, h, i, j], bytes)
    }

    /// Returns the fixed part as words, with zero for the checksum. `length` is the length of the
    /// whole header in words.
    #[inline(always)]
    fn words(&self, length: u32) -> [u32; 5] {
        [
            u32::from(self.source_port) << 16 | u32::from(self.destination_port),
            self.seq.number(),
            self.ack.number(),
            length << 28 | u32::from(self.flags.bits()) << 16 | u32::from(self.window),
            u32::from(self.urgent),
        ]
    }

    /// Writes the ports into the segment at the start of `bytes`, whose port fields must be zero.
    /// `sum` is the ones'-complement sum over that segment. Returns the sum that includes the
    /// ports.
    ///
    /// # Panics
    /// If `bytes` is shorter than the fixed header.
    #[must_use = "the checksum must cover the ports"]
    pub fn fill_ports(bytes: &mut [u8], source: u16, destination: u16, sum: Sum) -> Sum {
        let fixed = room::<{ Self::LENGTH }>(bytes);
        fixed[0..2].copy_from_slice(&source.to_be_bytes());
        fixed[2..4].copy_from_slice(&destination.to_be_bytes());
        sum.add_u16(source).add_u16(destination)
    }

    /// Writes the checksum into the segment at the start of `bytes`. `pseudo` is the sum over the
    /// pseudo-header, and `sum` the sum over the segment with a checksum field of zero.
    ///
    /// # Panics
    /// If `bytes` is shorter than the fixed header.
    pub fn fill_checksum(bytes: &mut [u8], pseudo: Sum, sum: Sum) {
        let at = Self::CHECKSUM_OFFSET;
        room::<{ Self::LENGTH }>(bytes)[at..at + 2]
            .copy_from_slice(&(pseudo + sum).finish().to_be_bytes());
    }

    /// Verifies the checksum of the segment that fills `bytes`. `pseudo` is the sum over the
    /// pseudo-header of the segment.
    ///
    /// # Errors
    /// [`Malformed::Checksum`] if the checksum is wrong: the segment must be discarded (RFC 9293
    /// MUST-3).
    pub fn verify_checksum(bytes: &[u8], pseudo: Sum) -> Result<(), Malformed> {
        let is_valid = (pseudo + Sum::of(bytes)).is_valid();
        if is_valid { Ok(()) } else { Err(Malformed::Checksum { what: "TCP segment" }) }
    }
}

/// Writes the words to the start of `bytes`, and returns the ones'-complement sum over them.
#[inline(always)]
fn emit_words<const COUNT: usize>(words: [u32; COUNT], bytes: &mut [u8]) -> Sum {
    let (fields, _) = bytes[..4 * COUNT].as_chunks_mut::<4>();
    for (field, word) in fields.iter_mut().zip(words) {
        *field = word.to_be_bytes();
    }
    Sum::of_words(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: TcpHeader = TcpHeader {
        source_port: 19,
        destination_port: 9,
        seq: SeqNum::new(0x0102_0304),
        ack: SeqNum::new(0xfffe_fdfc),
        flags: TcpFlags::ACK.union(TcpFlags::PSH),
        window: 4_096,
        urgent: 7,
    };

    #[test]
    fn an_emitted_header_is_parsed_to_the_same_values() {
        let mut bytes = [0xaa; 30];
        HEADER.emit(4, &mut bytes);
        bytes[20..24].copy_from_slice(&[2, 4, 5, 0xb4]);
        let segment = Segment::parse(&bytes).unwrap();
        assert_eq!((segment.source_port, segment.destination_port), (19, 9));
        assert_eq!((segment.seq, segment.ack), (HEADER.seq, HEADER.ack));
        assert_eq!((segment.flags(), segment.window, segment.urgent), (HEADER.flags, 4_096, 7));
        assert_eq!(segment.options().mss, Some(1_460));
        assert_eq!(segment.payload, [0xaa; 6]);
        assert_eq!(segment.sequence_length(), 6);
    }

    #[test]
    fn emit_timestamped_equals_emitting_header_and_options() {
        let timestamps = Timestamps { value: 0x0506_0708, echo: u32::MAX };
        let (mut at_once, mut one_by_one) = ([0xaa; 33], [0xaa; 33]);
        let sum = HEADER.emit_timestamped(timestamps, &mut at_once);
        let options = TcpOptions { timestamps: Some(timestamps), ..TcpOptions::default() };
        let length = options.emit(&mut one_by_one[TcpHeader::LENGTH..]);
        HEADER.emit(length, &mut one_by_one);
        assert_eq!((at_once, sum), (one_by_one, Sum::of(&one_by_one[..32])));
    }

    #[test]
    fn emit_syn_equals_emitting_header_and_options() {
        let timestamps = Timestamps { value: 0x0506_0708, echo: 9 };
        let (mut at_once, mut one_by_one) = ([0xaa; 41], [0xaa; 41]);
        let sum = HEADER.emit_syn(1_460, 7, timestamps, &mut at_once);
        let options = TcpOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(timestamps),
            ..TcpOptions::default()
        };
        let length = options.emit(&mut one_by_one[TcpHeader::LENGTH..]);
        HEADER.emit(length, &mut one_by_one);
        assert_eq!((at_once, sum), (one_by_one, Sum::of(&one_by_one[..40])));
        assert_eq!(TcpOptions::parse(&at_once[TcpHeader::LENGTH..40]), options);
    }

    /// RFC 9768 §3.2.2: the bit before CWR is the highest bit of the ACE field.
    #[test]
    fn the_ace_field_is_three_bits_and_no_others() {
        for count in 0..=7 {
            let flags = TcpFlags::ACK | TcpFlags::of_ace(u32::from(count) + 8);
            assert_eq!((flags.ace(), flags - TcpFlags::ACE), (count, TcpFlags::ACK));
            let mut bytes = [0; 20];
            TcpHeader { flags, ..HEADER }.emit(0, &mut bytes);
            assert_eq!(bytes[12], 5 << 4 | u8::from(count & 4 != 0));
            bytes[12] |= 0x0e;
            assert_eq!(
                Segment::parse(&bytes).unwrap().flags(),
                flags,
                "the reserved bits are ignored"
            );
        }
    }

    #[test]
    fn a_data_offset_into_the_header_or_beyond_the_bytes_is_malformed() {
        let mut bytes = [0; 20];
        HEADER.emit(0, &mut bytes);
        assert!(Segment::parse(&bytes[..19]).is_err());
        bytes[12] = 4 << 4;
        assert!(matches!(Segment::parse(&bytes), Err(Malformed::Field { value: 4, .. })));
        bytes[12] = 6 << 4;
        assert!(matches!(
            Segment::parse(&bytes),
            Err(Malformed::Truncated { needed: 24, had: 20, .. })
        ));
    }

    #[test]
    fn a_filled_checksum_is_valid_until_a_byte_changes() {
        let pseudo = Sum::of(&[192, 0, 2, 1, 192, 0, 2, 2, 0, 6, 0, 23]);
        let mut bytes = [7; 23];
        TcpHeader { source_port: 0, destination_port: 0, ..HEADER }.emit(0, &mut bytes);
        let without_ports = Sum::of(&bytes);
        let sum = TcpHeader::fill_ports(&mut bytes, 19, 9, without_ports);
        TcpHeader::fill_checksum(&mut bytes, pseudo, sum);
        assert_eq!(TcpHeader::verify_checksum(&bytes, pseudo), Ok(()));
        assert_eq!(Segment::parse(&bytes).unwrap().destination_port, 9);
        bytes[22] ^= 1;
        assert!(TcpHeader::verify_checksum(&bytes, pseudo).is_err());
    }

    #[test]
    fn syn_and_fin_each_occupy_a_sequence_number() {
        let mut bytes = [0; 23];
        TcpHeader { flags: TcpFlags::SYN | TcpFlags::FIN, ..HEADER }.emit(0, &mut bytes);
        assert_eq!(Segment::parse(&bytes).unwrap().sequence_length(), 5);
    }
}
