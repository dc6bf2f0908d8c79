//! The data that a sweep records before its first run: facts and the maximum throughput.

use crate::facts::Facts;
use crate::maximum::Maximum;
use serde::{Deserialize, Serialize};

/// The data that a sweep records before its first run. It is the content of `facts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Facts about the machine, the software versions and the bench.
    pub facts: Facts,
    /// The throughput that reports of this sweep call 100 %.
    pub maximum: Maximum,
}
