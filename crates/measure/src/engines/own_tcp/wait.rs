//! Waits for a link at the lowest cost: by polling for a while, and then sleeping.
//!
//! A sleep with its wake-up costs several microseconds, a poll some nanoseconds. Polling pays off
//! if the other end has its own CPU; on a shared one it only delays the other end. The number of
//! polls adapts to the success of previous polls.

use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::io;

/// Maximum number of polls before a sleep, which take some fifty microseconds. That is longer than
/// the wake-up of the other end, so that one polling end keeps both awake.
const MOST: u32 = 2_500;
/// Number of waits after which polling is tried again, if it has been given up.
const RETRY_AFTER: u32 = 64;
/// Maximum duration of a sleep, after which the thread checks whether the run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for events of one link.
#[derive(Debug)]
pub(crate) struct LinkWaiter {
    waiter: Waiter,
    most: u32,
    polls: u32,
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

    /// Waits until `link` has an event or the time is `latest`, but at most [`POLL_INTERVAL`].
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

    /// Polls the link as often as has paid off recently. Returns true if the link has an event.
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

/// Returns the maximum number of polls before a sleep: zero if the ends share a CPU.
pub(crate) fn max_polls() -> u32 {
    if PinnedThread::are_separate() { MOST } else { 0 }
}

fn failed(errno: i32) -> BenchError {
    BenchError::Io {
        what: "waiting for a link".to_owned(),
        source: io::Error::from_raw_os_error(errno),
    }
}
