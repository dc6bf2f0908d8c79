//! Parsers of option values: counts, times, sizes and rates, with their limits.

use linerate_units::{Bytes, Duration, Rate};
use std::num::{NonZeroU32, NonZeroU64};

/// Parses a whole number of at least one.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {}", u32::MAX))
}

/// Parses a count from 1 to 1,024. The limit bounds the memory that the counted objects take.
pub(crate) fn small_count(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u32 = 1_024;
    let within = text.parse().ok().filter(|count: &NonZeroU32| count.get() <= MOST);
    within.ok_or_else(|| format!("write a whole number from 1 to {MOST}"))
}

/// Parses the seed of a random number generator.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// Parses an MTU in bytes: at most 65,535, the size of the largest IP packet.
pub(crate) fn mtu(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("write a whole number of bytes, no more than {}", u16::MAX))
}

/// Parses a time above zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if time == Duration::ZERO {
        Err("the time is zero: write 10, or 500ms".to_owned())
    } else {
        Ok(time)
    }
}

/// Parses the duration of a pause: above zero, and at most one second. A longer pause would delay
/// the response to Ctrl-C.
pub(crate) fn short_time(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(1);
    let time = some_time(text)?;
    (time <= MOST).then_some(time).ok_or_else(|| format!("{time} is too long: at most {MOST}"))
}

/// Parses a number of bytes above zero.
pub(crate) fn size(text: &str) -> Result<NonZeroU64, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    NonZeroU64::new(bytes.count()).ok_or_else(|| "zero bytes: the minimum is 1".to_owned())
}

/// Parses a number of bytes from 1 to 64 MiB, for buffers in memory.
pub(crate) fn small_size(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u64 = 64 << 20;
    let bytes = size(text)?.get();
    let within = u32::try_from(bytes).ok().filter(|_| bytes <= MOST).and_then(NonZeroU32::new);
    within.ok_or_else(|| {
        format!("{} is too large: the maximum is {}", Bytes::new(bytes), Bytes::new(MOST))
    })
}

/// Parses a bit rate above zero. A unit is required, because a user who types `--line-rate 10` is
/// unlikely to mean 10 b/s.
pub(crate) fn rate(text: &str) -> Result<NonZeroU64, String> {
    if text.trim().ends_with(|last: char| last.is_ascii_digit() || last == '.') {
        return Err("the unit is missing: write 10Mb/s, or 25G".to_owned());
    }
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    NonZeroU64::new(rate.bits_per_second()).ok_or_else(|| "the rate is zero: write 10Mb/s".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_needs_a_unit() {
        assert_eq!(rate("10Mb/s").map(NonZeroU64::get), Ok(10_000_000));
        assert_eq!(rate("25G").map(NonZeroU64::get), Ok(25_000_000_000));
        for text in ["10", "2.5", " 7 ", "1."] {
            let error = rate(text).unwrap_err();
            assert_eq!(error, "the unit is missing: write 10Mb/s, or 25G", "{text}");
        }
        assert!(rate("0Mb/s").unwrap_err().contains("zero"));
    }
}
