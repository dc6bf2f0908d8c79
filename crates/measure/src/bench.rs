//! The interface of the engines, which carry data from a source to a sink.

use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_units::Duration;

/// A source and a sink with their TCPs, and the link or path between them. It makes the runs of a
/// sweep.
pub trait Bench {
    /// Returns the facts that are the same for all runs.
    fn facts(&self) -> BenchFacts;

    /// Measures the floor: a transfer of the request's bytes over the same link and between the
    /// same threads, copied and checksummed as often as in a run, but without TCP. Returns `None`
    /// if the bench has a line rate as its maximum, or cannot carry data without TCP.
    ///
    /// It is called before the first run, possibly several times, with the largest buffers of the
    /// plan. Buffers that the system will not grant are rejected here, and not in the middle of a
    /// sweep.
    ///
    /// # Errors
    /// Those of [`Bench::run`].
    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError>;

    /// Executes one transfer over a new connection, which ends after the requested bytes or the
    /// maximum duration. The time counts from the first write until the sink has read the last
    /// byte.
    ///
    /// # Errors
    /// The reason why there was no transfer; [`BenchError::Interrupted`] soon after `interrupt` is
    /// raised.
    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError>;

    /// Releases everything that was kept between runs. It is called after the last run.
    ///
    /// # Errors
    /// [`BenchError::Capture`] if not all frames could be written to the capture file.
    fn end(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// The parameters of one transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The sender's socket buffer.
    pub send_buffer: BufferRequest,
    /// The receiver's socket buffer.
    pub receive_buffer: BufferRequest,
    /// Number of bytes to transfer.
    pub bytes: u64,
    /// Maximum duration of the transfer.
    pub max_time: Duration,
    /// Number of bytes in a write of the source.
    pub write_size: usize,
    /// Number of bytes in a read of the sink.
    pub read_size: usize,
    /// Is the data compared with the pattern of [`linerate_ends::workload`]?
    pub verify: bool,
    /// Seed of the pattern and of everything random in this run.
    pub seed: u64,
    /// The sender's congestion control by name; `None` selects the bench's default.
    pub congestion: Option<String>,
}

/// The requested size of a socket buffer, in bytes and in the unit of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// The size in packets of one MSS; `None` if the plan counts in bytes.
    pub packets: Option<u32>,
    /// The size in bytes.
    pub bytes: u64,
}
