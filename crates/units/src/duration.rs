//! A span of time in nanoseconds. Unlike `core::time::Duration`, it fits into one machine word, so
//! calculations with it are cheap enough to be done for each segment.

use crate::parse::{ParseUnitError, Scale, parse_scaled};
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

/// A time span in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// The span of zero nanoseconds.
    pub const ZERO: Self = Self(0);
    /// The longest span that fits, about 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns a span of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Returns a span of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns a span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span in microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the span in milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the span in seconds as a floating-point number, which is only meant to be printed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "53 bits are plenty for a printed figure")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the absolute difference between two spans.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

/// Divides the span by a number. The result of a division by zero is the longest span, since
/// arithmetic on spans saturates.
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, by: u64) -> Self {
        Self(self.0.checked_div(by).unwrap_or(u64::MAX))
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

const SCALE: Scale = Scale {
    unit: "time",
    suffixes: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};

/// Parses `10ms`, `1.5s`, `200us`, `40ns`, `2min` and `1h`; a bare number counts seconds.
impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, &SCALE, 1_000_000_000).map(Self)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_secs_f64();
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} µs", seconds * 1e6),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", seconds * 1e3),
            _ => write!(f, "{seconds:.2} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_are_parsed_and_printed_with_a_suffix() {
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1_500)));
        assert_eq!("10".parse(), Ok(Duration::from_secs(10)));
        assert_eq!("40ms".parse(), Ok(Duration::from_millis(40)));
        assert_eq!("2min".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("1.5h".parse(), Ok(Duration::from_secs(5_400)));
        assert_eq!(Duration::from_micros(1_500).to_string(), "1.5 ms");
        assert!("ten".parse::<Duration>().is_err());
    }

    #[test]
    fn the_printed_form_parses_to_the_same_value() {
        for span in [1, 1_000, 1_500_000, 2_000_000_000].map(Duration::from_nanos) {
            assert_eq!(span.to_string().parse(), Ok(span));
        }
    }

    #[test]
    fn dividing_by_zero_saturates() {
        assert_eq!(Duration::from_secs(1) / 0, Duration::MAX);
    }
}
