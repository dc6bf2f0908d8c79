//! What a stack has to do to take part, and what it says of a run.

use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one run took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Nanoseconds on a processor, both ends together.
    pub nanoseconds: u64,
    /// Units done.
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

/// One run: how much of what.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub work: Work,
    pub amount: u64,
    /// Compare every byte that arrives with what was sent: for the run that warms up and is not measured.
    pub verify: bool,
}

/// Something that can do the work.
pub trait Contender {
    /// What `--peer` calls it, and the bars.
    fn name(&self) -> &'static str;

    /// Which release it is, and how it is set where that is not as shipped.
    fn version(&self) -> String;

    /// Can it do such work at all?
    fn can(&self, work: Work) -> bool;

    /// What else is to be said of its runs of a work.
    fn remark(&self, _: Work) -> Option<String> {
        None
    }

    /// The share of the amount that it does, so that a slow one does not hold up the rest.
    fn share(&self) -> u64 {
        1
    }

    /// Does the run.
    ///
    /// # Errors
    /// A sentence that says what went wrong: then there is no figure.
    fn run(&mut self, run: Run) -> Result<Taken, String>;
}

/// A contender that can take part, or why it cannot and how that is mended.
pub type Candidate = Result<Box<dyn Contender>, Missing>;

/// A contender that is not here.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    pub name: &'static str,
    pub reason: String,
}
