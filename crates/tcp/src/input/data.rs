//! The seventh step of segment processing: the data of a segment (RFC 9293 §3.10.7.4).

use super::Disposition;
use super::validate::Valid;
use super::validate::sequence::Text;
use crate::event::Events;
use crate::output::reset::Reset;
use crate::receive::{Keep, saturated};
use crate::timers::Timer;
use crate::{Connection, Error};
use core::hint::cold_path;
use linerate_units::Instant;
use linerate_wire::{SeqNum, TcpFlags};

impl Connection {
    pub(super) fn take_text(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        text: &Text<'_>,
    ) -> Disposition {
        let Some(text) = self.before_fin(text) else { return Disposition::Accepted };
        if self.released {
            // The application has closed the connection and will not read this data, so the
            // connection is reset. If the data were acknowledged, the peer would wrongly assume
            // that it was delivered.
            self.abort_with(Error::DataAfterClose, Reset::echo(&segment));
            return Disposition::DataRefused;
        }
        let most = self.config.reassembly_ranges;
        match self.receiver.keep(
            &self.rcv,
            text.seq,
            text.payload,
            most,
            (&self.memory, &self.offered),
        ) {
            Keep::Kept => {}
            Keep::TooManyRanges => {
                self.statistics.reassembly_full += 1;
                self.owe_ack();
                return Disposition::DataRefused;
            }
            Keep::NoMemory => return self.refuse_for_memory(),
        }
        if text.seq == self.rcv.nxt {
            self.deliver_past_holes(now, segment, saturated(text.payload.len()), text.piece);
        } else {
            // The segment leaves a hole before it. A duplicate ACK at once tells the sender that
            // data is missing (RFC 5681 §4.2).
            self.statistics.out_of_order_segments += u64::from(text.count);
            self.receiver.note_out_of_order(text.count);
            self.owe_ack();
        }
        Disposition::Accepted
    }

    /// Refuses data because there is no memory for it. An acknowledgement is sent, which does not
    /// cover this data, so the peer retransmits it.
    #[cold]
    pub(super) fn refuse_for_memory(&mut self) -> Disposition {
        self.statistics.memory_refusals += 1;
        self.owe_ack();
        Disposition::NoMemory
    }

    /// Returns the data of the segment up to the peer's FIN. `None` if no data lies before the FIN,
    /// or the state does not accept data.
    fn before_fin<'a>(&self, text: &Text<'a>) -> Option<Text<'a>> {
        if text.payload.is_empty() || !self.state.takes_data() {
            return None;
        }
        match self.receiver.fin {
            Some(fin) if text.end().after(fin) => None,
            _ => Some(*text),
        }
    }

    /// Delivers data that is stored in the buffer: `length` bytes from RCV.NXT on, and any
    /// out-of-order data that follows them without a hole. The `length` bytes arrived in segments
    /// of at most `piece` bytes.
    fn deliver_past_holes(&mut self, now: Instant, segment: Valid<'_>, length: u32, piece: u32) {
        let had_holes = !self.receiver.assembler.is_empty();
        let arrived = self.rcv.nxt + length;
        let next = if had_holes { self.receiver.fill_hole(arrived) } else { arrived };
        if self.deliver(now, segment, (1, piece), next, had_holes) {
            self.delay_ack(now);
        }
        // If the application has closed the receiving direction, this data was discarded, so the
        // window can grow. A window update then lets the peer send the rest of its data and its
        // FIN.
        if self.receiver.shut {
            self.owe_ack_if_window_grew();
        }
    }

    /// Makes the data before `next` readable. This data has arrived in order, in `count` segments
    /// of `piece` bytes each. If `count` is one, the segment may have less data than `piece`.
    /// Returns whether an acknowledgement must [wait](Self::delay_ack) for the delayed-ACK timer.
    /// The fast path and the slow path both call this method.
    #[inline(always)]
    #[must_use]
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        (count, piece): (u32, u32),
        next: SeqNum,
        had_holes: bool,
    ) -> bool {
        self.note_delivery(now, segment, piece, next);
        self.measure_if_awaited(now, segment);
        self.judge_delivery((count, piece), had_holes)
    }

    /// Advances RCV.NXT to `next`. Updates counters, events and the ACK policy for the delivered
    /// data.
    #[inline(always)]
    pub(super) fn note_delivery(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        piece: u32,
        next: SeqNum,
    ) {
        self.statistics.bytes_received += u64::from(next - self.rcv.nxt);
        self.rcv.nxt = next;
        if piece > self.receiver.largest_segment {
            cold_path();
            self.receiver.largest_segment = piece;
        }
        self.receiver.last_data = now;
        self.events |= Events::READABLE;
        self.acks.note_push(segment.flags().contains(TcpFlags::PSH));
    }

    /// Measures the round-trip time at the receiver by an echoed timestamp, if the tuning of the
    /// receive buffer awaits a sample.
    #[inline(always)]
    pub(super) fn measure_if_awaited(&mut self, now: Instant, segment: Valid<'_>) {
        if self.receiver.autotune.wants_echo() {
            self.measure_receive_round_trip(now, segment.options);
        }
    }

    /// Whether an acknowledgement is already due in a bulk transfer. It will then also cover the
    /// data that is arriving now.
    #[inline(always)]
    pub(super) fn owes_in_full_flow(&self) -> bool {
        self.acks.is_in_full_flow() && self.owes_for_data()
    }

    /// Whether an acknowledgement is due because of received data, and not only as a challenge ACK.
    /// The two flags are compared as an array, which takes a single comparison.
    #[inline(always)]
    fn owes_for_data(&self) -> bool {
        [self.ack_due, self.challenge_due] == [true, false]
    }

    /// Decides whether the delivered data is acknowledged at once, and if so, schedules the
    /// acknowledgement. Returns true if an acknowledgement must wait for the delayed-ACK timer.
    #[inline(always)]
    #[must_use]
    pub(super) fn judge_delivery(&mut self, (count, piece): (u32, u32), had_holes: bool) -> bool {
        let is_quick = self.acks.on_data(count);
        // An acknowledgement that is already due will also cover the data that has just arrived, so
        // there is nothing to decide.
        if self.owes_for_data() {
            return false;
        }
        // Data that fills any part of a hole is acknowledged at once (RFC 5681 §4.2). At the start
        // of a connection, every segment is acknowledged at once as well (`is_quick`).
        if had_holes || is_quick {
            self.owe_ack();
            return false;
        }
        let (receiver, pending) = (&self.receiver, self.rcv.pending());
        let was_crowded = |later| receiver.was_crowded(later);
        let full = receiver.largest_segment;
        let (is_due, one_waits) = self.acks.is_due(count, piece, pending, full, was_crowded);
        if is_due {
            self.owe_ack();
        }
        one_waits && !self.timers.is_set(Timer::DelayedAck)
    }

    #[inline(never)]
    pub(super) fn delay_ack(&mut self, now: Instant) {
        self.timers.set(Timer::DelayedAck, now, self.config.delayed_ack);
    }
}
