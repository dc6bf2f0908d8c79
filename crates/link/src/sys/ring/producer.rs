//! The end of a ring that writes frames.

use super::shared::{Filled, Label, OwnLines, Shared};
use super::sleep::{announce_sleep, wake_sleeper};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

/// The number of used slots after which the producer starts over if the ring is empty. This number
/// of slots fits the second-level cache, and makes the check negligible. With 16 slots, a round
/// trip of one byte took 8 % longer.
pub(super) const START_OVER_AFTER: usize = 64;

/// The end of a ring that writes frames.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(super) shared: Arc<Shared>,
    /// The index of the slot to be written next. Invariant: `published ≤ tail ≤ head_seen + slots`,
    /// in wrapping arithmetic like all indices.
    tail: usize,
    /// The index of the first slot. Always equal to `shared.filled.start`.
    start: usize,
    /// The published tail. Always equal to `shared.filled.tail`.
    published: usize,
    /// The copy of `shared.head`.
    head_seen: usize,
}

impl Producer {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tail: 0, start: 0, published: 0, head_seen: 0 }
    }

    /// Returns the next free slot, or `None` if the ring is full. A slot that is not committed is
    /// offered again.
    #[inline]
    pub(crate) fn offer(&mut self) -> Option<Offered<'_>> {
        if !self.has_room() {
            return None;
        }
        // SAFETY: `tail` is this end's own index and its slot is free, so the consumer does not
        // access it before `publish`. `&mut self` permits only one reference until the offer is
        // gone.
        let (label, frame) = unsafe { self.shared.slot_mut(self.tail.wrapping_sub(self.start)) };
        Some(Offered { label, frame, tail: &mut self.tail })
    }

    /// Starts over at the first slot, if the ring is empty and enough slots have been used. To be
    /// called before the first frame of a batch.
    #[inline]
    pub(crate) fn start_over(&mut self) {
        debug_assert_eq!(self.published, self.tail, "all frames are published");
        if self.tail.wrapping_sub(self.start) < START_OVER_AFTER {
            return;
        }
        cold_path();
        let Shared { filled, head, flags, .. } = &*self.shared;
        // Starting over gains nothing with two threads, since each written cache line must move
        // between the CPUs in any case. Acquire ordering: as in `refresh_room`.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed)
            && head.0.load(Ordering::Acquire) == self.tail
        {
            self.start = self.tail;
            self.head_seen = self.tail;
            // The consumer has no slot now. It reads `start` only after it has seen a later tail by
            // an acquire load.
            filled.0.start.store(self.start, Ordering::Relaxed);
        }
    }

    /// Is the next slot free?
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask || self.refresh_room()
    }

    #[cold]
    fn refresh_room(&mut self) -> bool {
        // Acquire: the consumer has finished reading the slots that it has released.
        self.head_seen = self.shared.head.0.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask
    }

    /// Publishes all committed frames. Returns whether the consumer sleeps and the caller must wake
    /// it.
    #[must_use = "a sleeping consumer waits for ever"]
    pub(crate) fn publish(&mut self) -> bool {
        if self.published == self.tail {
            return false;
        }
        self.published = self.tail;
        let Shared { filled: OwnLines(Filled { tail, .. }), flags, .. } = &*self.shared;
        // Release: the frames are in memory before the index that publishes them.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
            tail.store(self.tail, Ordering::Release);
            // Only reordering by the compiler is prevented here. The consumer executes `membarrier`
            // for both threads, between its first announcement that it will sleep and its last
            // check of the index.
            compiler_fence(Ordering::SeqCst);
            if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
                return false;
            }
        }
        // The store is sequentially consistent, because `wake_sleeper` loads the sleeper's flag
        // after it.
        tail.store(self.tail, Ordering::SeqCst);
        wake_sleeper(&flags.0.consumer_asleep)
    }

    /// Announces that this end sleeps until there is room. Returns false, without an announcement,
    /// if there is room. All frames must have been published: the consumer looks for a sleeping
    /// producer only if it has seen a full ring.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        debug_assert_eq!(self.published, self.tail, "all frames are published");
        announce_sleep(&self.shared.flags.0.producer_asleep, || {
            self.tail.wrapping_sub(self.shared.head.0.load(Ordering::SeqCst)) <= self.shared.mask
        })
    }

    /// Withdraws the announcement.
    pub(crate) fn awake(&self) {
        self.shared.flags.0.producer_asleep.store(false, Ordering::Relaxed);
    }

    /// Has the consumer been dropped?
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.flags.0.consumer_gone.load(Ordering::Relaxed)
    }
}

/// A free slot to be written.
#[derive(Debug)]
pub(crate) struct Offered<'a> {
    /// The bytes before the frame.
    label: &'a mut Label,
    frame: &'a mut [u8],
    tail: &'a mut usize,
}

impl Offered<'_> {
    /// Returns the memory of the frame, with room for the largest one.
    #[inline]
    pub(crate) const fn frame(&mut self) -> &mut [u8] {
        self.frame
    }

    /// Stores a frame of `length` bytes with the time `stamp`. The consumer sees it after the next
    /// [`Producer::publish`].
    #[inline]
    pub(crate) fn commit(self, length: usize, stamp: u64) {
        let length = length.min(self.frame.len()) as u64;
        self.label[..8].copy_from_slice(&stamp.to_ne_bytes());
        self.label[8..16].copy_from_slice(&length.to_ne_bytes());
        *self.tail = self.tail.wrapping_add(1);
    }
}

/// Tells the consumer that the producer is gone. The owner of this end must wake it.
impl Drop for Producer {
    fn drop(&mut self) {
        // Release: a thread that sees the flag also sees the last published index.
        self.shared.flags.0.producer_gone.store(true, Ordering::Release);
    }
}
