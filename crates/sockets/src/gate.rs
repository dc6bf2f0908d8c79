//! A place to wait for any of several shards, each of which has a lock of its own.
//!
//! The gate's own lock is the last one of all: it is taken while a host's is held, and nothing is taken while it
//! is. Who wants to wait notes how often the gate has been opened, looks at every shard, and then waits only
//! if it has not been opened since. So no opening falls between looking and waiting.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Opened by whoever has something for one who waits.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// How often it was opened.
    openings: Mutex<u64>,
    opened: Condvar,
}

impl Gate {
    /// How often it has been opened.
    pub(crate) fn openings(&self) -> u64 {
        *self.openings.lock()
    }

    /// There is something for one of those who wait.
    pub(crate) fn open(&self) {
        *self.openings.lock() += 1;
        self.opened.notify_one();
    }

    /// There is something for all of them.
    pub(crate) fn open_wide(&self) {
        *self.openings.lock() += 1;
        self.opened.notify_all();
    }

    /// Waits until it is opened more often than `seen`, or `deadline` has come if there is one. It may return for
    /// no reason.
    pub(crate) fn wait(&self, seen: u64, deadline: Option<Instant>) {
        let mut openings = self.openings.lock();
        if *openings != seen {
            return;
        }
        match deadline {
            None => self.opened.wait(&mut openings),
            Some(deadline) => {
                self.opened.wait_until(&mut openings, deadline);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_between_looking_and_waiting_is_not_slept_through() {
        for open in [Gate::open, Gate::open_wide] {
            let gate = Gate::default();
            let seen = gate.openings();
            open(&gate);
            gate.wait(seen, None);
        }
    }
}
