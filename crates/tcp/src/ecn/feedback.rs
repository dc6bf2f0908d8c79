//! AccECN in a connection (RFC 9768 §3.2): counts received codepoints, sends the ACKs and options
//! that report them, and processes the ACKs and options of the peer.

use super::accurate::{Counters, Feedback, PeerOptions};
use super::{EcnSignals, ace_for_codepoint};
use crate::input::validate::Valid;
use crate::options::before;
use crate::receive::saturated;
use crate::{AccurateEcn, Connection, Disposition, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, EcnCounts, Segment, SeqNum, TcpFlags, TcpOptions};

/// The length in bytes of a SACK option with two blocks. Two blocks have priority over the byte
/// counters of AccECN (RFC 9768 §3.2.3.3).
const TWO_BLOCKS: usize = 20;

/// The length in bytes of a SACK option with one block.
const ONE_BLOCK: usize = 12;

impl Connection {
    pub(crate) fn note_codepoint_of_syn(&mut self, ecn: Ecn) {
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            accurate.syn = ecn;
        }
    }

    /// Processes the codepoint of a packet whose segment was processed with the result
    /// `disposition`. The codepoint counts only if the segment was valid (RFC 9768 §1.3, §3.2).
    pub(crate) fn on_codepoint(
        &mut self,
        segment: &Segment<'_>,
        ecn: Ecn,
        disposition: Disposition,
    ) {
        let Some(valid) = Valid::of_disposition(segment, disposition) else { return };
        if segment.flags().contains(TcpFlags::SYN) {
            self.on_codepoint_of_syn(valid, ecn);
        } else if disposition != Disposition::Duplicate {
            self.ecn.past |= EcnSignals::SEEN;
            if self.ecn.accurate.is_some() {
                self.count_codepoint(valid, ecn);
            } else if ecn == Ecn::Ce
                && disposition == Disposition::Accepted
                && !segment.payload.is_empty()
            {
                // A mark counts only on data inside the window. A segment outside the window may be
                // forged by an attacker (RFC 3168 §6.1.5).
                self.on_ce_mark();
            }
        }
    }

    /// Stores the codepoint of the peer's latest SYN or SYN-ACK. The next segment of the handshake
    /// reports it to the peer (RFC 9768 §3.1.5).
    fn on_codepoint_of_syn(&mut self, segment: Valid<'_>, ecn: Ecn) {
        let is_answer = segment.flags().contains(TcpFlags::ACK);
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.syn = ecn;
        if is_answer && ecn == Ecn::Ce && !accurate.is_server {
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
        let is_option_due = accurate.is_option_due();
        self.ecn.past.set(EcnSignals::OPTION_DUE, is_option_due);
        self.statistics.marked_segments +=
            if ecn == Ecn::Ce && length > 0 { segment.count().into() } else { 0 };
        if !is_urgent || self.state == State::Closed {
            return;
        }
        if length == 0 && pending == 0 && self.receiver.has_blocks() {
            // This ACK reports marks on ACKs without data, so it must have no SACK blocks, or the
            // peer would take it for a duplicate ACK (RFC 9768 §3.2.2.5.1).
            self.owe_bare_ack();
        } else {
            self.owe_ack();
        }
    }

    /// Schedules an ACK that carries neither data nor SACK blocks, and is sent before all other
    /// output.
    fn owe_bare_ack(&mut self) {
        self.first_due = true;
        self.output_due = true;
    }

    /// Handles the SYN-ACK in AccECN mode. The ACK that answers it is sent before data and carries
    /// none, since it reports the codepoint of the SYN-ACK (RFC 9768 §3.2.2.1).
    #[cold]
    pub(crate) fn finish_accurate_handshake(&mut self, syn_ack: &Segment<'_>) {
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.ends_handshake = true;
        accurate.note_first_option(syn_ack.options().ecn);
        self.ecn.past |= EcnSignals::TEST_OPTION;
        self.owe_bare_ack();
        if syn_ack.flags().ace() == ace_for_codepoint(Ecn::Ce).ace() {
            // The SYN-ACK reports a CE mark on our SYN. The congestion window is reduced for this
            // mark, but the counter of marks does not include it (RFC 9768 §3.2.2.2).
            let cwnd = self.sender.congestion.window().cwnd();
            self.reduce_for_marks(cwnd);
        }
    }

    /// Whether a segment with these flags is a repeated SYN-ACK, which must be answered by the ACK
    /// that completes the handshake (RFC 9768 §3.2.2.1). The caller has checked that the segment
    /// has the peer's initial sequence number.
    pub(crate) fn ends_handshake_again(&self, flags: TcpFlags) -> bool {
        let is_client = self.ecn.accurate.as_deref().is_some_and(|accurate| !accurate.is_server);
        is_client && self.active && flags.contains(TcpFlags::SYN | TcpFlags::ACK)
    }

    /// Sends the ACK that completes the handshake once more, if the limit for challenge ACKs allows
    /// it.
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

    /// Returns the ACE field of an ACK without data. In the ACK that completes the handshake, it
    /// reports the codepoint of the SYN-ACK.
    pub(crate) fn bare_echo(&self) -> TcpFlags {
        let ends = self.ecn.accurate.as_deref().filter(|accurate| accurate.ends_handshake);
        ends.map_or(self.ecn.echo, |accurate| ace_for_codepoint(accurate.syn))
    }

    /// Records that an ACK without data was sent.
    pub(crate) fn on_bare_ack_sent(&mut self) {
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            accurate.ends_handshake = false;
        }
    }

    /// Returns the AccECN option that the next segment must carry for one of `reasons`, beside the
    /// options `others`. `None` if none of the reasons applies, or if the option does not fit
    /// together with up to two SACK blocks, which have priority.
    pub(crate) fn ecn_option(&self, reasons: EcnSignals, others: &TcpOptions) -> Option<EcnCounts> {
        let accurate = self.ecn.accurate.as_deref().filter(|_| self.ecn.is_option_due(reasons))?;
        let blocks =
            if self.reports_blocks() { self.receiver.blocks(2).as_slice().len() } else { 0 };
        let reserved = [0, ONE_BLOCK, TWO_BLOCKS][blocks.min(2)];
        let room = TcpOptions::MAX_LENGTH.saturating_sub(others.length() + reserved);
        // If the option is due only to test whether the path passes options, it is sent even if no
        // counter has changed (RFC 9768 §3.2.3.2.1).
        let is_first = !accurate.is_option_due() && reasons.contains(EcnSignals::TEST_OPTION);
        accurate.option(room).or_else(|| if is_first { accurate.first_option(room) } else { None })
    }

    /// Returns the AccECN option of a SYN-ACK, or of the ACK that answers it, beside the options
    /// `others`. A retransmitted SYN-ACK has no option (RFC 9768 §3.2.3.2.2).
    pub(crate) fn first_ecn_option(&self, others: &TcpOptions) -> Option<EcnCounts> {
        let accurate = self.ecn.accurate.as_deref()?;
        let is_repeated = self.state == State::SynReceived && self.snd.max != self.snd.iss;
        if is_repeated {
            return None;
        }
        accurate.first_option(TcpOptions::MAX_LENGTH.saturating_sub(others.length()))
    }

    /// Records that a segment with the AccECN option is sent, with room for `blocks` SACK blocks.
    pub(crate) fn on_ecn_option_sent(&mut self, blocks: usize, with_data: bool) {
        let sent = self.statistics.segments_sent;
        let Some(accurate) = self.ecn.accurate.as_deref_mut() else { return };
        accurate.on_option_sent(sent);
        accurate.blocks_beside = u8::try_from(blocks).unwrap_or(u8::MAX);
        let is_option_due = accurate.is_option_due();
        self.ecn.past.set(EcnSignals::OPTION_DUE, is_option_due);
        if with_data && self.ecn.past.contains(EcnSignals::TEST_OPTION) {
            accurate.first_option = Some(self.statistics.bytes_sent);
            self.ecn.past.remove(EcnSignals::TEST_OPTION);
        }
    }

    /// Returns the number of SACK blocks for which the most recently sent segment had room beside
    /// its AccECN option. `None` if it had no such option.
    pub(crate) fn blocks_beside_ecn_option(&self) -> Option<usize> {
        let accurate = self.ecn.accurate.as_deref()?;
        let just_told = accurate.has_just_reported(self.statistics.segments_sent);
        just_told.then_some(usize::from(accurate.blocks_beside))
    }

    /// Whether the AccECN feedback in the segment is newer than that of all earlier segments (RFC
    /// 9768 appendix A.1). There are three signs of newer feedback. The segment acknowledges or
    /// SACKs new data, its timestamp is newer, or it carries the next data in order while no data
    /// is missing.
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

    /// Returns the number of our packets that the segment reports as marked and that no earlier
    /// segment has reported. `is_news` is the result of [`Connection::brings_feedback`].
    /// `half_open` is true if the connection was in SYN-RECEIVED when the segment arrived.
    pub(crate) fn newly_reported_marks(
        &mut self,
        segment: Valid<'_>,
        is_news: bool,
        half_open: bool,
    ) -> u32 {
        if self.ecn.accurate.is_none() {
            return self.echoes(&segment);
        }
        let newest = self.newest_acknowledged(&segment);
        let (una, max, mss) = (self.snd.una, self.snd.max, self.full_segment().max(1));
        let Some(accurate) = self.ecn.accurate.as_deref_mut().filter(|_| is_news) else { return 0 };
        let options = segment.options();
        if accurate.options == PeerOptions::Unknown {
            accurate.note_first_option(options.ecn);
        }
        let ace = segment.flags().ace();
        if half_open && self.sender.expiries > 0 {
            // The SYN-ACK was retransmitted without the option. Our first data therefore carries an
            // option, to test whether the path passes options (RFC 9768 §3.2.3.2.2).
            self.ecn.past |= EcnSignals::TEST_OPTION;
        }
        let marks = if half_open && segment.payload.is_empty() && options.sack.is_empty() {
            u32::from(accurate.process_handshake_ack(ace))
        } else {
            let segments = (newest - una).div_ceil(mss);
            accurate.process_feedback(
                &Feedback { ace, option: options.ecn, segments, mss },
                una,
                max,
            )
        };
        self.ecn.update_codepoint();
        marks
    }

    /// Returns the highest sequence number that the segment acknowledges, by SEG.ACK or by SACK.
    fn newest_acknowledged(&self, segment: &Segment<'_>) -> SeqNum {
        let known = self.snd.una.later(segment.ack);
        let blocks = segment.sack_blocks();
        let news =
            blocks.as_slice().iter().map(|block| block.right).filter(|&right| self.is_news(right));
        news.fold(known, SeqNum::later)
    }

    /// Reduces the congestion window after the segment has reported `marks` new marks. If the mark
    /// was on our SYN-ACK, the initial window is reduced (RFC 9768 §3.2.2.2).
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

    /// Returns the ACE field that the peer's next segment is expected to have.
    pub(crate) fn expected_ace(&self) -> TcpFlags {
        self.ecn.accurate.as_deref().map_or(TcpFlags::empty(), |accurate| accurate.ace)
    }

    /// Whether an unchanged ACE field in the peer's next segment may mean that eight marks were
    /// added.
    pub(crate) fn is_ace_ambiguous(&self) -> bool {
        self.ecn.accurate.as_deref().is_some_and(super::Accurate::is_ambiguous)
    }

    /// Returns the AccECN counters, or `None` if the connection has not negotiated AccECN.
    pub(crate) fn accurate_ecn(&self) -> Option<AccurateEcn> {
        let accurate = self.ecn.accurate.as_deref()?;
        let (received, delivered, initial) =
            (&accurate.received, &accurate.delivered, &Counters::INITIAL);
        Some(AccurateEcn {
            received: received.cep.wrapping_sub(initial.cep),
            received_ce_bytes: received.ceb.wrapping_sub(initial.ceb),
            received_e0_bytes: received.e0b.wrapping_sub(initial.e0b),
            received_e1_bytes: received.e1b.wrapping_sub(initial.e1b),
            delivered: delivered.cep.wrapping_sub(initial.cep),
            delivered_ce_bytes: delivered.ceb.wrapping_sub(initial.ceb),
            delivered_e0_bytes: delivered.e0b.wrapping_sub(initial.e0b),
            delivered_e1_bytes: delivered.e1b.wrapping_sub(initial.e1b),
            receives_options: accurate.options == PeerOptions::Options,
            sends_options: !accurate.options_disabled,
        })
    }
}
