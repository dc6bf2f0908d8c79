//! The interface of a contender, which is a TCP stack under test, and the result of a run.

use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The result of one run: the processor time and the number of frames.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Processor time of both ends together, in nanoseconds. For the workload `shards`, this is
    /// wall-clock time instead.
    pub nanoseconds: u64,
    /// Number of units of work done in this time.
    pub units: u64,
    /// Number of frames from the client to the server; zero if the contender does not count frames.
    pub frames_out: u64,
    /// Number of frames from the server to the client; zero if the contender does not count frames.
    pub frames_back: u64,
}

impl Taken {
    /// Creates a result from the processor time, the units of work, and the frames in both
    /// directions.
    pub fn new(processor: Duration, units: u64, frames: [u64; 2]) -> Self {
        let nanoseconds = u64::try_from(processor.as_nanos()).unwrap_or(u64::MAX);
        Self { nanoseconds, units, frames_out: frames[0], frames_back: frames[1] }
    }

    /// Returns the processor time per unit of work, in nanoseconds.
    pub fn nanoseconds_a_unit(self) -> f64 {
        self.nanoseconds as f64 / self.units as f64
    }
}

/// A request for one run: a workload and its amount.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub work: Work,
    /// Number of units of work. The workload determines the unit.
    pub amount: u64,
    /// Whether the receiver compares every byte with the byte that was sent. This is done only in
    /// the warm-up run, which is not measured.
    pub verify: bool,
}

/// A TCP stack under test, which can perform some of the workloads.
pub trait Contender {
    /// Returns the contender's name, which is used by `--peer`, by the targets and in results.
    fn name(&self) -> &'static str;

    /// Returns the contender's version and its most important settings, including those that differ
    /// from its defaults.
    fn version(&self) -> String;

    /// Returns whether the contender can perform this workload.
    fn can(&self, work: Work) -> bool;

    /// Returns a remark for the report about this contender's runs of a workload; `None` without
    /// one.
    fn remark(&self, _: Work) -> Option<String> {
        None
    }

    /// Returns the divisor of the amount of work for this contender. It is above 1 for a slow
    /// contender, whose full runs would take too long.
    fn share(&self) -> u64 {
        1
    }

    /// Performs one run and returns its cost.
    ///
    /// # Errors
    /// A message about the failure. The run then has no result.
    fn run(&mut self, run: Run) -> Result<Taken, String>;
}

/// A contender, or the reason why it is not available.
pub type Candidate = Result<Box<dyn Contender>, Missing>;

/// A contender that is not available on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// Name of the contender.
    pub name: &'static str,
    /// The reason why the contender is not available, with the remedy if there is one.
    pub reason: String,
}
