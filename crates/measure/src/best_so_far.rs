//! The cell with the highest median rate during a sweep.

use crate::store::Store;
use linerate_evidence::Cell;
use linerate_evidence::stats::Sample;
use std::collections::BTreeMap;

/// The cell with the highest median rate of the runs so far.
#[derive(Default)]
pub(crate) struct BestSoFar {
    rates: BTreeMap<Cell, Vec<f64>>,
    best: Option<(Cell, f64)>,
}

impl BestSoFar {
    pub(crate) fn of(store: &Store) -> Self {
        let mut best = Self::default();
        for run in store.runs() {
            best.note(run.cell(), run.bytes_per_second);
        }
        best
    }

    pub(crate) fn note(&mut self, cell: Cell, rate: f64) {
        self.rates.entry(cell).or_default().push(rate);
        let Some(median) = self.median(cell) else { return };
        match self.best {
            Some((best, rate)) if best != cell && median <= rate => {}
            // The median of the best cell has fallen, and may now be below the median of another
            // cell.
            Some((best, rate)) if best == cell && median < rate => self.best = self.search(),
            _ => self.best = Some((cell, median)),
        }
    }

    /// Returns the best cell, and its median rate in bytes per second.
    pub(crate) const fn best(&self) -> Option<(Cell, f64)> {
        self.best
    }

    fn search(&self) -> Option<(Cell, f64)> {
        let medians = self.rates.keys().filter_map(|&cell| Some((cell, self.median(cell)?)));
        medians.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

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
