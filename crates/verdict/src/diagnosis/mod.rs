//! The diagnosis of one path: what limits its throughput, proved by interventions.
//!
//! [`Diagnosis`] asks for runs one by one ([`Diagnosis::next_run`]) and takes their evidence. The
//! first run has no intervention; its counters give each rule of [`rules`] a score. The
//! interventions of the best rules are then tried, in alternation with further runs without
//! intervention. The spread of these runs is the uncertainty of every effect. A limit is named only
//! if its rule fits, an intervention confirms it, none refutes it, and no other limit fits as well.

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
