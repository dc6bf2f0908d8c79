//! Statistics of small samples.

mod bootstrap;
mod epochs;
mod sample;

pub use bootstrap::{Interval, RESAMPLES, interval};
pub use epochs::{Deviation, Epochs, Observation};
pub use sample::Sample;

/// Returns a count as a floating-point number, exact up to 2⁵³.
#[allow(clippy::cast_precision_loss, reason = "53 bits are enough for figures that people read")]
#[must_use]
pub const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Returns the correlation of the values with those `lag` places later; zero if there is none.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let products: f64 =
        values.iter().zip(values.iter().skip(lag)).map(|(one, later)| one * later).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}
