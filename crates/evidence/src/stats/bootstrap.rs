//! Confidence intervals by Efron's percentile bootstrap.
//!
//! Each sample is resampled with replacement many times, and a figure is computed from each
//! resample. The interval contains the middle 95 % of these figures. The method assumes no
//! distribution.
//!
//! Resampling underestimates the uncertainty of small samples. For example, the interval of the
//! median of four measurements reaches at most from the smallest measurement to the largest. Even
//! that range contains the true median in only seven of eight cases (1 − 2·2⁻⁴), not in 95 %.
//!
//! A sample with fewer than four measurements is therefore not resampled if other samples show how
//! much a measurement deviates. In place of each resample, as many values as the sample has are
//! then drawn from a log-normal distribution with that deviation (parametric bootstrap).

use super::sample::{Sample, median_of_sorted};
use oorandom::Rand64;
use serde::{Deserialize, Serialize};

/// Number of times that each sample is resampled for one interval.
pub const RESAMPLES: usize = 2_000;

/// Minimum number of measurements of a sample that is resampled, if other samples show how much a
/// measurement deviates. Fewer measurements do not show their own deviation well enough.
pub const FEWEST_RESAMPLED: usize = 4;

/// A 95 % confidence interval of a figure, in the unit of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

impl Interval {
    /// Is the whole interval below `value`, so that the difference is significant?
    #[must_use]
    pub fn is_below(&self, value: f64) -> bool {
        self.high < value
    }

    /// Is the whole interval above `value`, so that the difference is significant?
    #[must_use]
    pub fn is_above(&self, value: f64) -> bool {
        self.low > value
    }
}

/// Returns the 95 % confidence interval of a figure that is computed from the medians of several
/// samples. `statistic` computes the figure; it receives one median for each sample, in the order
/// of `samples`. `seed` determines the random resamples, so equal seeds give equal intervals.
pub fn interval(
    samples: &[&Sample],
    seed: u64,
    mut statistic: impl FnMut(&[f64]) -> f64,
) -> Interval {
    let mut random = Rand64::new(u128::from(seed));
    let mut medians = vec![0.0; samples.len()];
    let mut drawn = Vec::new();
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for (median, sample) in medians.iter_mut().zip(samples) {
                draw_again(sample, &mut random, &mut drawn);
                *median = median_of_sorted(&drawn);
            }
            statistic(&medians)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    // Number of figures to leave out at each end: a fortieth (2.5 %) of the sorted figures below
    // the interval, and as many above it.
    let outside = RESAMPLES / 40;
    Interval { low: figures[outside], high: figures[RESAMPLES - 1 - outside] }
}

/// Fills `drawn` with as many random values as `sample` has, in ascending order. A sample with
/// enough measurements is resampled: each drawn value is one of its measurements, and a measurement
/// can be drawn several times. Otherwise the values come from a log-normal distribution around the
/// sample's median, with the known deviation.
fn draw_again(sample: &Sample, random: &mut Rand64, drawn: &mut Vec<f64>) {
    let values = sample.values();
    let mut draw = || {
        if sample.is_resampled() {
            let index = random.rand_range(0..values.len() as u64);
            usize::try_from(index).map_or(values[0], |index| values[index])
        } else {
            sample.median() * (sample.known_deviation() * standard_normal(random)).exp()
        }
    };
    drawn.clear();
    drawn.extend(values.iter().map(|_| draw()));
    drawn.sort_by(f64::total_cmp);
}

impl Sample {
    /// Is the interval of this sample's median found by resampling its measurements? If not, it is
    /// computed from the deviation that other samples have shown. A sample without such a known
    /// deviation is always resampled.
    #[must_use]
    pub fn is_resampled(&self) -> bool {
        self.values().len() >= FEWEST_RESAMPLED || self.known_deviation() == 0.0
    }
}

/// Returns a number from the standard normal distribution (Box and Muller).
fn standard_normal(random: &mut Rand64) -> f64 {
    // `rand_float` returns a number below 1, so the argument of the logarithm is not zero.
    let radius = (-2.0 * (1.0 - random.rand_float()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.rand_float()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn an_interval_is_within_the_sample_and_contains_the_median() {
        let four = sample(&[10.0, 11.0, 12.0, 20.0]);
        let Interval { low, high } = interval(&[&four], 1, |medians| medians[0]);
        assert!((10.0..11.5).contains(&low) && (11.6..=20.0).contains(&high), "{low} … {high}");
    }

    #[test]
    fn more_measurements_make_an_interval_narrower() {
        let few: Vec<f64> = (0..8).map(|step| f64::from(step * 7 % 8)).collect();
        let many: Vec<f64> = (0..800).map(|step| f64::from(step * 7 % 800) / 100.0).collect();
        let width = |values: &[f64]| {
            let interval = interval(&[&sample(values)], 1, |medians| medians[0]);
            interval.high - interval.low
        };
        assert!(width(&many) < width(&few) / 3.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values = sample(&[1.0, 2.0, 5.0, 9.0]);
        let at = |seed| interval(&[&values], seed, |medians| medians[0]);
        assert_eq!(at(3), at(3));
    }

    #[test]
    fn two_samples_that_do_not_overlap_differ() {
        let (low, high) = (sample(&[1.0, 1.1, 1.2, 1.3]), sample(&[1.4, 1.5, 1.6, 1.7]));
        let difference = |medians: &[f64]| medians[0] - medians[1];
        assert!(interval(&[&low, &high], 1, difference).is_below(0.0));
        assert!(interval(&[&high, &low], 1, difference).is_above(0.0));
        let same = interval(&[&low, &low], 1, difference);
        assert!(!same.is_below(0.0) && !same.is_above(0.0));
    }

    #[test]
    fn a_negated_statistic_has_the_negated_interval() {
        let values = sample(&[1.0, 2.0, 4.0, 7.0, 11.0, 16.0, 22.0, 29.0, 37.0, 46.0]);
        let Interval { low, high } = interval(&[&values], 1, |medians| medians[0].sqrt());
        let upside_down = interval(&[&values], 1, |medians| -medians[0].sqrt());
        assert_eq!(upside_down, Interval { low: -high, high: -low });
    }

    #[test]
    fn equal_samples_are_neither_below_nor_above() {
        let same = sample(&[3.0; 4]);
        let difference = interval(&[&same, &same], 1, |medians| medians[0] - medians[1]);
        assert!(!difference.is_below(0.0) && !difference.is_above(0.0));
    }

    #[test]
    fn one_measurement_is_its_own_interval() {
        let one = sample(&[4.0]);
        assert_eq!(interval(&[&one], 1, |medians| medians[0]), Interval { low: 4.0, high: 4.0 });
    }

    #[test]
    fn few_measurements_scatter_like_those_of_other_samples() {
        let deviation = 0.1;
        let width = |values: &[f64]| {
            let known = sample(values).with_known_deviation(deviation);
            let Interval { low, high } = interval(&[&known], 1, |medians| medians[0].ln());
            (high - low) / 2.0
        };
        let single = width(&[4.0]);
        assert!((single / (1.96 * deviation) - 1.0).abs() < 0.1, "{single}");
        let two = width(&[4.0, 4.0]);
        assert!((two / single - 0.5_f64.sqrt()).abs() < 0.1, "{two}");
        assert_eq!(width(&[4.0; FEWEST_RESAMPLED]), 0.0, "enough measurements show their own");
    }
}
