//! The clocks of a real machine, where "now" enters the program.

use linerate_units::{Clock, Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's monotonic clock: nanoseconds since the machine was started, the same for every
/// thread and process, never set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }
}

/// The time of day, as capture files want it: the span since 1970-01-01 00:00 UTC. It can be set, and
/// jump; nothing but a stamp for people may depend on it.
#[must_use]
pub fn time_of_day() -> Duration {
    Duration::from_nanos(nanoseconds(clock_gettime(ClockId::Realtime)))
}

/// A time before 1970 or after 2554 is the nearest that can be told.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// A clock that stands still until it is told otherwise: for tests, and for whatever must come out
/// the same each time. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(now.as_nanos())) }
    }

    /// Lets `span` pass.
    pub fn advance(&self, span: Duration) {
        self.nanos.fetch_add(span.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_goes_back() {
        let mut earlier = MonotonicClock.now();
        for _ in 0..1_000 {
            let later = MonotonicClock.now();
            assert!(later >= earlier);
            earlier = later;
        }
    }

    #[test]
    fn the_time_of_day_is_after_this_was_written() {
        assert!(time_of_day() > Duration::from_secs(1_700_000_000));
    }

    #[test]
    fn clones_of_a_manual_clock_show_the_same_time() {
        let clock = ManualClock::new(Instant::from_nanos(5));
        let hand = clock.clone();
        hand.advance(Duration::from_nanos(2));
        assert_eq!((clock.now(), hand.now()), (Instant::from_nanos(7), Instant::from_nanos(7)));
    }
}
