//! What an experiment runs on: something that carries bytes from a source to a sink.

mod counters;
mod error;
mod far;
mod framing;
mod interface;
mod kernel;
mod ours;
mod seat;
mod sim;
mod stack;
mod tap;

pub use counters::{Counters, EndCounters, FastPath, names};
pub use error::{BenchError, Fault};
pub use framing::Framing;
pub use interface::InterfaceBench;
pub use kernel::KernelBench;
pub use sim::SimBench;
pub use stack::StackBench;
pub use tap::TapBench;

use crate::Interrupt;
use linerate_units::{Duration, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::thread::ScopedJoinHandle;

/// Two TCPs and what is between them.
pub trait Bench {
    /// What the bench is, and what of it stays the same for all runs.
    fn facts(&self) -> BenchFacts;

    /// Carries the request's bytes through the same link and threads, copied and summed as many
    /// times as a run does, with no protocol. `None` if the bench has a line rate to be measured
    /// against, or no way of leaving the protocol out.
    ///
    /// Called before the first run, perhaps several times, with the largest buffers of the plan: the
    /// moment to refuse what will not be granted, rather than in the middle of a night.
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

/// What a bench is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchFacts {
    /// One sentence for people: whose TCP at each end, and what is between them.
    pub description: String,
    /// Payload bytes of a full segment, the options that every segment carries taken off.
    pub segment_payload: u32,
    /// What goes over the wire besides the payload.
    pub framing: Framing,
    /// The bit rate of the link, if its driver tells one.
    pub line_rate: Option<LineRate>,
    /// Whatever else decides the figures: congestion control in force, limits of the kernel, …
    pub settings: BTreeMap<String, String>,
}

/// A bit rate, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRate {
    /// Bits per second.
    pub bits_per_second: u64,
    /// Where the figure is from: `driver of eth0`, `--line-rate`.
    pub source: String,
}

impl LineRate {
    /// The rate as a value with a unit.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bits_per_second(self.bits_per_second)
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
    /// Compare each byte with the pattern of [`crate::workload`]?
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

/// What came of one transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// Bytes that the sink has read.
    pub bytes: u64,
    /// From the first write to the sink having read the last of `bytes`.
    pub time: Duration,
    /// Did all bytes of the request arrive? If not, the run was cut short by its time.
    pub complete: bool,
    /// Were the bytes those of the pattern? `None` if nobody looked.
    pub verified: Option<bool>,
    /// The sender's buffer as granted, in bytes.
    pub send_granted: u64,
    /// The receiver's buffer as granted, in bytes.
    pub receive_granted: u64,
    /// What both ends counted.
    pub counters: Counters,
}

/// One transfer without a protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Bytes carried.
    pub bytes: u64,
    /// How long they took.
    pub time: Duration,
    /// What was done with each byte: how many copies and sums, through what.
    pub how: String,
}

/// What a thread of a bench has come to; if it panicked, so does the bench.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
