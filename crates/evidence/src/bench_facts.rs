//! Facts about a bench, the part of the laboratory that makes the runs of a sweep.

use crate::framing::Framing;
use crate::line_rate::LineRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Properties of a bench that are the same for all runs of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchFacts {
    /// A sentence for the report: which TCP runs at each end, and which link connects them.
    pub description: String,
    /// Payload bytes of a full segment, without the TCP options that every segment carries.
    pub segment_payload: u32,
    /// Bytes on the wire in addition to the payload.
    pub framing: Framing,
    /// The bit rate of the link, if its driver reports one.
    pub line_rate: Option<LineRate>,
    /// Everything else that affects throughput: congestion control in force, kernel limits, …
    pub settings: BTreeMap<String, String>,
}
