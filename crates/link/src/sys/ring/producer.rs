//! The producer of a ring, which writes frames.

use super::shared::{Filled, Label, OwnLines, Shared};
use super::sleep::{announce_sleep, wake_sleeper};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

/// The number of used slots after which an empty ring starts over at its first slot. This many
/// slots fit the second-level cache. With 16 slots, the ring starts over more often, and a round
/// trip of one byte took 8 % longer.
pub(super) const START_OVER_AFTER: usize = 64;

/// The producer of a ring, which writes frames.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(super) shared: Arc<Shared>,
    /// Index of the next slot to write. Invariant: `published ≤ tail ≤ head_seen + slots`, in
    /// wrapping arithmetic like all indices.
    tail: usize,
    /// Index whose slot is the first in the memory. Always equal to `shared.filled.start`.
    start: usize,
    /// Index up to which frames have been published. Always equal to `shared.filled.tail`.
    published: usize,
    /// The value that the producer has most recently read from `shared.head`.
    head_seen: usize,
}

impl Producer {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tail: 0, start: 0, published: 0, head_seen: 0 }
    }

    /// Returns the next free slot, or `None` if the ring is full. If the slot is not committed, the
    /// next call returns it again.
    #[inline]
    pub(crate) fn offer(&mut self) -> Option<Offered<'_>> {
        if !self.has_room() {
            return None;
        }
        // SAFETY: `tail` is the producer's own index and its slot is free, so the consumer does not
        // access it before `publish`. `&mut self` permits only one reference until the offer is
        // gone.
        let (label, frame) = unsafe { self.shared.slot_mut(self.tail.wrapping_sub(self.start)) };
        Some(Offered { label, frame, tail: &mut self.tail })
    }

    /// Makes an empty ring start over at its first slot, if [`START_OVER_AFTER`] slots or more have
    /// been used since it last did. Must be called before the first frame of a batch.
    #[inline]
    pub(crate) fn start_over(&mut self) {
        debug_assert_eq!(self.published, self.tail, "all frames are published");
        if self.tail.wrapping_sub(self.start) < START_OVER_AFTER {
            return;
        }
        cold_path();
        let Shared { filled, head, flags, .. } = &*self.shared;
        // Starting over keeps the used slots in the cache of one CPU. If the consumer has ever
        // slept, it runs in another thread, and cache lines move between the CPUs in any case. The
        // acquire load of `head` ensures that the consumer has finished reading before its slots
        // are reused.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed)
            && head.0.load(Ordering::Acquire) == self.tail
        {
            self.start = self.tail;
            self.head_seen = self.tail;
            // A relaxed store suffices: while the ring is empty, the consumer does not use `start`.
            // It finds the next frame by an acquire load of a later `tail`, after which it also
            // sees this store.
            filled.0.start.store(self.start, Ordering::Relaxed);
        }
    }

    /// Returns whether a slot is free.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask || self.refresh_room()
    }

    #[cold]
    fn refresh_room(&mut self) -> bool {
        // Acquire: slots are reused only after the consumer has finished reading them.
        self.head_seen = self.shared.head.0.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask
    }

    /// Publishes all committed frames. Returns whether the consumer sleeps, so that the caller must
    /// wake it.
    #[must_use = "a sleeping consumer waits for ever"]
    pub(crate) fn publish(&mut self) -> bool {
        if self.published == self.tail {
            return false;
        }
        self.published = self.tail;
        let Shared { filled: OwnLines(Filled { tail, .. }), flags, .. } = &*self.shared;
        // Both stores to `tail` below are at least release stores, so that a consumer that sees the
        // new index also sees the frames.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
            tail.store(self.tail, Ordering::Release);
            // The processor may execute the load below before the store above, and thus miss that
            // the consumer begins to sleep. No frame is missed: before its first sleep, the
            // consumer sets this flag, executes `membarrier` for both threads, and then reads the
            // index again. So only the compiler must keep the order.
            compiler_fence(Ordering::SeqCst);
            if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
                return false;
            }
        }
        // The store is sequentially consistent, because it must take effect before `wake_sleeper`
        // loads the sleeper's flag.
        tail.store(self.tail, Ordering::SeqCst);
        wake_sleeper(&flags.0.consumer_asleep)
    }

    /// Announces that the producer will sleep until there is room. If there is room, announces
    /// nothing and returns false. All frames must have been published. The consumer checks for a
    /// sleeping producer only after it has found a full ring, and it does not find unpublished
    /// frames.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        debug_assert_eq!(self.published, self.tail, "all frames are published");
        announce_sleep(&self.shared.flags.0.producer_asleep, || {
            self.tail.wrapping_sub(self.shared.head.0.load(Ordering::SeqCst)) <= self.shared.mask
        })
    }

    /// Withdraws the announcement that the producer sleeps.
    pub(crate) fn awake(&self) {
        self.shared.flags.0.producer_asleep.store(false, Ordering::Relaxed);
    }

    /// Returns whether the consumer has been dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.flags.0.consumer_gone.load(Ordering::Relaxed)
    }
}

/// A free slot that is offered to be written.
#[derive(Debug)]
pub(crate) struct Offered<'a> {
    /// The bytes in front of the frame: time stamp and length.
    label: &'a mut Label,
    frame: &'a mut [u8],
    tail: &'a mut usize,
}

impl Offered<'_> {
    /// Returns the memory for the frame, which has room for the largest frame.
    #[inline]
    pub(crate) const fn frame(&mut self) -> &mut [u8] {
        self.frame
    }

    /// Completes the slot: it holds a frame of `length` bytes with time stamp `stamp`. The consumer
    /// can read the frame after the next [`Producer::publish`].
    #[inline]
    pub(crate) fn commit(self, length: usize, stamp: u64) {
        let length = length.min(self.frame.len()) as u64;
        self.label[..8].copy_from_slice(&stamp.to_ne_bytes());
        self.label[8..16].copy_from_slice(&length.to_ne_bytes());
        *self.tail = self.tail.wrapping_add(1);
    }
}

/// Marks the producer as gone. The owner of the producer must wake the consumer.
impl Drop for Producer {
    fn drop(&mut self) {
        // Release: a thread that sees the flag also sees the final index that was published.
        self.shared.flags.0.producer_gone.store(true, Ordering::Release);
    }
}
