//! Waiting for events of a link at low cost: by polling for a short time, and then by sleeping.
//!
//! A sleep with its wake-up takes several microseconds, a poll some nanoseconds. Polling is faster
//! if the threads of the source and the sink have a CPU each. If both threads share a CPU, polling
//! only delays the other thread. A wait that polls without success halves the number of polls of
//! the next wait.

use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::io;

/// Maximum number of polls before a sleep. These polls take about 50 µs, which is longer than the
/// wake-up of a sleeping thread. If the peer's thread sleeps, this thread therefore still polls
/// when the answer of the woken thread arrives, and does not sleep itself.
const MOST: u32 = 2_500;
/// Number of waits from one wait with [`MOST`] polls to the next. The waits between them may have
/// fewer polls, because a wait that polls without success halves the number.
const RETRY_AFTER: u32 = 64;
/// Maximum duration of a sleep, after which the thread checks whether the run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The means of a thread to wait for events of one link.
#[derive(Debug)]
pub(crate) struct LinkWaiter {
    waiter: Waiter,
    /// Maximum of `polls`; zero if polling is not useful.
    most: u32,
    /// Number of polls before a sleep, in the next wait.
    polls: u32,
    /// Number of waits so far.
    waits: u32,
}

impl LinkWaiter {
    /// Creates a waiter for a link.
    ///
    /// # Errors
    /// The system provides no descriptors to wait with.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let waiter = Waiter::new().map_err(|error| failed(error.errno))?;
        let most = max_polls();
        Ok(Self { waiter, most, polls: most, waits: 0 })
    }

    /// Waits until `link` has an event or the time is `latest`, but for at most [`POLL_INTERVAL`].
    ///
    /// # Errors
    /// The system cannot wait.
    pub(crate) fn wait(
        &mut self,
        link: &mut impl Readiness,
        latest: Instant,
    ) -> Result<(), BenchError> {
        if self.poll(link) {
            return Ok(());
        }
        let latest = latest.min(MonotonicClock.now() + POLL_INTERVAL);
        self.waiter.wait(link, latest).map(drop).map_err(|error| failed(error.errno))
    }

    /// Polls the link up to `polls` times. Returns true if the link has an event, and then restores
    /// the maximum number of polls for the next wait. Otherwise halves the number of polls.
    fn poll(&mut self, link: &mut impl Readiness) -> bool {
        self.waits = self.waits.wrapping_add(1);
        let polls = if self.waits.is_multiple_of(RETRY_AFTER) { self.most } else { self.polls };
        for _ in 0..polls {
            if link.is_ready() {
                self.polls = self.most;
                return true;
            }
            spin_loop();
        }
        self.polls /= 2;
        false
    }
}

/// Returns the maximum number of polls before a sleep, which is zero if the threads of the source
/// and the sink share a CPU.
pub(crate) fn max_polls() -> u32 {
    if PinnedThread::are_separate() { MOST } else { 0 }
}

fn failed(errno: i32) -> BenchError {
    BenchError::Io {
        what: "waiting for a link".to_owned(),
        source: io::Error::from_raw_os_error(errno),
    }
}
