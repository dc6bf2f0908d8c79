//! Facts about a bench: the engine and the path on which a sweep makes its runs.

use crate::framing::Framing;
use crate::line_rate::LineRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Properties of a bench (an engine and a path) that are the same for all runs of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchFacts {
    /// A sentence for the report that names the TCP implementation at each end and the link between
    /// the two ends.
    pub description: String,
    /// Number of payload bytes of a full segment. TCP options are not included.
    pub segment_payload: u32,
    /// The framing of packets: how many bytes the headers and the link add to the payload of a
    /// packet.
    pub framing: Framing,
    /// The bit rate of the link; `None` if the link's driver does not report one.
    pub line_rate: Option<LineRate>,
    /// Other settings that affect throughput, by name, such as the congestion control algorithm and
    /// kernel limits.
    pub settings: BTreeMap<String, String>,
}
