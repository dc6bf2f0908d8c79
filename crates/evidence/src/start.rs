//! Facts that are established before the first run of a sweep.

use crate::facts::Facts;
use crate::maximum::Maximum;
use serde::{Deserialize, Serialize};

/// Facts that are established before the first run of a sweep: the content of `facts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The machine, the program versions and the bench.
    pub facts: Facts,
    /// The rate that the report calls 100 %.
    pub maximum: Maximum,
}
