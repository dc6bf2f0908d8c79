//! Runs for a diagnosis: one transfer over a path, plain or with one change, observed at both ends.

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

/// A path whose limit is to be found.
pub trait DiagnosedPath {
    /// Describes the path, in one line.
    fn description(&self) -> String;

    /// Carries data for `time`, with one change against the plain transfer. Returns `None` if the
    /// change is not possible on this path.
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

/// The application whose transfer is diagnosed: its buffers, writes and pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The send buffer in requested bytes; `None` selects automatic tuning.
    pub send_buffer: Option<u64>,
    /// The receive buffer in requested bytes; `None` selects automatic tuning.
    pub receive_buffer: Option<u64>,
    /// Bytes of a write.
    pub write_size: usize,
    /// Time to wait after each write.
    pub write_pause: Duration,
    /// The congestion control; `None` selects the default.
    pub congestion: Option<String>,
}
