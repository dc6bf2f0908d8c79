//! The facts and the maximum that are recorded before the first run of a sweep.

use crate::facts::Facts;
use crate::maximum::Maximum;
use serde::{Deserialize, Serialize};

/// The facts and the maximum that are recorded before the first run: the content of `facts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The machine, the versions and the bench.
    pub facts: Facts,
    /// The throughput that reports call 100 %.
    pub maximum: Maximum,
}
