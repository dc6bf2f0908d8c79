//! A finding, in words and in figures.

use linerate_evidence::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The question that a finding answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The limits of the cells.
    Limits,
    /// Cells that were predicted, because a time budget did not suffice to measure them.
    Predicted,
    /// The best cell.
    Best,
    /// Whether the best cell has equal buffers.
    Ridge,
    /// The buffer size from which on a larger buffer gains nothing.
    Saturation,
    /// Cells below the rate that their neighbours predict.
    Notch,
    /// Cells that wait for a timer, or for something else that does not delay their neighbours.
    Limited,
    /// The timers that expired.
    Timers,
    /// Whether too many cells were measured only while other programs had the processors.
    Contended,
    /// Whether the intervals of the cells are narrow enough, and if not, what prevented it.
    Precision,
    /// Whether the speed of the machine changed in the course of the sweep.
    Drift,
    /// The slow changes of the machine's speed that are subtracted.
    Epochs,
    /// The runs that were cut short.
    CutShort,
    /// Whether the received bytes were correct.
    Verified,
    /// Whether the buffers were granted as requested.
    Granted,
    /// Anything else that limits the validity of the measurement.
    Caution,
}

/// An answer to a question about a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question that the finding answers.
    pub kind: FindingKind,
    /// The finding, as a sentence.
    pub text: String,
    /// The cells to which the finding refers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellName>,
    /// The figures that support the finding.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub figures: BTreeMap<String, f64>,
}

/// The name of a cell in a file: in packets if the plan counts in packets, and in bytes.
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
    /// Returns the name of `cell` for segments with `payload` bytes.
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
    /// Creates a finding of one sentence.
    pub(crate) fn new(kind: FindingKind, text: String) -> Self {
        Self { kind, text, cells: Vec::new(), figures: BTreeMap::new() }
    }

    /// Adds the cells to which the finding refers.
    pub(crate) fn about(mut self, cells: impl IntoIterator<Item = Cell>, payload: u32) -> Self {
        self.cells.extend(cells.into_iter().map(|cell| CellName::new(cell, payload)));
        self
    }

    /// Adds a figure.
    pub(crate) fn with(mut self, name: &str, figure: f64) -> Self {
        self.figures.insert(name.to_owned(), figure);
        self
    }
}
