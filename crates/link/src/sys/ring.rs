//! A ring of frames between two threads: one writes into the ring's memory, the other reads there.
//!
//! The two ends share two free-running indices. `tail` belongs to the producer: every slot before it
//! holds a frame. `head` belongs to the consumer: every slot before it is free again. Each lies on
//! cache lines of its own, and each end works with a copy of the other's index and looks at the real
//! one only when the copy says full or empty, so that a batch of frames moves two cache lines of
//! bookkeeping and no more. Where one thread has both ends, a ring that is found empty [starts over](Producer::start_over) at its
//! first slot: the memory that is used is as much as is under way, and not as much as there is, so that it stays in a cache.
//!
//! Nothing here waits; how a sleeping end is told is the caller's business,
//! that it must be told is answered by [`Producer::publish`] and [`Consumer::release`]. As long as the reader has
//! never slept, frames are shown by a store, and by an exchange from then on.

use super::barrier;
use std::cell::UnsafeCell;
use std::hint::cold_path;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Bytes of a cache line; slots begin on one.
const LINE: usize = 64;
/// Bytes in front of the frame in its slot: the stamp, the length, and padding, so that the packet
/// behind a 14-byte Ethernet header begins on a multiple of 32, where its 32-bit fields are aligned.
const FRAME_OFFSET: usize = 18;

/// Once so many slots have been used the producer looks whether the ring is empty and can start over: few enough to stay in a
/// second-level cache, and so many that looking is nothing beside them. Slots that come round sooner are no gain: with 16, a
/// round trip of one byte took a twelfth longer.
const LOOKED_AFTER: usize = 64;

/// What stands there.
type Label = [u8; FRAME_OFFSET];

/// A ring of at least `capacity` slots, each with room for a frame of `room` bytes.
pub(crate) fn ring(capacity: usize, room: usize) -> (Producer, Consumer) {
    let slots = capacity.next_power_of_two();
    // An odd number: a cache has a power of two of sets, and the first lines of all slots, which is all that short frames
    // fill, would crowd in a few of them. (Frames of 1,500 bytes and their headers fill 24 lines, which meet every eighth.)
    let lines_per_slot = (FRAME_OFFSET + room).div_ceil(LINE) | 1;
    let shared = Arc::new(Shared {
        filled: OwnLines(Filled::default()),
        head: OwnLines(AtomicUsize::new(0)),
        flags: OwnLines(Flags {
            consumer_has_slept: AtomicBool::new(!barrier::is_possible()),
            ..Flags::default()
        }),
        memory: (0..slots * lines_per_slot).map(|_| UnsafeCell::new(Line([0; LINE]))).collect(),
        stride: lines_per_slot * LINE,
        mask: slots - 1,
        room,
    });
    let producer =
        Producer { shared: Arc::clone(&shared), tail: 0, start: 0, published: 0, head_seen: 0 };
    (producer, Consumer { shared, head: 0, start: 0, released: 0, looked_after: 0, tail_seen: 0 })
}

/// The end that writes frames.
#[derive(Debug)]
pub(crate) struct Producer {
    shared: Arc<Shared>,
    /// The slot to be written next. Invariant: `published ≤ tail ≤ head_seen + slots`, in wrapping
    /// arithmetic, as for all indices here.
    tail: usize,
    /// What stands for the first slot. Always equal to `shared.filled.start`.
    start: usize,
    /// What the consumer was told of. Always equal to `shared.filled.tail`.
    published: usize,
    /// What `shared.head` was when it was last looked at.
    head_seen: usize,
}

impl Producer {
    /// The next free slot, or `None` if the ring is full. What is not committed is offered again.
    #[inline]
    pub(crate) fn offer(&mut self) -> Option<Offered<'_>> {
        if !self.has_room() {
            return None;
        }
        // SAFETY: `tail` is this end's own index and the slot was just seen to be free, so the consumer does
        // not touch it before `publish`; `&mut self` keeps it to one reference until the offer is gone.
        let (label, frame) = unsafe { self.shared.slot_mut(self.tail.wrapping_sub(self.start)) };
        Some(Offered { label, frame, tail: &mut self.tail })
    }

    /// Before the first frame of several: they begin in the first slot if all that went before are read, and have been more
    /// than a few.
    #[inline]
    pub(crate) fn start_over(&mut self) {
        debug_assert_eq!(self.published, self.tail, "the consumer would look for it elsewhere");
        if self.tail.wrapping_sub(self.start) < LOOKED_AFTER {
            return;
        }
        cold_path();
        let Shared { filled, head, flags, .. } = &*self.shared;
        // Two threads gain nothing: what one writes the other's cache has to give up in any slot.
        // Acquire: as in `has_room_by_now`.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed)
            && head.0.load(Ordering::Acquire) == self.tail
        {
            self.start = self.tail;
            self.head_seen = self.tail;
            // The consumer has no slot, and reads this when it has seen, by acquire, the tail that is stored after it.
            filled.0.start.store(self.start, Ordering::Relaxed);
        }
    }

    /// Whether the next slot is free.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask || self.has_room_by_now()
    }

    #[cold]
    fn has_room_by_now(&mut self) -> bool {
        // Acquire: the consumer has read everything it will read of the slots it gave back.
        self.head_seen = self.shared.head.0.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.head_seen) <= self.shared.mask
    }

    /// Shows the consumer everything that was committed. True if the consumer sleeps and the caller
    /// has to wake it.
    #[must_use = "a sleeping consumer waits for ever"]
    pub(crate) fn publish(&mut self) -> bool {
        if self.published == self.tail {
            return false;
        }
        self.published = self.tail;
        let Shared { filled: OwnLines(Filled { tail, .. }), flags, .. } = &*self.shared;
        // Release: the frames are in memory before the index that shows them.
        if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
            tail.store(self.tail, Ordering::Release);
            // Nothing but the compiler is kept from asking too early: the processor is by the barrier that the consumer makes
            // between its announcement that it is about to sleep for the first time and its last look at the index.
            compiler_fence(Ordering::SeqCst);
            if !flags.0.consumer_has_slept.load(Ordering::Relaxed) {
                return false;
            }
        }
        // In order, too: see `wakes`.
        tail.store(self.tail, Ordering::SeqCst);
        wakes(&flags.0.consumer_asleep)
    }

    /// Announces that this end sleeps until there is room. False, and nothing announced, if there is
    /// room already. Everything that was committed has been published: the consumer looks after who has filled the ring.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        debug_assert_eq!(
            self.published, self.tail,
            "a consumer that does not see a full ring wakes nobody"
        );
        falls_asleep(&self.shared.flags.0.producer_asleep, || {
            self.tail.wrapping_sub(self.shared.head.0.load(Ordering::SeqCst)) <= self.shared.mask
        })
    }

    /// Takes the announcement back.
    pub(crate) fn awake(&self) {
        self.shared.flags.0.producer_asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the consumer exists no longer.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.flags.0.consumer_gone.load(Ordering::Relaxed)
    }
}

/// A slot to be written.
#[derive(Debug)]
pub(crate) struct Offered<'a> {
    /// In front of the frame: its stamp and its length.
    label: &'a mut Label,
    frame: &'a mut [u8],
    tail: &'a mut usize,
}

impl Offered<'_> {
    /// Room for the largest frame.
    #[inline]
    pub(crate) const fn frame(&mut self) -> &mut [u8] {
        self.frame
    }

    /// The slot holds a frame of `length` bytes, stamped with `stamp`. The consumer sees it after the next
    /// [`Producer::publish`].
    #[inline]
    pub(crate) fn commit(self, length: usize, stamp: u64) {
        let length = length.min(self.frame.len()) as u64;
        self.label[..8].copy_from_slice(&stamp.to_ne_bytes());
        self.label[8..16].copy_from_slice(&length.to_ne_bytes());
        *self.tail = self.tail.wrapping_add(1);
    }
}

/// Says so to the consumer, which has to be woken by the owner of this end.
impl Drop for Producer {
    fn drop(&mut self) {
        // Release: whoever sees the flag sees the last published index, too.
        self.shared.flags.0.producer_gone.store(true, Ordering::Release);
    }
}

/// The end that reads frames.
#[derive(Debug)]
pub(crate) struct Consumer {
    shared: Arc<Shared>,
    /// The slot to be read next. Invariant: `released ≤ head ≤ tail_seen`.
    head: usize,
    /// What stands for the first slot, as of all from `head` to `tail_seen`.
    start: usize,
    /// What the producer was told of. Always equal to `shared.head`.
    released: usize,
    /// The same when it was last asked whether the producer sleeps.
    looked_after: usize,
    /// What `shared.filled.tail` was when it was last looked at.
    tail_seen: usize,
}

impl Consumer {
    /// The next frame and its stamp, as one of [several](Self::frames).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(&[u8], u64)> {
        if self.has_frame() { self.frames(1).next() } else { None }
    }

    /// The frames that were [there](Self::has_frame) when that was asked last, `most` at most, where the producer wrote
    /// them, each with its stamp. Their slots stay this end's until [`Consumer::release`], also of those that are not
    /// looked at.
    #[inline]
    pub(crate) fn frames(&mut self, most: usize) -> Frames<'_> {
        let next = self.head;
        self.head = next.wrapping_add(self.tail_seen.wrapping_sub(next).min(most));
        let place = |index: usize| index.wrapping_sub(self.start);
        Frames { shared: &self.shared, next: place(next), end: place(self.head) }
    }

    /// Frames that were read and whose slots have not been given back.
    #[inline]
    pub(crate) const fn taken(&self) -> usize {
        self.head.wrapping_sub(self.released)
    }

    /// The frame that will be the next after `ahead` others, if it is known to be there.
    #[inline]
    pub(crate) fn peek(&self, ahead: usize) -> Option<&[u8]> {
        let known = self.tail_seen.wrapping_sub(self.head);
        if ahead >= known {
            return None;
        }
        // SAFETY: `released ≤ head + ahead < tail_seen ≤ tail`, so the producer has published this slot, and does
        // not touch it before `release`, which needs `&mut self` and hence the end of this borrow.
        let slot =
            unsafe { self.shared.slot(self.head.wrapping_add(ahead).wrapping_sub(self.start)) };
        Some(read(slot)?.0)
    }

    /// Whether a frame is there.
    #[inline]
    pub(crate) fn has_frame(&mut self) -> bool {
        if self.head == self.tail_seen {
            // Acquire: pairs with the release in `publish`; the frames are there.
            let Filled { tail, start } = &self.shared.filled.0;
            let tail = tail.load(Ordering::Acquire);
            if tail == self.head {
                return false;
            }
            self.tail_seen = tail;
            // It changes only while the ring is empty, which it is not before what was just seen is given back.
            self.start = start.load(Ordering::Relaxed);
        }
        true
    }

    /// Gives the slots that were read back. True if the producer sleeps until there is room and the
    /// caller has to wake it.
    #[must_use = "a sleeping producer waits for ever"]
    pub(crate) fn release(&mut self) -> bool {
        if self.released == self.head {
            return false;
        }
        self.released = self.head;
        // Release, both: the reads of these slots come before any write of the producer.
        if self.tail_seen.wrapping_sub(self.looked_after) <= self.shared.mask {
            // A producer sleeps when it has filled the ring. If it has done so and nobody has looked after it since,
            // there is a frame that has not been seen here, and whoever has read that will.
            self.shared.head.0.store(self.head, Ordering::Release);
            return false;
        }
        cold_path();
        self.looked_after = self.head;
        // In order, too: see `wakes`.
        self.shared.head.0.store(self.head, Ordering::SeqCst);
        wakes(&self.shared.flags.0.producer_asleep)
    }

    /// Announces that this end sleeps until a frame comes. False, and nothing announced, if one is
    /// there already.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        let flags = &self.shared.flags.0;
        if !flags.consumer_has_slept.swap(true, Ordering::Relaxed) {
            barrier::make();
        }
        falls_asleep(&flags.consumer_asleep, || {
            self.head != self.shared.filled.0.tail.load(Ordering::SeqCst)
        })
    }

    /// Takes the announcement back.
    pub(crate) fn awake(&self) {
        self.shared.flags.0.consumer_asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the producer exists no longer. What it had published before it went is there to be
    /// read: ask for the next frame once more after this has said so.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.flags.0.producer_gone.load(Ordering::Acquire)
    }
}

/// Frames that are read, one after the other.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    shared: &'a Shared,
    /// How far behind the consumer's `start` the slot to be read next lies. Invariant, with `start` added: `released ≤
    /// next ≤ end ≤ tail_seen` of the consumer.
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
        // SAFETY: `released ≤ start + place < tail_seen ≤ tail`, so the producer has published this slot, and does not
        // touch it before `release`, which needs the consumer that is borrowed for as long as this frame.
        read(unsafe { self.shared.slot(place) })
    }
}

/// The frame in a slot, and its stamp.
#[inline(always)]
fn read<'a>((label, frame): (&'a Label, &'a [u8])) -> Option<(&'a [u8], u64)> {
    let stamp = u64::from_ne_bytes(*label.first_chunk()?);
    let length = u64::from_ne_bytes(*label[8..].first_chunk()?);
    Some((frame.get(..usize::try_from(length).ok()?)?, stamp))
}

/// Says so to the producer, which has to be woken by the owner of this end.
impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.flags.0.consumer_gone.store(true, Ordering::Relaxed);
    }
}

/// The waking side's half of the bargain, after its index is stored.
///
/// Each side writes one thing and then reads the other's: the waking side its index, then the flag;
/// the sleeping side the flag, then the index. Without an order between the write and the read, both
/// could read the old value, and a frame would lie in front of a sleeper for ever. So these four are
/// sequentially consistent: they have one order for all threads, and whichever of the two writes comes second in
/// it is followed by a read that finds the other. (Two fences would do as well, and cost twice as much where
/// a store that orders is one exchange.)
fn wakes(asleep: &AtomicBool) -> bool {
    // Only the first of several publications wakes; the swap decides which.
    asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::Relaxed)
}

/// The sleeping side's half: see [`wakes`]. The index must be read in the same order.
fn falls_asleep(asleep: &AtomicBool, something_is_there: impl Fn() -> bool) -> bool {
    asleep.store(true, Ordering::SeqCst);
    let sleeps = !something_is_there();
    if !sleeps {
        asleep.store(false, Ordering::Relaxed);
    }
    sleeps
}

/// What both ends see.
#[derive(Debug)]
struct Shared {
    filled: OwnLines<Filled>,
    head: OwnLines<AtomicUsize>,
    flags: OwnLines<Flags>,
    /// Slots of `stride` bytes; which end may touch which is told by the indices.
    memory: Box<[UnsafeCell<Line>]>,
    /// Bytes from one slot to the next, whole cache lines.
    stride: usize,
    /// The last of the slots, of which there are a power of two.
    mask: usize,
    /// Bytes of the largest frame: the label and they fit into a slot.
    room: usize,
}

// SAFETY: `memory` is the only part that is not `Sync` by itself. A slot is written by the one
// `Producer` only while `tail` and `head` say that it is free, and read by the one `Consumer` only
// while they say that it is filled; both indices are handed over with release and acquire.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing in it is bound to a thread.
unsafe impl Send for Shared {}

impl Shared {
    /// The slot at `place`, counted from the first and round and round: its label and the frame.
    ///
    /// # Safety
    /// The slot must be filled and stay so for the lifetime of the answer.
    unsafe fn slot(&self, place: usize) -> (&Label, &[u8]) {
        let start = self.slot_start(place);
        // SAFETY: a slot begins with its label, which is initialised as all of `memory` is, and needs no
        // alignment; the caller promises that nobody writes to it.
        let label = unsafe { &*start.cast::<Label>() };
        // SAFETY: label and `room` bytes lie within the slot and are initialised; the caller promises that
        // nobody writes to them.
        let frame = unsafe { slice::from_raw_parts(start.wrapping_add(FRAME_OFFSET), self.room) };
        (label, frame)
    }

    /// The slot at `place`, to be written.
    ///
    /// # Safety
    /// The slot must be free and stay so, and have no other reference, for the lifetime of the answer.
    #[allow(
        clippy::mut_from_ref,
        reason = "the indices, not the borrow, say who may write: see above"
    )]
    unsafe fn slot_mut(&self, place: usize) -> (&mut Label, &mut [u8]) {
        let start = self.slot_start(place);
        // SAFETY: as in `slot`; the cells permit writing, and the caller promises that there is no other
        // reference.
        let label = unsafe { &mut *start.cast::<Label>() };
        // SAFETY: as above; the frame begins where the label ends, so that these are two references to two
        // things.
        let frame =
            unsafe { slice::from_raw_parts_mut(start.wrapping_add(FRAME_OFFSET), self.room) };
        (label, frame)
    }

    fn slot_start(&self, place: usize) -> *mut u8 {
        let offset = (place & self.mask) * self.stride;
        // The pointer comes from the whole slice, so it may reach every byte of it.
        let memory = self.memory.as_ptr().cast::<u8>().cast_mut();
        memory.wrapping_add(offset)
    }
}

/// What the producer tells of the slots that it has filled.
#[derive(Debug, Default)]
struct Filled {
    tail: AtomicUsize,
    /// What stands for the first slot. Written only while the ring is empty: two slots that are in use never stand for the
    /// same.
    start: AtomicUsize,
}

/// What is written only when an end sleeps or goes, and read at every batch: a line that both caches
/// can keep.
#[derive(Debug, Default)]
struct Flags {
    /// Until it has, which it never does where one thread has both ends, nobody need be woken, and frames are shown by a
    /// store alone. True from the beginning where the system makes no [barriers](barrier) for others.
    consumer_has_slept: AtomicBool,
    consumer_asleep: AtomicBool,
    producer_asleep: AtomicBool,
    consumer_gone: AtomicBool,
    producer_gone: AtomicBool,
}

/// One cache line of frame memory.
#[derive(Debug)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "read and written through pointers")] [u8; LINE]);

/// A value that shares its cache lines with nothing else. Two lines, because processors fetch the
/// neighbour of a line along with it.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLines<T>(T);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Few under miri, which runs a thousand times slower.
    const FRAMES: u64 = if cfg!(miri) { 300 } else { 30_000 };

    fn put(producer: &mut Producer, text: &[u8], stamp: u64) -> bool {
        let Some(mut slot) = producer.offer() else { return false };
        slot.frame()[..text.len()].copy_from_slice(text);
        slot.commit(text.len(), stamp);
        true
    }

    #[test]
    fn slots_begin_in_all_the_sets_of_a_cache() {
        for room in [60, 1_500, 1_514, 1_518, 9_018] {
            let (producer, _consumer) = ring(64, room);
            let first = producer.shared.slot_start(0).addr();
            let mut sets: Vec<_> = (0..64)
                .map(|slot| (producer.shared.slot_start(slot).addr() - first) / LINE % 64)
                .collect();
            sets.sort_unstable();
            assert!(sets.into_iter().eq(0..64), "frames of {room} bytes");
        }
    }

    #[test]
    fn frames_come_out_as_they_went_in_once_they_are_published() {
        let (mut producer, mut consumer) = ring(4, 100);
        assert!(put(&mut producer, b"one", 1));
        assert!(put(&mut producer, b"", 2));
        assert!(consumer.next().is_none());
        assert!(!producer.publish());
        assert_eq!(consumer.next(), Some((&b"one"[..], 1)));
        assert_eq!(consumer.next(), Some((&b""[..], 2)));
        assert!(consumer.next().is_none());
        assert!(consumer.next().is_none());
    }

    #[test]
    fn a_full_ring_offers_nothing_until_slots_are_given_back() {
        let (mut producer, mut consumer) = ring(3, 8);
        let filled = (0..10).take_while(|&n| put(&mut producer, &[n], 0)).count();
        assert_eq!(filled, 4, "the capacity is rounded up to a power of two");
        assert!(producer.offer().is_none());
        assert!(!producer.publish());
        assert_eq!(consumer.next().unwrap().0, [0]);
        assert!(!producer.has_room(), "read, and not yet given back");
        assert!(!consumer.release());
        assert!(put(&mut producer, b"x", 0));
        assert!(!producer.has_room());
    }

    #[test]
    fn the_offered_slot_has_exactly_the_room_asked_for_and_the_packet_in_it_is_aligned() {
        let (mut producer, _consumer) = ring(2, 1_518);
        let mut slot = producer.offer().unwrap();
        assert_eq!(slot.frame().len(), 1_518);
        assert_eq!(slot.frame()[14..].as_ptr() as usize % 32, 0);
        assert_eq!(producer.shared.stride, 25 * LINE, "24 would do, but see `ring`");
    }

    #[test]
    fn a_sleeper_is_to_be_woken_once_and_does_not_fall_asleep_over_a_frame() {
        let (mut producer, mut consumer) = ring(2, 8);
        assert!(consumer.fall_asleep());
        put(&mut producer, b"1", 0);
        assert!(producer.publish());
        put(&mut producer, b"2", 0);
        assert!(!producer.publish());
        assert!(!consumer.fall_asleep());
        assert!(producer.fall_asleep(), "the ring is full");
        assert!(consumer.next().is_some());
        assert!(consumer.release());
        assert!(!producer.fall_asleep());
        assert!(consumer.next().is_some());
        assert!(!consumer.release(), "the producer is awake");
    }

    #[test]
    fn who_fills_the_ring_and_sleeps_is_woken_though_room_was_made_without_asking_for_sleepers() {
        let (mut producer, mut consumer) = ring(2, 8);
        put(&mut producer, b"1", 0);
        assert!(!producer.publish());
        assert!(consumer.next().is_some());
        assert!(!consumer.release(), "the ring was not full");
        put(&mut producer, b"2", 0);
        put(&mut producer, b"3", 0);
        assert!(!producer.publish());
        assert!(producer.fall_asleep(), "and now it is");
        assert!(consumer.next().is_some());
        assert!(consumer.release());
    }

    #[test]
    fn who_fills_the_ring_anew_behind_a_frame_that_was_seen_is_woken_when_the_last_one_is_read() {
        let (mut producer, mut consumer) = ring(2, 8);
        put(&mut producer, b"1", 0);
        put(&mut producer, b"2", 0);
        assert!(!producer.publish());
        assert!(consumer.next().is_some());
        assert!(!consumer.release(), "it was looked after, and was awake");
        put(&mut producer, b"3", 0);
        assert!(!producer.publish());
        assert!(producer.fall_asleep());
        assert!(consumer.next().is_some());
        let woken = consumer.release();
        assert!(consumer.next().is_some());
        assert_ne!(consumer.release(), woken, "once");
    }

    #[test]
    fn a_frame_that_is_said_to_be_longer_than_its_room_is_as_long_as_that() {
        let (mut producer, mut consumer) = ring(2, 8);
        producer.offer().unwrap().commit(9, 1);
        put(&mut producer, b"2", 2);
        assert!(!producer.publish());
        assert_eq!(consumer.next(), Some((&[0; 8][..], 1)));
        assert_eq!(consumer.next(), Some((&b"2"[..], 2)));
    }

    #[test]
    fn whoever_finds_something_before_it_sleeps_is_not_woken() {
        let (mut producer, mut consumer) = ring(1, 8);
        put(&mut producer, b"1", 0);
        assert!(!producer.publish());
        assert!(!consumer.fall_asleep());
        assert!(consumer.next().is_some());
        assert!(!consumer.release());
        assert!(!producer.fall_asleep());
        put(&mut producer, b"2", 0);
        assert!(!producer.publish());
        assert!(consumer.next().is_some());
        assert!(!consumer.release());
    }

    #[test]
    fn whoever_has_taken_its_announcement_back_is_not_woken() {
        let (mut producer, mut consumer) = ring(1, 8);
        assert!(consumer.fall_asleep());
        consumer.awake();
        put(&mut producer, b"1", 0);
        assert!(!producer.publish());
        assert!(producer.fall_asleep());
        producer.awake();
        assert!(consumer.next().is_some());
        assert!(!consumer.release());
    }

    #[test]
    fn what_is_shown_and_was_asked_for_can_be_looked_at_before_it_is_taken_and_nothing_else() {
        let (mut producer, mut consumer) = ring(4, 8);
        put(&mut producer, b"1", 0);
        assert!(!producer.publish());
        put(&mut producer, b"2", 0);
        assert!(consumer.has_frame());
        assert_eq!(
            (consumer.peek(0), consumer.peek(1)),
            (Some(&b"1"[..]), None),
            "the other is not shown"
        );
        assert_eq!(consumer.next().unwrap().0, b"1");
        assert!(!producer.publish());
        assert_eq!(consumer.peek(0), None, "nobody has asked whether it is there");
        assert!(consumer.has_frame());
        assert_eq!(consumer.peek(0), Some(&b"2"[..]));
    }

    /// Writes `count` frames one by one, of which each is read and its slot given back before the next, and says where they lay.
    fn pass(producer: &mut Producer, consumer: &mut Consumer, count: usize) -> Vec<usize> {
        let pass_one = |_| {
            producer.start_over();
            let place = producer.offer().unwrap().frame().as_ptr().addr();
            put(producer, b"passes", 1);
            assert!(!producer.publish());
            assert_eq!(consumer.next(), Some((&b"passes"[..], 1)));
            assert!(!consumer.release());
            place
        };
        (0..count).map(pass_one).collect()
    }

    #[test]
    fn a_ring_in_which_few_are_under_way_uses_few_of_its_slots() {
        let (mut producer, mut consumer) = ring(1_024, 8);
        let mut places = pass(&mut producer, &mut consumer, 10 * LOOKED_AFTER);
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), LOOKED_AFTER);
        assert!(consumer.fall_asleep());
        consumer.awake();
        let mut places = pass(&mut producer, &mut consumer, 1_024);
        places.sort_unstable();
        places.dedup();
        assert_eq!(
            places.len(),
            1_024,
            "and all of them, one after the other, once two threads take turns"
        );
    }

    #[test]
    fn a_ring_does_not_start_over_before_the_last_slot_is_given_back() {
        let (mut producer, mut consumer) = ring(4 * LOOKED_AFTER, 8);
        let first = pass(&mut producer, &mut consumer, LOOKED_AFTER)[0];
        for number in 0..2 * LOOKED_AFTER as u64 {
            producer.start_over();
            assert_eq!(
                producer.offer().unwrap().frame().as_ptr().addr() == first,
                number == 0,
                "{number}"
            );
            put(&mut producer, &[1], number);
            assert!(!producer.publish());
        }
        assert!(consumer.has_frame());
        assert_eq!(
            consumer.peek(2 * LOOKED_AFTER - 1),
            Some(&[1][..]),
            "it looks ahead from where they begin"
        );
        assert!(
            consumer.frames(usize::MAX).map(|(_, number)| number).eq(0..2 * LOOKED_AFTER as u64)
        );
        producer.start_over();
        assert_ne!(
            producer.offer().unwrap().frame().as_ptr().addr(),
            first,
            "all are read, and none given back"
        );
        assert!(!consumer.release());
        assert!(pass(&mut producer, &mut consumer, LOOKED_AFTER + 1).contains(&first));
    }

    #[test]
    fn each_end_learns_that_the_other_is_gone_and_loses_nothing_by_it() {
        let (mut producer, mut consumer) = ring(2, 8);
        put(&mut producer, b"last", 0);
        assert!(!producer.publish());
        drop(producer);
        assert!(consumer.is_abandoned());
        assert_eq!(consumer.next().unwrap().0, b"last");

        let (producer, consumer) = ring(2, 8);
        assert!(!producer.is_abandoned());
        drop(consumer);
        assert!(producer.is_abandoned());
    }

    /// The contents of frame `number`: its length and every byte depend on it.
    fn contents(number: u64) -> Vec<u8> {
        let length = number % 61;
        (0..length).map(|at| (number * 31 + at).to_le_bytes()[0]).collect()
    }

    fn expect(consumer: &mut Consumer, number: u64) -> bool {
        let Some((frame, stamp)) = consumer.next() else { return false };
        assert_eq!(stamp, number);
        assert_eq!(frame, contents(number));
        true
    }

    #[test]
    fn two_threads_exchange_frames_in_order_and_intact() {
        let (mut producer, mut consumer) = ring(8, 64);
        let writer = thread::spawn(move || {
            let mut next = 0;
            while next < FRAMES {
                let before = next;
                producer.start_over();
                while next < FRAMES
                    && next - before < 5
                    && put(&mut producer, &contents(next), next)
                {
                    next += 1;
                }
                let _ = producer.publish();
                thread::yield_now();
            }
        });
        let mut next = 0;
        while next < FRAMES {
            while expect(&mut consumer, next) {
                next += 1;
            }
            let _ = consumer.release();
            thread::yield_now();
        }
        writer.join().unwrap();
        assert!(consumer.next().is_none());
    }

    /// The first frame of each of many rings is shown by a store alone, while the consumer is about to sleep for the first
    /// time: two threads that meet at each of them.
    #[test]
    fn who_sleeps_for_the_first_time_does_not_sleep_over_a_frame() {
        let rings: Vec<_> = (0..FRAMES).map(|_| ring(1, 8)).collect();
        let (producers, consumers): (Vec<_>, Vec<_>) = rings.into_iter().unzip();
        let arrived = Arc::new(AtomicUsize::new(0));
        let meet = |arrived: &AtomicUsize, round: usize| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * (round + 1) {
                thread::yield_now();
            }
        };
        let same = Arc::clone(&arrived);
        let writer = thread::spawn(move || {
            let mut wakes = Vec::new();
            let mut kept = Vec::new();
            for (round, mut producer) in producers.into_iter().enumerate() {
                put(&mut producer, b"1", 0);
                meet(&same, round);
                wakes.push(producer.publish());
                kept.push(producer);
            }
            wakes
        });
        let mut sleeps = Vec::new();
        for (round, mut consumer) in consumers.into_iter().enumerate() {
            meet(&arrived, round);
            sleeps.push(consumer.fall_asleep());
        }
        let wakes = writer.join().unwrap();
        let forgotten =
            sleeps.iter().zip(wakes).filter(|&(&sleeps, wakes)| sleeps && !wakes).count();
        assert_eq!(forgotten, 0);
    }

    #[test]
    fn ends_that_sleep_whenever_they_may_are_woken_whenever_they_must() {
        let (mut producer, mut consumer) = ring(2, 64);
        let reader = thread::current();
        let writer = thread::spawn(move || {
            for number in 0..FRAMES / 10 {
                producer.start_over();
                while !put(&mut producer, &contents(number), number) {
                    if producer.fall_asleep() {
                        // Parking may end for no reason; a frame of the ring decides, not the wake-up.
                        while producer.shared.flags.0.producer_asleep.load(Ordering::Relaxed) {
                            thread::park();
                        }
                    }
                }
                if producer.publish() {
                    reader.unpark();
                }
            }
        });
        let mut next = 0;
        while next < FRAMES / 10 {
            if expect(&mut consumer, next) {
                next += 1;
                if consumer.release() {
                    writer.thread().unpark();
                }
            } else if consumer.fall_asleep() {
                while consumer.shared.flags.0.consumer_asleep.load(Ordering::Relaxed) {
                    thread::park();
                }
            }
        }
        writer.join().unwrap();
    }
}
