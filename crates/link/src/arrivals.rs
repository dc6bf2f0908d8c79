//! The memory that frames are read into, and that hosts may keep.
//!
//! As long as nobody keeps any there is a place for each frame that is taken in at once. What is kept comes back by itself: it is written into again when
//! nobody else shares it any more. So many are remembered; what is kept beyond them belongs to whoever keeps it.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::sync::Arc;

/// How many are remembered while they are kept: with 64 KiB each as much as two sockets with large buffers hold.
const REMEMBERED: usize = 32;

/// Memory for the frames that are taken in at once.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// One for each of them, the memory that was written into last.
    places: Box<[Arc<[u8]>]>,
    /// Others, the one that was kept first in front.
    kept: VecDeque<Arc<[u8]>>,
    /// Bytes of each.
    size: usize,
}

impl Arrivals {
    /// Memory for frames of `size` bytes, `at_once` at a time.
    pub(crate) fn new(size: usize, at_once: usize) -> Self {
        Self { places: (0..at_once).map(|_| fresh(size)).collect(), kept: VecDeque::new(), size }
    }

    /// The memory of the frame that was the `place`-th of the last that were taken in.
    pub(crate) fn memory(&self, place: usize) -> &Arc<[u8]> {
        &self.places[place]
    }

    /// Memory for the next frame: the last one's, if nobody keeps that.
    pub(crate) fn next_one(&mut self) -> &mut [u8] {
        self.free(0);
        // It is shared by nobody now, so this copies nothing.
        Arc::make_mut(&mut self.places[0])
    }

    /// Memory for the next frames, `count` of them at most.
    pub(crate) fn next(&mut self, count: usize) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let count = count.min(self.places.len());
        (0..count).for_each(|place| self.free(place));
        self.places[..count].iter_mut().map(Arc::make_mut)
    }

    /// Sees to it that nobody keeps what is at this place: others come back in about the order in which they were
    /// kept.
    fn free(&mut self, place: usize) {
        if Arc::strong_count(&self.places[place]) == 1 {
            return;
        }
        let free = self.kept.iter_mut().position(|memory| Arc::get_mut(memory).is_some());
        let next = free.and_then(|free| self.kept.remove(free)).unwrap_or_else(|| fresh(self.size));
        if self.kept.len() == REMEMBERED {
            self.kept.pop_front();
        }
        self.kept.push_back(std::mem::replace(&mut self.places[place], next));
    }
}

fn fresh(size: usize) -> Arc<[u8]> {
    repeat_n(0, size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_keeps_is_used_again() {
        let mut arrivals = Arrivals::new(4, 1);
        arrivals.next_one().copy_from_slice(b"once");
        let place = arrivals.memory(0).as_ptr();
        assert_eq!(arrivals.next_one().as_ptr(), place);
        assert_eq!(arrivals.kept.len(), 0);
    }

    #[test]
    fn what_is_kept_stays_as_it_is_and_comes_back_when_it_is_let_go() {
        let mut arrivals = Arrivals::new(1, 1);
        let mut held = Vec::new();
        for number in 0..3 {
            arrivals.next_one()[0] = number;
            held.push(Arc::clone(arrivals.memory(0)));
        }
        arrivals.next_one()[0] = 9;
        assert_eq!(held.iter().map(|memory| memory[0]).collect::<Vec<_>>(), [0, 1, 2]);
        let place = held[1].as_ptr();
        held.remove(1);
        held.push(Arc::clone(arrivals.memory(0)));
        assert_eq!(arrivals.next_one().as_ptr(), place);
        assert_eq!(arrivals.kept.len(), 3);
    }

    #[test]
    fn no_more_is_remembered_than_that_however_much_is_kept() {
        let mut arrivals = Arrivals::new(1, 1);
        let mut held = Vec::new();
        for _ in 0..1_000 {
            arrivals.next_one();
            held.push(Arc::clone(arrivals.memory(0)));
        }
        assert_eq!(arrivals.kept.len(), REMEMBERED);
        let all: std::collections::BTreeSet<_> =
            held.iter().map(|memory| memory.as_ptr()).collect();
        assert_eq!(all.len(), 1_000, "nobody's memory is another's");
    }

    #[test]
    fn what_was_kept_first_is_forgotten_and_comes_back_before_the_others() {
        let mut arrivals = Arrivals::new(1, 1);
        let mut held = Vec::new();
        for _ in 0..REMEMBERED + 10 {
            arrivals.next_one();
            held.push(Arc::clone(arrivals.memory(0)));
        }
        // The last is in its place still.
        let expected = &held[9..REMEMBERED + 9];
        assert!(arrivals.kept.iter().zip(expected).all(|(memory, held)| Arc::ptr_eq(memory, held)));
        drop(held);
        let oldest = arrivals.kept[0].as_ptr();
        let last = Arc::clone(arrivals.memory(0));
        assert_eq!(arrivals.next_one().as_ptr(), oldest);
        drop(last);
    }

    #[test]
    fn of_several_at_once_only_those_that_are_kept_change_their_memory() {
        let mut arrivals = Arrivals::new(1, 3);
        assert_eq!(arrivals.next(9).len(), 3);
        arrivals.next(3).zip(0..).for_each(|(memory, number)| memory[0] = number);
        let held = Arc::clone(arrivals.memory(1));
        let places = [0, 1, 2].map(|place| arrivals.memory(place).as_ptr());
        arrivals.next(3).for_each(|memory| memory[0] = 9);
        assert_eq!(held[0], 1);
        let now = [0, 1, 2].map(|place| arrivals.memory(place).as_ptr());
        assert_eq!(
            (now[0] == places[0], now[1] == places[1], now[2] == places[2]),
            (true, false, true)
        );
    }
}
