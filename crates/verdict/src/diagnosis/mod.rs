//! The diagnosis of one path: a search for the factor that limits its throughput.
//!
//! An intervention is a deliberate change of one property of the path for one run.
//! [`Diagnosis::next_run`] returns the runs to make one by one, and [`Diagnosis::add`] takes their
//! evidence. The first run has no intervention, and its counters give each rule of [`rules`] a
//! score. The interventions that the rules with the highest scores need are then tried. Between
//! them, runs without intervention are repeated; the spread of their rates determines the
//! uncertainty of every effect.
//!
//! A limit is named only if the counters fit its rule, no intervention refutes it, and no other
//! limit fits about as well. Interventions must also confirm the limit, unless its rule accepts
//! counters alone as proof.

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
