//! The producer of a ring, which writes frames.

use super::shared::{Filled, Label, OwnLines, Shared};
use super::sleep::{announce_sleep, wake_sleeper};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

/// The number of used slots after which an empty ring starts over at its first slot. With 64 slots,
/// the used memory still fits the second-level cache. With 16 slots, the ring starts over more
/// often: a measured round trip of one byte then took 8 % longer.
pub(super) const START_OVER_AFTER: usize = 64;

/// The producer of a ring, which writes frames.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(super) shared: Arc<Shared>,
    /// Index of the next slot to write. Invariant: `published ≤ tail ≤ head_seen + slots`. All
    /// indices are compared in wrapping arithmetic.
    tail: usize,
    /// The index whose slot is at the start of the memory. Always equal to `shared.filled.start`.
    start: usize,
    /// The frames before this index have been published. Always equal to `shared.filled.tail`.
    published: usize,
    /// The value that the producer has most recently read from `shared.head`.
    head_seen: usize,
}

impl Producer {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tail: 0, start: 0, published: 0, head_seen: 0 }
    }

    /// Returns the next free slot, or `None` if the ring is full. If the caller drops the slot
    /// without committing it, the next call returns this slot once more.
    #[inline]
    pub(crate) fn offer(&mut self) -> Option<Offered<'_>> {
        if !self.has_room() {
            return None;
        }
        // SAFETY: the slot at `tail` is free, so the consumer does not access it before it is
        // published. Publishing needs `&mut self`, and so does a second offer. Both are impossible
        // while this offer exists.
        let (label, frame) = unsafe { self.shared.slot_mut(self.tail.wrapping_sub(self.start)) };
        Some(Offered { label, frame, tail: &mut self.tail })
    }

    /// Makes the ring start over at its first slot if it is empty and at least [`START_OVER_AFTER`]
    /// slots have been used since its previous start. Must be called before the first frame of a
    /// batch.
    #[inline]
    pub(crate) fn start_over(&mut self) {
        debug_assert_eq!(self.published, self.tail, "all frames are published");
        if self.tail.wrapping_sub(self.start) < START_OVER_AFTER {
            return;
        }
        cold_path();
        let Shared { filled, head, flags, .. } = &*self.shared;
        // The ring starts over to keep the used slots in the cache of one CPU. That fails if the
        // consumer runs in another thread, because the cache lines then move between CPUs. A
        // consumer that has ever slept runs in another thread. The acquire load of `head` ensures
        // that the consumer has finished reading the slots before they are reused.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed)
            && head.0.load(Ordering::Acquire) == self.tail
        {
            self.start = self.tail;
            self.head_seen = self.tail;
            // A relaxed store suffices. While the ring is empty, the consumer does not use `start`.
            // It finds the next frame by an acquire load of the `tail` that is stored when this
            // frame is published. After that load, it also sees this earlier store.
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
        // Acquire ensures that the consumer has finished reading the slots before they are reused.
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
        // Both stores to `tail` below have release ordering or stronger. A consumer that sees the
        // new index thus also sees the frames before it.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
            tail.store(self.tail, Ordering::Release);
            // The processor may execute the load of the flag below before the store to `tail`
            // above, and thus miss that the consumer is about to sleep. The consumer still finds
            // the frame: before its first sleep, it sets the flag, executes `membarrier` for both
            // threads, and then reads `tail` once more. So only the compiler must be kept from
            // changing the order.
            compiler_fence(Ordering::SeqCst);
            if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
                return false;
            }
        }
        // This store must take effect before `wake_sleeper` loads the flag of the sleeping
        // consumer, so both are sequentially consistent.
        tail.store(self.tail, Ordering::SeqCst);
        wake_sleeper(&flags.0.consumer_asleep)
    }

    /// Announces to the consumer that the producer will sleep until there is room. Returns false if
    /// there is room already; the producer must not sleep in that case. All frames must have been
    /// published before. The reason is that the consumer checks for a sleeping producer only after
    /// it has found a full ring, and it finds only published frames.
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

/// A free slot, into which the caller may write a frame.
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

    /// Completes the slot with a frame of `length` bytes, whose time stamp is `stamp`. The consumer
    /// can read the frame once [`Producer::publish`] has been called.
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
        // Release: a thread that sees this flag also sees the final `tail` that was published.
        self.shared.flags.0.producer_gone.store(true, Ordering::Release);
    }
}
