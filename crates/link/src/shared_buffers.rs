//! Receive buffers of which the host can keep some, instead of copying their data.
//!
//! Each frame of a batch has a buffer of its own. If the host keeps the buffer of a frame, the next
//! batch uses another buffer in its place. The kept buffer is remembered, to be reused once the
//! host has dropped it. The number of remembered buffers is limited. Buffers that are not
//! remembered are freed when the host drops them.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::sync::Arc;

/// The maximum number of kept buffers that are remembered for reuse. With 64 KiB each, they occupy
/// 2 MiB.
const REMEMBERED: usize = 32;

/// Receive buffers for one batch of frames, and the remembered buffers that the host has kept.
#[derive(Debug)]
pub(crate) struct SharedBuffers {
    /// The buffers of the current batch, one for each frame.
    places: Box<[Arc<[u8]>]>,
    /// Buffers that the host has kept and that can be reused once it has dropped them. The buffer
    /// that was kept first is at the front.
    kept: VecDeque<Arc<[u8]>>,
    /// The size of each buffer in bytes.
    size: usize,
}

impl SharedBuffers {
    /// Creates `at_once` buffers of `size` bytes, for batches of up to `at_once` frames.
    pub(crate) fn new(size: usize, at_once: usize) -> Self {
        Self { places: (0..at_once).map(|_| fresh(size)).collect(), kept: VecDeque::new(), size }
    }

    /// Returns the buffer of frame number `place` of the most recent batch.
    pub(crate) fn memory(&self, place: usize) -> &Arc<[u8]> {
        &self.places[place]
    }

    /// Returns a buffer for a batch of a single frame: the first buffer, or a replacement for it if
    /// the host keeps it.
    pub(crate) fn next_one(&mut self) -> &mut [u8] {
        self.free(0);
        // If the host kept the buffer, `free` has replaced it. So the buffer has no other owner
        // here, and `make_mut` need not copy it.
        Arc::make_mut(&mut self.places[0])
    }

    /// Returns buffers for the next batch, at most `count`.
    pub(crate) fn next(&mut self, count: usize) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let count = count.min(self.places.len());
        (0..count).for_each(|place| self.free(place));
        self.places[..count].iter_mut().map(Arc::make_mut)
    }

    /// Replaces the buffer at `place` if the host keeps it. The replacement is a remembered buffer
    /// that the host has dropped, or a new one. The search begins with the oldest, because hosts
    /// tend to drop buffers in the order in which they were received.
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
    fn a_buffer_that_is_not_kept_is_used_again() {
        let mut buffers = SharedBuffers::new(4, 1);
        buffers.next_one().copy_from_slice(b"once");
        let place = buffers.memory(0).as_ptr();
        assert_eq!(buffers.next_one().as_ptr(), place);
        assert_eq!(buffers.kept.len(), 0);
    }

    #[test]
    fn a_kept_buffer_stays_unchanged_and_is_used_again_after_its_release() {
        let mut buffers = SharedBuffers::new(1, 1);
        let mut kept = Vec::new();
        for number in 0..3 {
            buffers.next_one()[0] = number;
            kept.push(Arc::clone(buffers.memory(0)));
        }
        buffers.next_one()[0] = 9;
        assert_eq!(kept.iter().map(|memory| memory[0]).collect::<Vec<_>>(), [0, 1, 2]);
        let place = kept[1].as_ptr();
        kept.remove(1);
        kept.push(Arc::clone(buffers.memory(0)));
        assert_eq!(buffers.next_one().as_ptr(), place);
        assert_eq!(buffers.kept.len(), 3);
    }

    #[test]
    fn a_limited_number_of_kept_buffers_is_remembered() {
        let mut buffers = SharedBuffers::new(1, 1);
        let mut kept = Vec::new();
        for _ in 0..1_000 {
            buffers.next_one();
            kept.push(Arc::clone(buffers.memory(0)));
        }
        assert_eq!(buffers.kept.len(), REMEMBERED);
        let all: std::collections::BTreeSet<_> =
            kept.iter().map(|memory| memory.as_ptr()).collect();
        assert_eq!(all.len(), 1_000, "every kept buffer is another one");
    }

    #[test]
    fn the_oldest_kept_buffer_is_forgotten_and_used_again_first() {
        let mut buffers = SharedBuffers::new(1, 1);
        let mut kept = Vec::new();
        for _ in 0..REMEMBERED + 10 {
            buffers.next_one();
            kept.push(Arc::clone(buffers.memory(0)));
        }
        // The test keeps `REMEMBERED` + 10 buffers. The newest one is still the receive buffer, so
        // it is not in `buffers.kept`. That list contains the `REMEMBERED` buffers before it. The
        // nine oldest buffers are in neither place.
        let expected = &kept[9..REMEMBERED + 9];
        assert!(buffers.kept.iter().zip(expected).all(|(memory, kept)| Arc::ptr_eq(memory, kept)));
        drop(kept);
        let oldest = buffers.kept[0].as_ptr();
        let last = Arc::clone(buffers.memory(0));
        assert_eq!(buffers.next_one().as_ptr(), oldest);
        drop(last);
    }

    #[test]
    fn only_the_kept_buffers_of_a_batch_are_replaced() {
        let mut buffers = SharedBuffers::new(1, 3);
        assert_eq!(buffers.next(9).len(), 3);
        buffers.next(3).zip(0..).for_each(|(memory, number)| memory[0] = number);
        let kept = Arc::clone(buffers.memory(1));
        let places = [0, 1, 2].map(|place| buffers.memory(place).as_ptr());
        buffers.next(3).for_each(|memory| memory[0] = 9);
        assert_eq!(kept[0], 1);
        let now = [0, 1, 2].map(|place| buffers.memory(place).as_ptr());
        assert_eq!(
            (now[0] == places[0], now[1] == places[1], now[2] == places[2]),
            (true, false, true)
        );
    }
}
