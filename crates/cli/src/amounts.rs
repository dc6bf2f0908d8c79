//! Amounts that options ask for, none of which may be zero.

use linerate_units::{Bytes, Duration, Rate};
use std::num::{NonZeroU32, NonZeroU64};

/// How many: at least one.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {}", u32::MAX))
}

/// As [`count`], of things of which each takes memory.
pub(crate) fn small_count(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u32 = 1_024;
    let within = text.parse().ok().filter(|count: &NonZeroU32| count.get() <= MOST);
    within.ok_or_else(|| format!("write a whole number from 1 to {MOST}"))
}

/// What decides all that is drawn.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// The largest packet of a link, which no IP packet is larger than.
pub(crate) fn mtu(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("write a whole number of bytes, no more than {}", u16::MAX))
}

/// A time that is longer than nothing.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if time == Duration::ZERO {
        Err("no time at all: write 10, or 500ms".to_owned())
    } else {
        Ok(time)
    }
}

/// An amount of bytes: at least one.
pub(crate) fn size(text: &str) -> Result<NonZeroU64, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    NonZeroU64::new(bytes.count()).ok_or_else(|| "zero bytes: the least is 1".to_owned())
}

/// An amount of bytes that fits into memory.
pub(crate) fn small_size(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u64 = 64 << 20;
    let bytes = size(text)?.get();
    let within = u32::try_from(bytes).ok().filter(|_| bytes <= MOST).and_then(NonZeroU32::new);
    within.ok_or_else(|| {
        format!("{} is too large: the most is {}", Bytes::new(bytes), Bytes::new(MOST))
    })
}

/// A bit rate that carries something.
pub(crate) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    NonZeroU64::new(rate.bits_per_second())
        .ok_or_else(|| "a rate of zero carries nothing: write 10Mb/s".into())
}
