//! One finding, in words and in figures.

use linerate_evidence::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The question that a finding answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Limits of the cells.
    Limits,
    /// Which cell is the best one?
    Best,
    /// Is the best where both buffers are equal?
    Ridge,
    /// From which buffer on does a larger one gain nothing?
    Saturation,
    /// Which cells are below what their neighbours say?
    Notch,
    /// Which cells wait for a timer, or for something else that does not delay their neighbours?
    Limited,
    /// Which timers expired?
    Timers,
    /// Were too many cells measured only while other programs had the processors?
    Contended,
    /// Are the intervals of the cells narrow enough, and if not, what prevented it?
    Precision,
    /// Did the machine change in the course of the sweep?
    Drift,
    /// Which slow changes of the machine's speed are subtracted?
    Epochs,
    /// Which runs were cut short?
    CutShort,
    /// Were the bytes correct?
    Verified,
    /// Were the buffers granted as requested?
    Granted,
    /// Does anything limit the validity of the measurement?
    Caution,
}

/// An answer to a question about a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question.
    pub kind: FindingKind,
    /// The answer in a sentence.
    pub text: String,
    /// The cells that it concerns.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellName>,
    /// The figures that support it.
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

    /// Adds the cells that it concerns.
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
