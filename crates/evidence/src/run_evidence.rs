//! The measurements of one run at both ends, from which a diagnosis derives what limits a path.

use crate::change::Change;
use crate::end_evidence::EndEvidence;
use serde::{Deserialize, Serialize};

/// The measurements of one run at both ends, from which a diagnosis derives what limits a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The intervention of this run: a deliberate change of the path or of one of its ends. `None`
    /// for a run without an intervention.
    pub change: Option<Change>,
    /// Throughput between the programs at both ends, in bytes per second, during the observed part
    /// of the run. This part normally begins after slow start.
    pub bytes_per_second: f64,
    /// Measurements at the sending end.
    pub sender: EndEvidence,
    /// Measurements at the receiving end; empty if that end cannot be observed.
    pub receiver: EndEvidence,
    /// The bit rate of the link in bits per second, from its driver or from the simulated scenario;
    /// `None` if it is unknown.
    pub link_bits_per_second: Option<f64>,
    /// The bit rate that data and framing occupy on the link, in bits per second; `None` if it is
    /// unknown. In the simulator, it includes the data of other transfers over this link.
    pub wire_bits_per_second: Option<f64>,
}
