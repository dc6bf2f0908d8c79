//! Evidence about one run: what both ends have measured, and the change that the run made.

use crate::change::Change;
use crate::end_evidence::EndEvidence;
use serde::{Deserialize, Serialize};

/// Evidence about one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The change against the plain transfer; `None` for the plain transfer itself.
    pub change: Option<Change>,
    /// Throughput from task to task in the observed part, in bytes per second.
    pub bytes_per_second: f64,
    /// The sending end.
    pub sender: EndEvidence,
    /// The receiving end; empty if it cannot be observed.
    pub receiver: EndEvidence,
    /// The bit rate of the link, from its driver or its description.
    pub link_bits_per_second: Option<f64>,
    /// The bit rate on the link, framing included.
    pub wire_bits_per_second: Option<f64>,
}
