//! What the table means, in sentences. Each file asks one question of it.

mod best;
mod drift;
mod finding;
mod notch;
mod quality;
mod ridge;
mod saturation;
mod timer;

pub use finding::{CellName, Finding, FindingKind};

use crate::plan::Plan;
use crate::run::RunRecord;
use crate::store::Start;
use crate::table::Table;

/// What the questions are asked of.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) start: &'a Start,
    pub(crate) runs: &'a [RunRecord],
    pub(crate) table: &'a Table<'a>,
}

/// All findings: what was learned first, then what to keep in mind about it.
pub(crate) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let questions: [fn(&Evidence<'_>) -> Vec<Finding>; 7] = [
        best::findings,
        ridge::findings,
        saturation::findings,
        notch::findings,
        timer::findings,
        drift::findings,
        quality::findings,
    ];
    questions.iter().flat_map(|question| question(evidence)).collect()
}
