//! The diagnosis of one path: a search for the factor that limits its throughput.
//!
//! An intervention is a deliberate change of one property of the path for a run.
//! [`Diagnosis::next_run`] returns the runs to make one by one, and [`Diagnosis::add`] takes their
//! evidence. The first run has no intervention, and its counters give each rule of [`rules`] a
//! score. The interventions of the best rules are then tried, in alternation with further runs
//! without intervention. The spread of the runs without intervention determines the uncertainty of
//! every effect.
//!
//! A limit is named only if its rule fits, no intervention refutes it, and no other limit fits as
//! well. Interventions must also confirm the limit, unless counters suffice as its proof.

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
