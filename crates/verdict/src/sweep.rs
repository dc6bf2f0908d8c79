//! A sweep as the input of the functions that derive findings.

use crate::table::Table;
use linerate_evidence::{Design, RunRecord, Start};

/// A sweep from which findings are derived: its design, the facts about machine and bench, the
/// completed runs, and their results as a table.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The experimental design: which cells were to be measured, how often and in which order.
    pub design: &'a Design,
    /// The data that was recorded before the first run: the facts about machine and bench, and the
    /// maximum throughput.
    pub start: &'a Start,
    /// The completed runs, in the order in which they were made.
    pub runs: &'a [RunRecord],
    /// The results of `runs`, grouped by cell.
    pub table: &'a Table<'a>,
}
