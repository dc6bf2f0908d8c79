//! The interface of a contender, and the result of a run.

use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The cost of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Nanoseconds of processor time, both ends together.
    pub nanoseconds: u64,
    /// Units of work done.
    pub units: u64,
    /// Frames from the client to the server, if the contender can count them.
    pub frames_out: u64,
    /// Frames from the server to the client.
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

/// One run: a work and its amount.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub work: Work,
    pub amount: u64,
    /// Compare every byte that arrives with what was sent; set in the warm-up run, which is not
    /// measured.
    pub verify: bool,
}

/// A stack that can do the work.
pub trait Contender {
    /// Returns its name, as `--peer` and the targets use it.
    fn name(&self) -> &'static str;

    /// Returns its version, with its settings where they are not the defaults.
    fn version(&self) -> String;

    /// Returns whether it can do this work.
    fn can(&self, work: Work) -> bool;

    /// Returns a remark about its runs of this work.
    fn remark(&self, _: Work) -> Option<String> {
        None
    }

    /// Returns the share of the amount that it does, so that a slow contender does not delay the
    /// others.
    fn share(&self) -> u64 {
        1
    }

    /// Performs the run.
    ///
    /// # Errors
    /// A message about the failure; there is no figure then.
    fn run(&mut self, run: Run) -> Result<Taken, String>;
}

/// A contender, or the reason why it is missing.
pub type Candidate = Result<Box<dyn Contender>, Missing>;

/// A contender that is not available, with the remedy.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    pub name: &'static str,
    pub reason: String,
}
