//! The runs by cell: rows of send buffers, columns of receive buffers.

use crate::buffers::BufferSize;
use crate::plan::Plan;
use crate::run::RunRecord;
use crate::stats::{Interval, Sample, interval};
use crate::sweep::{Cell, schedule};
use std::collections::BTreeMap;

/// What varies along the diagonal, along a row, along a column.
pub(crate) const ALONG_DIAGONAL: &str = "both buffers";
pub(crate) const ALONG_ROW: &str = "receive buffers";
pub(crate) const ALONG_COLUMN: &str = "send buffers";

/// What is known of each cell.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    sends: Vec<BufferSize>,
    receives: Vec<BufferSize>,
    cells: BTreeMap<Cell, CellSummary<'a>>,
}

/// What is known of one cell.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    /// The buffers.
    pub cell: Cell,
    /// The rates of its runs, in bytes per second.
    pub rates: Sample,
    /// Where the median of the rates may be.
    pub interval: Interval,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<&'a RunRecord>,
}

impl CellSummary<'_> {
    /// The median of the rates, in bytes per second.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.rates.median()
    }

    /// The sum, over all runs and both ends, of what was counted under `name`; `None` if nobody
    /// counts it.
    #[must_use]
    pub fn counted(&self, name: &str) -> Option<u64> {
        let ends = self.runs.iter().flat_map(|run| [&run.counters.sender, &run.counters.receiver]);
        ends.filter_map(|end| end.get(name)).reduce(u64::saturating_add)
    }
}

impl<'a> Table<'a> {
    /// The table of `runs`, which are the first of the plan's schedule.
    #[must_use]
    pub fn new(plan: &Plan, runs: &'a [RunRecord]) -> Self {
        let mut by_cell = BTreeMap::<Cell, Vec<&RunRecord>>::new();
        for (planned, run) in schedule(plan).iter().zip(runs) {
            by_cell.entry(planned.cell).or_default().push(run);
        }
        let cells = by_cell.into_iter().zip(0..).filter_map(|((cell, runs), number)| {
            let rates = Sample::new(runs.iter().map(|run| run.bytes_per_second).collect())?;
            let interval =
                interval(&[&rates], plan.seed.wrapping_add(number), |medians| medians[0]);
            Some((cell, CellSummary { cell, rates, interval, runs }))
        });
        Self {
            sends: plan.send_buffers.sizes().to_vec(),
            receives: plan.receive_buffers.sizes().to_vec(),
            cells: cells.collect(),
        }
    }

    /// The sender's buffers, smallest first.
    #[must_use]
    pub fn sends(&self) -> &[BufferSize] {
        &self.sends
    }

    /// The receiver's buffers, smallest first.
    #[must_use]
    pub fn receives(&self) -> &[BufferSize] {
        &self.receives
    }

    /// One cell, if it has been measured.
    #[must_use]
    pub fn get(&self, send: BufferSize, receive: BufferSize) -> Option<&CellSummary<'a>> {
        self.cells.get(&Cell { send, receive })
    }

    /// All cells, row by row.
    pub fn iter(&self) -> impl Iterator<Item = &CellSummary<'a>> {
        self.cells.values()
    }

    /// The cells whose buffers are equal, smallest first.
    #[must_use]
    pub fn diagonal(&self) -> Vec<&CellSummary<'a>> {
        self.iter().filter(|summary| summary.cell.send == summary.cell.receive).collect()
    }

    /// Lines of cells that lie side by side: the diagonal, each row, each column, with what
    /// varies along them.
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

    /// The cells next to `cell` in its row and in its column.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Draft;
    use crate::testing::{findings_of_runs, made_up_runs, small_plan, square_plan};

    #[test]
    fn each_cell_has_the_median_of_its_runs() {
        let plan = small_plan();
        let runs = made_up_runs(&plan, |cell, repeat| {
            f64::from(cell.send.packets().unwrap() * 10 + cell.receive.packets().unwrap() + repeat)
                * 1e3
        });
        let table = Table::new(&plan, &runs);
        let medians: Vec<f64> =
            table.iter().map(|summary| (summary.median() / 100.0).round()).collect();
        assert_eq!(medians, [115.0, 125.0, 215.0, 225.0]);
        assert_eq!(table.diagonal().len(), 2);
    }

    #[test]
    fn any_seed_will_do() {
        let plan = Plan::new(Draft { seed: u64::MAX, ..square_plan(4).into() }).unwrap();
        let runs = made_up_runs(&plan, |_, _| 1e6);
        assert!(!findings_of_runs(&plan, &runs, crate::diagnose::findings).is_empty());
    }

    #[test]
    fn neighbours_are_beside_above_and_below() {
        let plan = square_plan(3);
        let runs = made_up_runs(&plan, |_, _| 1e6);
        let table = Table::new(&plan, &runs);
        let counts: Vec<usize> =
            table.iter().map(|summary| table.neighbours(summary.cell).len()).collect();
        assert_eq!(counts, [2, 3, 2, 3, 4, 3, 2, 3, 2]);
        assert_eq!(table.lines().len(), 7);
    }
}
