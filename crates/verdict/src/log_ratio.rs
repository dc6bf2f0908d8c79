//! Rates on a logarithmic scale, on which a ratio is a difference.

/// Returns the natural logarithm of a rate in bytes per second; a rate below one byte per second
/// counts as one, so that the result is finite.
pub(crate) fn logarithm(rate: f64) -> f64 {
    rate.max(1.0).ln()
}
