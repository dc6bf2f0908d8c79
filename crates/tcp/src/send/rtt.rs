//! The round-trip time and the retransmission timeout (RFC 6298).

use crate::compact::pack::packed;
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// The time for which a measured minimum of the round-trip time remains valid.
const SHORTEST_HOLDS: Duration = Duration::from_secs(300);

/// The upper limit of a round-trip sample, which prevents overflow.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The limits of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// The timeout before the first sample: 1 s by RFC 6298 (2.1).
    pub initial: Duration,
    /// The minimum timeout. RFC 6298 (2.4) requires 1 s. Linux and the modern profile use 200 ms,
    /// because a timeout of 1 s on a path with a short round-trip time takes thousands of round
    /// trips.
    pub minimum: Duration,
    /// The maximum timeout: at least 60 s by RFC 6298 (2.5).
    pub maximum: Duration,
    /// G (RFC 6298 §2), the resolution of the clock: one nanosecond for a precise clock.
    pub granularity: Duration,
}

/// The round-trip estimate, and the retransmission timeout with its backoff.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoundTrip {
    /// SRTT, the smoothed round-trip time; [`Duration::MAX`] before the first sample.
    smoothed: Duration,
    variation: Duration,
    /// The retransmission timeout without backoff. Invariant: at most the configured maximum.
    rto: Duration,
    /// The number of times that the timeout has been doubled since the most recent sample.
    backoff: u32,
    /// The time when the timer most recently expired, after which no sample is taken from segments
    /// that were sent before it.
    expired: Instant,
    /// The acknowledgement number that ends the measurement in progress. If the measured segment is
    /// retransmitted, the measurement ends without a result (Karn's algorithm).
    expected: SeqNum,
    /// The time when the measured segment was sent. [`Instant::NEVER`] if no segment is being
    /// measured.
    timed: Instant,
    /// The recent minimum of the round-trip time (RACK.min_RTT). [`Duration::MAX`] before the first
    /// sample.
    shortest: Duration,
    /// The time until which the recent minimum is valid.
    shortest_until: Instant,
}

packed!(RoundTrip {
    smoothed,
    variation,
    rto,
    backoff,
    expired,
    expected,
    timed,
    shortest,
    shortest_until
});

impl RoundTrip {
    pub(crate) fn new(limits: &RtoLimits) -> Self {
        Self {
            smoothed: Duration::MAX,
            variation: Duration::ZERO,
            rto: limits.initial.min(limits.maximum),
            backoff: 0,
            expired: Instant::ZERO,
            expected: SeqNum::new(0),
            timed: Instant::NEVER,
            shortest: Duration::MAX,
            shortest_until: Instant::ZERO,
        }
    }

    /// Returns SRTT, the smoothed round-trip time, if measured.
    #[inline(always)]
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        (self.smoothed != Duration::MAX).then_some(self.smoothed)
    }

    /// Returns RTTVAR, the variation of the round-trip time.
    pub(crate) const fn variation(&self) -> Duration {
        self.variation
    }

    /// Returns the current retransmission timeout, including backoff.
    #[inline]
    pub(crate) fn timeout(&self, limits: &RtoLimits) -> Duration {
        if self.backoff == 0 { self.rto } else { self.doubled_timeout(limits) }
    }

    #[cold]
    fn doubled_timeout(&self, limits: &RtoLimits) -> Duration {
        (self.rto * (1 << self.backoff.min(16))).min(limits.maximum)
    }

    /// Returns the number of times that the timeout has been doubled.
    pub(crate) const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Starts to measure the round-trip time of a new segment. `expected` is the acknowledgement
    /// number that will acknowledge it. Does nothing if another segment is being measured, because
    /// one measurement in each round trip suffices (RFC 6298 §3).
    pub(crate) fn start_timing(&mut self, expected: SeqNum, now: Instant) {
        if self.timed == Instant::NEVER {
            (self.expected, self.timed) = (expected, now);
        }
    }

    /// Stops the measurement in progress without a result. Called when a segment is retransmitted:
    /// the coming acknowledgement could be for either copy (Karn's algorithm).
    pub(crate) const fn stop_timing(&mut self) {
        self.timed = Instant::NEVER;
    }

    /// Processes the acknowledgement number `ack`, and takes a sample from it. If a segment is
    /// being measured, the sample is its round-trip time, once `ack` covers it. If none is being
    /// measured, the sample is the result of `echoed`: the round-trip time that the echoed
    /// timestamp shows, if there is one.
    pub(crate) fn on_acknowledged(
        &mut self,
        limits: &RtoLimits,
        ack: SeqNum,
        echoed: impl FnOnce() -> Option<Duration>,
        now: Instant,
    ) {
        let round_trip = match self.timed {
            Instant::NEVER => echoed(),
            _ if ack.before(self.expected) => return,
            sent => Some(now.since(sent)),
        };
        self.timed = Instant::NEVER;
        if let Some(round_trip) = round_trip {
            self.sample(limits, now, round_trip);
        }
    }

    /// Takes as a sample the round-trip time of a segment that was sent only once.
    pub(crate) fn measure(&mut self, limits: &RtoLimits, now: Instant, round_trip: Duration) {
        self.timed = Instant::NEVER;
        self.sample(limits, now, round_trip);
    }

    /// Takes a sample from the acknowledgement of the measured segment, although the connection
    /// ignores this acknowledgement (`TCP_DEFER_ACCEPT`). If the peer repeats the acknowledgement
    /// later, that copy must give no sample, since it would include the delay.
    pub(crate) fn measure_withheld(&mut self, limits: &RtoLimits, now: Instant) {
        if self.timed != Instant::NEVER {
            let sent = self.timed;
            self.measure(limits, now, now.since(sent));
        }
        // Segments that were sent before `expired` give no sample. All segments sent until now must
        // be among them. Times are compared in whole milliseconds, so `expired` is one millisecond
        // after `now`.
        self.expired = now + Duration::from_millis(1);
    }

    /// Updates the recent minimum of the round-trip time, and returns it. A minimum expires after
    /// [`SHORTEST_HOLDS`], because the path may change.
    pub(crate) fn note_shortest(&mut self, now: Instant, round_trip: Duration) -> Duration {
        if self.shortest >= round_trip || now >= self.shortest_until {
            (self.shortest, self.shortest_until) = (round_trip, now + SHORTEST_HOLDS);
        }
        self.shortest
    }

    /// Returns the recent minimum of the round-trip time, if measured.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        (self.shortest != Duration::MAX).then_some(self.shortest)
    }

    /// Doubles the timeout. Called when it has expired (RFC 6298 (5.5)).
    pub(crate) fn back_off(&mut self, now: Instant) {
        self.expired = now;
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Permits samples from segments that were sent before the most recent expiry of the timer.
    /// Called when that expiry has proved spurious.
    pub(crate) fn accept_late_samples(&mut self) {
        self.expired = Instant::ZERO;
    }

    /// Sets the timeout to 3 s if the SYN was retransmitted and no round-trip time was measured.
    /// The initial timeout was perhaps too short for the path (RFC 6298 (5.7)).
    #[inline]
    pub(crate) fn restart_after_handshake(&mut self, limits: &RtoLimits) {
        if self.backoff > 0 && self.smoothed == Duration::MAX {
            cold_path();
            self.backoff = 0;
            self.rto = Duration::from_secs(3).max(limits.minimum).min(limits.maximum);
        }
    }

    /// Takes a sample (RFC 6298 (2.2), (2.3)).
    ///
    /// A segment that was sent before the most recent expiry of the timer gives no sample. This
    /// holds even if it was sent only once, or a timestamp identifies the acknowledged copy. The
    /// reason is that its first acknowledgement may have been lost. The present acknowledgement is
    /// then the answer to a retransmission, and the sample would include our own timeout. Such
    /// samples would lengthen the timeout again and again, up to the maximum. The next sample comes
    /// from a segment that was sent after the expiry. Times are compared in milliseconds, the unit
    /// of timestamps.
    #[inline(never)]
    fn sample(&mut self, limits: &RtoLimits, now: Instant, round_trip: Duration) {
        if self.expired != Instant::ZERO && self.has_left_before_expiry(now - round_trip) {
            return;
        }
        // `LONGEST` exceeds every timeout, so it changes no realistic sample. It prevents overflow
        // in the computation below.
        let sample = round_trip.min(LONGEST).as_nanos();
        let (smoothed, variation) = if self.smoothed == Duration::MAX {
            (sample, sample / 2)
        } else {
            let (smoothed, variation) = (self.smoothed.as_nanos(), self.variation.as_nanos());
            ((smoothed * 7 + sample) / 8, (variation * 3 + smoothed.abs_diff(sample)) / 4)
        };
        (self.smoothed, self.variation) =
            (Duration::from_nanos(smoothed), Duration::from_nanos(variation));
        let rto = self.smoothed + limits.granularity.max(Duration::from_nanos(variation * 4));
        self.rto = rto.max(limits.minimum).min(limits.maximum);
        self.backoff = 0;
    }

    #[cold]
    fn has_left_before_expiry(&self, sent: Instant) -> bool {
        sent.as_millis() < self.expired.as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RtoLimits = RtoLimits {
        initial: Duration::from_secs(1),
        minimum: Duration::from_millis(200),
        maximum: Duration::from_secs(60),
        granularity: Duration::from_millis(1),
    };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_sets_the_timeout_to_three_round_trips() {
        let mut rtt = RoundTrip::new(&LIMITS);
        assert_eq!(rtt.timeout(&LIMITS), Duration::from_secs(1));
        rtt.start_timing(SeqNum::new(5), at(0));
        rtt.on_acknowledged(&LIMITS, SeqNum::new(5), || None, at(100));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
        assert_eq!(rtt.timeout(&LIMITS), Duration::from_millis(300));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.back_off(at(0));
        rtt.back_off(at(0));
        assert_eq!(rtt.timeout(&LIMITS), Duration::from_secs(4));
        for _ in 0..100 {
            rtt.back_off(at(0));
        }
        assert_eq!(rtt.timeout(&LIMITS), LIMITS.maximum);
        rtt.on_acknowledged(&LIMITS, SeqNum::new(1), || Some(Duration::from_millis(10)), at(0));
        assert_eq!((rtt.backoff(), rtt.timeout(&LIMITS)), (0, LIMITS.minimum));
    }

    #[test]
    fn a_retransmitted_segment_is_not_timed() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.start_timing(SeqNum::new(5), at(0));
        rtt.stop_timing();
        rtt.on_acknowledged(&LIMITS, SeqNum::new(5), || None, at(100));
        assert_eq!(rtt.smoothed(), None);
    }

    #[test]
    fn an_earlier_acknowledgement_does_not_end_the_measurement() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.start_timing(SeqNum::new(5), at(0));
        rtt.start_timing(SeqNum::new(9), at(50));
        rtt.on_acknowledged(&LIMITS, SeqNum::new(4), || Some(Duration::from_millis(1)), at(60));
        assert_eq!(rtt.smoothed(), None);
        rtt.on_acknowledged(&LIMITS, SeqNum::new(9), || None, at(80));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(80)));
    }

    /// RFC 6298 §4: the timeout exceeds the smoothed round-trip time by at least the resolution of
    /// the clock, even if the variation is zero.
    #[test]
    fn a_steady_round_trip_adds_the_resolution_of_the_clock() {
        let mut rtt = RoundTrip::new(&LIMITS);
        for _ in 0..1_000 {
            rtt.measure(&LIMITS, at(500), Duration::from_millis(500));
        }
        assert_eq!(rtt.timeout(&LIMITS), Duration::from_millis(501));
    }

    /// RFC 8985 §6.2 step 1: a minimum expires after five minutes. If the path has become longer,
    /// the longer round-trip time is then the minimum.
    #[test]
    fn a_minimum_round_trip_expires_after_five_minutes() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.note_shortest(at(0), Duration::from_millis(10));
        rtt.note_shortest(at(299_999), Duration::from_millis(80));
        assert_eq!(rtt.shortest(), Some(Duration::from_millis(10)));
        rtt.note_shortest(at(300_000), Duration::from_millis(80));
        assert_eq!(rtt.shortest(), Some(Duration::from_millis(80)));
    }
}
