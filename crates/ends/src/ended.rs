//! The reason why a run ended at the sink.

use serde::{Deserialize, Serialize};

/// The reason why a run ended at the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All announced bytes were read.
    Complete,
    /// The source closed the connection early.
    EndOfStream,
    /// The maximum time has passed.
    TimeUp,
    /// The sweep stopped the run.
    Stopped,
    /// The connection failed.
    Broken,
}
