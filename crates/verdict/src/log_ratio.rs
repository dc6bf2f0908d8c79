//! Rates on a logarithmic scale, on which the ratio of two rates is a difference.

/// Returns the natural logarithm of a rate in bytes per second. A rate below 1 counts as 1, so that
/// the result is finite.
pub(crate) fn logarithm(rate: f64) -> f64 {
    rate.max(1.0).ln()
}
