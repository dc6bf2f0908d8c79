//! What an experiment runs on: something that carries bytes from a source to a sink.

use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_units::Duration;

/// Two TCPs and what is between them.
pub trait Bench {
    /// What the bench is, and what of it stays the same for all runs.
    fn facts(&self) -> BenchFacts;

    /// Carries the request's bytes through the same link and threads, copied and summed as many
    /// times as a run does, with no protocol. `None` if the bench has a line rate to be measured
    /// against, or no way of leaving the protocol out.
    ///
    /// Called before the first run, perhaps several times, with the largest buffers of the plan:
    /// the moment to refuse what will not be granted, rather than in the middle of a night.
    ///
    /// # Errors
    /// As [`Bench::run`].
    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError>;

    /// One transfer, over a connection of its own, from the first write to the sink having read the
    /// last byte. Ends at its bytes or after its time, whichever is first.
    ///
    /// # Errors
    /// What kept the transfer from happening; [`BenchError::Interrupted`] soon after `interrupt` is
    /// raised.
    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError>;

    /// All runs have been made: ends what was kept between them.
    ///
    /// # Errors
    /// [`BenchError::Capture`] if not all frames could be written down.
    fn end(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// One transfer, as the runner asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The sender's socket buffer.
    pub send_buffer: BufferRequest,
    /// The receiver's socket buffer.
    pub receive_buffer: BufferRequest,
    /// Bytes to transfer.
    pub bytes: u64,
    /// The transfer is cut short after this time.
    pub max_time: Duration,
    /// Bytes offered in one write.
    pub write_size: usize,
    /// Bytes asked for in one read.
    pub read_size: usize,
    /// Compare each byte with the pattern of [`linerate_ends::workload`]?
    pub verify: bool,
    /// Decides the pattern and everything that is drawn in this run.
    pub seed: u64,
    /// The sender's congestion control; the bench's default if there is none.
    pub congestion: Option<String>,
}

/// One socket buffer, as the plan counts it and in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// Packets of one MSS, if the plan counts in packets.
    pub packets: Option<u32>,
    /// Bytes.
    pub bytes: u64,
}
