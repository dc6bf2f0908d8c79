//! Epochs: periods of nearly constant machine speed. Their effect on the rates of runs is estimated
//! and subtracted.
//!
//! A virtual CPU keeps a speed for tenths of a second to minutes, and its speeds differ by up to a
//! factor of three. Runs of one cell in different epochs therefore differ in rate. Successive runs
//! usually fall into one epoch, whatever their cells, so their deviations are correlated. The model
//! of the logarithm of a rate is
//!
//! > log rate = cell + slope(cell) × speed(time) + noise
//!
//! Here, `cell` is the level of the run's cell: the logarithm of the cell's rate at the machine's
//! mean speed. The speed at a run is estimated from the runs just before and after it: it is the
//! median of their deviations from the levels of their own cells. The run itself is excluded,
//! because its own noise would otherwise look like a change of speed.
//!
//! The slope is near 1. It differs from 1 because a cell that waits for latency gains less from a
//! fast processor than one that copies all the time. Runs must be in random order, so that an epoch
//! affects all cells alike.
//!
//! Corrected rates refer to the machine's mean speed during the sweep. The runs of a cell were made
//! at speeds near this mean, so they determine the cell's rate best there. A correction to another
//! speed, such as the highest, would multiply the error of the slope. The interval would then be
//! wide, however many runs there are.
//!
//! Levels and speeds are medians, and slopes are fitted with Huber's weights. Both tolerate single
//! disturbed runs.

use super::sample::{Sample, median_of_sorted};
use super::{as_f64, correlation};
use serde::Serialize;

/// Minimum number of runs of a sweep, below which epochs are not estimated.
const FEWEST_RUNS: usize = 48;
/// Minimum number of runs of each cell, below which epochs are not estimated.
const FEWEST_OF_CELL: usize = 3;
/// Candidates for the number of neighbouring runs on each side of a run from which the speed at
/// that run is estimated. The candidate with the smallest residual deviation is used.
const REACHES: [usize; 3] = [2, 4, 8];
/// Number of rounds of estimation. In each round, speeds, levels and slopes are estimated one after
/// the other. The estimates usually converge within five rounds.
const ROUNDS: usize = 10;
/// Maximum ratio of the runs' deviation from the model with epochs to their deviation from the
/// medians of their cells. Above this ratio, the model explains too little and is not used. A model
/// that fits pure noise even increases the deviation.
const WORTH_IT: f64 = 0.8;
/// Minimum correlation between the deviations of successive runs, below which no epochs are
/// assumed. The model has one speed for each run, so it would otherwise fit uncorrelated noise.
const LEAST_CORRELATION: f64 = 0.2;
/// Minimum correlation between the deviations of successive runs, in standard errors. Without
/// epochs, the standard error is 1/√(number of runs). The larger one of this minimum and
/// [`LEAST_CORRELATION`] applies.
const LEAST_ERRORS: f64 = 3.0;
/// Minimum deviation of runs from the medians of their cells, as a natural logarithm, below which
/// epochs are not estimated. Simulated runs deviate less than this, and have no epochs.
const SMALLEST: f64 = 0.003;
/// Standard deviation of the cells' slopes around 1, as measured on shared virtual CPUs.
const SPREAD_OF_SLOPES: f64 = 0.15;
/// Number of standard deviations beyond which a run has a reduced weight in the fit of a slope
/// (Huber's weights). Single disturbed runs then hardly affect the slope.
const FULL_WEIGHT: f64 = 2.0;
/// Half-width of a 95 % interval of the normal distribution, in standard deviations.
const NORMAL_95: f64 = 1.96;

/// One run as input of the model: its cell, and the logarithm of its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Number of the cell, from 0.
    pub cell: usize,
    /// Natural logarithm of the rate in bytes per second.
    pub log_rate: f64,
}

/// How much runs deviate from their expected rates, and how much the deviations of successive runs
/// are correlated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Robust standard deviation of log(rate / expected rate) over all runs. A value of 0.03 means
    /// that rates deviate by about 3 %.
    pub deviation: f64,
    /// Correlation of the deviations of two successive runs, from −1 to 1.
    pub lag_1: f64,
    /// Correlation of the deviations of two runs that are ten positions apart, from −1 to 1.
    pub lag_10: f64,
}

/// The estimated speed of the machine at each run of a sweep, and the effect of the speed on each
/// cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Epochs {
    /// Natural logarithm of the ratio of the speed at each run to the mean speed, in the order of
    /// the runs.
    pub speeds: Vec<f64>,
    /// Sensitivity of each cell to the machine's speed. The slope is 1 if the rate of the cell is
    /// proportional to the speed, and 0 if it does not depend on the speed.
    pub slopes: Vec<f64>,
    /// Amount by which the uncertainty of the slope widens each cell's 95 % interval on either
    /// side, as a natural logarithm.
    pub added_half_widths: Vec<f64>,
    /// Deviation of the uncorrected runs from the medians of their cells.
    pub before: Deviation,
    /// Deviation of the runs from the rates that the model with epochs predicts for them.
    pub after: Deviation,
}

impl Epochs {
    /// Estimates the epochs of a sweep from its `runs`, which must be in the order of time.
    ///
    /// Returns `None` in these cases:
    ///
    /// - There are too few runs, or a logarithm is not finite.
    /// - The runs deviate too little from their cells, or the deviations of successive runs are not
    ///   correlated.
    /// - The model does not reduce the deviation enough.
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

    /// Returns the logarithm of the rate that `run` would have had at the machine's mean speed.
    /// `number` is the position of the run among all runs in the order of time, from 0.
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

/// For each cell, the positions of its runs in the order of time.
struct Cells(Vec<Vec<usize>>);

impl Cells {
    /// Groups runs by cell. Returns `None` if there are too few runs for the model, or if the
    /// logarithm of a rate is not finite.
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

/// The estimated parameters of the model: a level and a slope for each cell, and a speed for each
/// run. Each run also has a residual. All are natural logarithms except the slopes.
#[derive(Clone)]
struct Estimate {
    levels: Vec<f64>,
    slopes: Vec<f64>,
    speeds: Vec<f64>,
    residuals: Vec<f64>,
}

impl Estimate {
    /// Returns the first estimate of the parameters, which assumes a machine of constant speed. All
    /// slopes are 1, all speeds are 0, and the levels are the medians of the cells.
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

    /// Estimates speeds, levels and slopes one after the other, in several rounds. The speed at a
    /// run is estimated from the `reach` runs before it and the `reach` runs after it.
    fn refined(mut self, runs: &[Observation], cells: &Cells, reach: usize) -> Self {
        for round in 0..ROUNDS {
            self.fit_speeds(runs, reach);
            self.fit_levels(runs, cells);
            self.note_residuals(runs);
            // The slopes remain 1 in the first two rounds. The levels of these rounds still contain
            // the effect of epochs, so slopes that were fitted to them would be wrong.
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
        let mean = self.speeds.iter().sum::<f64>() / as_f64(self.speeds.len() as u64);
        self.speeds.iter_mut().for_each(|speed| *speed -= mean);
    }

    /// Fits the slope of each cell by weighted least squares. A prior distribution around 1 keeps
    /// the slope of a cell with few runs near 1.
    fn fit_slopes(&mut self, runs: &[Observation], cells: &Cells) {
        let deviation = robust_deviation(&self.residuals).max(f64::EPSILON);
        let prior = (deviation / SPREAD_OF_SLOPES).powi(2);
        for (cell, numbers) in cells.0.iter().enumerate() {
            // For the fit, speeds and rates are taken relative to their means over the runs of the
            // cell. The estimated level of the cell, which may be wrong, is therefore not needed.
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

    /// Returns, for each cell, the half-width that the slope's error adds to the 95 % interval of
    /// the corrected rate.
    ///
    /// A cell's median rate is corrected by about its slope times the mean speed at its runs,
    /// relative to the mean speed of all runs. The effect of an error of the slope is therefore
    /// proportional to the absolute value of that relative speed.
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

/// Returns the median of `values`, or 0 if there are no values.
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
