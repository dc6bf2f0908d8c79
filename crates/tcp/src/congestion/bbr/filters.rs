//! The filters of BBR (draft-ietf-ccwg-bbr §5.5). They find the maximum bandwidth in two probing
//! cycles, the minimum round-trip time in ten seconds, and the amount of ACK aggregation.

use crate::compact::pack::packed;
use linerate_units::{Duration, Instant, Rate};

/// `MinRTTFilterLen`: the time after which a minimum round-trip time expires.
const MEMORY: Duration = Duration::from_secs(10);
/// `ProbeRTTInterval`: the time after which ProbeRTT drains the queue, counted from the measurement
/// of the recent minimum round-trip time. A shorter measurement starts the interval anew.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// `max_bw`: the largest delivery rate in this probing cycle and the previous cycle
/// (draft-ietf-ccwg-bbr §5.5.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MaxBandwidth {
    this_cycle: Rate,
    last_cycle: Rate,
}

packed!(MaxBandwidth { this_cycle, last_cycle });

impl MaxBandwidth {
    pub(super) fn best(&self) -> Rate {
        self.this_cycle.max(self.last_cycle)
    }

    pub(super) fn take(&mut self, rate: Rate) {
        self.this_cycle = self.this_cycle.max(rate);
    }

    /// `AdvanceMaxBwFilter`: begins the next probing cycle.
    pub(super) fn advance(&mut self) {
        self.last_cycle = core::mem::take(&mut self.this_cycle);
    }
}

/// `min_rtt`, and the minimum round-trip time over a shorter period than that of `min_rtt`. The age
/// of the second minimum determines when ProbeRTT is due (draft-ietf-ccwg-bbr §5.3.4.3).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShortestRoundTrip {
    shortest: Option<Duration>,
    found: Instant,
    /// `probe_rtt_min_delay`: the minimum round-trip time in the last [`PROBE_INTERVAL`].
    recent: Option<Duration>,
    recent_found: Instant,
}

packed!(ShortestRoundTrip { shortest, found, recent, recent_found });

impl ShortestRoundTrip {
    pub(super) const fn new(now: Instant) -> Self {
        Self { shortest: None, found: now, recent: None, recent_found: now }
    }

    pub(super) const fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// `UpdateMinRTT`: processes the round-trip time of an acknowledgement, if it has measured one.
    /// Returns whether ProbeRTT is due, because the recent minimum is older than
    /// [`PROBE_INTERVAL`].
    pub(super) fn take(&mut self, now: Instant, round_trip: Option<Duration>) -> bool {
        let expired = now > self.recent_found + PROBE_INTERVAL;
        if let Some(round_trip) = round_trip
            && (expired || self.recent.is_none_or(|recent| round_trip < recent))
        {
            (self.recent, self.recent_found) = (Some(round_trip), now);
        }
        let forgotten = now > self.found + MEMORY;
        let shorter = match (self.recent, self.shortest) {
            (Some(recent), Some(shortest)) => recent < shortest,
            (recent, None) => recent.is_some(),
            (None, Some(_)) => false,
        };
        if shorter || (forgotten && self.recent.is_some()) {
            (self.shortest, self.found) = (self.recent, self.recent_found);
        }
        expired
    }

    /// Restarts the interval after which ProbeRTT is due, because ProbeRTT has just drained the
    /// queue.
    pub(super) const fn restart_interval(&mut self, now: Instant) {
        self.recent_found = now;
    }
}

/// `extra_acked`: the number of bytes acknowledged within a period, less the number that the
/// estimated bandwidth would deliver in that period (draft-ietf-ccwg-bbr §5.5.9).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aggregation {
    began: Instant,
    delivered: u64,
    most: WindowedMax,
}

packed!(Aggregation { began, delivered, most });

impl Aggregation {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, delivered: 0, most: WindowedMax::default() }
    }

    /// Restarts the measurement after an idle period. Otherwise the first acknowledgements after
    /// that period would look like aggregation.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.began = now;
    }

    /// Processes an acknowledgement of `bytes` bytes that arrives in the round with the number
    /// `round`. `bandwidth` is the present bandwidth estimate, `cwnd` the congestion window in
    /// bytes, and `memory` the length of the filter in rounds.
    pub(super) fn take(
        &mut self,
        now: Instant,
        bytes: u32,
        bandwidth: Rate,
        cwnd: u32,
        round: u64,
        memory: u64,
    ) {
        let mut expected = bandwidth.bytes_in(now.since(self.began)).count();
        if self.delivered <= expected {
            (self.began, self.delivered, expected) = (now, 0, 0);
        }
        self.delivered += u64::from(bytes);
        let extra = self.delivered.saturating_sub(expected).min(u64::from(cwnd));
        self.most.take(round, extra, memory);
    }

    pub(super) const fn extra(&self) -> u64 {
        self.most.best()
    }
}

/// A windowed maximum filter by K. Nichols. It returns the largest value of the most recent rounds,
/// without storing them all: it stores only three candidates.
#[derive(Clone, Debug, Default, PartialEq)]
struct WindowedMax {
    /// The three candidates, each as round and value, the largest value first. When the first
    /// expires, the next replaces it.
    best: [(u64, u64); 3],
}

packed!(WindowedMax { best });

impl WindowedMax {
    const fn best(&self) -> u64 {
        self.best[0].1
    }

    fn take(&mut self, round: u64, value: u64, memory: u64) {
        let new = (round, value);
        let is_stale = |sample: (u64, u64)| round - sample.0 > memory;
        if value >= self.best[0].1 || is_stale(self.best[2]) {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        while is_stale(self.best[0]) {
            self.best = [self.best[1], self.best[2], new];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_bandwidth_is_remembered_for_two_cycles() {
        let mut filter = MaxBandwidth::default();
        filter.take(Rate::from_bits_per_second(9));
        filter.take(Rate::from_bits_per_second(5));
        filter.advance();
        filter.take(Rate::from_bits_per_second(7));
        assert_eq!(filter.best().bits_per_second(), 9);
        filter.advance();
        assert_eq!(filter.best().bits_per_second(), 7);
    }

    #[test]
    fn the_shortest_round_trip_is_probed_after_five_seconds_and_expires_after_ten() {
        let ms = Duration::from_millis;
        let mut filter = ShortestRoundTrip::new(at(0));
        assert!(!filter.take(at(10), Some(ms(50))));
        assert!(!filter.take(at(5_000), Some(ms(80))));
        assert_eq!(filter.shortest(), Some(ms(50)));
        assert!(filter.take(at(5_011), Some(ms(80))), "a probe is due");
        assert_eq!(filter.shortest(), Some(ms(50)), "not forgotten yet");
        assert!(!filter.take(at(10_000), None));
        assert!(!filter.take(at(10_011), None));
        assert_eq!(filter.shortest(), Some(ms(80)));
    }

    #[test]
    fn aggregation_is_the_excess_over_the_bandwidth() {
        let rate = Rate::from_bits_per_second(8_000_000);
        let mut aggregation = Aggregation::new(at(0));
        for millis in 1..=10 {
            aggregation.take(at(millis), 1_000, rate, 50_000, 1, 10);
        }
        assert_eq!(aggregation.extra(), 1_000, "the least aggregation is one acknowledgement");
        aggregation.take(at(20), 20_000, rate, 50_000, 2, 10);
        assert_eq!(aggregation.extra(), 20_000);
        for round in 3..14 {
            aggregation.take(at(20 + round), 1_000, rate, 50_000, round, 10);
        }
        assert!(aggregation.extra() < 20_000, "the aggregation expires after ten rounds");
    }
}
