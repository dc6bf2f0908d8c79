//! The reason why a run ended at the sink.

use serde::{Deserialize, Serialize};

/// The reason why a run ended at the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All requested bytes were read.
    Complete,
    /// The sender closed the connection before all requested bytes had arrived.
    EndOfStream,
    /// The maximum duration of the run, or the maximum time without data, has passed.
    TimeUp,
    /// The sweep stopped the run, or the sink is ending.
    Stopped,
    /// The connection failed.
    Broken,
}
