//! An event count: lets a thread wait for events of several shards, each of which has its own lock.
//!
//! A waiter reads the counter, examines every shard, and then waits only if the counter has not
//! changed since. So no event is lost between the examination and the wait.
//!
//! The counter's lock is the last in the lock order: it is taken while the lock of a host is held,
//! and no other lock is taken while it is held.

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

    /// Waits until the count differs from `seen`, or until `deadline`. May also return before
    /// either of these.
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
