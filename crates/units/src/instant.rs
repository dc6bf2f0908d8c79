//! A point in time on a host's clock.

use crate::Duration;
use core::ops::{Add, AddAssign, Sub};

/// A point in time: nanoseconds since an epoch, which the owner of the clock chooses. Instants up
/// to 584 years after the epoch can be represented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The epoch of the clock: zero nanoseconds.
    pub const ZERO: Self = Self(0);
    /// An instant that is never reached: the deadline of a timer that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Rounds the instant up to the next tick of a clock whose ticks are multiples of `grain` after
    /// the epoch. If `grain` is zero, the clock has no ticks, and the instant is returned
    /// unchanged.
    #[must_use]
    #[inline]
    pub const fn round_up(self, grain: Duration) -> Self {
        // This method is called whenever a timer is set, and most clocks have no ticks. The
        // division is in a separate method that is not inlined, so that the usual case stays small.
        if grain.as_nanos() == 0 { self } else { self.round_up_to_tick(grain) }
    }

    #[cold]
    const fn round_up_to_tick(self, tick: Duration) -> Self {
        match self.0 % tick.as_nanos() {
            0 => self,
            rest => Self(self.0.saturating_add(tick.as_nanos() - rest)),
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.as_nanos()))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let one = Duration::from_secs(1);
        assert_eq!(Instant::ZERO - one, Instant::ZERO);
        assert_eq!(Instant::NEVER + one, Instant::NEVER);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
    }

    #[test]
    fn rounding_up_reaches_the_next_tick_of_the_clock() {
        let grain = Duration::from_millis(200);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(at(1).round_up(grain), at(200));
        assert_eq!(at(200).round_up(grain), at(200));
        assert_eq!(at(201).round_up(grain), at(400));
        assert_eq!(at(201).round_up(Duration::ZERO), at(201));
    }
}
