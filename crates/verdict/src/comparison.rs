//! The comparison of two sweeps: how throughput changed, and how certain the change is.
//!
//! Each cell is paired with the cell of the other sweep that has equal buffer sizes. The change of
//! a cell is the natural logarithm of the ratio of the two median rates.
//!
//! Two kinds of noise are distinguished. The first is the scatter of runs within a cell, which
//! determines the interval of a single cell's change. Because a cell has few runs, this scatter is
//! pooled over all cells of both sweeps.
//!
//! The second is a slow period of the machine. It affects consecutive runs of many cells, so the
//! deviations of these cells are not independent. The interval of the overall change is therefore
//! computed from the means of consecutive parts of each sweep.

use crate::log_ratio::logarithm;
use crate::table::{CellSummary, Table};
use linerate_evidence::stats::{Interval, as_f64};
use linerate_evidence::{Cell, RunRecord};

/// Maximum number of consecutive parts into which a sweep is divided.
const PARTS: usize = 10;
/// Error probability of the 95 % intervals.
const ERROR: f64 = 0.05;
/// Ratio of the standard error of a median to the standard error of a mean, for samples of a normal
/// distribution: √(π/2).
const OF_A_MEDIAN: f64 = 1.253_314_137_315_5;

/// The changes of throughput from one sweep to another, as natural logarithms of ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The mean of the changes of all paired cells.
    pub overall: f64,
    /// The 95 % interval of the overall change; `None` if one of the sweeps has no cell with
    /// several runs.
    pub interval: Option<Interval>,
    /// The changes of the paired cells, in row-major order.
    pub cells: Vec<CellChange>,
    /// Number of cells of the first sweep that the second sweep lacks, and number of cells of the
    /// second sweep that the first sweep lacks.
    pub unpaired: [usize; 2],
}

/// The change of throughput in one cell from the first sweep to the second sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct CellChange {
    /// The send and receive buffer sizes of the cell.
    pub cell: Cell,
    /// The median throughput in the first and the second sweep, in bytes per second.
    pub medians: [f64; 2],
    /// The natural logarithm of the ratio of the second median to the first median.
    pub change: f64,
    /// The interval of the change; `None` if no cell of either sweep has several runs. The
    /// intervals of all cells are so wide that, with a probability of 95 %, every one of them
    /// contains its true change (Bonferroni correction).
    pub interval: Option<Interval>,
}

impl CellChange {
    /// Does the interval of the change exclude zero?
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.interval.is_some_and(|interval| excludes_zero(&interval))
    }
}

impl Comparison {
    /// Compares two sweeps. Returns `None` if they have no cell in common.
    #[must_use]
    pub fn new(before: &Table<'_>, after: &Table<'_>) -> Option<Self> {
        let mut cells: Vec<CellChange> = before
            .iter()
            .filter_map(|one| {
                let other = after.get(one.cell.send, one.cell.receive)?;
                let medians = [one.median(), other.median()];
                let change = logarithm(medians[1]) - logarithm(medians[0]);
                Some(CellChange { cell: one.cell, medians, change, interval: None })
            })
            .collect();
        let count = cells.len();
        if count == 0 {
            return None;
        }
        let (sides, paired) = ([before, after], as_f64(count as u64));
        let scatter = Scatter::of(&sides);
        for cell in &mut cells {
            let runs = sides.map(|side| {
                let runs = side.get(cell.cell.send, cell.cell.receive);
                runs.map_or(1, |runs| runs.rates.values().len())
            });
            cell.interval = scatter.interval(cell.change, runs, ERROR / paired);
        }
        let overall = cells.iter().map(|cell| cell.change).sum::<f64>() / paired;
        let unpaired = sides.map(|side| side.iter().count() - count);
        Some(Self { overall, interval: interval_of_parts(overall, &sides), cells, unpaired })
    }

    /// Returns `true` if the second sweep is significantly faster overall, `false` if it is
    /// significantly slower, and `None` if the change is not significant.
    #[must_use]
    pub fn is_faster(&self) -> Option<bool> {
        let interval = self.interval?;
        excludes_zero(&interval).then_some(interval.low > 0.0)
    }
}

fn excludes_zero(interval: &Interval) -> bool {
    interval.is_above(0.0) || interval.is_below(0.0)
}

/// The scatter of runs around the means of their cells, pooled over several tables.
struct Scatter {
    /// Standard deviation of the natural logarithm of a rate.
    deviation: f64,
    /// Degrees of freedom of the standard deviation.
    degrees: usize,
}

impl Scatter {
    fn of(tables: &[&Table<'_>]) -> Self {
        let (mut squares, mut degrees) = (0.0, 0);
        for cell in tables.iter().flat_map(|table| table.iter()) {
            let logs: Vec<f64> = cell.rates.values().iter().map(|&rate| logarithm(rate)).collect();
            squares += sum_of_squares(&logs);
            degrees += logs.len() - 1;
        }
        let variance = if degrees > 0 { squares / as_f64(degrees as u64) } else { 0.0 };
        Self { deviation: variance.sqrt(), degrees }
    }

    /// Returns the interval of `change`, the change of a cell. `runs` gives the number of the
    /// cell's runs in the first and in the second sweep. `error` is the probability that the
    /// interval misses the true change. Returns `None` if no cell has several runs, so that the
    /// scatter is unknown.
    fn interval(&self, change: f64, runs: [usize; 2], error: f64) -> Option<Interval> {
        let [before, after] = runs.map(|runs| 1.0 / as_f64(runs as u64));
        let half = student(1.0 - error / 2.0, self.degrees)?
            * OF_A_MEDIAN
            * self.deviation
            * (before + after).sqrt();
        Some(Interval { low: change - half, high: change + half })
    }
}

/// Returns the 95 % interval of the overall change, from the means of consecutive parts of each
/// sweep. Returns `None` if a sweep has fewer than two parts.
fn interval_of_parts(change: f64, tables: &[&Table<'_>]) -> Option<Interval> {
    let (mut variance, mut degrees) = (0.0, 0);
    for table in tables {
        let parts = means_of_parts(table);
        let count = as_f64(parts.len() as u64);
        if parts.len() < 2 {
            return None;
        }
        variance += sum_of_squares(&parts) / (count - 1.0) / count;
        degrees += parts.len() - 1;
    }
    let half = student(1.0 - ERROR / 2.0, degrees)? * variance.sqrt();
    Some(Interval { low: change - half, high: change + half })
}

/// Divides a sweep into at most [`PARTS`] consecutive parts, and returns a mean for each part. It
/// is the mean deviation of the part's runs from the means of their cells, as the logarithm of a
/// ratio. Contended runs are left out, except in cells with too few uncontended runs.
fn means_of_parts(table: &Table<'_>) -> Vec<f64> {
    let mut deviations: Vec<(u32, f64)> = Vec::new();
    for runs in table.iter().map(CellSummary::fair_runs).filter(|runs| runs.len() > 1) {
        // The recorded rates are used here, without the correction for slow changes of the
        // machine's speed (epochs). Corrected rates refer to the mean speed of their own sweep. If
        // one of the sweeps has a slow period, the mean speeds of the two sweeps differ. The
        // interval must cover such a difference, so it is computed from uncorrected rates.
        let rate = |run: &&RunRecord| logarithm(run.bytes_per_second);
        let mean = runs.iter().map(rate).sum::<f64>() / as_f64(runs.len() as u64);
        deviations.extend(runs.iter().map(|run| (run.order, rate(run) - mean)));
    }
    deviations.sort_by_key(|&(order, _)| order);
    let length = deviations.len().div_ceil(PARTS).max(1);
    let mean = |part: &[(u32, f64)]| {
        part.iter().map(|(_, deviation)| deviation).sum::<f64>() / as_f64(part.len() as u64)
    };
    deviations.chunks(length).map(mean).collect()
}

/// Returns the sum of the squared deviations of `values` from their mean.
fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / as_f64(values.len() as u64);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Returns a quantile of Student's t distribution, by the expansion around the normal quantile
/// (Abramowitz and Stegun, 26.7.5). Returns `None` if `degrees`, the degrees of freedom, is 0.
fn student(probability: f64, degrees: usize) -> Option<f64> {
    if degrees == 0 {
        return None;
    }
    let (z, n) = (normal(probability), as_f64(degrees as u64));
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    Some(z + terms[0] / n + terms[1] / n.powi(2) + terms[2] / n.powi(3))
}

/// Returns the quantile of the standard normal distribution for a `probability` of at least ½, with
/// an error below 0.0005 (Abramowitz and Stegun, 26.2.23).
fn normal(probability: f64) -> f64 {
    let t = (-2.0 * (1.0 - probability).ln()).sqrt();
    let above = 2.515_517 + 0.802_853 * t + 0.010_328 * t * t;
    let below = 1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t.powi(3);
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::sample_data::{noise, records, square_design};
    use linerate_evidence::{Design, names};

    /// Compares two made-up sweeps of 5 × 5 cells. `before` and `after` return the rate of a run,
    /// from its cell, the number of its repeat, and its position in the order of runs.
    fn compared([before, after]: [&dyn Fn(Cell, u32, usize) -> f64; 2]) -> (Comparison, Design) {
        let design = square_design(5);
        let run = |rate: &dyn Fn(Cell, u32, usize) -> f64| {
            let mut runs = records(&design, |_, _| 1e6);
            let schedule = linerate_evidence::schedule(&design);
            for (order, (run, planned)) in runs.iter_mut().zip(schedule).enumerate() {
                run.bytes_per_second = rate(planned.cell, planned.repeat, order);
            }
            runs
        };
        let (one, other) = (run(before), run(after));
        let comparison =
            Comparison::new(&Table::new(&design, &one), &Table::new(&design, &other)).unwrap();
        (comparison, design)
    }

    fn is(cell: Cell, send: u32, receive: u32) -> bool {
        (cell.send.packets(), cell.receive.packets()) == (Some(send), Some(receive))
    }

    #[test]
    fn equal_sweeps_do_not_differ() {
        let rate = |cell: Cell, repeat, _| 1e6 * noise(cell, repeat, 0.02);
        let later = |cell: Cell, repeat, _| 1e6 * noise(cell, repeat + 40, 0.02);
        let (comparison, _) = compared([&rate, &later]);
        assert_eq!(comparison.is_faster(), None, "{comparison:?}");
        assert!(comparison.cells.iter().all(|cell| !cell.is_certain()));
        assert_eq!((comparison.cells.len(), comparison.unpaired), (25, [0, 0]));
    }

    #[test]
    fn a_change_of_all_cells_and_of_one_are_found() {
        let rate = |cell: Cell, repeat, _| 1e6 * noise(cell, repeat, 0.02);
        let faster = |cell: Cell, repeat, _| {
            let own = if is(cell, 3, 4) { 0.7 } else { 1.05 };
            1e6 * own * noise(cell, repeat + 40, 0.02)
        };
        let (comparison, _) = compared([&rate, &faster]);
        assert_eq!(comparison.is_faster(), Some(true), "{comparison:?}");
        assert!((comparison.overall.exp() - 1.05).abs() < 0.02, "{}", comparison.overall);
        let slower: Vec<_> =
            comparison.cells.iter().filter(|cell| cell.is_certain() && cell.change < 0.0).collect();
        assert!(slower.len() == 1 && is(slower[0].cell, 3, 4), "{slower:?}");
    }

    #[test]
    fn an_epoch_of_the_machine_is_no_certain_difference() {
        let rate = |cell: Cell, repeat, _| 1e6 * noise(cell, repeat, 0.01);
        // One fifth of the runs of the second sweep are 20 % slower than those of the first, so its
        // mean rate is 4 % lower. This is an effect of the machine, so the interval of the overall
        // change must include zero.
        let epoch = |cell: Cell, repeat, order: usize| {
            let speed = if (40..60).contains(&order) { 0.8 } else { 1.0 };
            1e6 * speed * noise(cell, repeat + 40, 0.01)
        };
        let (comparison, _) = compared([&rate, &epoch]);
        assert_eq!(comparison.is_faster(), None, "{comparison:?}");
    }

    #[test]
    fn contended_runs_do_not_widen_the_overall_interval() {
        let design = square_design(5);
        let one = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.02));
        let mut other = records(&design, |cell, repeat| 1.05e6 * noise(cell, repeat + 40, 0.02));
        let half = other.len() / 2;
        for run in other[..half].iter_mut().filter(|run| run.repeat == 0) {
            run.bytes_per_second *= 0.2;
            run.counters.sender.set(names::THREAD_MICROS, 1_000);
            run.counters.sender.set(names::CPU_WAIT_MICROS, 900);
        }
        let tables = [&one, &other].map(|runs| Table::new(&design, runs));
        assert!(tables[1].left_out() > 5 && tables[1].contended_cells() == 0);
        let comparison = Comparison::new(&tables[0], &tables[1]).unwrap();
        assert_eq!(comparison.is_faster(), Some(true), "{comparison:?}");
    }

    #[test]
    fn one_run_of_each_cell_gives_no_interval() {
        let design = Design { repeat: 1.try_into().unwrap(), ..square_design(2) };
        let (one, other) = (records(&design, |_, _| 1e6), records(&design, |_, _| 2e6));
        let comparison =
            Comparison::new(&Table::new(&design, &one), &Table::new(&design, &other)).unwrap();
        assert_eq!((comparison.is_faster(), comparison.interval), (None, None));
        assert!(!comparison.cells[0].is_certain());
        assert!((comparison.overall - 2_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn only_cells_that_both_sweeps_measured_are_paired() {
        let (small, large) = (square_design(2), square_design(3));
        let (one, other) = (records(&small, |_, _| 1e6), records(&large, |_, _| 1e6));
        let (one, other) = (Table::new(&small, &one), Table::new(&large, &other));
        let comparison = Comparison::new(&one, &other).unwrap();
        assert_eq!((comparison.cells.len(), comparison.unpaired), (4, [0, 5]));
        assert_eq!(Comparison::new(&Table::new(&small, &[]), &other), None);
    }

    #[test]
    fn quantiles_agree_with_tables() {
        for (probability, degrees, expected) in [
            (0.975, 1_000_000, 1.960),
            (0.975, 18, 2.101),
            (0.975, 10, 2.228),
            (0.9999, 100, 3.862),
        ] {
            let found = student(probability, degrees).unwrap();
            assert!((found - expected).abs() < 0.004, "{probability} {degrees}: {found}");
        }
        assert_eq!(student(0.975, 0), None);
    }
}
