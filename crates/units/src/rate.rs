//! A bit rate.

use crate::parse::{ParseUnitError, Scale, parse_scaled};
use crate::{Bytes, Duration};
use core::fmt;
use core::str::FromStr;

/// A bit rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Returns a rate of `bits` bits per second.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns a rate of `bytes` bytes per second. If this rate exceeds 64 bits in bits per second,
    /// returns the largest representable rate.
    #[must_use]
    pub const fn from_bytes_per_second(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    /// Returns the rate in bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the average rate of `bytes` transferred in `span`; zero if `span` is zero.
    #[must_use]
    pub fn of(bytes: Bytes, span: Duration) -> Self {
        let bit_nanos = u128::from(bytes.count()) * 8 * 1_000_000_000;
        let rate = bit_nanos.checked_div(u128::from(span.as_nanos())).unwrap_or(0);
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Returns the number of bytes that are transferred in `span` at this rate.
    #[must_use]
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bits = u128::from(self.0) * u128::from(span.as_nanos()) / 1_000_000_000;
        Bytes::new(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// Returns `percent` % of this rate.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let rate = u128::from(self.0) * u128::from(percent) / 100;
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Returns the time that `bytes` take at this rate; [`Duration::MAX`] if the rate is zero.
    #[must_use]
    pub fn time_for(self, bytes: Bytes) -> Duration {
        let bit_nanos = u128::from(bytes.count()) * 8 * 1_000_000_000;
        match bit_nanos.checked_div(u128::from(self.0)) {
            Some(nanos) => Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)),
            None => Duration::MAX,
        }
    }
}

const SCALE: Scale = Scale {
    unit: "bits per second",
    suffixes: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("b/s", 1),
        ("kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tb/s", 1_000_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ],
};

/// Parses `10Mb/s`, `10M`, `25Gbit/s` and, in bytes, `1.25MB/s`; a bare number counts bits per
/// second. Prefixes are decimal: `k` is 1,000.
impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, &SCALE, 1).map(Self)
    }
}

impl fmt::Display for Rate {
    #[allow(clippy::cast_precision_loss, reason = "at most six digits are printed")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} b/s", self.0),
            1_000..1_000_000 => write!(f, "{:.2} kb/s", bits / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} Mb/s", bits / 1e6),
            _ => write!(f, "{:.2} Gb/s", bits / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_ethernet_frame_takes_1230_microseconds_at_ten_megabits() {
        let rate: Rate = "10Mb/s".parse().unwrap();
        assert_eq!(rate.time_for(Bytes::new(1_538)), Duration::from_nanos(1_230_400));
        assert_eq!(Rate::of(Bytes::new(1_538), Duration::from_nanos(1_230_400)), rate);
    }

    #[test]
    fn a_rate_converts_a_span_to_bytes_and_scales_by_percent() {
        let rate: Rate = "10Mb/s".parse().unwrap();
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), Bytes::new(1_250));
        assert_eq!(rate.percent(125).bits_per_second(), 12_500_000);
        let most = Rate::from_bits_per_second(u64::MAX);
        assert_eq!(most.percent(200), most);
        assert_eq!(most.bytes_in(Duration::MAX), Bytes::new(u64::MAX));
    }

    #[test]
    fn an_uppercase_b_means_bytes_and_a_lowercase_b_means_bits() {
        let bits = |text: &str| text.parse().map(Rate::bits_per_second);
        assert_eq!(["1Gb/s", "1gb/s", "1Gbit/s"].map(bits), [(); 3].map(|()| Ok(1_000_000_000)));
        assert_eq!(["1GB/s", "1gB/s", "0.008Tb/s"].map(bits), [(); 3].map(|()| Ok(8_000_000_000)));
        assert_eq!(["125kB/s", "125KB/s"].map(bits), [(); 2].map(|()| Ok(1_000_000)));
        assert!("1GBit/s".parse::<Rate>().is_err());
    }

    #[test]
    fn a_rate_of_zero_never_finishes() {
        assert_eq!(Rate::default().time_for(Bytes::new(1)), Duration::MAX);
        assert_eq!(Rate::from_bytes_per_second(125), Rate::from_bits_per_second(1_000));
        assert_eq!(Rate::from_bytes_per_second(u64::MAX).bits_per_second(), u64::MAX);
        assert_eq!(Rate::of(Bytes::new(1), Duration::ZERO), Rate::default());
    }

    #[test]
    fn the_printed_form_parses_to_the_same_value() {
        for rate in [1, 1_000, 1_000_000, 25_000_000_000].map(Rate::from_bits_per_second) {
            assert_eq!(alloc::string::ToString::to_string(&rate).parse(), Ok(rate));
        }
    }
}
