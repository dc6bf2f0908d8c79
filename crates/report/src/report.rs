//! The report of a sweep, from which all output formats are made.

use linerate_evidence::stats::Prediction;
use linerate_evidence::{BufferSize, Design, RunRecord, Start};
use linerate_verdict::{
    CellLimit, CellSummary, Finding, FindingKind, Predictions, Sweep, Table, cell_limits, findings,
};

/// The report of a sweep, from which all output formats are made.
#[derive(Debug)]
pub struct Report<'a> {
    pub(crate) design: &'a Design,
    pub(crate) start: &'a Start,
    pub(crate) runs: &'a [RunRecord],
    pub(crate) table: Table<'a>,
    pub(crate) findings: Vec<Finding>,
    /// The limit of each cell; empty if there is no finding about limits.
    pub(crate) limits: Vec<CellLimit>,
    /// Predictions of the cells that a time budget left unmeasured; `None` if there are none.
    pub(crate) predictions: Option<Predictions>,
}

impl<'a> Report<'a> {
    /// Creates the report of a sweep with this design. `runs` are the completed runs, in the order
    /// in which they were made.
    #[must_use]
    pub fn new(design: &'a Design, start: &'a Start, runs: &'a [RunRecord]) -> Self {
        let table = Table::new(design, runs);
        let sweep = Sweep { design, start, runs, table: &table };
        let findings = findings(&sweep);
        let is_surface = findings.iter().any(|finding| finding.kind == FindingKind::Limits);
        let limits = if is_surface { cell_limits(&sweep) } else { Vec::new() };
        let predictions = Predictions::of(&sweep);
        Self { design, start, runs, table, findings, limits, predictions }
    }

    /// Returns the predicted rate of an unmeasured cell; `None` if the cell has no prediction.
    pub(crate) fn predicted(&self, send: BufferSize, receive: BufferSize) -> Option<Prediction> {
        Some(self.predictions.as_ref()?.get(send, receive)?.prediction)
    }

    /// Returns the table of measured cells.
    #[must_use]
    pub const fn table(&self) -> &Table<'a> {
        &self.table
    }

    /// Returns the highest median of any cell in bytes per second, or zero if no run is complete.
    pub(crate) fn best(&self) -> f64 {
        self.table.iter().map(CellSummary::median).fold(0.0, f64::max)
    }

    /// Returns the buffer sizes of both ends in ascending order, without duplicates.
    pub(crate) fn sizes(&self) -> Vec<BufferSize> {
        let mut sizes = [self.table.sends(), self.table.receives()].concat();
        sizes.sort_by_key(|size| size.bytes(self.start.facts.bench.segment_payload));
        sizes.dedup();
        sizes
    }

    /// Returns the findings about the sweep.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of runs in which the received data was compared and was wrong.
    #[must_use]
    pub fn wrong_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.verified == Some(false)).count()
    }
}
