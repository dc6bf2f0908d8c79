//! A ring buffer of bytes, whose size is a power of two. Both socket buffers use it.

use crate::MemoryGrant;
use crate::compact::pack::packed;
use alloc::boxed::Box;
use core::ops::Range;
use linerate_units::{Duration, Instant};
use linerate_wire::checksum::{Sum, copy_and_sum};

/// The size of the smallest allocation for a buffer, in bytes. A buffer with a smaller capacity may
/// have a smaller one.
pub const SMALLEST_BUFFER_MEMORY: usize = 4 << 10;

/// The period after which the record of recent use is halved: see [`Ring::give_back_unused`].
const RECENT: Duration = Duration::from_millis(100);

/// A ring buffer. Bytes are addressed by their offset from the head, which is the first byte of
/// data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ring {
    storage: Box<[u8]>,
    head: usize,
    /// The largest number of bytes that were in use recently. [`Ring::give_back_unused`] halves the
    /// value at most once in each period of [`RECENT`].
    used: u32,
    period: u32,
}

packed!(Ring { head, used, period } known { storage: |_config| Box::default() });

impl Ring {
    /// Creates a ring without memory.
    pub(crate) fn new() -> Self {
        Self { storage: Box::default(), head: 0, used: 0, period: 0 }
    }

    /// Returns the size of the ring's memory in bytes.
    pub(crate) const fn memory(&self) -> usize {
        self.storage.len()
    }

    /// Swaps the memory of the ring, which must be empty, with `memory` if both have equal size.
    /// Returns whether they were swapped.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        let fits = self.storage.len() == memory.len();
        if fits {
            core::mem::swap(&mut self.storage, memory);
        }
        fits
    }

    /// Returns the number of bytes that `grant` allows the ring to allocate. For the first
    /// allocation this is at least [`MemoryGrant::least`].
    fn allowance(&self, grant: &MemoryGrant) -> usize {
        (if self.storage.is_empty() { grant.room.max(grant.least) } else { grant.room }) as usize
    }

    /// Returns the largest size in bytes to which `grant` allows the ring to grow.
    pub(crate) fn reach(&self, grant: &MemoryGrant) -> usize {
        let most = self.storage.len().saturating_add(self.allowance(grant));
        most.checked_ilog2().map_or(0, |bits| 1 << bits)
    }

    /// Ensures that the ring has memory for `needed` bytes from the head, growing up to `capacity`.
    /// Returns false if the grant is too small.
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        needed: usize,
        capacity: usize,
        grant: &MemoryGrant,
    ) -> bool {
        needed <= self.storage.len() || self.grow(needed, capacity, grant)
    }

    /// Grows the ring. The new size is at least twice the old one, so the total cost of copying
    /// during growth is proportional to the bytes written.
    #[cold]
    fn grow(&mut self, needed: usize, capacity: usize, grant: &MemoryGrant) -> bool {
        let size = needed.max(SMALLEST_BUFFER_MEMORY.min(capacity)).next_power_of_two();
        let may = size - self.storage.len() <= self.allowance(grant);
        if may {
            self.resize(size, self.storage.len());
        }
        may
    }

    /// Records that `bytes` bytes are in use at present.
    #[inline]
    pub(crate) fn note_use(&mut self, bytes: u32) {
        self.used = self.used.max(bytes);
    }

    /// Frees memory beyond the larger of two amounts: the first `needed` bytes, and twice the
    /// recent use. If recent use were ignored, the memory of an application that reads each segment
    /// at once would be allocated and freed for each segment.
    pub(crate) fn give_back_unused(&mut self, now: Instant, needed: usize) {
        let period = now.since(Instant::ZERO).as_millis() / RECENT.as_millis();
        let period = u32::try_from(period).unwrap_or(u32::MAX);
        if period != self.period {
            self.period = period;
            self.used /= 2;
        }
        self.give_back(needed.max(2 * self.used as usize));
    }

    /// Frees memory that exceeds the first `needed` bytes from the head. The memory is left
    /// unchanged unless it can be at least halved. The total cost of shrinking therefore does not
    /// exceed that of growing.
    pub(crate) fn give_back(&mut self, needed: usize) {
        if needed == 0 {
            *self = Self::new();
            return;
        }
        let size = needed.max(SMALLEST_BUFFER_MEMORY).next_power_of_two();
        if size < self.storage.len() {
            self.resize(size, needed);
        }
    }

    /// Moves the first `kept` bytes from the head to a new allocation of `size` bytes.
    fn resize(&mut self, size: usize, kept: usize) {
        let storage = core::mem::replace(&mut self.storage, alloc::vec![0; size].into());
        let old = Self { storage, ..*self };
        let (first, second) = old.slices(0, kept);
        if kept > 0 {
            self.write(0, first);
            self.write(first.len(), second);
        }
    }

    /// Writes `bytes` at `offset` from the head.
    #[inline(always)]
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let at = self.at(offset);
        match self.storage.get_mut(at..at + bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => self.write_around_the_end(at, bytes),
        }
    }

    /// Returns room for `length` bytes at `offset` from the head. `None` if the room is not
    /// contiguous, or exceeds the ring's memory.
    #[inline(always)]
    pub(crate) fn place_of_next(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        if offset + length > self.storage.len() {
            return None;
        }
        let at = self.at(offset);
        self.storage.get_mut(at..at + length)
    }

    /// Returns the contiguous room after `length` bytes at `offset` from the head, the place that
    /// [`place_of_next`](Self::place_of_next) returns.
    #[inline(always)]
    pub(crate) fn following(&self, offset: usize, length: usize) -> Following {
        let at = self.at(offset) + length;
        let (until_end, free) = (self.storage.len() - at, self.storage.len() - (offset + length));
        Following { at, left: until_end.min(free) }
    }

    /// Returns the memory that `following` describes.
    #[inline(always)]
    pub(crate) fn place_of_following(&mut self, following: Following) -> &mut [u8] {
        &mut self.storage[following.at..following.at + following.left]
    }

    #[cold]
    fn write_around_the_end(&mut self, at: usize, bytes: &[u8]) {
        let (first, second) = bytes.split_at(self.storage.len() - at);
        self.storage[at..].copy_from_slice(first);
        self.storage[..second.len()].copy_from_slice(second);
    }

    /// Returns the bytes at `offset` from the head for writing: up to `length` bytes, as far as
    /// they are contiguous.
    pub(crate) fn place(&mut self, offset: usize, length: usize) -> &mut [u8] {
        let at = self.at(offset);
        let end = self.storage.len().min(at + length);
        &mut self.storage[at..end]
    }

    /// Returns the bytes at `offset` from the head: up to `length` bytes, as far as they are
    /// contiguous.
    pub(crate) fn front(&self, offset: usize, length: usize) -> &[u8] {
        self.slices(offset, length).0
    }

    /// Copies as many bytes as `into` has, from `offset` behind the head, to `into`.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        let at = self.at(offset);
        match self.storage.get(at..at + into.len()) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => self.read_around_the_end(offset, into),
        }
    }

    #[cold]
    fn read_around_the_end(&self, offset: usize, into: &mut [u8]) {
        let (first, second) = self.slices(offset, into.len());
        let (front, back) = into.split_at_mut(first.len());
        front.copy_from_slice(first);
        back.copy_from_slice(second);
    }

    /// Copies the bytes at `offset` from the head to `into`, and returns their partial checksum.
    #[inline]
    pub(crate) fn read_and_sum(&self, offset: usize, into: &mut [u8]) -> Sum {
        let at = self.at(offset);
        if let Some(bytes) = self.storage.get(at..at + into.len()) {
            return copy_and_sum(bytes, into);
        }
        self.read_around_the_end_and_sum(offset, into)
    }

    #[inline(never)]
    fn read_around_the_end_and_sum(&self, offset: usize, into: &mut [u8]) -> Sum {
        let (first, second) = self.slices(offset, into.len());
        let (front, back) = into.split_at_mut(first.len());
        copy_and_sum(first, front).append(copy_and_sum(second, back), front.len())
    }

    /// Copies the memory of `other`, except for the ranges `kept`, which are offsets from the head.
    /// Tests use it to make memory without data equal before a comparison.
    pub(crate) fn copy_unused_memory(
        &mut self,
        other: &Self,
        kept: impl Iterator<Item = Range<usize>>,
    ) {
        let own = core::mem::replace(&mut self.storage, other.storage.clone());
        let own = Self { storage: own, ..*self };
        if self.memory() != own.memory() {
            return *self = own;
        }
        for range in kept {
            let (first, second) = own.slices(range.start, range.len());
            self.write(range.start, first);
            self.write(range.start + first.len(), second);
        }
    }

    /// Moves the head forward by `count` bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count);
    }

    /// Moves the head of an empty ring to the start of the memory. The start of the memory is
    /// likely in the CPU's cache, and from there all room is contiguous.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        self.head = 0;
    }

    /// Returns the `length` bytes at `offset` from the head, in one or two parts.
    #[inline]
    pub(crate) fn slices(&self, offset: usize, length: usize) -> (&[u8], &[u8]) {
        if length == 0 {
            return (&[], &[]);
        }
        let at = self.at(offset);
        let front = length.min(self.storage.len() - at);
        (&self.storage[at..at + front], &self.storage[..length - front])
    }

    fn at(&self, offset: usize) -> usize {
        self.head.wrapping_add(offset) & (self.storage.len().wrapping_sub(1))
    }
}

/// The position of free memory in a ring, after the data of predicted segments that are stored but
/// not processed yet. It is valid until the connection changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Following {
    at: usize,
    left: usize,
}

impl Following {
    /// Limits the room to `window` bytes, the part of the receive window that the peer has not
    /// used.
    pub(crate) fn within(self, window: usize) -> Self {
        Self { left: self.left.min(window), ..self }
    }

    /// Removes the first `length` bytes of the room, because data was written there.
    #[inline(always)]
    pub(crate) const fn pass(&mut self, length: usize) {
        self.at += length;
        self.left -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const ALL: MemoryGrant = MemoryGrant::UNLIMITED;

    fn room(room: u32) -> MemoryGrant {
        MemoryGrant { room, least: 0, ..ALL }
    }

    #[test]
    fn bytes_wrap_around_the_end_of_the_storage() {
        let mut ring = Ring::new();
        assert!(ring.make_room(5, 5, &ALL));
        assert_eq!(ring.memory(), 8);
        ring.advance(6);
        ring.write(0, b"abcde");
        let mut into = [0; 5];
        ring.read(0, &mut into);
        assert_eq!(&into, b"abcde");
        let mut summed = [0; 5];
        assert_eq!(ring.read_and_sum(0, &mut summed).finish(), Sum::of(b"abcde").finish());
        assert_eq!(summed, into);
    }

    #[test]
    fn bytes_are_kept_when_the_ring_grows_and_shrinks() {
        let mut ring = Ring::new();
        assert!(ring.make_room(4_096, 1 << 20, &ALL));
        ring.advance(4_000);
        let data: Vec<u8> = (0..4_000_u16).map(|number| (number % 251).to_le_bytes()[0]).collect();
        ring.write(0, &data);
        let read = |ring: &Ring| {
            let mut into = alloc::vec![0; 4_000];
            ring.read(0, &mut into);
            into
        };
        assert!(ring.make_room(70_000, 1 << 20, &ALL));
        assert_eq!((ring.memory(), read(&ring)), (131_072, data.clone()));
        ring.give_back(4_000);
        assert_eq!((ring.memory(), read(&ring)), (4_096, data));
        ring.give_back(0);
        assert_eq!(ring.memory(), 0);
    }

    #[test]
    fn no_more_memory_is_allocated_than_granted() {
        let mut ring = Ring::new();
        assert!(!ring.make_room(4_097, 1 << 20, &room(8_191)));
        assert_eq!(ring.memory(), 0);
        assert!(ring.make_room(4_097, 1 << 20, &room(8_192)));
        assert!(!ring.make_room(8_193, 1 << 20, &room(8_191)));
        assert!(ring.make_room(8_193, 1 << 20, &room(8_192)));
    }

    #[test]
    fn the_first_allocation_is_granted_separately() {
        let mut ring = Ring::new();
        let grant = &MemoryGrant { room: 0, least: 4_096, ..ALL };
        assert_eq!(ring.reach(grant), 4_096);
        assert!(!ring.make_room(4_097, 1 << 20, grant));
        assert!(ring.make_room(1, 1 << 20, grant));
        assert!(!ring.make_room(4_097, 1 << 20, grant));
        assert_eq!(ring.reach(&room(16_383)), 16_384);
    }

    #[test]
    fn recently_used_memory_is_not_freed() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut ring = Ring::new();
        assert!(ring.make_room(60_000, 1 << 20, &ALL));
        ring.note_use(60_000);
        ring.give_back_unused(at(1_000), 1);
        ring.give_back_unused(at(1_099), 1);
        assert_eq!(ring.memory(), 65_536);
        ring.note_use(10_000);
        ring.give_back_unused(at(1_100), 1);
        assert_eq!(ring.memory(), 32_768);
        ring.give_back_unused(at(1_200), 1);
        assert_eq!(ring.memory(), 16_384);
        for later in 13..30 {
            ring.give_back_unused(at(later * 100), 0);
        }
        assert_eq!(ring.memory(), 0);
    }

    /// Writes 1 KiB at a time. In total, growing must move no more bytes than were written.
    #[test]
    fn growth_is_amortised() {
        let mut ring = Ring::new();
        let mut moved = 0;
        for kibibytes in 1..=1_024 {
            let before = ring.memory();
            assert!(ring.make_room(kibibytes << 10, 1 << 20, &ALL));
            moved += if ring.memory() > before { before } else { 0 };
        }
        assert!(moved < 1 << 20, "{moved} bytes were moved");
    }

    #[test]
    fn an_empty_ring_reads_nothing() {
        Ring::new().read(0, &mut []);
    }
}
