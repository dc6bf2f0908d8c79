//! How a run ended at the sink.

use serde::{Deserialize, Serialize};

/// How a run ended at the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All the bytes that were announced have been read.
    Complete,
    /// The source closed before.
    EndOfStream,
    /// The time was up before.
    TimeUp,
    /// The sweep asked for the end before.
    Stopped,
    /// The connection broke.
    Broken,
}
