//! Findings about a sweep, and the diagnosis of what limits the throughput of a path.
//!
//! A sweep measures TCP transfers with many pairs of socket buffer sizes. A [`Table`] and
//! [`Finding`]s are derived from the records of its runs. A diagnosis observes transfers over one
//! path, and derives a [`diagnosis::Verdict`] from their evidence. Every function is pure. Its
//! arguments are values of this crate and of [`linerate_evidence`], and it uses no engine, file or
//! clock. Tests can therefore use made-up numbers.

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
