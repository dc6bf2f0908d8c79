//! A ring of bytes whose size is a power of two, for both socket buffers.

use crate::MemoryGrant;
use crate::rest::pack::packed;
use alloc::boxed::Box;
use core::ops::Range;
use linerate_units::{Duration, Instant};
use linerate_wire::checksum::{Sum, copy_and_sum};

/// Memory for a buffer is not taken in smaller pieces than this, unless the buffer is smaller.
pub const SMALLEST_BUFFER_MEMORY: usize = 4 << 10;

/// From one time to the next that what was used of late counts half as much.
const RECENT: Duration = Duration::from_millis(100);

/// Bytes addressed by their distance from a head that moves forward, or back to the start when it is asked to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ring {
    storage: Box<[u8]>,
    head: usize,
    /// The most bytes that were in use of late; halved once in a `period` that somebody asks for memory back.
    used: u32,
    period: u32,
}

packed!(Ring { head, used, period } known { storage: |_config| Box::default() });

impl Ring {
    /// A ring without memory.
    pub(crate) fn new() -> Self {
        Self { storage: Box::default(), head: 0, used: 0, period: 0 }
    }

    /// Bytes of memory that it holds.
    pub(crate) const fn memory(&self) -> usize {
        self.storage.len()
    }

    /// Lies in `memory` from now on, and gives its own for that, if they are as large. Nothing is in it.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        let fits = self.storage.len() == memory.len();
        if fits {
            core::mem::swap(&mut self.storage, memory);
        }
        fits
    }

    /// What it may take of a grant: the first piece is in any case the smallest.
    fn allowance(&self, grant: &MemoryGrant) -> usize {
        (if self.storage.is_empty() { grant.room.max(grant.least) } else { grant.room }) as usize
    }

    /// The most that it could hold with a grant.
    pub(crate) fn reach(&self, grant: &MemoryGrant) -> usize {
        let most = self.storage.len().saturating_add(self.allowance(grant));
        most.checked_ilog2().map_or(0, |bits| 1 << bits)
    }

    /// Makes sure of memory for `needed` bytes from the head on, of `capacity` that may ever be needed,
    /// without taking more than is granted. False if that is not enough.
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        needed: usize,
        capacity: usize,
        grant: &MemoryGrant,
    ) -> bool {
        needed <= self.storage.len() || self.grow(needed, capacity, grant)
    }

    /// Each growth at least doubles the ring, so a byte is copied O(1) times on the average of all.
    #[cold]
    fn grow(&mut self, needed: usize, capacity: usize, grant: &MemoryGrant) -> bool {
        let size = needed.max(SMALLEST_BUFFER_MEMORY.min(capacity)).next_power_of_two();
        let may = size - self.storage.len() <= self.allowance(grant);
        if may {
            self.resize(size, self.storage.len());
        }
        may
    }

    /// So many bytes are in use.
    #[inline]
    pub(crate) fn note_use(&mut self, bytes: u32) {
        self.used = self.used.max(bytes);
    }

    /// Gives back what is neither needed for the first `needed` bytes from the head on nor for twice what was
    /// of late: who reads all that arrives has an empty buffer between two segments, and would lose it
    /// each time.
    pub(crate) fn give_back_unused(&mut self, now: Instant, needed: usize) {
        let period = now.since(Instant::ZERO).as_millis() / RECENT.as_millis();
        let period = u32::try_from(period).unwrap_or(u32::MAX);
        if period != self.period {
            self.period = period;
            self.used /= 2;
        }
        self.give_back(needed.max(2 * self.used as usize));
    }

    /// Gives back what is not needed for the first `needed` bytes from the head on. Memory is halved at
    /// least, or left alone, so that this costs no more than what has grown it.
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

    /// Moves the first `kept` bytes from the head on to a storage of `size` bytes.
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

    /// The place of `length` bytes behind the first `offset`, if there is memory for them, and in one part.
    #[inline(always)]
    pub(crate) fn place_of_next(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        if offset + length > self.storage.len() {
            return None;
        }
        let at = self.at(offset);
        self.storage.get_mut(at..at + length)
    }

    /// What lies behind the `length` bytes at the [place of the next](Self::place_of_next), which they have.
    #[inline(always)]
    pub(crate) fn following(&self, offset: usize, length: usize) -> Following {
        let at = self.at(offset) + length;
        let (until_end, free) = (self.storage.len() - at, self.storage.len() - (offset + length));
        Following { at, left: until_end.min(free) }
    }

    /// All the place of what follows.
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

    /// The place of the bytes at `offset` from the head, of `length` as many as lie together.
    pub(crate) fn place(&mut self, offset: usize, length: usize) -> &mut [u8] {
        let at = self.at(offset);
        let end = self.storage.len().min(at + length);
        &mut self.storage[at..end]
    }

    /// The bytes at `offset` from the head, of `length` as many as lie together.
    pub(crate) fn front(&self, offset: usize, length: usize) -> &[u8] {
        self.slices(offset, length).0
    }

    /// Copies the bytes at `offset` from the head out.
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

    /// Copies the bytes at `offset` from the head out and sums them on the way.
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

    /// The memory has what that of `other` has, except for the bytes at `kept` from the head on.
    pub(crate) fn take_leftovers_of(
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

    /// Moves the head forward, past bytes that are done with.
    pub(crate) fn advance(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count);
    }

    /// Nothing lies anywhere: what comes next lies at the start of the memory, which is warm, and in one part.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        self.head = 0;
    }

    /// The bytes at `offset` from the head, as they lie in one or two parts.
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

/// Where data lie that follow those of predicted segments which the connection has not been told of, and for how many
/// bytes there is room. It is right as long as nothing else happens to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Following {
    at: usize,
    left: usize,
}

impl Following {
    /// No more than `window` bytes may follow.
    pub(crate) fn within(self, window: usize) -> Self {
        Self { left: self.left.min(window), ..self }
    }

    /// `length` bytes have followed.
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
    fn bytes_survive_the_end_of_the_storage() {
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
    fn bytes_stay_where_they_are_when_the_ring_grows_and_when_it_shrinks() {
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
    fn no_more_memory_is_taken_than_there_is_room() {
        let mut ring = Ring::new();
        assert!(!ring.make_room(4_097, 1 << 20, &room(8_191)));
        assert_eq!(ring.memory(), 0);
        assert!(ring.make_room(4_097, 1 << 20, &room(8_192)));
        assert!(!ring.make_room(8_193, 1 << 20, &room(8_191)));
        assert!(ring.make_room(8_193, 1 << 20, &room(8_192)));
    }

    #[test]
    fn the_first_piece_is_granted_apart() {
        let mut ring = Ring::new();
        let grant = &MemoryGrant { room: 0, least: 4_096, ..ALL };
        assert_eq!(ring.reach(grant), 4_096);
        assert!(!ring.make_room(4_097, 1 << 20, grant));
        assert!(ring.make_room(1, 1 << 20, grant));
        assert!(!ring.make_room(4_097, 1 << 20, grant));
        assert_eq!(ring.reach(&room(16_383)), 16_384);
    }

    #[test]
    fn what_was_used_of_late_is_not_given_back() {
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

    /// A kibibyte at a time: what is moved is less than what is written.
    #[test]
    fn growth_is_paid_for_by_what_is_written() {
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
