//! The round-trip time and the retransmission timeout drawn from it (RFC 6298).

use crate::rest::pack::packed;
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// How long a shortest round trip is believed.
const SHORTEST_HOLDS: Duration = Duration::from_secs(300);

/// No round trip counts as longer: some centuries would not fit the arithmetic.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The limits of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// Before the first measurement. RFC 6298 (2.1): 1 s.
    pub initial: Duration,
    /// RFC 6298 (2.4) says 1 s; Linux and the modern profile keep 200 ms, so that a loss on a short
    /// path does not cost a thousand round trips.
    pub minimum: Duration,
    /// RFC 6298 (2.5): at least 60 s.
    pub maximum: Duration,
    /// G, the resolution of the clock that measures: a nanosecond where the host is told the time as
    /// exactly as that.
    pub granularity: Duration,
}

/// Smoothed round-trip time, its variation, and the timeout with its backoff.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoundTrip {
    /// SRTT; [`Duration::MAX`] before the first measurement.
    smoothed: Duration,
    variation: Duration,
    /// Invariant: at most the largest.
    rto: Duration,
    /// How many times the timeout has been doubled.
    backoff: u32,
    /// When it last was.
    expired: Instant,
    /// What acknowledges the segment that is timed, which is never one that was sent twice (Karn's rule).
    expected: SeqNum,
    /// When it left; [`Instant::NEVER`] if none is timed.
    timed: Instant,
    /// The shortest round trip of late (RACK.min_RTT); [`Duration::MAX`] before the first one.
    shortest: Duration,
    /// Until when it is believed.
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

    /// SRTT, once there is one.
    #[inline(always)]
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        (self.smoothed != Duration::MAX).then_some(self.smoothed)
    }

    /// RTTVAR.
    pub(crate) const fn variation(&self) -> Duration {
        self.variation
    }

    /// The timeout that applies now, backoff included.
    #[inline]
    pub(crate) fn timeout(&self, limits: &RtoLimits) -> Duration {
        if self.backoff == 0 { self.rto } else { self.doubled_timeout(limits) }
    }

    #[cold]
    fn doubled_timeout(&self, limits: &RtoLimits) -> Duration {
        (self.rto * (1 << self.backoff.min(16))).min(limits.maximum)
    }

    /// How many times the timeout has been doubled since it was last right.
    pub(crate) const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// A segment whose acknowledgement is `expected` leaves for the first time. One at a time is
    /// timed, once a round trip (RFC 6298 §3).
    pub(crate) fn start_timing(&mut self, expected: SeqNum, now: Instant) {
        if self.timed == Instant::NEVER {
            (self.expected, self.timed) = (expected, now);
        }
    }

    /// Something is being sent again: an acknowledgement could mean either copy (Karn's rule).
    pub(crate) const fn stop_timing(&mut self) {
        self.timed = Instant::NEVER;
    }

    /// `ack` has arrived; `echoed` is what its timestamp says of the round trip, if it has one.
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

    /// A segment that was sent once has taken `round_trip`.
    pub(crate) fn measure(&mut self, limits: &RtoLimits, now: Instant, round_trip: Duration) {
        self.timed = Instant::NEVER;
        self.sample(limits, now, round_trip);
    }

    /// The acknowledgement of what is timed has come and is withheld from the connection: it is measured now.
    /// Copies of it, which come whenever the peer has something to say, measure nothing.
    pub(crate) fn measure_withheld(&mut self, limits: &RtoLimits, now: Instant) {
        if self.timed != Instant::NEVER {
            let sent = self.timed;
            self.measure(limits, now, now.since(sent));
        }
        // By milliseconds, as what has left before is told.
        self.expired = now + Duration::from_millis(1);
    }

    /// The same for the shortest of late: an old one is forgotten, because paths change.
    /// Which it is.
    pub(crate) fn note_shortest(&mut self, now: Instant, round_trip: Duration) -> Duration {
        if self.shortest >= round_trip || now >= self.shortest_until {
            (self.shortest, self.shortest_until) = (round_trip, now + SHORTEST_HOLDS);
        }
        self.shortest
    }

    /// The shortest round trip of late, once there is one.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        (self.shortest != Duration::MAX).then_some(self.shortest)
    }

    /// One more expiry without an answer (RFC 6298 (5.5)).
    pub(crate) fn back_off(&mut self, now: Instant) {
        self.expired = now;
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The last expiry was spurious: what left before it was late, and not its acknowledgement lost.
    pub(crate) fn trust_what_is_late(&mut self) {
        self.expired = Instant::ZERO;
    }

    /// The handshake needed a retransmission, so its timeout was too short for this path: begin
    /// with 3 s (RFC 6298 (5.7)).
    #[inline]
    pub(crate) fn restart_after_handshake(&mut self, limits: &RtoLimits) {
        if self.backoff > 0 && self.smoothed == Duration::MAX {
            cold_path();
            self.backoff = 0;
            self.rto = Duration::from_secs(3).max(limits.minimum).min(limits.maximum);
        }
    }

    /// RFC 6298 (2.2), (2.3).
    ///
    /// What left before the timer last expired, and is acknowledged now, measures nothing, even where it
    /// was sent once or a timestamp says which copy is meant: the acknowledgement may have been lost, this
    /// one answers what the expiry sent, and the wait for our own timer lies in between. Each would make
    /// the next timeout as long as the last one was in vain, up to the longest. So (5.7) holds here as it
    /// does without timestamps: what is new is measured. (In milliseconds, as timestamps are.)
    #[inline(never)]
    fn sample(&mut self, limits: &RtoLimits, now: Instant, round_trip: Duration) {
        if self.expired != Instant::ZERO && self.has_left_before_expiry(now - round_trip) {
            return;
        }
        // Longer than any timeout can be; then nothing below can overflow, and nothing has to ask.
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
    fn the_first_sample_sets_three_times_the_round_trip() {
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
    fn a_segment_sent_twice_is_not_timed() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.start_timing(SeqNum::new(5), at(0));
        rtt.stop_timing();
        rtt.on_acknowledged(&LIMITS, SeqNum::new(5), || None, at(100));
        assert_eq!(rtt.smoothed(), None);
    }

    #[test]
    fn an_earlier_acknowledgement_leaves_the_timed_segment_alone() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.start_timing(SeqNum::new(5), at(0));
        rtt.start_timing(SeqNum::new(9), at(50));
        rtt.on_acknowledged(&LIMITS, SeqNum::new(4), || Some(Duration::from_millis(1)), at(60));
        assert_eq!(rtt.smoothed(), None);
        rtt.on_acknowledged(&LIMITS, SeqNum::new(9), || None, at(80));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(80)));
    }

    /// RFC 6298 §4: four variations of nothing are the resolution of the clock.
    #[test]
    fn a_steady_round_trip_leaves_the_resolution_of_the_clock() {
        let mut rtt = RoundTrip::new(&LIMITS);
        for _ in 0..1_000 {
            rtt.measure(&LIMITS, at(500), Duration::from_millis(500));
        }
        assert_eq!(rtt.timeout(&LIMITS), Duration::from_millis(501));
    }

    /// RFC 8985 §6.2 step 1: the shortest of late, so that a path that has become longer is learned.
    #[test]
    fn a_shortest_round_trip_is_forgotten_after_five_minutes() {
        let mut rtt = RoundTrip::new(&LIMITS);
        rtt.note_shortest(at(0), Duration::from_millis(10));
        rtt.note_shortest(at(299_999), Duration::from_millis(80));
        assert_eq!(rtt.shortest(), Some(Duration::from_millis(10)));
        rtt.note_shortest(at(300_000), Duration::from_millis(80));
        assert_eq!(rtt.shortest(), Some(Duration::from_millis(80)));
    }
}
