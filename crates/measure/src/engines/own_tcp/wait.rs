//! Waiting for a link at the least cost: looking at it for a while, then sleeping.
//!
//! A sleep and a wake-up cost several microseconds, a look some nanoseconds. Looking pays when the
//! other end works on a core of its own; where both share one, it only keeps the other end from
//! working. Which of the two it is shows by itself.

use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::io;

/// The most looks before a sleep, some fifty microseconds: longer than an end that sleeps needs to
/// wake up, so that one end that looks is enough to keep both awake.
const MOST: u32 = 2_500;
/// So many waits after looking has stopped to pay, it is tried again.
const SECOND_CHANCE: u32 = 64;
/// Nobody sleeps longer without asking whether it is all over.
const ATTENTION: Duration = Duration::from_millis(50);

/// Who waits for one link.
#[derive(Debug)]
pub(crate) struct Watch {
    waiter: Waiter,
    most: u32,
    looks: u32,
    waits: u32,
}

impl Watch {
    /// # Errors
    /// If the system grants nothing to wait with.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let waiter = Waiter::new().map_err(|error| failed(error.errno))?;
        let most = most_looks();
        Ok(Self { waiter, most, looks: most, waits: 0 })
    }

    /// Waits until `link` has something, `latest` has passed, or a little while.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(crate) fn wait(
        &mut self,
        link: &mut impl Readiness,
        latest: Instant,
    ) -> Result<(), BenchError> {
        if self.look(link) {
            return Ok(());
        }
        let latest = latest.min(MonotonicClock.now() + ATTENTION);
        self.waiter.wait(link, latest).map(drop).map_err(|error| failed(error.errno))
    }

    /// Is there something, now or in a moment?
    fn look(&mut self, link: &mut impl Readiness) -> bool {
        self.waits = self.waits.wrapping_add(1);
        let looks = if self.waits.is_multiple_of(SECOND_CHANCE) { self.most } else { self.looks };
        for _ in 0..looks {
            if link.is_ready() {
                self.looks = self.most;
                return true;
            }
            spin_loop();
        }
        self.looks /= 2;
        false
    }
}

/// Only where there is another core for the other end does looking make sense at all.
pub(crate) fn most_looks() -> u32 {
    if Seat::are_two() { MOST } else { 0 }
}

fn failed(errno: i32) -> BenchError {
    BenchError::Io {
        what: "waiting for a link".to_owned(),
        source: io::Error::from_raw_os_error(errno),
    }
}
