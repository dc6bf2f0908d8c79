//! The consumer of a ring, which reads frames.

use super::shared::{Filled, Label, Shared};
use super::sleep::{announce_sleep, wake_sleeper};
use crate::sys::barrier;
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The consumer of a ring, which reads frames.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(super) shared: Arc<Shared>,
    /// Index of the first slot whose frame has not been taken. Invariant: `released ≤ head ≤
    /// tail_seen`.
    head: usize,
    /// The index whose slot is at the start of the memory. The slot of any index lies `index -
    /// start` slots behind that, modulo the number of slots. Valid for all indices from `head` to
    /// `tail_seen`.
    start: usize,
    /// The slots before this index have been released to the producer. Equal to `shared.head`.
    released: usize,
    /// The value of `head` when the consumer most recently checked whether the producer sleeps.
    checked: usize,
    /// The value that the consumer has most recently read from `shared.filled.tail`.
    tail_seen: usize,
}

impl Consumer {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, head: 0, start: 0, released: 0, checked: 0, tail_seen: 0 }
    }

    /// Takes the next frame. Returns it with its time stamp; `None` if there is no frame.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(&[u8], u64)> {
        if self.has_frame() { self.frames(1).next() } else { None }
    }

    /// Takes up to `most` frames, each with its time stamp, but only frames that a call of
    /// [`has_frame`](Self::has_frame) has already seen. Their slots stay in use until
    /// [`Consumer::release`], even if the iterator is dropped before it has returned all of them.
    #[inline]
    pub(crate) fn frames(&mut self, most: usize) -> Frames<'_> {
        let next = self.head;
        self.head = next.wrapping_add(self.tail_seen.wrapping_sub(next).min(most));
        let place = |index: usize| index.wrapping_sub(self.start);
        Frames { shared: &self.shared, next: place(next), end: place(self.head) }
    }

    /// Returns the number of frames that were taken and whose slots have not been released.
    #[inline]
    pub(crate) const fn taken(&self) -> usize {
        self.head.wrapping_sub(self.released)
    }

    /// Returns the frame that follows the next `ahead` frames, without taking any frame. Returns
    /// `None` if [`has_frame`](Self::has_frame) has not seen that frame yet.
    #[inline]
    pub(crate) fn peek(&self, ahead: usize) -> Option<&[u8]> {
        let known = self.tail_seen.wrapping_sub(self.head);
        if ahead >= known {
            return None;
        }
        // SAFETY: `released ≤ head + ahead < tail_seen ≤ tail`, so the producer has published this
        // slot. It cannot write to the slot before `release`. That call needs `&mut self`, so it is
        // not possible while the returned frame is borrowed.
        let slot =
            unsafe { self.shared.slot(self.head.wrapping_add(ahead).wrapping_sub(self.start)) };
        Some(read(slot)?.0)
    }

    /// Returns whether a frame can be read.
    #[inline]
    pub(crate) fn has_frame(&mut self) -> bool {
        if self.head == self.tail_seen {
            // Acquire pairs with the release store in `publish`. If this load returns a new index,
            // the consumer also sees the frames before that index.
            let Filled { tail, start } = &self.shared.filled.0;
            let tail = tail.load(Ordering::Acquire);
            if tail == self.head {
                return false;
            }
            self.tail_seen = tail;
            // The producer stored `start` before it stored the `tail` that was just loaded, so this
            // value is at least as new. The producer changes `start` only while the ring is empty.
            // So the value stays valid until all frames before this `tail` are released.
            self.start = start.load(Ordering::Relaxed);
        }
        true
    }

    /// Releases the taken slots to the producer. Returns whether the producer sleeps until there is
    /// room, so that the caller must wake it.
    #[must_use = "a sleeping producer waits for ever"]
    pub(crate) fn release(&mut self) -> bool {
        if self.released == self.head {
            return false;
        }
        self.released = self.head;
        // Both stores to `head` below have release ordering or stronger. The producer thus
        // overwrites a slot only after the consumer has read its frame.
        if self.tail_seen.wrapping_sub(self.checked) <= self.shared.mask {
            // Since its previous check, the consumer has seen at most as many frames as the ring
            // has slots, so it need not check now whether the producer sleeps. The producer sleeps
            // only while the ring is full. If the ring is full now, it contains frames that the
            // consumer has not seen yet, and the release of those frames checks.
            self.shared.head.0.store(self.head, Ordering::Release);
            return false;
        }
        cold_path();
        self.checked = self.head;
        // This store must take effect before `wake_sleeper` loads the flag of the sleeping
        // producer, so both are sequentially consistent.
        self.shared.head.0.store(self.head, Ordering::SeqCst);
        wake_sleeper(&self.shared.flags.0.producer_asleep)
    }

    /// Announces to the producer that the consumer will sleep until a frame arrives. Returns false
    /// if there is a frame already; the consumer must not sleep in that case.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        let flags = &self.shared.flags.0;
        if !flags.consumer_has_slept.swap(true, Ordering::Relaxed) {
            barrier::make();
        }
        announce_sleep(&flags.consumer_asleep, || {
            self.head != self.shared.filled.0.tail.load(Ordering::SeqCst)
        })
    }

    /// Withdraws the announcement that the consumer sleeps.
    pub(crate) fn awake(&self) {
        self.shared.flags.0.consumer_asleep.store(false, Ordering::Relaxed);
    }

    /// Returns whether the producer has been dropped. If so, the caller must check once more for
    /// frames, because the producer may have published frames after the caller's previous check.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.flags.0.producer_gone.load(Ordering::Acquire)
    }
}

/// The frames of a batch, in their order.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    shared: &'a Shared,
    /// Position of the next slot, counted from the consumer's `start`. Invariant for the indices to
    /// which the positions belong: `released ≤ next ≤ end ≤ tail_seen`.
    next: usize,
    end: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = (&'a [u8], u64);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let place = self.next;
        self.next = place.wrapping_add(1);
        // SAFETY: `released ≤ start + place < tail_seen ≤ tail`, so the producer has published this
        // slot. It cannot write to the slot before `release`, for which the consumer must be
        // borrowed mutably. That is not possible while this frame is borrowed.
        read(unsafe { self.shared.slot(place) })
    }
}

/// Returns the frame in a slot, and its time stamp.
#[inline(always)]
fn read<'a>((label, frame): (&'a Label, &'a [u8])) -> Option<(&'a [u8], u64)> {
    let stamp = u64::from_ne_bytes(*label.first_chunk()?);
    let length = u64::from_ne_bytes(*label[8..].first_chunk()?);
    Some((frame.get(..usize::try_from(length).ok()?)?, stamp))
}

/// Marks the consumer as gone. The owner of the consumer must wake the producer.
impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.flags.0.consumer_gone.store(true, Ordering::Relaxed);
    }
}
