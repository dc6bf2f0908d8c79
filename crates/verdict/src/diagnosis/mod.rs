//! The limit of one path: evidence of runs in, hypotheses, interventions to try, and a verdict out.
//!
//! [`Diagnosis`] asks for runs one by one ([`Diagnosis::next_run`]) and takes their evidence. The
//! plain transfer gives each rule of [`rules`] a score. The interventions of the best rules are
//! then tried in alternation with further plain transfers, whose spread is the uncertainty of every
//! effect. A limit is named only if its rule fits, an intervention confirms it, none refutes it,
//! and no other limit fits as well.

mod contention;
mod effect;
mod figure;

mod limit;
pub mod rules;
mod session;
mod surface;
#[cfg(test)]
mod tests;
mod verdict;

pub use contention::{CONTENDED_SHARE, contention};
pub use effect::{Effect, Expectation, Losses, Outcome};
pub use figure::{End, Figure};
pub use limit::Limit;
pub use rules::{Bound, Condition, Proof, Rule};
pub use session::{Diagnosis, NextRun};
pub(crate) use surface::limit as limit_of_cell;
pub use verdict::{EvidenceLine, InterventionLine, Verdict};
