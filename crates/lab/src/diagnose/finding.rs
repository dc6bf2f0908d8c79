//! One answer, in words and in figures.

use crate::bench::names;
use crate::sweep::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Which cell is the best one?
    Best,
    /// Is the best where both buffers are equal?
    Ridge,
    /// From which buffer on does a larger one gain nothing?
    Saturation,
    /// Which cells are below what their neighbours say?
    Notch,
    /// Which cells wait for a timer, or for something else that their neighbours do not wait for?
    Limited,
    /// Which timers went off?
    Timers,
    /// Did the machine change in the course of the sweep?
    Drift,
    /// Which runs did not end by themselves?
    CutShort,
    /// Were the bytes the right ones?
    Verified,
    /// Were the buffers granted as asked for?
    Granted,
    /// Is something about the measurement itself to be kept in mind?
    Caution,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was asked.
    pub kind: FindingKind,
    /// The answer in a sentence.
    pub text: String,
    /// The cells it is about, if it is about some.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellName>,
    /// The figures that it rests on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub figures: BTreeMap<String, f64>,
}

/// A cell in a file: packets where the plan counts in packets, else bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellName {
    /// The sender's buffer in packets.
    pub send_packets: Option<u32>,
    /// The receiver's buffer in packets.
    pub receive_packets: Option<u32>,
    /// The sender's buffer in bytes.
    pub send_bytes: u64,
    /// The receiver's buffer in bytes.
    pub receive_bytes: u64,
}

impl CellName {
    /// The name of `cell` where full segments carry `payload` bytes.
    #[must_use]
    pub fn new(cell: Cell, payload: u32) -> Self {
        Self {
            send_packets: cell.send.packets(),
            receive_packets: cell.receive.packets(),
            send_bytes: cell.send.bytes(payload),
            receive_bytes: cell.receive.bytes(payload),
        }
    }
}

impl Finding {
    /// An answer that is only a sentence.
    pub(crate) fn new(kind: FindingKind, text: String) -> Self {
        Self { kind, text, cells: Vec::new(), figures: BTreeMap::new() }
    }

    /// The same, about `cells`.
    pub(crate) fn about(mut self, cells: impl IntoIterator<Item = Cell>, payload: u32) -> Self {
        self.cells.extend(cells.into_iter().map(|cell| CellName::new(cell, payload)));
        self
    }

    /// The same, resting on one more figure.
    pub(crate) fn with(mut self, name: &str, figure: f64) -> Self {
        self.figures.insert(name.to_owned(), figure);
        self
    }
}

/// The counters of timers, and what a person calls an event of each.
pub(crate) const TIMERS: [(&str, &str); 4] = [
    (names::RETRANSMISSION_TIMEOUTS, "retransmission timeout"),
    (names::DELAYED_ACK_TIMEOUTS, "delayed-ACK timeout"),
    (names::ZERO_WINDOW_PROBES, "zero-window probe"),
    (names::SMALL_WINDOW_TIMEOUTS, "small-window timeout"),
];
