//! RACK: a segment is lost when one that left sufficiently later has arrived (RFC 8985 §6).

use super::delivery::{Delivery, Departure, Newest};
use super::scoreboard::{Stretch, Verdict};
use crate::rest::pack::packed;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// Recoveries for which a window that was widened stays so (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;

/// What decides how much reordering is borne.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// Is recovery going on, or has the peer named three segments beyond a hole (DupThresh)?
    pub(crate) enough_evidence: bool,
    /// The shortest round trip of the path.
    pub(crate) shortest: Duration,
    /// SRTT.
    pub(crate) smoothed: Duration,
    /// What two times that are equal by the clock may differ by in truth.
    pub(crate) resolution: Duration,
}

/// What is known of the order in which the path delivers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rack {
    /// Which departure was the last of all that have arrived, in place of RACK.xmit_ts.
    order: u64,
    /// RACK.end_seq: where it ends.
    end: SeqNum,
    /// RACK.rtt: its round trip.
    round_trip: Duration,
    /// RACK.fack: the end of the highest segment that has arrived.
    pub(crate) forward: SeqNum,
    /// RACK.reordering_seen.
    pub(crate) reordering_seen: bool,
    /// RACK.reo_wnd_mult: quarters of the shortest round trip that reordering may take.
    multiplier: u32,
    /// RACK.reo_wnd_persist: recoveries left until the multiplier is one again.
    persist: u32,
    /// RACK.dsack_round: one duplicate a round trip widens the window.
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

    /// Has something arrived that left after the segment that left as `order` and ends at `end`?
    pub(crate) fn has_arrived_after(&self, order: u64, end: SeqNum) -> bool {
        self.order > order || (self.order == order && self.end.after(end))
    }

    /// Steps 2 and 3: takes in what has arrived. `is_ambiguous` says whether the acknowledgement could
    /// mean an earlier copy of a segment that left last at the given time.
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
        let Some(Newest { departure, end }) = delivery.newest else { return };
        let round_trip = now.since(departure.sent);
        let too_soon = shortest.is_some_and(|shortest| round_trip < shortest);
        if departure.again && (too_soon || is_ambiguous(departure.sent)) {
            return;
        }
        self.note_arrival(&departure, end, round_trip);
    }

    /// The same of what was sent once, up to `end`, and has arrived in order with all before it.
    #[inline(always)]
    pub(crate) fn note_landing(
        &mut self,
        departure: &Departure,
        end: SeqNum,
        round_trip: Duration,
    ) {
        self.forward = self.forward.later(end);
        self.note_arrival(departure, end, round_trip);
    }

    #[inline(always)]
    fn note_arrival(&mut self, departure: &Departure, end: SeqNum, round_trip: Duration) {
        self.round_trip = round_trip;
        if departure.is_after(end, self.order, self.end) {
            (self.order, self.end) = (departure.order, end);
        }
    }

    /// What had arrived beyond `una` the peer has thrown away: nothing that comes is late for that.
    pub(crate) fn forget_beyond(&mut self, una: SeqNum) {
        self.forward = self.forward.earlier(una);
    }

    /// Step 4: a segment arrived twice because we sent it again too early, so wait longer from now on.
    pub(crate) fn widen(&mut self, una: SeqNum, nxt: SeqNum) {
        if self.widened_until.is_none_or(|until| !una.before(until)) {
            self.widened_until = Some(nxt);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSISTENCE;
        }
    }

    /// Fast recovery or RTO recovery has ended: after enough of them without duplicates the window is narrow again.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            (self.multiplier, self.persist) = (1, PERSISTENCE);
        }
    }

    /// RACK.reo_wnd: how long after a later segment one may still arrive.
    fn window(&self, tolerance: &Tolerance) -> Duration {
        let borne = if !self.reordering_seen && tolerance.enough_evidence {
            Duration::ZERO
        } else {
            (tolerance.shortest * u64::from(self.multiplier) / 4).min(tolerance.smoothed)
        };
        borne + tolerance.resolution
    }

    /// Step 5: is `stretch`, which is on its way, lost? If it may yet be, `wait` grows to the time that
    /// this takes to be certain.
    pub(crate) fn judge(
        &self,
        now: Instant,
        stretch: &Stretch,
        tolerance: &Tolerance,
        wait: &mut Duration,
    ) -> Verdict {
        if !self.has_arrived_after(stretch.departure.order, stretch.right) {
            // Those that were sent once left in the order of their numbers.
            return if stretch.departure.again { Verdict::Keep } else { Verdict::KeepAllFurther };
        }
        let remaining = self.remaining(now, stretch, tolerance);
        if remaining == Duration::ZERO {
            return Verdict::Lost;
        }
        *wait = (*wait).max(remaining);
        Verdict::Keep
    }

    /// After a timeout, everything is lost but what left so recently that it may still arrive (§6.3).
    pub(crate) fn judge_after_timeout(
        &self,
        now: Instant,
        stretch: &Stretch,
        tolerance: &Tolerance,
    ) -> Verdict {
        if self.remaining(now, stretch, tolerance) == Duration::ZERO {
            Verdict::Lost
        } else {
            Verdict::Keep
        }
    }

    fn remaining(&self, now: Instant, stretch: &Stretch, tolerance: &Tolerance) -> Duration {
        let deadline = stretch.departure.sent + self.round_trip + self.window(tolerance);
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
    fn without_reordering_seen_enough_evidence_leaves_no_doubt() {
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
