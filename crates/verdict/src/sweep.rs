//! A sweep, as the input of findings.

use crate::table::Table;
use linerate_evidence::{Design, RunRecord, Start};

/// The input of findings: a sweep's design, the machine's facts, the runs, and their table.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The experimental design: which cells were to be measured, how often and in which order.
    pub design: &'a Design,
    /// The facts and the maximum rate that were recorded before the first run.
    pub start: &'a Start,
    /// The completed runs, in the order of the schedule.
    pub runs: &'a [RunRecord],
    /// The runs, grouped by cell.
    pub table: &'a Table<'a>,
}
