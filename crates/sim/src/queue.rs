//! What will happen, in its order: by time, and at one time in the order in which it was decided.

use linerate_units::Tick;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Things to come. The same calls give the same order on every machine.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Entry<E>>,
    decided: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Tick,
    order: u64,
    event: E,
}

impl<E> Queue<E> {
    /// Nothing will happen.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(256), decided: 0 }
    }

    /// Decides that `event` will happen.
    pub(crate) fn push(&mut self, at: Tick, event: E) {
        let order = self.decided;
        self.decided += 1;
        self.heap.push(Entry { at, order, event });
    }

    /// Takes what happens next, and when.
    pub(crate) fn pop(&mut self) -> Option<(Tick, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// How much is to come.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<E> Ord for Entry<E> {
    /// The heap gives its greatest first: that is the earliest here.
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
    fn what_happens_at_one_time_happens_in_the_order_of_decision() {
        let mut queue = Queue::new();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            queue.push(Tick::from_picos(at), event);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!((order.as_str(), queue.len()), ("abcd", 0));
    }
}
