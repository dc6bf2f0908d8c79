//! The peer in the fuzz target `segments_into_a_connection`. It follows the protocol in most cases,
//! and also sends ICMP errors that quote segments of the connection.

use super::{TestCase, first_position};
use crate::arrival::arrive;
use crate::fuzz::choices::Choices;
use crate::script::pattern;
use linerate_tcp::{Disposition, IcmpReport, State};
use linerate_wire::{
    Ecn, EcnCounts, EcnOrder, SackBlock, Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions,
    Timestamps,
};

impl TestCase<'_> {
    /// Sends a segment, each field of which is correct in most cases.
    pub(super) fn likely_segment(&mut self) {
        let flags = match self.choices.byte() {
            0..=159 => TcpFlags::ACK,
            160..=199 => TcpFlags::ACK | TcpFlags::PSH,
            200..=214 => TcpFlags::ACK | TcpFlags::FIN,
            215..=229 => TcpFlags::SYN | TcpFlags::ACK,
            _ => TcpFlags::from_bits_retain(self.choices.byte().into()),
        };
        let opening = self.connection.state() == State::SynSent;
        let expected = if opening { self.irs } else { self.received_ack };
        let seq = self.choices.near(expected.number());
        let base = self.choices.of(&[self.received_end, self.received_end, self.sent_ack]);
        let ack = self.choices.near(base.number());
        self.segment(flags, SeqNum::new(seq), SeqNum::new(ack));
    }

    pub(super) fn data_in_order(&mut self) {
        self.segment(TcpFlags::ACK | TcpFlags::PSH, self.received_ack, self.received_end);
    }

    /// Sends an acknowledgement. Its number lies between two limits, which are both possible. The
    /// lower one is the highest valid number that the peer has sent so far, and the upper one is
    /// the end of the connection's data.
    pub(super) fn acknowledgement(&mut self) {
        let share = u32::from(self.choices.byte());
        let all = self.received_end - self.sent_ack;
        let ack = self.sent_ack + (all / 255 * share + all % 255 * share / 255);
        self.segment(TcpFlags::ACK, self.received_ack, ack);
    }

    fn segment(&mut self, flags: TcpFlags, seq: SeqNum, ack: SeqNum) {
        if flags.contains(TcpFlags::ACK)
            && ack.after(self.sent_ack)
            && !ack.after(self.received_end)
        {
            self.sent_ack = ack;
        }
        let mut options = self.choose_options(flags);
        let flags = self.count_marks(flags, &mut options, seq, ack);
        let mut bytes = vec![0; 2_000];
        let length = write(flags, seq, ack, &mut self.choices, &options, &mut bytes);
        self.fill(&mut bytes[..length]);
        self.arrive(&bytes[..length]);
    }

    /// Sets the flags and the option of accurate ECN. Their values are derived from the sequence
    /// numbers instead of from further input bytes. Further bytes would change the meaning of all
    /// test cases in the corpus.
    fn count_marks(
        &self,
        flags: TcpFlags,
        options: &mut TcpOptions,
        seq: SeqNum,
        ack: SeqNum,
    ) -> TcpFlags {
        if self.connection.information().accurate_ecn.is_none() || flags.contains(TcpFlags::SYN) {
            return flags;
        }
        let told = ack.number() >> 12;
        if told.is_multiple_of(3) {
            let order = if told.is_multiple_of(2) { EcnOrder::Zero } else { EcnOrder::One };
            let counts = EcnCounts::new(order, ack.number(), told << 10, seq.number());
            options.ecn = Some(counts.cut_to((told % 4).to_le_bytes()[0]));
        }
        (flags - TcpFlags::ACE) | TcpFlags::of_ace(5 + told)
    }

    fn choose_options(&mut self, flags: TcpFlags) -> TcpOptions {
        let mut options =
            if flags.contains(TcpFlags::SYN) { syn_options() } else { TcpOptions::default() };
        match self.choices.byte() {
            0..=7 => self.stamps = !self.stamps,
            8..=15 => options.window_scale = Some(self.choices.byte()),
            16..=23 => options.mss = Some(self.choices.half()),
            24..=31 => options = TcpOptions::default(),
            32..=39 => {
                let left = SeqNum::new(self.choices.near(self.sent_ack.number()));
                options.sack.push(SackBlock { left, right: left + u32::from(self.choices.half()) });
            }
            _ => {}
        }
        let clock = u32::try_from(self.now.as_millis() & 0xffff_ffff).expect("a low word");
        options.timestamps = self.stamps.then(|| Timestamps {
            value: self.choices.near(clock),
            echo: self.choices.near(self.received_stamp),
        });
        options
    }

    /// Fills the payload of the segment in `bytes` with the test pattern, according to the stream
    /// position of each byte.
    fn fill(&self, bytes: &mut [u8]) {
        let Ok(segment) = Segment::parse(bytes) else { return };
        // `irs` is the initial sequence number of the peer, from which stream positions are
        // counted. In SYN-SENT it is not fixed yet: a segment with SYN determines it.
        let opens =
            self.connection.state() == State::SynSent && segment.flags().contains(TcpFlags::SYN);
        let irs = if opens { segment.seq } else { self.irs };
        let first = first_position(segment.flags(), segment.seq - irs);
        let at = bytes.len() - segment.payload.len();
        for (index, byte) in bytes[at..].iter_mut().enumerate() {
            *byte = pattern((first + index) & 0xffff_ffff);
        }
    }

    /// Sends arbitrary bytes that can be parsed as a segment.
    pub(super) fn garbage(&mut self) {
        let mut bytes = self.choices.bytes().to_vec();
        if bytes.len() >= TcpHeader::LENGTH && self.choices.yes() {
            // The expected sequence number and acknowledgement number are written into the segment,
            // so that it passes the first checks.
            bytes[4..8].copy_from_slice(&self.received_ack.number().to_be_bytes());
            bytes[8..12].copy_from_slice(&self.received_end.number().to_be_bytes());
        }
        self.fill(&mut bytes);
        self.arrive(&bytes);
    }

    fn arrive(&mut self, bytes: &[u8]) {
        let Ok(segment) = Segment::parse(bytes) else { return };
        let opening = self.connection.state() == State::SynSent;
        // The ECN codepoint is derived from the length of the data instead of from a further input
        // byte. A further byte would change the meaning of all test cases in the corpus.
        let ecn = match (segment.payload.len() % 4, segment.payload.len() % 16) {
            (1, _) => Ecn::Ce,
            (_, 2 | 7 | 15) => Ecn::Ect0,
            (_, 3) => Ecn::Ect1,
            _ => Ecn::NotEct,
        };
        let now = self.now;
        let disposition = arrive(&mut self.connection, &mut self.twin, |connection| {
            connection.driver().handle_segment_with(now, &segment, ecn, None)
        });
        if opening && self.connection.state() != State::SynSent {
            self.irs = segment.seq;
        }
        if disposition == Disposition::OpenAgain {
            assert_eq!(self.connection.state(), State::TimeWait);
        }
    }

    pub(super) fn report(&mut self) {
        let quoted = SeqNum::new(self.choices.near(self.sent_ack.number()));
        let mtu_payload = usize::from(self.choices.half());
        let report = match self.choices.byte() % 3 {
            0 => IcmpReport::HardError { quoted },
            1 => IcmpReport::SoftError { quoted },
            _ => IcmpReport::PacketTooBig { quoted, mtu_payload },
        };
        self.both(|connection, now| connection.driver().handle_icmp(now, report));
    }
}

/// Returns the options of the peer's SYN.
pub(super) fn syn_options() -> TcpOptions {
    TcpOptions {
        mss: Some(1_460),
        window_scale: Some(2),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..TcpOptions::default()
    }
}

/// Writes a segment whose window, urgent pointer and length are chosen by `choices`. Returns its
/// length.
pub(super) fn write(
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    choices: &mut Choices<'_>,
    options: &TcpOptions,
    bytes: &mut [u8],
) -> usize {
    let window = match choices.byte() {
        0..=127 => u16::MAX,
        128..=159 => 0,
        160..=191 => u16::from(choices.byte()),
        192..=255 => choices.half(),
    };
    let urgent = if flags.contains(TcpFlags::URG) { choices.half() } else { 0 };
    let header = TcpHeader { seq, ack, flags, window, urgent, ..TcpHeader::default() };
    let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(options_length, bytes);
    let most = bytes.len() - TcpHeader::LENGTH - options_length;
    let data = match choices.byte() {
        0..=95 => 0,
        96..=159 => usize::from(choices.byte()),
        160..=223 => 1_400,
        224..=255 => usize::from(choices.half()) % 1_900,
    };
    TcpHeader::LENGTH + options_length + data.min(most)
}
