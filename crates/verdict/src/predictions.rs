//! Predictions of the cells that a sweep with a time budget did not measure.

use crate::sweep::Sweep;
use linerate_evidence::stats::{
    Prediction, Surface, SurfaceModel, SurfacePoint, SurfaceScore, as_f64,
};
use linerate_evidence::{BufferSize, Cell};

/// The predictions of all unmeasured cells of a sweep, with the model that predicts them.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// The fitted parameters of the model.
    pub model: SurfaceModel,
    /// The accuracy of the model, measured by predicting each measured cell from other measured
    /// cells. `None` if too few cells were measured.
    pub score: Option<SurfaceScore>,
    /// The cells that were not measured, in row-major order.
    pub cells: Vec<PredictedCell>,
}

/// The prediction for a cell that was not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedCell {
    /// The send and receive buffer sizes of the cell.
    pub cell: Cell,
    /// The predicted rate and its interval, in bytes per second.
    pub prediction: Prediction,
}

impl Predictions {
    /// Predicts the unmeasured cells of `sweep`. Returns `None` if the sweep has no time budget, if
    /// there are no unmeasured cells, or if too few cells were measured.
    #[must_use]
    pub fn of(sweep: &Sweep<'_>) -> Option<Self> {
        sweep.design.budget?;
        let payload = sweep.start.facts.bench.segment_payload;
        let bytes = |size: BufferSize| as_f64(size.bytes(payload).max(1));
        let points: Vec<SurfacePoint> = sweep
            .table
            .iter()
            .map(|measured| SurfacePoint {
                send: bytes(measured.cell.send),
                receive: bytes(measured.cell.receive),
                rate: measured.median(),
            })
            .collect();
        let is_missing = |cell: &Cell| sweep.table.get(cell.send, cell.receive).is_none();
        let missing: Vec<Cell> = sweep.design.cells().into_iter().filter(is_missing).collect();
        if missing.is_empty() {
            return None;
        }
        let noise = sweep.table.repeat_noise();
        let surface = Surface::fit(&points, noise)?;
        let predict = |cell: Cell| {
            let prediction = surface.predict(bytes(cell.send), bytes(cell.receive));
            PredictedCell { cell, prediction }
        };
        Some(Self {
            model: *surface.model(),
            score: Surface::score(&points, noise),
            cells: missing.into_iter().map(predict).collect(),
        })
    }

    /// Returns the prediction for the cell with these buffers; `None` if the cell was measured or
    /// is not in the design.
    #[must_use]
    pub fn get(&self, send: BufferSize, receive: BufferSize) -> Option<&PredictedCell> {
        // The binary search relies on the order of `cells`. It is ascending, because a design lists
        // its cells in ascending order.
        let found = self.cells.binary_search_by_key(&Cell { send, receive }, |one| one.cell);
        self.cells.get(found.ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records, square_design, start};
    use linerate_units::Duration;

    #[test]
    fn cells_that_were_not_measured_are_predicted_with_intervals() {
        let rate =
            |cell: Cell| 1e6 * f64::from(cell.send.min(cell.receive).packets().unwrap().min(5));
        let design = square_design(8);
        let runs = records(&design, |cell, repeat| rate(cell) * noise(cell, repeat, 0.02));
        let runs: Vec<_> = runs.into_iter().take(90).collect();
        let (start, table) = (start(), Table::new(&design, &runs));
        let of = |design: &Design| {
            Predictions::of(&Sweep { design, start: &start, runs: &runs, table: &table })
        };
        assert!(of(&design).is_none(), "an interrupted sweep predicts nothing");
        let budget = Some(Duration::from_secs(60));
        let predictions = of(&Design { budget, ..design.clone() }).unwrap();
        assert_eq!(predictions.cells.len() + table.iter().count(), 64);
        for PredictedCell { cell, prediction } in &predictions.cells {
            let error = prediction.rate / rate(*cell) - 1.0;
            assert!(error.abs() < 0.2, "{cell:?} {prediction:?}");
            assert!(prediction.low < prediction.rate && prediction.rate < prediction.high);
        }
        let score = predictions.score.unwrap();
        assert!(score.within * 10 >= score.cells * 8, "{score:?}");
    }
}
