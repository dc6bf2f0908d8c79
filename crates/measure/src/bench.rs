//! The interface between a sweep and its engines, which transfer data from a source to a sink.

use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_units::Duration;

/// A source and a sink with their TCPs, and the link or path between the two. A bench executes the
/// runs of a sweep.
pub trait Bench {
    /// Returns the facts about the bench that are the same for all runs of a sweep.
    fn facts(&self) -> BenchFacts;

    /// Measures the floor: the time of a transfer without TCP, over the same link and between the
    /// same threads as a run. The bytes are copied and checksummed as often as in a run. Returns
    /// `None` if the link has a bit rate, with which throughput is compared instead, or if the
    /// bench cannot measure a comparable floor.
    ///
    /// The floor is measured before the first run, usually several times. `request` has the largest
    /// buffers of the plan, and at most as many bytes as a run.
    ///
    /// # Errors
    /// The errors of [`Bench::run`].
    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError>;

    /// Executes one transfer over a new connection. The transfer ends after the requested bytes or
    /// the maximum duration. The measured time starts with the first write, and ends when the sink
    /// has read the last byte of the transfer.
    ///
    /// # Errors
    /// The transfer failed. After `interrupt` is raised, the run soon ends with
    /// [`BenchError::Interrupted`].
    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError>;

    /// Releases the resources that were kept between runs, such as a link or a capture file.
    /// [`make_runs`](crate::make_runs) calls this function after the last run, also after an
    /// interrupt or an error.
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
    /// Size of each `write` call of the source, in bytes.
    pub write_size: usize,
    /// Size of each `read` call of the sink, in bytes.
    pub read_size: usize,
    /// Does the sink compare the data with the pattern of [`linerate_ends::workload`]?
    pub verify: bool,
    /// Seed of the data pattern, and of all random numbers in this run.
    pub seed: u64,
    /// Name of the sender's congestion control; `None` selects the bench's default.
    pub congestion: Option<String>,
}

/// The requested size of a socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// The buffer size as a number of packets, each with the data bytes of a full segment; `None`
    /// if the plan states the buffer size in bytes.
    pub packets: Option<u32>,
    /// The buffer size in bytes, whichever unit the plan uses.
    pub bytes: u64,
}
