//! The input of findings.

use crate::table::Table;
use linerate_evidence::{Design, RunRecord, Start};

/// The input of findings: the design, the facts, the runs, and the table of their rates.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The experimental design.
    pub design: &'a Design,
    /// The facts and the maximum that were established before the first run.
    pub start: &'a Start,
    /// The runs that were made, the first of the design's schedule.
    pub runs: &'a [RunRecord],
    /// The runs by cell.
    pub table: &'a Table<'a>,
}
