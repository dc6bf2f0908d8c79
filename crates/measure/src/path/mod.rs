//! Runs for a diagnosis: a transfer over a path, with or without an intervention, measured at both
//! ends.

mod far_end;
mod local_sink;
mod near_end;
mod setup;
mod sim;
mod sockets;
mod transfer;

pub use sim::SimPath;
pub use sockets::SocketPath;

use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::{Change, RunEvidence};
use linerate_units::Duration;

/// A path whose limit is to be diagnosed.
pub trait DiagnosedPath {
    /// Describes the path in one line.
    fn description(&self) -> String;

    /// Transfers data for `time`, with the intervention `change` if one is given. Returns `None` if
    /// the path cannot make the intervention.
    ///
    /// # Errors
    /// The reason why there was no transfer; [`BenchError::Interrupted`] soon after `interrupt` is
    /// raised.
    fn run(
        &mut self,
        change: Option<Change>,
        time: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<RunEvidence>, BenchError>;
}

/// The behaviour of the programs whose transfer is diagnosed: buffers, writes and pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Send buffer in bytes, as it is requested; `None` selects automatic tuning.
    pub send_buffer: Option<u64>,
    /// Receive buffer in bytes, as it is requested; `None` selects automatic tuning.
    pub receive_buffer: Option<u64>,
    /// Number of bytes in a write.
    pub write_size: usize,
    /// Time to wait after each write.
    pub write_pause: Duration,
    /// Name of the congestion control; `None` selects the default.
    pub congestion: Option<String>,
}
