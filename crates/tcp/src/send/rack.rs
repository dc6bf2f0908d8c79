//! RACK: a segment counts as lost if a segment that was sent later has arrived, and the time for
//! reordering has passed (RFC 8985 §6).

use super::delivery::{Delivery, Newest, SendRecord};
use super::scoreboard::{SentRange, Verdict};
use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// The number of recoveries after which a widened reordering window is reset (RFC 8985 §6.2 step
/// 4).
const PERSISTENCE: u32 = 16;

/// The values from which the reordering window is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// Whether a loss is likely: recovery is in progress, or three segments after a hole were
    /// SACKed (DupThresh).
    pub(crate) enough_evidence: bool,
    /// The minimum round-trip time of the path.
    pub(crate) shortest: Duration,
    /// SRTT, the smoothed round-trip time.
    pub(crate) smoothed: Duration,
    /// The resolution of the clock. Two transmissions with equal recorded times may have been sent
    /// this far apart.
    pub(crate) resolution: Duration,
}

/// The state of RACK: the most recently sent of the segments that have arrived, and how much the
/// path reorders segments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rack {
    /// The transmission number of the most recently sent segment that has arrived. It is used in
    /// place of RACK.xmit_ts.
    order: u64,
    /// RACK.end_seq: the end of the most recently sent segment that has arrived.
    end: SeqNum,
    /// RACK.rtt: the round-trip time of the segment that has arrived most recently.
    round_trip: Duration,
    /// RACK.fack: the end of the highest segment that has arrived.
    pub(crate) forward: SeqNum,
    /// RACK.reordering_seen: whether the path is known to reorder segments.
    pub(crate) reordering_seen: bool,
    /// RACK.reo_wnd_mult: the size of the reordering window, in quarters of the minimum round-trip
    /// time.
    multiplier: u32,
    /// RACK.reo_wnd_persist: the number of further recoveries after which the multiplier is reset.
    persist: u32,
    /// RACK.dsack_round: until this sequence number is acknowledged, further duplicates do not
    /// widen the reordering window. The window therefore widens at most once per round trip.
    widened_until: Option<SeqNum>,
}

packed!(Rack {
    order,
    end,
    round_trip,
    forward,
    reordering_seen,
    multiplier,
    persist,
    widened_until
});

impl Rack {
    pub(crate) const fn new(start: SeqNum) -> Self {
        Self {
            order: 0,
            end: start,
            round_trip: Duration::ZERO,
            forward: start,
            reordering_seen: false,
            multiplier: 1,
            persist: PERSISTENCE,
            widened_until: None,
        }
    }

    /// Whether a segment has arrived that was sent after the segment with this `order` and `end`.
    pub(crate) fn has_arrived_after(&self, order: u64, end: SeqNum) -> bool {
        self.order > order || (self.order == order && self.end.after(end))
    }

    /// Processes a delivery (RFC 8985 §6.2 steps 2 and 3). If the newest delivered segment was
    /// retransmitted, its acknowledgement may have been caused by an earlier copy, and is then
    /// ignored. `is_ambiguous` returns whether it may have been, given the time of the most recent
    /// transmission.
    #[inline(always)]
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        delivery: &Delivery,
        shortest: Option<Duration>,
        is_ambiguous: impl Fn(Instant) -> bool,
    ) {
        self.forward = delivery.forward();
        self.reordering_seen |= delivery.reordered;
        let Some(Newest { send_record, end }) = delivery.newest else { return };
        let round_trip = now.since(send_record.sent);
        let too_soon = shortest.is_some_and(|shortest| round_trip < shortest);
        if send_record.again && (too_soon || is_ambiguous(send_record.sent)) {
            return;
        }
        self.note_arrival(&send_record, end, round_trip);
    }

    /// Processes the delivery of data in order, up to `end`, none of which was retransmitted.
    #[inline(always)]
    pub(crate) fn on_in_order_arrival(
        &mut self,
        send_record: &SendRecord,
        end: SeqNum,
        round_trip: Duration,
    ) {
        self.forward = self.forward.later(end);
        self.note_arrival(send_record, end, round_trip);
    }

    #[inline(always)]
    fn note_arrival(&mut self, send_record: &SendRecord, end: SeqNum, round_trip: Duration) {
        self.round_trip = round_trip;
        if send_record.is_after(end, self.order, self.end) {
            (self.order, self.end) = (send_record.order, end);
        }
    }

    /// Handles reneging: the peer has discarded data after `una`. The arrival of discarded data is
    /// no evidence any more that data with lower sequence numbers is lost or reordered.
    pub(crate) fn forget_beyond(&mut self, una: SeqNum) {
        self.forward = self.forward.earlier(una);
    }

    /// Widens the reordering window (RFC 8985 §6.2 step 4). Called when a segment has arrived
    /// twice: the original was only late, so it was retransmitted too early.
    pub(crate) fn widen(&mut self, una: SeqNum, nxt: SeqNum) {
        if self.widened_until.is_none_or(|until| !una.before(until)) {
            self.widened_until = Some(nxt);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSISTENCE;
        }
    }

    /// Handles the end of a recovery. After [`PERSISTENCE`] recoveries without a duplicate arrival,
    /// the reordering window is reset.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            (self.multiplier, self.persist) = (1, PERSISTENCE);
        }
    }

    /// Returns the reordering window (RACK.reo_wnd). A segment counts as lost if it is not
    /// acknowledged within the sum of the latest round-trip time and this window.
    fn window(&self, tolerance: &Tolerance) -> Duration {
        let borne = if !self.reordering_seen && tolerance.enough_evidence {
            Duration::ZERO
        } else {
            (tolerance.shortest * u64::from(self.multiplier) / 4).min(tolerance.smoothed)
        };
        borne + tolerance.resolution
    }

    /// Decides whether a range in flight is lost (RFC 8985 §6.2 step 5). If the range is not lost
    /// yet, but will count as lost after some time, `wait` becomes at least this time.
    pub(crate) fn judge(
        &self,
        now: Instant,
        range: &SentRange,
        tolerance: &Tolerance,
        wait: &mut Duration,
    ) -> Verdict {
        if !self.has_arrived_after(range.send_record.order, range.right) {
            // No segment that was sent after this range has arrived. Ranges without retransmissions
            // are listed in the order of their transmission. So if this range is one of them,
            // nothing sent after any later range of the list has arrived either.
            return if range.send_record.again { Verdict::Keep } else { Verdict::KeepAllFurther };
        }
        let remaining = self.remaining(now, range, tolerance);
        if remaining == Duration::ZERO {
            return Verdict::Lost;
        }
        *wait = (*wait).max(remaining);
        Verdict::Keep
    }

    /// Decides whether a range is lost after a timeout. It is lost unless it was sent so recently
    /// that its round trip and the reordering window are not over (RFC 8985 §6.3).
    pub(crate) fn judge_after_timeout(
        &self,
        now: Instant,
        range: &SentRange,
        tolerance: &Tolerance,
    ) -> Verdict {
        if self.remaining(now, range, tolerance) == Duration::ZERO {
            Verdict::Lost
        } else {
            Verdict::Keep
        }
    }

    fn remaining(&self, now: Instant, range: &SentRange, tolerance: &Tolerance) -> Duration {
        let deadline = range.send_record.sent + self.round_trip + self.window(tolerance);
        deadline.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance {
        enough_evidence: false,
        shortest: Duration::from_millis(100),
        smoothed: Duration::from_millis(110),
        resolution: Duration::ZERO,
    };

    #[test]
    fn enough_evidence_closes_the_window_unless_reordering_was_seen() {
        let mut rack = Rack::new(SeqNum::new(0));
        assert_eq!(rack.window(&TOLERANCE), Duration::from_millis(25));
        let sure = Tolerance { enough_evidence: true, ..TOLERANCE };
        assert_eq!(rack.window(&sure), Duration::ZERO);
        rack.reordering_seen = true;
        assert_eq!(rack.window(&sure), Duration::from_millis(25));
    }

    #[test]
    fn duplicates_widen_the_window_once_a_round_trip_up_to_the_smoothed_one() {
        let mut rack = Rack::new(SeqNum::new(0));
        rack.widen(SeqNum::new(10), SeqNum::new(50));
        rack.widen(SeqNum::new(20), SeqNum::new(60));
        assert_eq!(rack.window(&TOLERANCE), Duration::from_millis(50));
        for round in 1..9 {
            rack.widen(SeqNum::new(50 * round), SeqNum::new(50 * round + 50));
        }
        assert_eq!(rack.window(&TOLERANCE), Duration::from_millis(110));
        for _ in 0..PERSISTENCE {
            rack.on_recovered();
        }
        assert_eq!(rack.window(&TOLERANCE), Duration::from_millis(25));
    }
}
