//! Runs for a diagnosis: transfers over a path, each of which is measured at both ends. A run may
//! have an intervention, which changes one condition in comparison with the other runs, such as the
//! size of a buffer.

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

/// Factor by which the interventions of a larger buffer increase its size. A factor of two would be
/// too small for a kernel's send buffer of less than two GSO frames (128 KiB). The kernel admits a
/// whole frame while the buffer is not full, so a buffer of twice the size may admit as many frames
/// as before.
const LARGER_BUFFER: u8 = 4;
/// Factor by which the intervention of larger writes increases their size.
const LARGER_WRITES: u8 = 8;

/// A path over which a diagnosis makes runs, to find what limits the throughput.
pub trait DiagnosedPath {
    /// Returns a description of the path in one line.
    fn description(&self) -> String;

    /// Transfers data for `time`, with the intervention `change` if one is given. Returns `None` if
    /// the path does not support the intervention, or if the intervention did not change what it
    /// should change, such as the size of a buffer.
    ///
    /// # Errors
    /// The transfer failed. After `interrupt` is raised, the run soon ends with
    /// [`BenchError::Interrupted`].
    fn run(
        &mut self,
        change: Option<Change>,
        time: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<RunEvidence>, BenchError>;
}

/// The behaviour of the two programs whose transfer is diagnosed: buffers, writes and pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Requested send buffer in bytes; `None` selects automatic tuning.
    pub send_buffer: Option<u64>,
    /// Requested receive buffer in bytes; `None` selects automatic tuning.
    pub receive_buffer: Option<u64>,
    /// Size of each `write` call, in bytes.
    pub write_size: usize,
    /// Time that the sending program waits after each write.
    pub write_pause: Duration,
    /// Name of the sender's congestion control; `None` selects the default.
    pub congestion: Option<String>,
}
