//! Statistics of small samples.

mod bootstrap;
mod sample;

pub use bootstrap::{Interval, RESAMPLES, interval};
pub use sample::Sample;

/// Returns a count as a floating-point number, exact up to 2⁵³.
#[allow(clippy::cast_precision_loss, reason = "53 bits are enough for figures that people read")]
#[must_use]
pub const fn as_f64(count: u64) -> f64 {
    count as f64
}
