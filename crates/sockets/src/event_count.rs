//! An event count: lets a thread wait for events of several shards, each of which has its own lock.
//!
//! A thread that waits reads the counter first, then examines every shard, and then waits unless
//! the counter has changed since it was read. So an event between the examination and the wait is
//! not missed.
//!
//! A thread may take the lock of the counter while it holds the lock of a host. It takes no other
//! lock while it holds the lock of the counter.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// A counter of events, and the threads that wait for it to change.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    /// Number of events so far.
    count: Mutex<u64>,
    changed: Condvar,
}

impl EventCount {
    /// Returns the number of events so far.
    pub(crate) fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Counts an event and wakes one waiting thread.
    pub(crate) fn notify_one(&self) {
        *self.count.lock() += 1;
        self.changed.notify_one();
    }

    /// Counts an event and wakes all waiting threads.
    pub(crate) fn notify_all(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until the count differs from `seen`, the result of an earlier [`EventCount::count`],
    /// or until `deadline`. May also return although the count is unchanged and the deadline has
    /// not passed, so callers check their condition again.
    pub(crate) fn wait(&self, seen: u64, deadline: Option<Instant>) {
        let mut count = self.count.lock();
        if *count != seen {
            return;
        }
        match deadline {
            None => self.changed.wait(&mut count),
            Some(deadline) => {
                self.changed.wait_until(&mut count, deadline);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_between_examination_and_wait_is_not_lost() {
        for notify in [EventCount::notify_one, EventCount::notify_all] {
            let events = EventCount::default();
            let seen = events.count();
            notify(&events);
            events.wait(seen, None);
        }
    }
}
