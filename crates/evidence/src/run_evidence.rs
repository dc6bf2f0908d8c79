//! The measurements of one run at both ends, for a diagnosis of what limits a path.

use crate::change::Change;
use crate::end_evidence::EndEvidence;
use serde::{Deserialize, Serialize};

/// The measurements of one run at both ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The deliberate change of the path in this run (its intervention); `None` without one.
    pub change: Option<Change>,
    /// Throughput between the programs during the observed part, in bytes per second.
    pub bytes_per_second: f64,
    /// Measurements at the sending end.
    pub sender: EndEvidence,
    /// Measurements at the receiving end; empty if it cannot be observed.
    pub receiver: EndEvidence,
    /// The bit rate of the link, as its driver or its description states.
    pub link_bits_per_second: Option<f64>,
    /// The bit rate that the transfer occupies on the link, including framing.
    pub wire_bits_per_second: Option<f64>,
}
