//! The table of cells: a row for each send buffer, a column for each receive buffer.

use linerate_evidence::BufferSize;
use linerate_evidence::Design;
use linerate_evidence::RunRecord;
use linerate_evidence::stats::{Interval, Sample, interval};
use linerate_evidence::{Cell, schedule};
use std::collections::BTreeMap;

/// Names of the sizes that vary along the diagonal, a row and a column.
pub(crate) const ALONG_DIAGONAL: &str = "both buffers";
pub(crate) const ALONG_ROW: &str = "receive buffers";
pub(crate) const ALONG_COLUMN: &str = "send buffers";

/// The summaries of all measured cells.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    sends: Vec<BufferSize>,
    receives: Vec<BufferSize>,
    cells: BTreeMap<Cell, CellSummary<'a>>,
}

/// The summary of a cell.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    /// The buffers.
    pub cell: Cell,
    /// The rates of its runs, in bytes per second.
    pub rates: Sample,
    /// The 95 % interval of the median.
    pub interval: Interval,
    /// Its runs in the order of the schedule.
    pub runs: Vec<&'a RunRecord>,
}

impl CellSummary<'_> {
    /// Returns the median of the rates in bytes per second.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.rates.median()
    }

    /// Returns the sum of a counter over all runs and both ends, or `None` if there is no such
    /// counter.
    #[must_use]
    pub fn counted(&self, name: &str) -> Option<u64> {
        let ends = self.runs.iter().flat_map(|run| [&run.counters.sender, &run.counters.receiver]);
        ends.filter_map(|end| end.get(name)).reduce(u64::saturating_add)
    }
}

impl<'a> Table<'a> {
    /// Creates the table of `runs`, the first runs of the design's schedule.
    #[must_use]
    pub fn new(design: &Design, runs: &'a [RunRecord]) -> Self {
        let mut by_cell = BTreeMap::<Cell, Vec<&RunRecord>>::new();
        for (planned, run) in schedule(design).iter().zip(runs) {
            by_cell.entry(planned.cell).or_default().push(run);
        }
        let cells = by_cell.into_iter().zip(0..).filter_map(|((cell, runs), number)| {
            let rates = Sample::new(runs.iter().map(|run| run.bytes_per_second).collect())?;
            let interval =
                interval(&[&rates], design.seed.wrapping_add(number), |medians| medians[0]);
            Some((cell, CellSummary { cell, rates, interval, runs }))
        });
        Self {
            sends: design.send_buffers.sizes().to_vec(),
            receives: design.receive_buffers.sizes().to_vec(),
            cells: cells.collect(),
        }
    }

    /// Returns the sender's buffers, smallest first.
    #[must_use]
    pub fn sends(&self) -> &[BufferSize] {
        &self.sends
    }

    /// Returns the receiver's buffers, smallest first.
    #[must_use]
    pub fn receives(&self) -> &[BufferSize] {
        &self.receives
    }

    /// Returns a cell, if it was measured.
    #[must_use]
    pub fn get(&self, send: BufferSize, receive: BufferSize) -> Option<&CellSummary<'a>> {
        self.cells.get(&Cell { send, receive })
    }

    /// Returns all cells, row by row.
    pub fn iter(&self) -> impl Iterator<Item = &CellSummary<'a>> {
        self.cells.values()
    }

    /// Returns the cells with equal buffers, smallest first.
    #[must_use]
    pub fn diagonal(&self) -> Vec<&CellSummary<'a>> {
        self.iter().filter(|summary| summary.cell.send == summary.cell.receive).collect()
    }

    /// Returns lines of adjacent cells (the diagonal, each row, each column) with the name of the
    /// varying size.
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

    /// Returns the cells next to `cell` in its row and its column.
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
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::sample_data::{records, small_design, square_design};

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
