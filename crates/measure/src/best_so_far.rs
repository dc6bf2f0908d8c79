//! The cell with the highest median rate so far, which is kept up to date while a sweep is running.

use crate::store::Store;
use linerate_evidence::Cell;
use linerate_evidence::stats::Sample;
use std::collections::BTreeMap;

/// The rates of all completed runs of a sweep, and the cell whose median rate is highest.
#[derive(Default)]
pub(crate) struct BestSoFar {
    /// Rates of the completed runs of each cell, in bytes per second.
    rates: BTreeMap<Cell, Vec<f64>>,
    /// The best cell and its median rate in bytes per second; `None` before the first run.
    best: Option<(Cell, f64)>,
}

impl BestSoFar {
    /// Collects the rates of the completed runs in `store`, and finds the best cell.
    pub(crate) fn of(store: &Store) -> Self {
        let mut best = Self::default();
        for run in store.runs() {
            best.note(run.cell(), run.bytes_per_second);
        }
        best
    }

    /// Adds the rate of a completed run of `cell`, in bytes per second.
    pub(crate) fn note(&mut self, cell: Cell, rate: f64) {
        self.rates.entry(cell).or_default().push(rate);
        let Some(median) = self.median(cell) else { return };
        match self.best {
            Some((best, rate)) if best != cell && median <= rate => {}
            // This run belongs to the best cell, and has lowered the median of that cell. Another
            // cell may now have the highest median, so all medians are compared.
            Some((best, rate)) if best == cell && median < rate => self.best = self.search(),
            _ => self.best = Some((cell, median)),
        }
    }

    /// Returns the cell with the highest median rate, and this median in bytes per second. Returns
    /// `None` before the first run.
    pub(crate) const fn best(&self) -> Option<(Cell, f64)> {
        self.best
    }

    /// Compares the medians of all cells. Returns the cell with the highest median, and this median
    /// in bytes per second; `None` before the first run.
    fn search(&self) -> Option<(Cell, f64)> {
        let medians = self.rates.keys().filter_map(|&cell| Some((cell, self.median(cell)?)));
        medians.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Returns the median rate of `cell` in bytes per second; `None` if the cell has no runs.
    fn median(&self, cell: Cell) -> Option<f64> {
        Some(Sample::new(self.rates.get(&cell)?.clone())?.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::BufferList;

    #[test]
    fn the_best_cell_has_the_highest_median_which_may_fall() {
        let cell = |packets: &str| {
            let list: BufferList = packets.parse().unwrap();
            Cell { send: list.sizes()[0], receive: list.sizes()[0] }
        };
        let mut best = BestSoFar::default();
        for (packets, rate, expected) in [
            ("1", 5.0, ("1", 5.0)),
            ("2", 4.0, ("1", 5.0)),
            ("1", 1.0, ("2", 4.0)),
            ("2", 8.0, ("2", 6.0)),
        ] {
            best.note(cell(packets), rate);
            assert_eq!(best.best, Some((cell(expected.0), expected.1)));
        }
    }
}
