//! Findings about a sweep, and the diagnosis of what limits a path.
//!
//! Every function is pure and depends only on [`linerate_evidence`] types: records of runs give a
//! [`Table`] and [`Finding`]s, evidence of runs gives a [`diagnosis::Verdict`]. No engine, file or
//! clock is involved, so tests use made-up numbers.

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
