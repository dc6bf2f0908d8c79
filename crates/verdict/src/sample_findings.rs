//! Functions that derive findings from made-up sweeps, for tests of this crate.

use crate::finding::Finding;
use crate::sweep::Sweep;
use crate::table::Table;
use linerate_evidence::sample_data::{records, square_design, start};
use linerate_evidence::{Cell, Design, RunRecord};

/// Makes up a sweep, and returns the findings that `question` derives from it. `question` is the
/// function `findings` of one module. The send and receive buffers have 1 to `most` packets. `rate`
/// returns the rate of a run in bytes per second, from its cell and the number of its repeat.
pub(crate) fn findings_of(
    most: u32,
    rate: impl Fn(Cell, u32) -> f64,
    question: fn(&Sweep<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    let design = square_design(most);
    findings_of_runs(&design, &records(&design, rate), question)
}

/// Returns the findings that `question` derives from a sweep with the given runs. `question` is the
/// function `findings` of one module.
pub(crate) fn findings_of_runs(
    design: &Design,
    runs: &[RunRecord],
    question: fn(&Sweep<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    question(&Sweep { design, start: &start(), runs, table: &Table::new(design, runs) })
}
