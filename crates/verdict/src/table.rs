//! The results of a sweep as a table: a row for each send buffer, a column for each receive buffer.

use crate::diagnosis::CONTENDED_SHARE;
use crate::log_ratio::logarithm;
use linerate_evidence::BufferSize;
use linerate_evidence::Cell;
use linerate_evidence::Design;
use linerate_evidence::RunRecord;
use linerate_evidence::stats::{Epochs, Interval, Observation, Sample, interval, repeat_noise};
use std::collections::BTreeMap;

/// Name of the buffers that vary along the diagonal of the table.
pub(crate) const ALONG_DIAGONAL: &str = "both buffers";
/// Name of the buffers that vary along a row of the table.
pub(crate) const ALONG_ROW: &str = "receive buffers";
/// Name of the buffers that vary along a column of the table.
pub(crate) const ALONG_COLUMN: &str = "send buffers";

/// The results of all measured cells of a sweep, by send and receive buffer.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    sends: Vec<BufferSize>,
    receives: Vec<BufferSize>,
    cells: BTreeMap<Cell, CellSummary<'a>>,
    epochs: Option<Epochs>,
    repeat_noise: Option<f64>,
    left_out: usize,
}

/// The rates of each cell. If epochs (slow changes of the machine's speed) were found, their effect
/// has been subtracted from these rates.
struct Rates {
    of_cells: Vec<Vec<f64>>,
    epochs: Option<Epochs>,
}

/// The results of the runs of one cell.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    /// The send and receive buffer sizes of the cell.
    pub cell: Cell,
    /// The rates of the cell's uncontended runs in bytes per second; if `is_contended`, the rates
    /// of all its runs. If epochs (slow changes of the machine's speed) were found, the rates are
    /// corrected to the machine's mean speed.
    pub rates: Sample,
    /// The 95 % interval of the median rate, in bytes per second. A cell with too few runs does not
    /// show its own scatter; its interval is computed from the pooled scatter of all cells.
    pub interval: Interval,
    /// Do the rates include contended runs? They do if the cell has too few uncontended runs.
    pub is_contended: bool,
    /// All runs of the cell, including contended runs, in the order in which they were made.
    pub runs: Vec<&'a RunRecord>,
}

impl<'a> CellSummary<'a> {
    /// Returns the runs from which the cell's rates are taken: the uncontended runs, or all runs if
    /// too few are uncontended.
    pub(crate) fn fair_runs(&self) -> Vec<&'a RunRecord> {
        let is_fair = |run: &&RunRecord| self.is_contended || !is_contended(run);
        self.runs.iter().copied().filter(is_fair).collect()
    }

    /// Returns the median rate in bytes per second.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.rates.median()
    }

    /// Returns the sum of the counter `name` over all runs of the cell and both ends of each run;
    /// `None` if no run has the counter.
    #[must_use]
    pub fn counted(&self, name: &str) -> Option<u64> {
        let ends = self.runs.iter().flat_map(|run| [&run.counters.sender, &run.counters.receiver]);
        ends.filter_map(|end| end.get(name)).reduce(u64::saturating_add)
    }
}

impl<'a> Table<'a> {
    /// Creates the table of a sweep from its runs, which must be in the order in which they were
    /// made.
    #[must_use]
    pub fn new(design: &Design, runs: &'a [RunRecord]) -> Self {
        let mut by_cell = BTreeMap::<Cell, Vec<(usize, &RunRecord)>>::new();
        for (number, run) in runs.iter().enumerate() {
            by_cell.entry(run.cell()).or_default().push((number, run));
        }
        let fair: Vec<Vec<(usize, &RunRecord)>> = by_cell.values().map(|runs| fair(runs)).collect();
        let left_out = runs.len() - fair.iter().map(Vec::len).sum::<usize>();
        let rates = Rates::of(&fair);
        let repeat_noise = repeat_noise(rates.of_cells.iter().map(Vec::as_slice));
        let cells = by_cell.into_iter().zip(0_u32..).filter_map(|((cell, runs), number)| {
            let index = number as usize;
            let corrected = Sample::new(rates.of_cells[index].clone())?
                .with_known_deviation(repeat_noise.unwrap_or(0.0));
            let seed = design.seed.wrapping_add(u64::from(number));
            let Interval { low, high } = interval(&[&corrected], seed, |medians| medians[0]);
            let added = rates.epochs.as_ref().map_or(0.0, |epochs| epochs.added_half_widths[index]);
            let interval = Interval { low: low * (-added).exp(), high: high * added.exp() };
            let is_contended = has_too_few_fair(&runs);
            let runs = runs.into_iter().map(|(_, run)| run).collect();
            let summary = CellSummary { cell, rates: corrected, interval, is_contended, runs };
            Some((cell, summary))
        });
        Self {
            sends: design.send_buffers.sizes().to_vec(),
            receives: design.receive_buffers.sizes().to_vec(),
            cells: cells.collect(),
            epochs: rates.epochs,
            repeat_noise,
            left_out,
        }
    }

    /// Returns the standard deviation of the natural logarithm of a run's rate, pooled over all
    /// cells with several runs; `None` if there are no such cells.
    #[must_use]
    pub const fn repeat_noise(&self) -> Option<f64> {
        self.repeat_noise
    }

    /// Returns the epochs (slow changes of the machine's speed) whose effect has been subtracted
    /// from the rates; `None` if nothing has been subtracted.
    #[must_use]
    pub const fn epochs(&self) -> Option<&Epochs> {
        self.epochs.as_ref()
    }

    /// Returns the number of contended runs that are excluded from the rates.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns the number of cells whose rates include contended runs, because too few runs are
    /// uncontended.
    #[must_use]
    pub fn contended_cells(&self) -> usize {
        self.iter().filter(|cell| cell.is_contended).count()
    }

    /// Returns the sizes of the sender's buffer in the design, smallest first.
    #[must_use]
    pub fn sends(&self) -> &[BufferSize] {
        &self.sends
    }

    /// Returns the sizes of the receiver's buffer in the design, smallest first.
    #[must_use]
    pub fn receives(&self) -> &[BufferSize] {
        &self.receives
    }

    /// Returns the results of the cell with these buffers; `None` if the cell was not measured.
    #[must_use]
    pub fn get(&self, send: BufferSize, receive: BufferSize) -> Option<&CellSummary<'a>> {
        self.cells.get(&Cell { send, receive })
    }

    /// Returns all measured cells, in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = &CellSummary<'a>> {
        self.cells.values()
    }

    /// Returns the measured cells whose send and receive buffers are equal, smallest first.
    #[must_use]
    pub fn diagonal(&self) -> Vec<&CellSummary<'a>> {
        self.iter().filter(|summary| summary.cell.send == summary.cell.receive).collect()
    }

    /// Returns the lines of the table: the diagonal, each row and each column, as lists of measured
    /// cells. Each line comes with the name of the buffers that vary along it.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, Vec<&CellSummary<'a>>)> {
        let row = |&send: &BufferSize| {
            let cells =
                self.receives.iter().filter_map(|&receive| self.get(send, receive)).collect();
            (ALONG_ROW, cells)
        };
        let column = |&receive: &BufferSize| {
            let cells = self.sends.iter().filter_map(|&send| self.get(send, receive)).collect();
            (ALONG_COLUMN, cells)
        };
        let mut lines = vec![(ALONG_DIAGONAL, self.diagonal())];
        lines.extend(self.sends.iter().map(row));
        lines.extend(self.receives.iter().map(column));
        lines
    }

    /// Returns the measured cells next to `cell` in its row and in its column: up to four.
    #[must_use]
    pub fn neighbours(&self, cell: Cell) -> Vec<&CellSummary<'a>> {
        let beside = |sizes: &[BufferSize], size: BufferSize| {
            let at = sizes.iter().position(|&other| other == size);
            let near =
                at.map(|at| [at.checked_sub(1), Some(at + 1)]).into_iter().flatten().flatten();
            near.filter_map(|index| sizes.get(index).copied()).collect::<Vec<_>>()
        };
        let row = beside(&self.receives, cell.receive)
            .into_iter()
            .map(|receive| Cell { receive, ..cell });
        let column = beside(&self.sends, cell.send).into_iter().map(|send| Cell { send, ..cell });
        row.chain(column).filter_map(|cell| self.cells.get(&cell)).collect()
    }
}

/// Minimum number of uncontended runs of a cell. With fewer, its contended runs are also used.
const FEWEST_FAIR: usize = 3;

/// Returns the uncontended runs of a cell, or all of its runs if too few are uncontended. Each run
/// is paired with its position in the order of all runs of the sweep.
fn fair<'a>(runs: &[(usize, &'a RunRecord)]) -> Vec<(usize, &'a RunRecord)> {
    if has_too_few_fair(runs) {
        return runs.to_vec();
    }
    runs.iter().filter(|(_, run)| !is_contended(run)).copied().collect()
}

/// Are so few runs of the cell uncontended that its contended runs must also be used? They are if
/// fewer than [`FEWEST_FAIR`] runs are uncontended, and at least one is contended.
fn has_too_few_fair(runs: &[(usize, &RunRecord)]) -> bool {
    let fair = runs.iter().filter(|(_, run)| !is_contended(run)).count();
    fair < FEWEST_FAIR.min(runs.len())
}

fn is_contended(run: &RunRecord) -> bool {
    run.counters.contended_share().is_some_and(|share| share > CONTENDED_SHARE)
}

impl Rates {
    /// Computes the rates of each cell, and corrects them for epochs if there are any. `cells`
    /// contains, for each cell, the runs to use. Each run is paired with its position in the order
    /// of all runs of the sweep.
    fn of(cells: &[Vec<(usize, &RunRecord)>]) -> Self {
        let log_rate = |run: &RunRecord| logarithm(run.bytes_per_second);
        let mut in_time: Vec<(usize, Observation)> = cells
            .iter()
            .enumerate()
            .flat_map(|(cell, runs)| {
                runs.iter()
                    .map(move |&(at, run)| (at, Observation { cell, log_rate: log_rate(run) }))
            })
            .collect();
        in_time.sort_by_key(|&(at, _)| at);
        let observations: Vec<Observation> = in_time.into_iter().map(|(_, run)| run).collect();
        let Some(epochs) = Epochs::of(&observations) else {
            let raw = |runs: &Vec<(usize, &RunRecord)>| {
                runs.iter().map(|(_, run)| run.bytes_per_second).collect()
            };
            return Self { of_cells: cells.iter().map(raw).collect(), epochs: None };
        };
        let mut of_cells = vec![Vec::new(); cells.len()];
        for (number, &run) in observations.iter().enumerate() {
            of_cells[run.cell].push(epochs.corrected(number, run).exp());
        }
        Self { of_cells, epochs: Some(epochs) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::names;
    use linerate_evidence::sample_data::{noise, records, small_design, square_design};

    #[test]
    fn each_cell_has_the_median_of_its_runs() {
        let design = small_design();
        let runs = records(&design, |cell, repeat| {
            f64::from(cell.send.packets().unwrap() * 10 + cell.receive.packets().unwrap() + repeat)
                * 1e3
        });
        let table = Table::new(&design, &runs);
        let medians: Vec<f64> =
            table.iter().map(|summary| (summary.median() / 100.0).round()).collect();
        assert_eq!(medians, [115.0, 125.0, 215.0, 225.0]);
        assert_eq!(table.diagonal().len(), 2);
    }

    #[test]
    fn any_seed_is_valid() {
        let design = Design { seed: u64::MAX, ..square_design(4) };
        let runs = records(&design, |_, _| 1e6);
        assert!(!findings_of_runs(&design, &runs, crate::findings::findings).is_empty());
    }

    #[test]
    fn an_epoch_of_the_machine_is_subtracted() {
        let design = Design { repeat: 16.try_into().unwrap(), ..square_design(4) };
        let rate = |cell: Cell, repeat| 1e6 * noise(cell, repeat, 0.01);
        let mut runs = records(&design, rate);
        let epoch = runs.len() / 2..runs.len() * 3 / 4;
        runs[epoch].iter_mut().for_each(|run| run.bytes_per_second *= 0.4);
        // A quarter of the runs is in an epoch with 0.4 times the usual speed. The geometric mean
        // of the speeds of all runs is therefore 0.4^¼ of the usual speed. Corrected rates refer to
        // this mean speed.
        let mean = 1e6 * 0.4_f64.powf(0.25);
        let table = Table::new(&design, &runs);
        let epochs = table.epochs().unwrap();
        assert!(epochs.before.lag_1 > 0.5 && epochs.after.deviation < 0.02, "{epochs:?}");
        for cell in table.iter() {
            assert!((cell.median() / mean - 1.0).abs() < 0.02, "{} {mean}", cell.median());
            let width = cell.interval.high - cell.interval.low;
            assert!(width < 0.05 * mean, "{:?}", cell.interval);
        }
        assert_eq!(Table::new(&design, &records(&design, rate)).epochs(), None);
    }

    #[test]
    fn contended_runs_are_left_out_where_enough_others_remain() {
        let design = Design { repeat: 6.try_into().unwrap(), ..square_design(2) };
        let mut runs = records(&design, |_, repeat| if repeat < 3 { 1e6 } else { 1e5 });
        for run in runs.iter_mut().filter(|run| run.repeat >= 3) {
            run.counters.sender.set(names::THREAD_MICROS, 1_000);
            run.counters.sender.set(names::CPU_WAIT_MICROS, 900);
        }
        let table = Table::new(&design, &runs);
        assert_eq!((table.left_out(), table.contended_cells()), (12, 0));
        assert!(table.iter().all(|cell| (cell.median() / 1e6 - 1.0).abs() < 1e-6));
        assert!(table.iter().all(|cell| cell.runs.len() == 6));
        for run in runs.iter_mut().filter(|run| run.repeat == 0) {
            run.counters.sender.set(names::THREAD_MICROS, 1_000);
            run.counters.sender.set(names::CPU_WAIT_MICROS, 900);
        }
        let table = Table::new(&design, &runs);
        assert_eq!(table.left_out(), 0, "two fair runs are too few");
        assert_eq!(table.contended_cells(), 4);
    }

    #[test]
    fn neighbours_are_in_the_row_and_the_column() {
        let design = square_design(3);
        let runs = records(&design, |_, _| 1e6);
        let table = Table::new(&design, &runs);
        let counts: Vec<usize> =
            table.iter().map(|summary| table.neighbours(summary.cell).len()).collect();
        assert_eq!(counts, [2, 3, 2, 3, 4, 3, 2, 3, 2]);
        assert_eq!(table.lines().len(), 7);
    }
}
