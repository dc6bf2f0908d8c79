//! A finding about a sweep, as a sentence and as figures.

use linerate_evidence::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The question about a sweep that a finding answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The limits of the cells: the buffers or other factors that limit their throughput.
    Limits,
    /// The cells that were predicted, because the time budget did not suffice to measure them.
    Predicted,
    /// The cell with the highest throughput.
    Best,
    /// The ridge: is throughput highest in cells with equal buffers?
    Ridge,
    /// The buffer size from which on a larger buffer gains almost nothing.
    Saturation,
    /// The cells that are slower than their neighbours in the table predict.
    Notch,
    /// The cells that wait for a timer, or are slow for another reason that does not affect their
    /// neighbours in the table.
    Limited,
    /// The number of expirations of each timer.
    Timers,
    /// Contention: other programs occupied the processors so often that nothing can be concluded.
    Contended,
    /// The precision: are the intervals of the cells narrow enough? If not, the finding gives the
    /// reason.
    Precision,
    /// Drift: a change of the machine's speed in the course of the sweep.
    Drift,
    /// Epochs: slow changes of the machine's speed that have been subtracted from the rates.
    Epochs,
    /// The runs that the time limit ended before all bytes had arrived.
    CutShort,
    /// The comparison of all received bytes with the sent bytes.
    Verified,
    /// The differences between requested and granted buffer sizes.
    Granted,
    /// Any other restriction of the measurement's validity.
    Caution,
}

/// An answer to one question about a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question that the finding answers.
    pub kind: FindingKind,
    /// The finding as text, in one sentence or a few.
    pub text: String,
    /// The cells to which the finding refers; empty if it refers to the whole sweep.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellName>,
    /// The figures that support the finding, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub figures: BTreeMap<String, f64>,
}

/// The name of a cell in a result file: its buffer sizes in bytes. If the plan gives sizes in
/// packets, the name also contains them in packets.
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
    /// Creates the name of `cell`. `payload` is the number of data bytes in a packet.
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
    /// Creates a finding. Cells and figures can be added with [`Finding::about`] and
    /// [`Finding::with`].
    pub(crate) fn new(kind: FindingKind, text: String) -> Self {
        Self { kind, text, cells: Vec::new(), figures: BTreeMap::new() }
    }

    /// Adds the cells to which the finding refers. `payload` is the number of data bytes in a
    /// packet.
    pub(crate) fn about(mut self, cells: impl IntoIterator<Item = Cell>, payload: u32) -> Self {
        self.cells.extend(cells.into_iter().map(|cell| CellName::new(cell, payload)));
        self
    }

    /// Adds a figure with its name, which supports the finding.
    pub(crate) fn with(mut self, name: &str, figure: f64) -> Self {
        self.figures.insert(name.to_owned(), figure);
        self
    }
}
