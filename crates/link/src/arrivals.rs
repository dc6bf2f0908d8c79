//! The memory that frames are read into, and that hosts may keep.
//!
//! As long as nobody keeps any there is one. What is kept comes back by itself: it is written into again when
//! nobody else shares it any more. So many are remembered; what is kept beyond them belongs to whoever keeps it.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::sync::Arc;

/// How many are remembered while they are kept: with 64 KiB each as much as two sockets with large buffers hold.
const REMEMBERED: usize = 32;

/// Memory for one frame at a time.
#[derive(Debug)]
pub(crate) struct Arrivals {
    current: Arc<[u8]>,
    /// Others, the one that was kept first in front.
    kept: VecDeque<Arc<[u8]>>,
    /// Bytes of each.
    size: usize,
}

impl Arrivals {
    /// Memory for frames of `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self { current: fresh(size), kept: VecDeque::new(), size }
    }

    /// The memory of the last frame.
    pub(crate) const fn current(&self) -> &Arc<[u8]> {
        &self.current
    }

    /// Memory for the next frame: the last one's, if nobody keeps that.
    pub(crate) fn next(&mut self) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            self.change();
        }
        // It is shared by nobody now, so this copies nothing.
        Arc::make_mut(&mut self.current)
    }

    /// The last frame is kept: others come back in about the order in which they were.
    fn change(&mut self) {
        let free = self.kept.iter_mut().position(|memory| Arc::get_mut(memory).is_some());
        let next = free.and_then(|free| self.kept.remove(free)).unwrap_or_else(|| fresh(self.size));
        if self.kept.len() == REMEMBERED {
            self.kept.pop_front();
        }
        self.kept.push_back(std::mem::replace(&mut self.current, next));
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
        let mut arrivals = Arrivals::new(4);
        arrivals.next().copy_from_slice(b"once");
        let place = arrivals.current().as_ptr();
        assert_eq!(arrivals.next().as_ptr(), place);
        assert_eq!(arrivals.kept.len(), 0);
    }

    #[test]
    fn what_is_kept_stays_as_it_is_and_comes_back_when_it_is_let_go() {
        let mut arrivals = Arrivals::new(1);
        let mut held = Vec::new();
        for number in 0..3 {
            arrivals.next()[0] = number;
            held.push(Arc::clone(arrivals.current()));
        }
        arrivals.next()[0] = 9;
        assert_eq!(held.iter().map(|memory| memory[0]).collect::<Vec<_>>(), [0, 1, 2]);
        let place = held[1].as_ptr();
        held.remove(1);
        held.push(Arc::clone(arrivals.current()));
        assert_eq!(arrivals.next().as_ptr(), place);
        assert_eq!(arrivals.kept.len(), 3);
    }

    #[test]
    fn no_more_is_remembered_than_that_however_much_is_kept() {
        let mut arrivals = Arrivals::new(1);
        let mut held = Vec::new();
        for _ in 0..1_000 {
            arrivals.next();
            held.push(Arc::clone(arrivals.current()));
        }
        assert_eq!(arrivals.kept.len(), REMEMBERED);
        let all: std::collections::BTreeSet<_> = held.iter().map(|memory| memory.as_ptr()).collect();
        assert_eq!(all.len(), 1_000, "nobody's memory is another's");
    }
}
