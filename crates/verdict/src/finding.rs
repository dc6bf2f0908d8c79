//! A finding about a sweep, as a sentence and as figures.

use linerate_evidence::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The question about a sweep that a finding answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Which buffers or other factors limit the cells.
    Limits,
    /// Which cells were predicted, because the time budget did not suffice to measure them.
    Predicted,
    /// Which cell has the highest throughput.
    Best,
    /// Whether throughput is highest where both buffers are equal.
    Ridge,
    /// From which buffer size on a larger buffer gains almost nothing.
    Saturation,
    /// Which cells are slower than their neighbours predict.
    Notch,
    /// Which cells wait for a timer, or are slow for another reason that does not affect their
    /// neighbours.
    Limited,
    /// Which timers expired, and how often.
    Timers,
    /// Whether other programs occupied the processors so often that no finding is possible.
    Contended,
    /// Whether the intervals of the cells are narrow enough, and if not, what prevented it.
    Precision,
    /// Whether the speed of the machine changed in the course of the sweep.
    Drift,
    /// Which slow changes of the machine's speed have been subtracted from the rates.
    Epochs,
    /// Which runs were cut short by the time limit.
    CutShort,
    /// Whether all received bytes were correct.
    Verified,
    /// Whether the kernel granted the requested buffer sizes.
    Granted,
    /// Any other restriction of the measurement's validity.
    Caution,
}

/// An answer to one question about a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question that the finding answers.
    pub kind: FindingKind,
    /// The finding, as a sentence.
    pub text: String,
    /// The cells to which the finding refers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellName>,
    /// The figures that support the finding, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub figures: BTreeMap<String, f64>,
}

/// The name of a cell in a result file: in bytes, and in packets if the plan counts in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellName {
    /// The sender's buffer in packets; `None` if the plan counts in bytes.
    pub send_packets: Option<u32>,
    /// The receiver's buffer in packets; `None` if the plan counts in bytes.
    pub receive_packets: Option<u32>,
    /// The sender's buffer in bytes.
    pub send_bytes: u64,
    /// The receiver's buffer in bytes.
    pub receive_bytes: u64,
}

impl CellName {
    /// Creates the name of `cell`. A packet has `payload` bytes of data.
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
    /// Creates a finding without cells and figures.
    pub(crate) fn new(kind: FindingKind, text: String) -> Self {
        Self { kind, text, cells: Vec::new(), figures: BTreeMap::new() }
    }

    /// Adds the cells to which the finding refers.
    pub(crate) fn about(mut self, cells: impl IntoIterator<Item = Cell>, payload: u32) -> Self {
        self.cells.extend(cells.into_iter().map(|cell| CellName::new(cell, payload)));
        self
    }

    /// Adds a figure that supports the finding.
    pub(crate) fn with(mut self, name: &str, figure: f64) -> Self {
        self.figures.insert(name.to_owned(), figure);
        self
    }
}
