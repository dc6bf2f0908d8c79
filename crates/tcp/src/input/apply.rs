//! Applies a valid segment to the connection (RFC 9293 §3.10.7), and answers a refused segment.

use super::validate::{Answer, InWindow, Refused, Valid, Verdict};
use super::{Disposition, Refusal};
use crate::output::reset::Reset;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::{Segment, TcpFlags, Timestamps};

impl Connection {
    /// Applies a segment to the connection. `verdict` is the result of its validation.
    #[inline(always)]
    pub(super) fn apply(&mut self, now: Instant, verdict: Verdict<'_>) -> Disposition {
        match verdict {
            Verdict::InWindow(segment) => self.apply_in_window(now, &segment),
            Verdict::Duplicates(segment, timestamps) => {
                self.apply_duplicate(now, segment, timestamps)
            }
            Verdict::Synchronizes(segment) => self.apply_syn(now, segment),
            Verdict::Resets(segment) => self.apply_reset(segment),
            Verdict::RepeatsSyn(segment) => self.apply_repeated_syn(segment),
            Verdict::Contradicts(segment) => {
                // After contradictory requests, each endpoint may assume another ECN mode. The
                // connection is therefore reset (RFC 9768 §3.1.5).
                self.abort_with(Error::Contradiction, Reset::echo(&segment));
                Disposition::Accepted
            }
            Verdict::RepeatsSynAck(segment) => {
                self.repeat_end_of_handshake(now, segment);
                Disposition::Duplicate
            }
            Verdict::OpensAgain => Disposition::OpenAgain,
        }
    }

    /// Applies a segment that lies at least partly in the receive window, by the steps of RFC 9293
    /// §3.10.7.4 that follow the validation.
    #[inline(always)]
    fn apply_in_window(&mut self, now: Instant, arrived: &InWindow<'_>) -> Disposition {
        let (segment, text) = (arrived.segment, &arrived.text);
        if segment.flags().contains(TcpFlags::SYN) {
            self.ecn.on_syn_received(segment.flags());
        }
        if !segment.payload.is_empty() && self.state.is_synchronized() {
            self.note_duplicate_data(segment);
        }
        if text.cut {
            self.owe_ack();
        }
        let is_news = self.brings_feedback(&segment);
        self.note_timestamps(now, segment, arrived.timestamps);
        if self.config.user_timeout_option {
            self.note_user_timeout(now, &segment.options());
        }
        self.last_received = now;
        self.check_window_reduced(segment);
        self.process_segment_ack(now, segment, text, is_news);
        self.check_urgent(segment);
        let taken = self.take_text(now, segment, text);
        if taken == Disposition::Accepted {
            self.take_fin(now, text);
        }
        taken
    }

    /// Handles a valid segment without new data: answers it, and processes its acknowledgement.
    #[cold]
    fn apply_duplicate(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        timestamps: Option<Timestamps>,
    ) -> Disposition {
        self.count_outside_window(&segment);
        if !segment.payload.is_empty() {
            self.note_duplicate_data(segment);
        }
        let end = segment.seq + segment.sequence_length();
        // The segment that our latest acknowledgement covered has arrived again, so that
        // acknowledgement was probably lost. The answer echoes the timestamp of the new copy. If it
        // echoed that of the first copy, the round-trip sample of the sender would include its
        // timeout (RFC 7323 §4.3 (2); Linux does the same).
        if !end.before(self.rcv.acked) {
            self.note_timestamps(now, segment, timestamps);
        }
        self.answer(now, &segment, Answer::to_unacceptable(&segment));
        self.process_late_ack(now, segment);
        // A retransmitted FIN restarts TIME-WAIT (RFC 9293 §3.10.7.4, eighth step).
        let repeats_fin = segment.flags().contains(TcpFlags::FIN) && end == self.rcv.nxt;
        if self.state == State::TimeWait && repeats_fin {
            self.enter_time_wait(now);
        }
        Disposition::Duplicate
    }

    /// Stores the range of duplicate data, which the next acknowledgement reports by D-SACK (RFC
    /// 2883).
    fn note_duplicate_data(&mut self, segment: Valid<'_>) {
        let end = segment.seq + crate::receive::saturated(segment.payload.len());
        self.receiver.note_duplicate(&self.rcv, segment.seq, end);
    }

    /// Stores the timestamp of a segment, if it has one. Segments that we send afterwards echo it.
    #[inline(always)]
    fn note_timestamps(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        timestamps: Option<Timestamps>,
    ) {
        if let Some(timestamps) = timestamps {
            self.timestamps.note(timestamps, segment.seq, self.rcv.acked, now);
        }
    }

    /// Counts a refused segment, and schedules the answer to it.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        refused: Refused,
    ) -> Disposition {
        match refused.why {
            Refusal::OldTimestamp => self.statistics.old_timestamps += 1,
            Refusal::OutsideWindow if !segment.flags().contains(TcpFlags::RST) => {
                self.count_outside_window(segment);
            }
            _ => {}
        }
        self.answer(now, segment, refused.answer);
        Disposition::Refused(refused.why)
    }

    fn count_outside_window(&mut self, segment: &Segment<'_>) {
        if !segment.payload.is_empty() {
            self.statistics.duplicate_segments += u64::from(segment.count());
        }
    }

    fn answer(&mut self, now: Instant, segment: &Segment<'_>, answer: Answer) {
        match answer {
            Answer::Nothing => {}
            Answer::Acknowledgement => self.owe_ack(),
            Answer::LimitedAcknowledgement => {
                if self.may_challenge(now) {
                    self.owe_challenge();
                }
            }
            Answer::Challenge => {
                if self.may_challenge(now) {
                    self.statistics.challenge_acks += 1;
                    self.owe_challenge();
                }
            }
            Answer::Reset => self.owe_reset(Reset::answering_ack(segment)),
        }
    }
}
