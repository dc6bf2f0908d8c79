//! Measurement of the processor time of the calling thread.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// A stopwatch for the processor time of the calling thread. It runs from its creation on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// Creates a stopwatch that starts now.
    pub fn start() -> Self {
        Self(processor_time())
    }

    /// Returns the processor time that the calling thread has used since the start.
    pub fn elapsed(self) -> Duration {
        processor_time().saturating_sub(self.0)
    }
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0))
}
