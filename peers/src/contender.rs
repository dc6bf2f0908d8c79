//! The interface of a contender (a TCP stack under test), and the result of a run.

use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The cost of one run, in processor time and frames.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Processor time of both ends together, in nanoseconds.
    pub nanoseconds: u64,
    /// Number of units of work done.
    pub units: u64,
    /// Number of frames from the client to the server; zero if the contender cannot count them.
    pub frames_out: u64,
    /// Number of frames from the server to the client.
    pub frames_back: u64,
}

impl Taken {
    pub fn new(processor: Duration, units: u64, frames: [u64; 2]) -> Self {
        let nanoseconds = u64::try_from(processor.as_nanos()).unwrap_or(u64::MAX);
        Self { nanoseconds, units, frames_out: frames[0], frames_back: frames[1] }
    }

    pub fn nanoseconds_a_unit(self) -> f64 {
        self.nanoseconds as f64 / self.units as f64
    }
}

/// A request for one run: a workload and its amount.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub work: Work,
    pub amount: u64,
    /// Whether to compare every byte that arrives with the one that was sent. True in the warm-up
    /// run, which is not measured.
    pub verify: bool,
}

/// A TCP stack that can perform workloads.
pub trait Contender {
    /// Returns the contender's name, as `--peer` and the targets use it.
    fn name(&self) -> &'static str;

    /// Returns the contender's version, and those settings that are not its defaults.
    fn version(&self) -> String;

    /// Returns whether the contender can perform this workload.
    fn can(&self, work: Work) -> bool;

    /// Returns a remark about this contender's runs of a workload, for the report.
    fn remark(&self, _: Work) -> Option<String> {
        None
    }

    /// Returns the divisor of the amount of work for this contender, so that a slow one does not
    /// delay the others.
    fn share(&self) -> u64 {
        1
    }

    /// Performs a run.
    ///
    /// # Errors
    /// A message about the failure. The run then has no figure.
    fn run(&mut self, run: Run) -> Result<Taken, String>;
}

/// A contender, or the reason why it is not available.
pub type Candidate = Result<Box<dyn Contender>, Missing>;

/// A contender that is not available on this machine, with the remedy.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    pub name: &'static str,
    pub reason: String,
}
