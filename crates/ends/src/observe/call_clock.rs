//! A clock for the time that a thread spends in `write` or `read`, readable by another thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The time that a thread has spent in calls of `write` or `read`, and the number of bytes that
/// these calls have moved. The thread itself updates the clock, and an observing thread reads the
/// clock.
#[derive(Debug)]
pub struct CallClock {
    /// Time at which the clock was created.
    base: Instant,
    /// Number of bytes that the calls have moved.
    bytes: AtomicU64,
    /// Total duration of the calls that have returned, in nanoseconds.
    spent: AtomicU64,
    /// Start of the current call in nanoseconds since `base`, plus one; 0 outside of a call.
    entered: AtomicU64,
}

impl CallClock {
    /// Creates a clock that has counted nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { base: Instant::now(), bytes: zero(), spent: zero(), entered: zero() }
    }

    /// Records that the thread enters a call of `write` or `read`.
    pub(crate) fn enter(&self) {
        self.entered.store(self.nanos().saturating_add(1), Ordering::Relaxed);
    }

    /// Records that the thread leaves a call of `write` or `read`, which has moved `bytes` bytes.
    pub(crate) fn leave(&self, bytes: usize) {
        let entered = self.entered.swap(0, Ordering::Relaxed);
        let spent = (self.nanos() + 1).saturating_sub(entered);
        self.spent.fetch_add(spent, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of bytes that all calls have moved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Is the thread in a call of `write` or `read`?
    pub(super) fn is_in_call(&self) -> bool {
        self.entered.load(Ordering::Relaxed) != 0
    }

    /// Returns the nanoseconds spent in calls, including the current call.
    pub(super) fn call_nanos(&self) -> u64 {
        let spent = self.spent.load(Ordering::Relaxed);
        match self.entered.load(Ordering::Relaxed) {
            0 => spent,
            entered => spent + (self.nanos() + 1).saturating_sub(entered),
        }
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

impl Default for CallClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_has_not_returned_counts() {
        let clock = CallClock::new();
        assert_eq!((clock.call_nanos(), clock.is_in_call()), (0, false));
        clock.enter();
        assert!(clock.is_in_call());
        clock.leave(7);
        let spent = clock.call_nanos();
        assert_eq!((clock.bytes(), clock.is_in_call(), clock.call_nanos()), (7, false, spent));
    }
}
