//! The event queue of a simulation.

use linerate_units::Tick;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of events, ordered by time. Events of equal time keep the order in which they were
/// added, so that a simulation is reproducible.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    next_order: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Tick,
    order: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// Creates an empty queue.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(256), next_order: 0 }
    }

    /// Schedules `event` for the time `at`.
    pub(crate) fn push(&mut self, at: Tick, event: E) {
        let order = self.next_order;
        self.next_order += 1;
        self.heap.push(Entry { at, order, event });
    }

    /// Removes the earliest event, and returns it with its time; `None` if the queue is empty.
    pub(crate) fn pop(&mut self) -> Option<(Tick, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// Returns the number of scheduled events.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<E> Ord for Entry<E> {
    /// Compares in reverse order, because `BinaryHeap` returns its greatest entry first and the
    /// queue must return the earliest event.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut queue = EventQueue::new();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            queue.push(Tick::from_picos(at), event);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!((order.as_str(), queue.len()), ("abcd", 0));
    }
}
