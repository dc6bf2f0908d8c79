//! A sample of repeated measurements of one quantity, with its median and deviation.

/// Repeated measurements of one quantity: at least one finite value, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    /// The standard deviation of the natural logarithm of a measurement, as measured in other
    /// samples of similar quantities; zero if it is unknown.
    known_deviation: f64,
}

impl Sample {
    /// Creates a sample from measurements in any order. Returns `None` if there are none, or if one
    /// of them is not finite.
    #[must_use]
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self { values, known_deviation: 0.0 })
    }

    /// Sets the standard deviation of the natural logarithm of a measurement, as measured in other
    /// samples of similar quantities. An [`interval`](super::interval) uses it if this sample has
    /// too few measurements to show its own deviation.
    #[must_use]
    pub fn with_known_deviation(self, deviation: f64) -> Self {
        Self { known_deviation: deviation, ..self }
    }

    /// Returns the deviation that [`Sample::with_known_deviation`] has set, or zero.
    pub(super) const fn known_deviation(&self) -> f64 {
        self.known_deviation
    }

    /// Returns the measurements in ascending order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the median of the measurements.
    #[must_use]
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.values)
    }

    /// Returns the largest measurement.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.values[self.values.len() - 1]
    }

    /// Returns the median absolute deviation of the measurements from their median. It is scaled so
    /// that it equals the standard deviation for normally distributed measurements. Unlike the
    /// standard deviation, it hardly depends on outliers.
    #[must_use]
    pub fn robust_deviation(&self) -> f64 {
        // Ratio of the standard deviation to the median absolute deviation for the normal
        // distribution.
        const OF_A_NORMAL_DISTRIBUTION: f64 = 1.482_602_218_505_602;
        let median = self.median();
        let mut distances: Vec<f64> =
            self.values.iter().map(|value| (value - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        median_of_sorted(&distances) * OF_A_NORMAL_DISTRIBUTION
    }
}

/// Returns the median of `values`, which must be sorted and not empty.
pub(super) fn median_of_sorted(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(sample(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(sample(&[4.0, 1.0, 2.0, 100.0]).median(), 3.0);
        assert_eq!(sample(&[7.0]).median(), 7.0);
    }

    #[test]
    fn one_outlier_does_not_move_the_deviation() {
        let quiet = sample(&[9.0, 10.0, 11.0, 12.0, 8.0]);
        let loud = sample(&[9.0, 10.0, 11.0, 12.0, 8_000.0]);
        assert!((quiet.robust_deviation() - loud.robust_deviation()).abs() < 1e-9);
    }

    #[test]
    fn the_robust_deviation_estimates_the_standard_deviation() {
        // The values are the lower quartile, the median and the upper quartile of the standard
        // normal distribution.
        let deviation = sample(&[-0.674_49, 0.0, 0.674_49]).robust_deviation();
        assert!((deviation - 1.0).abs() < 1e-5, "{deviation}");
    }

    #[test]
    fn empty_and_non_finite_values_make_no_sample() {
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    }
}
