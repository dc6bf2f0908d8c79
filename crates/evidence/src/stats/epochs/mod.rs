//! Epochs of a machine: slow changes of its speed that all runs share, and their subtraction.
//!
//! A virtual CPU changes its speed for tenths of a second to minutes, by up to a factor of three. A
//! cell whose runs fall into different epochs then scatters, and equal runs are correlated with
//! their neighbours. The model of the logarithm of a rate is
//!
//! > log rate = cell + slope(cell) × speed(time) + noise
//!
//! The speed at a run is the median of what the runs before and after it deviate from their own
//! cells. The run itself is left out, so that its own noise is not mistaken for an epoch. The slope
//! is near 1. It differs from 1 because a cell that waits for latency gains less from a fast
//! processor than one that copies all the time. Runs must be in random order: then an epoch meets
//! all cells alike.
//!
//! Estimates are medians and Huber's weighted means, so single runs that were disturbed do not
//! matter.

use super::sample::{Sample, median_of_sorted};
use super::{as_f64, correlation};
use serde::Serialize;

/// Fewest runs from which epochs are estimated.
const FEWEST_RUNS: usize = 48;
/// Fewest runs of each cell.
const FEWEST_OF_CELL: usize = 3;
/// Numbers of runs before and after a run that determine the speed at it. The one with the smallest
/// deviation is taken.
const REACHES: [usize; 3] = [2, 4, 8];
/// Rounds of the alternating estimation. The estimates settle within five.
const ROUNDS: usize = 10;
/// Largest ratio of the deviations after and before the subtraction that is worth it. A speed that
/// is estimated from noise alone raises the deviation.
const WORTH_IT: f64 = 0.8;
/// Smallest correlation of successive runs that shows epochs, and the same in standard errors. With
/// few runs of a cell the model has nearly as many parameters as runs, and explains noise.
const LEAST_CORRELATION: f64 = 0.2;
const LEAST_ERRORS: f64 = 3.0;
/// Smallest deviation that is subtracted. Simulated runs deviate less.
const SMALLEST: f64 = 0.003;
/// Standard deviation of the slopes around 1, as measured on shared virtual CPUs.
const SPREAD_OF_SLOPES: f64 = 0.15;
/// Deviations beyond so many standard deviations have a reduced weight (Huber).
const FULL_WEIGHT: f64 = 2.0;
/// Quantile of the speeds to which rates refer: the machine at its best, but not one lucky run.
const REFERENCE: f64 = 0.9;
/// Quantile of the normal distribution for a 95 % interval.
const NORMAL_95: f64 = 1.96;

/// A run: the number of its cell, and the logarithm of its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Number of the cell, from 0.
    pub cell: usize,
    /// Natural logarithm of the rate.
    pub log_rate: f64,
}

/// Deviation of runs from their cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Robust standard deviation, as the logarithm of a ratio.
    pub deviation: f64,
    /// Correlation of successive runs.
    pub lag_1: f64,
    /// Correlation of runs that are ten apart.
    pub lag_10: f64,
}

/// The speed of the machine at each run, and its effect on each cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Epochs {
    /// Speed at each run as the logarithm of a ratio to the reference, in the order of the runs.
    pub speeds: Vec<f64>,
    /// Slope of each cell.
    pub slopes: Vec<f64>,
    /// Half-widths of the 95 % interval that the uncertain slope adds to each cell.
    pub added_half_widths: Vec<f64>,
    /// Deviation of runs from their cells without the model.
    pub before: Deviation,
    /// Deviation from the model.
    pub after: Deviation,
}

impl Epochs {
    /// Estimates the epochs of `runs`, which are in the order of time. Returns `None` if there are
    /// too few runs, or if the model does not explain enough of their deviations.
    #[must_use]
    pub fn of(runs: &[Observation]) -> Option<Self> {
        let cells = Cells::of(runs)?;
        let still = Estimate::still(runs, &cells);
        let before = Deviation::of(&still.residuals);
        let least = LEAST_CORRELATION.max(LEAST_ERRORS / as_f64(runs.len() as u64).sqrt());
        if before.deviation < SMALLEST || before.lag_1 < least {
            return None;
        }
        let estimates = REACHES.map(|reach| still.clone().refined(runs, &cells, reach));
        let best = estimates.into_iter().min_by(|one, other| {
            let deviations = [one, other].map(|estimate| robust_deviation(&estimate.residuals));
            deviations[0].total_cmp(&deviations[1])
        })?;
        let after = Deviation::of(&best.residuals);
        (after.deviation <= before.deviation * WORTH_IT).then(|| Self {
            added_half_widths: best.added_half_widths(&cells, after.deviation),
            speeds: best.speeds,
            slopes: best.slopes,
            before,
            after,
        })
    }

    /// Returns the logarithm of the rate that the run with this number would have had at the
    /// reference speed.
    #[must_use]
    pub fn corrected(&self, number: usize, run: Observation) -> f64 {
        run.log_rate - self.slopes[run.cell] * self.speeds[number]
    }
}

impl Deviation {
    fn of(residuals: &[f64]) -> Self {
        Self {
            deviation: robust_deviation(residuals),
            lag_1: correlation(residuals, 1),
            lag_10: correlation(residuals, 10),
        }
    }
}

/// The numbers of the runs of each cell.
struct Cells(Vec<Vec<usize>>);

impl Cells {
    /// Returns `None` if there are too few runs.
    fn of(runs: &[Observation]) -> Option<Self> {
        let count = runs.iter().map(|run| run.cell + 1).max()?;
        let mut cells = vec![Vec::new(); count];
        for (number, run) in runs.iter().enumerate() {
            cells[run.cell].push(number);
        }
        let fewest = cells.iter().map(Vec::len).min()?;
        let is_finite = runs.iter().all(|run| run.log_rate.is_finite());
        (runs.len() >= FEWEST_RUNS && fewest >= FEWEST_OF_CELL && is_finite).then_some(Self(cells))
    }
}

/// The estimates of a round.
#[derive(Clone)]
struct Estimate {
    levels: Vec<f64>,
    slopes: Vec<f64>,
    speeds: Vec<f64>,
    residuals: Vec<f64>,
}

impl Estimate {
    /// Returns the estimate for a machine of constant speed.
    fn still(runs: &[Observation], cells: &Cells) -> Self {
        let count = cells.0.len();
        let mut estimate = Self {
            levels: vec![0.0; count],
            slopes: vec![1.0; count],
            speeds: vec![0.0; runs.len()],
            residuals: vec![0.0; runs.len()],
        };
        estimate.fit_levels(runs, cells);
        estimate.note_residuals(runs);
        estimate
    }

    /// Alternates between the estimation of speeds, levels and slopes.
    fn refined(mut self, runs: &[Observation], cells: &Cells, reach: usize) -> Self {
        for round in 0..ROUNDS {
            self.fit_speeds(runs, reach);
            self.fit_levels(runs, cells);
            self.note_residuals(runs);
            // The first speeds still contain the errors of levels that epochs have displaced.
            if round >= 2 {
                self.fit_slopes(runs, cells);
                self.fit_levels(runs, cells);
                self.note_residuals(runs);
            }
        }
        self
    }

    fn fit_levels(&mut self, runs: &[Observation], cells: &Cells) {
        for (cell, numbers) in cells.0.iter().enumerate() {
            let slope = self.slopes[cell];
            self.levels[cell] = median(
                numbers
                    .iter()
                    .map(|&number| runs[number].log_rate - slope * self.speeds[number])
                    .collect(),
            );
        }
    }

    fn fit_speeds(&mut self, runs: &[Observation], reach: usize) {
        let told: Vec<f64> = runs
            .iter()
            .map(|run| (run.log_rate - self.levels[run.cell]) / self.slopes[run.cell])
            .collect();
        self.speeds = (0..told.len())
            .map(|number| {
                let before = &told[number.saturating_sub(reach)..number];
                let after = &told[number + 1..(number + 1 + reach).min(told.len())];
                median([before, after].concat())
            })
            .collect();
        let mut sorted = self.speeds.clone();
        sorted.sort_by(f64::total_cmp);
        let reference = sorted[quantile_index(sorted.len())];
        self.speeds.iter_mut().for_each(|speed| *speed -= reference);
    }

    /// Fits each slope by weighted least squares, drawn towards 1 by its known spread.
    fn fit_slopes(&mut self, runs: &[Observation], cells: &Cells) {
        let deviation = robust_deviation(&self.residuals).max(f64::EPSILON);
        let prior = (deviation / SPREAD_OF_SLOPES).powi(2);
        for (cell, numbers) in cells.0.iter().enumerate() {
            // Both are taken from their means, so that a wrong level does not turn the slope.
            let weights = numbers.iter().map(|&number| {
                let residual = self.residuals[number].abs();
                if residual > 0.0 { (FULL_WEIGHT * deviation / residual).min(1.0) } else { 1.0 }
            });
            let weights: Vec<f64> = weights.collect();
            let sum: f64 = weights.iter().sum();
            let mean = |values: &dyn Fn(usize) -> f64| {
                numbers.iter().zip(&weights).map(|(&at, weight)| weight * values(at)).sum::<f64>()
                    / sum
            };
            let speed = mean(&|at| self.speeds[at]);
            let level = mean(&|at| runs[at].log_rate);
            let products = numbers.iter().zip(&weights).map(|(&at, weight)| {
                let (x, y) = (self.speeds[at] - speed, runs[at].log_rate - level);
                [weight * x * x, weight * x * y]
            });
            let [squares, products] =
                products.fold([0.0; 2], |sum, next| [sum[0] + next[0], sum[1] + next[1]]);
            self.slopes[cell] = (products + prior) / (squares + prior);
        }
    }

    fn note_residuals(&mut self, runs: &[Observation]) {
        let explained =
            |run: &Observation, speed: &f64| self.levels[run.cell] + self.slopes[run.cell] * speed;
        self.residuals = runs
            .iter()
            .zip(&self.speeds)
            .map(|(run, speed)| run.log_rate - explained(run, speed))
            .collect();
    }

    /// Returns the standard errors of the slopes times the distance of each cell's runs from the
    /// reference, as half-widths of 95 % intervals.
    fn added_half_widths(&self, cells: &Cells, deviation: f64) -> Vec<f64> {
        let prior = (deviation / SPREAD_OF_SLOPES).powi(2);
        let of_cell = |numbers: &Vec<usize>| {
            let count = as_f64(numbers.len() as u64);
            let mean = numbers.iter().map(|&at| self.speeds[at]).sum::<f64>() / count;
            let squares: f64 = numbers.iter().map(|&at| (self.speeds[at] - mean).powi(2)).sum();
            NORMAL_95 * deviation / (squares + prior).sqrt() * mean.abs()
        };
        cells.0.iter().map(of_cell).collect()
    }
}

/// Returns the index of the reference among sorted speeds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the count")]
fn quantile_index(count: usize) -> usize {
    ((as_f64(count as u64) * REFERENCE) as usize).min(count - 1)
}

/// Returns the median, or zero without values.
fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    median_of_sorted(&values)
}

fn robust_deviation(residuals: &[f64]) -> f64 {
    Sample::new(residuals.to_vec()).map_or(0.0, |sample| sample.robust_deviation())
}

#[cfg(test)]
mod tests;
