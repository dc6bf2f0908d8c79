//! The fast path, for segments that header prediction has recognised.
//!
//! A predicted segment has the same effects as on the slow path, because both paths end in the same
//! functions.

use super::Disposition;
use super::validate::Valid;
use super::validate::control::ControlRun;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{SeqNum, Timestamps};

impl Connection {
    /// Handles a predicted ACK without data, which represents `count` coalesced ACKs.
    pub(super) fn take_predicted_ack(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        acked: u32,
        count: u32,
    ) -> Disposition {
        self.statistics.prediction.acks += u64::from(count);
        let stamp = Timestamps::alone(segment.options).unwrap_or_default();
        self.take_stamp(now, segment.seq, stamp.value);
        if acked > 0 {
            self.process_predicted_ack(now, segment, count);
        }
        self.update_window(segment);
        Disposition::Accepted
    }

    /// Handles predicted data of `length` bytes, in segments of at most `piece` bytes. The segment
    /// acknowledges nothing new, so the peer's window is the only state of the sender that it
    /// changes. Copying the data is the final step: no other step reads the data, and values in
    /// registers need not be preserved across the copy.
    #[inline(always)]
    pub(super) fn take_predicted_data(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        stamp: u32,
        length: u32,
        piece: u32,
    ) -> Disposition {
        self.take_stamp(now, segment.seq, stamp);
        self.statistics.prediction.data += 1;
        self.update_window(segment);
        if !self.receiver.buffer.has_place_for_next(segment.payload.len()) {
            return self.take_predicted_text(now, segment, length, piece);
        }
        self.receiver.buffer.take_in_place(length);
        self.note_delivery(now, segment, piece, self.rcv.nxt + length);
        if self.receiver.autotune.wants_echo() || !self.owes_in_full_flow() {
            return self.place_and_judge(now, segment, piece);
        }
        self.receiver.buffer.write_last(segment.payload);
        Disposition::Accepted
    }

    /// Does the work of [`Self::take_predicted_data`], but is not inlined. For a caller that is
    /// rarely used, a copy of the code would not pay.
    #[inline(never)]
    pub(super) fn take_predicted_data_apart(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        stamp: u32,
        length: u32,
        piece: u32,
    ) -> Disposition {
        self.take_predicted_data(now, segment, stamp, length, piece)
    }

    /// Copies predicted data, measures the round-trip time if that is awaited, and decides when the
    /// data is acknowledged. Called only if a round-trip time is awaited, or if no acknowledgement
    /// that covers the data is due yet.
    #[inline(never)]
    fn place_and_judge(&mut self, now: Instant, segment: Valid<'_>, piece: u32) -> Disposition {
        self.receiver.buffer.write_last(segment.payload);
        self.measure_if_awaited(now, segment);
        if self.judge_delivery((1, piece), false) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    /// Handles `count` predicted segments with `length` bytes of data each, which are already
    /// stored in the buffer. `last` is the header of the final segment. If the first segment begins
    /// at Last.ACK.sent, its timestamp becomes TS.Recent (RFC 7323 §4.3). All segments have equal
    /// timestamps, so that of `last` is used.
    #[inline(always)]
    pub(super) fn take_predicted_data_in_place(
        &mut self,
        now: Instant,
        last: Valid<'_>,
        length: u32,
        count: u32,
    ) {
        self.take_stamp(
            now,
            self.rcv.nxt,
            Timestamps::alone(last.options).unwrap_or_default().value,
        );
        self.statistics.prediction.data += u64::from(count);
        self.update_window(last);
        self.receiver.buffer.take_in_place(length * count);
        if self.deliver_predicted(now, last, length * count, (count, length)) {
            self.delay_ack(now);
        }
    }

    /// Handles predicted data that also acknowledges new data.
    #[inline(never)]
    pub(super) fn take_predicted_both(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        stamp: u32,
        length: u32,
        piece: u32,
    ) -> Disposition {
        self.statistics.prediction.both += 1;
        self.take_stamp(now, self.rcv.nxt, stamp);
        self.process_predicted_ack(now, segment, 1);
        self.update_window(segment);
        if !self.receiver.buffer.has_place_for_next(segment.payload.len()) {
            return self.take_predicted_text(now, segment, length, piece);
        }
        self.receiver.buffer.take_in_place(length);
        self.receiver.buffer.write_last(segment.payload);
        if self.deliver_predicted(now, segment, length, (1, piece)) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    /// Handles a predicted control segment by the same steps as the slow path, in the same order.
    #[inline(always)]
    pub(crate) fn take_predicted_control(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        run: ControlRun,
    ) {
        if let Some(timestamps) = run.timestamps {
            self.timestamps.note(timestamps, segment.seq, self.rcv.acked, now);
        }
        self.last_received = now;
        if self.state == State::SynReceived {
            self.process_ack_of_syn(now, segment);
        }
        if run.advances && !self.acknowledge_control_alone(now, segment) {
            self.process_ack(now, segment, 1, None, true);
        }
        self.update_window(segment);
        if self.sender.is_fin_acknowledged(self.snd.una) {
            self.on_fin_acknowledged(now);
        }
        if run.has_fin && self.state.takes_data() {
            self.receiver.fin = Some(self.rcv.nxt);
            self.on_fin(now);
        }
    }

    /// Records the arrival time of a predicted segment, and its timestamp. The timestamp is not
    /// older than TS.Recent, and becomes TS.Recent if the segment begins at Last.ACK.sent (RFC 7323
    /// §4.3). The segment begins at RCV.NXT, so it cannot begin before Last.ACK.sent.
    #[inline(always)]
    fn take_stamp(&mut self, now: Instant, seq: SeqNum, stamp: u32) {
        // The segments of a burst copy one header with the echoed timestamp. If TS.Recent changes
        // below, later segments must echo the new value. So a burst in progress ends here.
        self.limit_burst(0);
        if seq == self.rcv.acked && self.timestamps.on {
            self.timestamps.take(stamp, now);
        }
        self.last_received = now;
    }

    /// Handles predicted data for which the receive buffer has no contiguous free memory.
    #[inline(never)]
    fn take_predicted_text(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        length: u32,
        piece: u32,
    ) -> Disposition {
        if !self.receiver.buffer.append(segment.payload, &self.memory, &self.offered) {
            return self.refuse_for_memory();
        }
        if self.deliver_predicted(now, segment, length, (1, piece)) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    #[inline(always)]
    #[must_use]
    fn deliver_predicted(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        length: u32,
        pieces: (u32, u32),
    ) -> bool {
        self.deliver(now, segment, pieces, self.rcv.nxt + length, false)
    }
}
