//! Statistics of small samples of measured rates.

mod bootstrap;
mod epochs;
mod sample;
mod surface;

pub use bootstrap::{FEWEST_RESAMPLED, Interval, RESAMPLES, interval};
pub use epochs::{Deviation, Epochs, Observation};
pub use sample::Sample;
pub use surface::{FEWEST_CELLS, Prediction, Surface, SurfaceModel, SurfacePoint, SurfaceScore};

/// Returns how much the rates of one cell's runs scatter: the standard deviation of their natural
/// logarithms around the mean of the cell, pooled over all cells. A value of 0.03 means about 3 %.
///
/// Each item of `cells` contains the rates of one cell's runs; rates of zero are ignored. Returns
/// `None` if no cell has two runs, so that no scatter is visible.
#[must_use]
pub fn repeat_noise<'a>(cells: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    let (mut squares, mut degrees) = (0.0, 0_u64);
    for rates in cells {
        let logs: Vec<f64> =
            rates.iter().filter(|&&rate| rate > 0.0).map(|rate| rate.ln()).collect();
        if logs.len() < 2 {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / as_f64(logs.len() as u64);
        squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        degrees += logs.len() as u64 - 1;
    }
    (degrees > 0).then(|| (squares / as_f64(degrees)).sqrt())
}

/// Converts a count to a floating-point number. The result is exact up to 2⁵³.
#[allow(clippy::cast_precision_loss, reason = "53 bits are enough for figures that people read")]
#[must_use]
pub const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Returns the autocorrelation of `values`: the correlation of each value with the value `lag`
/// positions later. The values must have mean zero. Returns 0 if all values are zero.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let products: f64 =
        values.iter().zip(values.iter().skip(lag)).map(|(one, later)| one * later).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}
