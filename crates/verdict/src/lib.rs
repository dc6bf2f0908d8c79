//! Findings about a sweep, and the limit of a path, derived from the runs alone.
//!
//! Everything here is a pure function of [`linerate_evidence`] types: from records of runs to a
//! [`Table`] and [`Finding`]s, and from evidence of runs to a [`diagnosis::Verdict`]. No engine,
//! file or clock is involved, so a test is a table of numbers.

#![forbid(unsafe_code)]

mod cell_limits;
mod comparison;
pub mod diagnosis;
mod finding;
mod findings;
mod log_ratio;
mod predictions;
#[cfg(test)]
mod sample_findings;
mod sweep;
mod table;

pub use cell_limits::{CellLimit, cell_limits};
pub use comparison::{CellChange, Comparison};
pub use finding::{CellName, Finding, FindingKind};
pub use findings::findings;
pub use predictions::{PredictedCell, Predictions};
pub use sweep::Sweep;
pub use table::{CellSummary, Table};
