//! The interface to the engines, which carry data from a source to a sink.

use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_units::Duration;

/// Two TCPs and the link or path between them.
pub trait Bench {
    /// Returns the facts that are common to all runs.
    fn facts(&self) -> BenchFacts;

    /// Measures the floor: carries the request's bytes through the same link and threads, copied
    /// and checksummed as often as in a run, without a protocol. Returns `None` if the bench has a
    /// line rate to compare with, or cannot leave the protocol out.
    ///
    /// Called before the first run, possibly several times, with the largest buffers of the plan.
    /// Buffers that will not be granted are refused here, and not in the middle of a night.
    ///
    /// # Errors
    /// Those of [`Bench::run`].
    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError>;

    /// Executes one transfer over a new connection, from the first write until the sink has read
    /// the last byte. Ends after its bytes or its maximum time.
    ///
    /// # Errors
    /// The reason why there was no transfer; [`BenchError::Interrupted`] soon after `interrupt` is
    /// raised.
    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError>;

    /// Releases what is kept between runs. Called after the last run.
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
    /// Bytes to transfer.
    pub bytes: u64,
    /// The transfer ends after this time.
    pub max_time: Duration,
    /// Bytes of a write.
    pub write_size: usize,
    /// Bytes of a read.
    pub read_size: usize,
    /// Is the data compared with the pattern of [`linerate_ends::workload`]?
    pub verify: bool,
    /// The seed of the pattern and of everything random in this run.
    pub seed: u64,
    /// The sender's congestion control; `None` selects the bench's default.
    pub congestion: Option<String>,
}

/// A socket buffer, in the unit of the plan and in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// Number of packets of one MSS, if the plan counts packets.
    pub packets: Option<u32>,
    /// Bytes.
    pub bytes: u64,
}
