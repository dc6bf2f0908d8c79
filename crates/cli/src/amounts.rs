//! Amounts that options ask for, none of which may be zero.

use linerate_units::{Bytes, Rate};
use std::num::{NonZeroU32, NonZeroU64};

/// How many: at least one.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {}", u32::MAX))
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
    within.ok_or_else(|| format!("{} is too large: the most is {}", Bytes::new(bytes), Bytes::new(MOST)))
}

/// A bit rate that carries something.
pub(crate) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    NonZeroU64::new(rate.bits_per_second())
        .ok_or_else(|| "a rate of zero carries nothing: write 10Mb/s".into())
}
