//! Waiting for a link at the lowest cost: polling for a while, then sleeping.
//!
//! A sleep with its wake-up costs several microseconds, a poll some nanoseconds. Polling pays off
//! if the other end has its own core; on a shared core it only delays the other end. The number of
//! polls adapts to the success of earlier ones.

use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::io;

/// Maximum number of polls before a sleep, some fifty microseconds. That is longer than a sleeping
/// end needs to wake up, so one polling end keeps both awake.
const MOST: u32 = 2_500;
/// Number of waits without polling after which polling is tried again.
const RETRY_AFTER: u32 = 64;
/// Maximum time of a sleep, after which the thread checks whether the run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for one link.
#[derive(Debug)]
pub(crate) struct LinkWaiter {
    waiter: Waiter,
    most: u32,
    polls: u32,
    waits: u32,
}

impl LinkWaiter {
    /// Creates the waiter of a link.
    ///
    /// # Errors
    /// If the system provides no descriptors to wait with.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let waiter = Waiter::new().map_err(|error| failed(error.errno))?;
        let most = max_polls();
        Ok(Self { waiter, most, polls: most, waits: 0 })
    }

    /// Waits until `link` has an event, until `latest`, or for a limited time.
    ///
    /// # Errors
    /// If the system cannot wait.
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

    /// Polls the link, if that has paid off recently.
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

/// Returns the maximum number of polls. Without a core for each end, polling never pays off.
pub(crate) fn max_polls() -> u32 {
    if PinnedThread::are_separate() { MOST } else { 0 }
}

fn failed(errno: i32) -> BenchError {
    BenchError::Io {
        what: "waiting for a link".to_owned(),
        source: io::Error::from_raw_os_error(errno),
    }
}
