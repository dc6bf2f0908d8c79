//! The accurate mode in a connection: codepoints that come in, the acknowledgements and options that tell of
//! them, and what the peer's tell (RFC 9768 §3.2).

use super::accurate::{Counters, Feedback, Heard};
use super::{Past, answer_to};
use crate::input::validate::Valid;
use crate::options::before;
use crate::receive::saturated;
use crate::{AccurateEcn, Connection, Disposition, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, EcnCounts, Segment, SeqNum, TcpFlags, TcpOptions};

/// Bytes of an option of selective acknowledgements with two blocks, which goes before counts of bytes (RFC
/// 9768 §3.2.3.3).
const TWO_BLOCKS: usize = 20;

/// The same with one.
const ONE_BLOCK: usize = 12;

impl Connection {
    /// The SYN by which the connection was accepted bore `ecn`, which the answer tells in the accurate mode
    /// (RFC 9768 §3.1.1).
    pub fn note_codepoint_of_syn(&mut self, ecn: Ecn) {
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            accurate.syn = ecn;
        }
    }

    /// The packet of `segment`, which led to `disposition`, bore `ecn`. That counts only if the segment
    /// was valid (RFC 9768 §1.3, §3.2).
    pub(crate) fn take_codepoint(
        &mut self,
        segment: &Segment<'_>,
        ecn: Ecn,
        disposition: Disposition,
    ) {
        let Some(valid) = Valid::of_disposition(segment, disposition) else { return };
        if segment.flags().contains(TcpFlags::SYN) {
            self.take_codepoint_of_syn(valid, ecn);
        } else if disposition != Disposition::Duplicate {
            self.ecn.past |= Past::SEEN;
            if self.ecn.accurate.is_some() {
                self.count_codepoint(valid, ecn);
            } else if ecn == Ecn::Ce
                && disposition == Disposition::Accepted
                && !segment.payload.is_empty()
            {
                // On anything but data inside the window the mark could be anybody's (RFC 3168 §6.1.5).
                self.take_mark();
            }
        }
    }

    /// The codepoint of the latest SYN or SYN-ACK is the one that is told (RFC 9768 §3.1.5).
    fn take_codepoint_of_syn(&mut self, segment: Valid<'_>, ecn: Ecn) {
        let is_answer = segment.flags().contains(TcpFlags::ACK);
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.syn = ecn;
        if is_answer && ecn == Ecn::Ce && !accurate.serves {
            accurate.count_marked_syn_ack();
            self.ecn.echo = TcpFlags::of_ace(accurate.received.cep);
        }
    }

    fn count_codepoint(&mut self, segment: Valid<'_>, ecn: Ecn) {
        let counted = [self.statistics.segments_received, self.statistics.segments_sent];
        let (length, pending) = (saturated(segment.payload.len()), self.rcv.pending());
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        let is_urgent = accurate.count(ecn, [segment.count(), length], counted, pending);
        self.ecn.echo = TcpFlags::of_ace(accurate.received.cep);
        let owes_option = accurate.owes_option();
        self.ecn.past.set(Past::OPTION_DUE, owes_option);
        self.statistics.marked_segments +=
            if ecn == Ecn::Ce && length > 0 { segment.count().into() } else { 0 };
        if !is_urgent || self.state == State::Closed {
            return;
        }
        if length == 0 && pending == 0 && self.receiver.has_blocks() {
            // An acknowledgement of acknowledgements must not look like one that tells of a hole (§3.2.2.5.1).
            self.owe_bare_ack();
        } else {
            self.owe_ack();
        }
    }

    /// An acknowledgement must leave before all else, with neither data nor blocks.
    fn owe_bare_ack(&mut self) {
        self.first_due = true;
        self.output_due = true;
    }

    /// The SYN-ACK has come, and in the accurate mode, its acknowledgement leaves alone, and before data: it
    /// tells how the SYN-ACK arrived (RFC 9768 §3.2.2.1).
    #[cold]
    pub(crate) fn end_accurate_handshake(&mut self, syn_ack: &Segment<'_>) {
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.ends_handshake = true;
        accurate.note_first_option(syn_ack.options().ecn);
        self.ecn.past |= Past::FIRST_DATA;
        self.owe_bare_ack();
        if syn_ack.flags().ace() == answer_to(Ecn::Ce).ace() {
            // Our SYN was marked. The count begins without it, but it is answered (§3.2.2.2).
            let cwnd = self.sender.congestion.window().cwnd();
            self.reduce_for_marks(cwnd);
        }
    }

    /// Whether a segment with these flags, and the number of the peer's SYN, is a SYN-ACK that has come
    /// again and asks for an acknowledgement in the words of the handshake (RFC 9768 §3.2.2.1).
    pub(crate) fn ends_handshake_again(&self, flags: TcpFlags) -> bool {
        let is_client = self.ecn.accurate.as_deref().is_some_and(|accurate| !accurate.serves);
        is_client && self.active && flags.contains(TcpFlags::SYN | TcpFlags::ACK)
    }

    /// The SYN-ACK has come again: so does its acknowledgement, if the budget of challenge ACKs allows it.
    #[cold]
    pub(crate) fn repeat_end_of_handshake(&mut self, now: Instant, _: Valid<'_>) {
        if !self.may_challenge(now) {
            return;
        }
        self.owe_challenge();
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            accurate.syn = Ecn::NotEct;
            accurate.ends_handshake = true;
        }
        self.owe_bare_ack();
    }

    /// The counter of an acknowledgement that leaves bare, or what ends the handshake in its place.
    pub(crate) fn bare_echo(&self) -> TcpFlags {
        let ends = self.ecn.accurate.as_deref().filter(|accurate| accurate.ends_handshake);
        ends.map_or(self.ecn.echo, |accurate| answer_to(accurate.syn))
    }

    /// A bare acknowledgement has left.
    pub(crate) fn on_bare_ack_sent(&mut self) {
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            accurate.ends_handshake = false;
        }
    }

    /// The option that a segment has to bear for one of `reasons` beside `others`; none if there is no room
    /// for what it must tell and two blocks of selective acknowledgements.
    pub(crate) fn ecn_option(&self, reasons: Past, others: &TcpOptions) -> Option<EcnCounts> {
        let accurate = self.ecn.accurate.as_deref().filter(|_| self.ecn.owes_option(reasons))?;
        let blocks =
            if self.tells_of_blocks() { self.receiver.blocks(2).as_slice().len() } else { 0 };
        let reserved = [0, ONE_BLOCK, TWO_BLOCKS][blocks.min(2)];
        let room = TcpOptions::MAX_LENGTH.saturating_sub(others.length() + reserved);
        // The first data has it to try the way, also if nothing has been counted (§3.2.3.2.1).
        let is_first = !accurate.owes_option() && reasons.contains(Past::FIRST_DATA);
        accurate.option(room).or_else(|| if is_first { accurate.first_option(room) } else { None })
    }

    /// The option of a SYN-ACK, or of the acknowledgement of one, beside `others`. One that is sent again goes
    /// without it (RFC 9768 §3.2.3.2.2).
    pub(crate) fn first_ecn_option(&self, others: &TcpOptions) -> Option<EcnCounts> {
        let accurate = self.ecn.accurate.as_deref()?;
        let is_repeated = self.state == State::SynReceived && self.snd.max != self.snd.iss;
        if is_repeated {
            return None;
        }
        accurate.first_option(TcpOptions::MAX_LENGTH.saturating_sub(others.length()))
    }

    /// A segment leaves with the option `ecn`, in which `blocks` have room; data comes with it
    /// or not.
    pub(crate) fn on_ecn_option_sent(&mut self, blocks: usize, with_data: bool) {
        let sent = self.statistics.segments_sent;
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.on_option_sent(sent);
        accurate.blocks_beside = u8::try_from(blocks).unwrap_or(u8::MAX);
        let owes_option = accurate.owes_option();
        self.ecn.past.set(Past::OPTION_DUE, owes_option);
        if with_data && self.ecn.past.contains(Past::FIRST_DATA) {
            accurate.first_option = Some(self.statistics.bytes_sent);
            self.ecn.past.remove(Past::FIRST_DATA);
        }
    }

    /// How many blocks of selective acknowledgements the segment had room for that has just left beside the
    /// option, if it had that.
    pub(crate) fn blocks_beside_ecn_option(&self) -> Option<usize> {
        let accurate = self.ecn.accurate.as_deref()?;
        let just_told = accurate.has_just_told(self.statistics.segments_sent);
        just_told.then_some(usize::from(accurate.blocks_beside))
    }

    /// Does the segment say anything of marks that was not said by a later one (RFC 9768 appendix A.1)? It
    /// acknowledges something new, or its timestamp is, or it brings the peer's next data.
    pub(crate) fn brings_feedback(&self, segment: &Segment<'_>) -> bool {
        let is_late = segment.ack.before(self.snd.una);
        if self.ecn.accurate.is_none() || is_late || segment.flags().contains(TcpFlags::SYN) {
            return false;
        }
        let options = segment.options();
        let stamp = options.timestamps.filter(|_| self.timestamps.on);
        segment.ack.after(self.snd.una)
            || stamp.is_some_and(|stamp| before(self.timestamps.recent, stamp.value))
            || (segment.seq == self.rcv.nxt
                && !segment.payload.is_empty()
                && self.receiver.assembler.is_empty())
            || options.sack.as_slice().iter().any(|block| self.is_news(block.right))
    }

    fn is_news(&self, right: SeqNum) -> bool {
        let known = self.sender.rack.forward.later(self.snd.una);
        right.after(known) && !right.after(self.snd.max)
    }

    /// How many packets of ours the segment tells to have come marked, that no other has told of.
    /// `is_news` is what [`Connection::brings_feedback`] says, and `half_open` whether the segment found us in
    /// SYN-RECEIVED.
    pub(crate) fn marks_told(&mut self, segment: Valid<'_>, is_news: bool, half_open: bool) -> u32 {
        if self.ecn.accurate.is_none() {
            return self.echoes(&segment);
        }
        let newest = self.newest_acknowledged(&segment);
        let (una, max, mss) = (self.snd.una, self.snd.max, self.full_segment().max(1));
        let Some(accurate) = self.ecn.accurate.as_deref_mut().filter(|_| is_news) else { return 0 };
        let options = segment.options();
        if accurate.options == Heard::Unknown {
            accurate.note_first_option(options.ecn);
        }
        let ace = segment.flags().ace();
        if half_open && self.sender.expiries > 0 {
            // The option of a lost SYN-ACK did not go again: the first data tries the way (§3.2.3.2.2).
            self.ecn.past |= Past::FIRST_DATA;
        }
        let marks = if half_open && segment.payload.is_empty() && options.sack.is_empty() {
            u32::from(accurate.hear_end_of_handshake(ace))
        } else {
            let segments = (newest - una).div_ceil(mss);
            accurate.hear(&Feedback { ace, option: options.ecn, segments, mss }, una, max)
        };
        self.ecn.settle();
        marks
    }

    /// The highest number that the segment says has arrived.
    fn newest_acknowledged(&self, segment: &Segment<'_>) -> SeqNum {
        let known = self.snd.una.later(segment.ack);
        let blocks = segment.sack_blocks();
        let news =
            blocks.as_slice().iter().map(|block| block.right).filter(|&right| self.is_news(right));
        news.fold(known, SeqNum::later)
    }

    /// The marks that ended the handshake mean for the first window what others mean for a flight (RFC 9768
    /// §3.2.2.2).
    pub(crate) fn answer_marks(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        marks: u32,
        half_open: bool,
    ) {
        if half_open {
            let cwnd = self.sender.congestion.window().cwnd();
            self.statistics.marked_deliveries += u64::from(marks);
            self.reduce_for_marks(cwnd);
        } else {
            self.on_marks(now, segment, marks);
        }
    }

    /// The three bits that the next segment is expected to have.
    pub(crate) fn expected_ace(&self) -> TcpFlags {
        self.ecn.accurate.as_deref().map_or(TcpFlags::empty(), |accurate| accurate.ace)
    }

    /// May the counter have come round without having moved?
    pub(crate) fn is_ace_ambiguous(&self) -> bool {
        self.ecn.accurate.as_deref().is_some_and(super::Accurate::is_ambiguous)
    }

    /// The counts of the accurate mode, if the connection is in it.
    pub(crate) fn accurate_ecn(&self) -> Option<AccurateEcn> {
        let accurate = self.ecn.accurate.as_deref()?;
        let (received, heard, initial) = (&accurate.received, &accurate.heard, &Counters::INITIAL);
        Some(AccurateEcn {
            received: received.cep.wrapping_sub(initial.cep),
            received_ce_bytes: received.ceb.wrapping_sub(initial.ceb),
            received_e0_bytes: received.e0b.wrapping_sub(initial.e0b),
            received_e1_bytes: received.e1b.wrapping_sub(initial.e1b),
            delivered: heard.cep.wrapping_sub(initial.cep),
            delivered_ce_bytes: heard.ceb.wrapping_sub(initial.ceb),
            delivered_e0_bytes: heard.e0b.wrapping_sub(initial.e0b),
            delivered_e1_bytes: heard.e1b.wrapping_sub(initial.e1b),
            hears_options: accurate.options == Heard::Options,
            sends_options: !accurate.muted,
        })
    }
}
