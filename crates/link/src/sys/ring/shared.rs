//! The shared memory of a ring: slots, indices and flags.

use crate::sys::barrier;
use std::cell::UnsafeCell;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The length of a cache line in bytes, and the alignment of slots.
pub(super) const LINE: usize = 64;
/// The offset of the frame in its slot. The time stamp and the length of the frame are in front of
/// it. They take fewer bytes than the offset. With the padding, a packet behind an Ethernet header
/// of 14 bytes is aligned to 32 bytes.
pub(super) const FRAME_OFFSET: usize = 18;

/// The bytes in front of the frame in a slot: time stamp and length.
pub(super) type Label = [u8; FRAME_OFFSET];

/// The memory that producer and consumer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) filled: OwnLines<Filled>,
    pub(super) head: OwnLines<AtomicUsize>,
    pub(super) flags: OwnLines<Flags>,
    /// The slots, of `stride` bytes each. The indices determine which endpoint may access a slot.
    memory: Box<[UnsafeCell<Line>]>,
    /// The distance between two slots in bytes, a multiple of the cache line.
    pub(super) stride: usize,
    /// The number of slots minus one. The number of slots is a power of two, so `& mask` computes a
    /// position modulo this number.
    pub(super) mask: usize,
    /// The length of the largest frame in bytes. A slot has room for its label and such a frame.
    room: usize,
}

// SAFETY: all other fields are `Sync`, and the indices guard `memory`. The only `Producer` writes
// to a slot only while the indices say that the slot is free. The only `Consumer` reads a slot only
// while they say that it is filled. Each index is stored with release and loaded with acquire
// ordering.
unsafe impl Sync for Shared {}
// SAFETY: no field is bound to a thread, and the indices guard `memory`, as explained for `Sync`.
unsafe impl Send for Shared {}

impl Shared {
    /// Creates the memory of at least `capacity` slots, each with room for a frame of `room` bytes.
    pub(super) fn new(capacity: usize, room: usize) -> Self {
        let slots = capacity.next_power_of_two();
        // Each slot has an odd number of cache lines. A short frame uses only the first lines of
        // its slot, and a cache has a power of two of sets. If the number of lines per slot were
        // even, the first lines of all slots would fall into only some of these sets.
        let lines_per_slot = (FRAME_OFFSET + room).div_ceil(LINE) | 1;
        Self {
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
        }
    }

    /// Returns the label and the frame of the slot at position `place`. Positions are counted from
    /// the start of the memory, modulo the number of slots.
    ///
    /// # Safety
    /// The slot must be filled, and stay so for the lifetime of the result.
    #[inline]
    pub(super) unsafe fn slot(&self, place: usize) -> (&Label, &[u8]) {
        let start = self.slot_start(place);
        // SAFETY: a slot begins with its label, which is initialised like all of `memory` and needs
        // no alignment. The caller guarantees that there is no writer.
        let label = unsafe { &*start.cast::<Label>() };
        // SAFETY: the label and `room` bytes lie within the slot, and are initialised. The caller
        // guarantees that there is no writer.
        let frame = unsafe { slice::from_raw_parts(start.wrapping_add(FRAME_OFFSET), self.room) };
        (label, frame)
    }

    /// Returns the label and the frame of slot `place` for writing.
    ///
    /// # Safety
    /// The slot must be free, stay so, and have no other reference, for the lifetime of the result.
    #[allow(
        clippy::mut_from_ref,
        reason = "the indices, and not the borrow, determine which end may write"
    )]
    #[inline]
    pub(super) unsafe fn slot_mut(&self, place: usize) -> (&mut Label, &mut [u8]) {
        let start = self.slot_start(place);
        // SAFETY: as in `slot`, this is initialised memory of the slot. The cells permit writing,
        // and the caller guarantees that there is no other reference.
        let label = unsafe { &mut *start.cast::<Label>() };
        // SAFETY: as in `slot`, this is initialised memory of the slot. The frame begins where the
        // label ends, so the two mutable references do not overlap.
        let frame =
            unsafe { slice::from_raw_parts_mut(start.wrapping_add(FRAME_OFFSET), self.room) };
        (label, frame)
    }

    #[inline]
    pub(super) fn slot_start(&self, place: usize) -> *mut u8 {
        let offset = (place & self.mask) * self.stride;
        // The pointer is derived from the whole slice, and not from one element. Under Rust's rules
        // of pointer provenance, it may therefore access all slots.
        let memory = self.memory.as_ptr().cast::<u8>().cast_mut();
        memory.wrapping_add(offset)
    }
}

/// The indices that the producer publishes.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) tail: AtomicUsize,
    /// The index whose slot is at the start of the memory. The slot of any index lies `index -
    /// start` slots behind that, modulo the number of slots. `start` changes only while the ring is
    /// empty, because a slot in use must keep its position.
    pub(super) start: AtomicUsize,
}

/// The flags of both endpoints. Both endpoints read them for every batch, but write them only when
/// an endpoint sleeps or is dropped. So their cache line usually stays in the caches of both CPUs.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// Whether the consumer has ever slept. As long as it has not, the producer publishes by a
    /// release store. After that, a slower store is necessary. A consumer in the producer's own
    /// thread never sleeps, so there the flag stays false. It is true from the start if the system
    /// lacks the [barrier](barrier), which a first sleep needs.
    pub(super) consumer_has_slept: AtomicBool,
    pub(super) consumer_asleep: AtomicBool,
    pub(super) producer_asleep: AtomicBool,
    pub(super) consumer_gone: AtomicBool,
    pub(super) producer_gone: AtomicBool,
}

/// One cache line of frame memory.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line(
    #[allow(dead_code, reason = "read and written through pointers")] [u8; LINE],
);

/// A value that has two cache lines of its own. One would not suffice, because processors fetch
/// neighbouring cache lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct OwnLines<T>(pub(super) T);
