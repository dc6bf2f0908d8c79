//! The clocks of the real machine.

use linerate_units::{Clock, Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The monotonic clock of the system. It counts nanoseconds since the machine started. All threads
/// and processes read equal values, and the clock is never set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }
}

/// Returns the time of day as the time since 1970-01-01 00:00 UTC, for the time stamps of captures.
/// The system can set this clock forward and back, so it is unsuitable for measuring durations.
#[must_use]
pub fn time_of_day() -> Duration {
    Duration::from_nanos(nanoseconds(clock_gettime(ClockId::Realtime)))
}

/// Converts the reading of a clock to nanoseconds since the zero of that clock. Negative seconds
/// count as zero, and a result that exceeds 64 bits becomes `u64::MAX`.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// A clock that stands still until the program advances it, for tests and deterministic programs.
/// All clones of a clock show an equal time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// Creates a clock that shows `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(now.as_nanos())) }
    }

    /// Advances the clock by `span`.
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
    fn the_time_of_day_is_after_2023() {
        assert!(time_of_day() > Duration::from_secs(1_700_000_000));
    }

    #[test]
    fn clones_of_a_manual_clock_show_the_same_time() {
        let clock = ManualClock::new(Instant::from_nanos(5));
        let other = clock.clone();
        other.advance(Duration::from_nanos(2));
        assert_eq!((clock.now(), other.now()), (Instant::from_nanos(7), Instant::from_nanos(7)));
    }
}
