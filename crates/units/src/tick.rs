//! Simulated time in picoseconds, for simulated hardware. The unit is a picosecond because one bit
//! at 100 Gb/s lasts exactly 10 ps.
//!
//! Only simulated hardware uses this time. Simulated software reads the time from a clock of its
//! host ([`crate::Instant`]).

use crate::{Duration, Instant, Rate};
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// A point in simulated time: picoseconds since the start of the simulation, up to 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// A point that is never reached: the time of an event that is not scheduled.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the point `picos` picoseconds after the start.
    #[must_use]
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns the picoseconds since the start.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this point, or zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds since the start as a floating-point number, which is only meant to be
    /// printed.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// Returns the time that a host's clock shows at this point, if the clock started at zero
    /// together with the simulation and runs without error. The result is rounded down to a
    /// nanosecond.
    #[must_use]
    pub const fn to_instant(self) -> Instant {
        Instant::from_nanos(self.0 / 1_000)
    }

    /// Returns the first point at which a host's clock shows `instant`, if the clock started at
    /// zero together with the simulation and runs without error.
    #[must_use]
    pub const fn of_instant(instant: Instant) -> Self {
        Self(instant.as_nanos().saturating_mul(1_000))
    }
}

impl Add<Span> for Tick {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A span of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// The span of zero picoseconds.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be represented, about 213 days.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of `picos` picoseconds.
    #[must_use]
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns the span in picoseconds.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the time that `bits` take at `rate`; [`Span::MAX`] if the rate is zero.
    #[must_use]
    pub fn of_bits(bits: u64, rate: Rate) -> Self {
        let picos = u128::from(bits) * 1_000_000_000_000;
        match picos.checked_div(u128::from(rate.bits_per_second())) {
            Some(picos) => Self(u64::try_from(picos).unwrap_or(u64::MAX)),
            None => Self::MAX,
        }
    }

    /// Returns the span in seconds as a floating-point number, which is only meant to be printed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "53 bits are plenty for a printed figure")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

/// Divides the span by a number. The result of a division by zero is the longest span, since
/// arithmetic on spans saturates.
impl Div<u64> for Span {
    type Output = Self;
    fn div(self, by: u64) -> Self {
        Self(self.0.checked_div(by).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(span.as_nanos().saturating_mul(1_000))
    }
}

/// Converts the span to whole nanoseconds. Any fraction of a nanosecond is cut off, as in the
/// reading of a clock that counts nanoseconds.
impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0 / 1_000)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_takes_100_ns_at_10_megabits_and_10_ps_at_100_gigabits() {
        let bit = |text: &str| text.parse().map(|rate| Span::of_bits(1, rate));
        assert_eq!(bit("10Mb/s"), Ok(Span::from_picos(100_000)));
        assert_eq!(bit("100Gb/s"), Ok(Span::from_picos(10)));
        assert_eq!(Span::of_bits(1, Rate::from_bits_per_second(0)), Span::MAX);
    }

    #[test]
    fn a_clock_shows_an_instant_from_its_first_picosecond() {
        let instant = Instant::from_nanos(7);
        assert_eq!(Tick::of_instant(instant), Tick::from_picos(7_000));
        assert_eq!((Tick::from_picos(7_999)).to_instant(), instant);
        assert_eq!(Tick::of_instant(Instant::NEVER), Tick::NEVER);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Tick::NEVER + Span::from_picos(1), Tick::NEVER);
        assert_eq!(Tick::ZERO.since(Tick::NEVER), Span::ZERO);
        assert_eq!(Span::from_picos(1) / 0, Span::MAX);
    }
}
