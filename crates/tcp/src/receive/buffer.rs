//! The bytes that have arrived and wait for the application: a ring, with room behind its end
//! where data beyond a hole already lies in place.

use crate::MemoryGrant;
use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::ring::Following;
use crate::rope::{LEAST_PIECE, Rope};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;
use core::ops::Range;
use linerate_units::Instant;

/// Memory in which a segment lies that is being handled, if it may be kept. In a box, because those that wait in
/// a flood shall not be larger for it.
pub(crate) type Offered = Option<Box<Arc<[u8]>>>;

/// A receive buffer. Memory is taken for bytes that arrive.
///
/// Invariant: `length ≤ capacity`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceiveBuffer {
    rope: Rope,
    length: u32,
    capacity: u32,
}

packed!(ReceiveBuffer { rope, length, capacity });

impl ReceiveBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { rope: Rope::new(), length: 0, capacity: saturated(capacity) }
    }

    /// Bytes that can be read.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Bytes that fit behind those that can be read.
    pub(crate) const fn free(&self) -> usize {
        (self.capacity - self.length) as usize
    }

    /// Another size, but never less than what can be read and `window` bytes that were offered.
    pub(crate) fn set_capacity(&mut self, capacity: usize, window: usize) {
        self.capacity = saturated(capacity.max(self.len() + window));
    }

    /// Bytes of memory that it holds.
    pub(crate) const fn memory(&self) -> usize {
        self.rope.memory()
    }

    /// Makes sure of memory for `length` bytes that belong `offset` bytes behind those that can be read,
    /// without taking more than is granted. False if that is not enough.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, offset: usize, length: usize, grant: &MemoryGrant) -> bool {
        self.rope.make_room(self.len() + offset + length, self.capacity(), grant)
    }

    /// Gives back the memory that is not needed for what can be read and `beyond` bytes behind it, nor for
    /// what could be read of late.
    pub(crate) fn give_back_unused(&mut self, now: Instant, beyond: usize) {
        self.rope.give_back_unused(now, self.len() + beyond);
    }

    /// An empty buffer gives its memory back.
    pub(crate) fn give_back(&mut self) {
        self.rope.give_back(self.len());
    }

    /// Lies in `memory` from now on, and gives its own for that, if it is empty and they are as large. Nothing lies
    /// beyond a hole.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.is_empty() && self.rope.exchange(memory)
    }

    /// Puts `bytes` behind those that can be read, behind which there are none beyond a hole, and lets them be
    /// read, if no more memory is needed than is granted. If they lie in memory that was `offered` they may stay
    /// there.
    #[inline(always)]
    pub(crate) fn append(&mut self, bytes: &[u8], grant: &MemoryGrant, offered: &Offered) -> bool {
        let is_large = bytes.len() >= LEAST_PIECE;
        (is_large && self.keep_whole(bytes, grant, offered)) || self.append_copy(bytes, grant)
    }

    /// Room for the `length` bytes behind those that can be read, behind which there are none beyond a hole, if there
    /// is memory for them, and they lie together. Whatever is written there, nobody reads it before it was
    /// [taken](Self::take_in_place).
    #[inline(always)]
    pub(crate) fn room_for_next(&mut self, length: usize) -> Option<&mut [u8]> {
        self.rope.place_of_next(self.len(), length)
    }

    /// Is there memory for `length` bytes behind those that can be read, behind which there are none beyond a hole, if
    /// they are to be copied there?
    #[inline(always)]
    pub(crate) fn has_place_for_next(&self, length: usize) -> bool {
        length < LEAST_PIECE && self.rope.has_place(self.len() + length)
    }

    /// Writes `bytes`, which were [taken](Self::take_in_place) last, to their [place](Self::has_place_for_next).
    #[inline(always)]
    pub(crate) fn write_last(&mut self, bytes: &[u8]) {
        self.rope.write_last(self.len(), bytes);
    }

    /// What lies behind `length` bytes for which there was [room](Self::room_for_next).
    #[inline(always)]
    pub(crate) fn following(&self, length: usize) -> Following {
        self.rope.following(self.len(), length)
    }

    /// What lies behind the bytes that can be read, as [`following`](Self::following) none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Following> {
        self.rope.next(self.len())
    }

    /// All the room for what follows.
    #[inline(always)]
    pub(crate) fn room_for_following(&mut self, following: Following) -> &mut [u8] {
        self.rope.place_of_following(following)
    }

    /// Lets `length` bytes be read that were written to [where they belong](Self::room_for_next), or that are
    /// [written](Self::write_last) there before anybody reads.
    #[inline(always)]
    pub(crate) fn take_in_place(&mut self, length: u32) {
        debug_assert!(
            length as usize <= self.free(),
            "a window was offered for more than there was room"
        );
        self.length += length;
    }

    /// Keeps `bytes` in the memory that was offered. That has to be full of them by half, or a peer that sends
    /// little at a time could have us hold much for it.
    #[cold]
    fn keep_whole(&mut self, bytes: &[u8], grant: &MemoryGrant, offered: &Offered) -> bool {
        let Some(memory) = offered else { return false };
        let (size, room) = (memory.len(), grant.room as usize);
        let Some(at) = bytes.as_ptr().addr().checked_sub(memory.as_ptr().addr()) else {
            return false;
        };
        let range = at..at + bytes.len();
        if range.end > size || bytes.len() < size / 2 || size > room {
            return false;
        }
        let whole = Bytes::from_owner(memory.as_ref().clone()).slice(range);
        self.rope.push(self.len(), whole, size);
        self.length += saturated(bytes.len());
        true
    }

    /// Up to `most` of the first bytes, which are taken: shared where they lie in memory of their own.
    pub(crate) fn take_shared(&mut self, most: usize) -> Bytes {
        let taken = self.rope.share(self.len(), most);
        self.advance(taken.len());
        taken
    }

    /// The same in a copy.
    #[inline(always)]
    pub(crate) fn append_copy(&mut self, bytes: &[u8], grant: &MemoryGrant) -> bool {
        let has_room = self.make_room(0, bytes.len(), grant);
        if has_room {
            self.place(0, bytes);
            self.length += saturated(bytes.len());
        }
        has_room
    }

    /// Puts `bytes` to where they belong, `offset` bytes behind those that can be read. They fit:
    /// the window that was offered says so. There is memory for them.
    #[inline(always)]
    pub(crate) fn place(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.free(), "data beyond the window was not cut off");
        self.rope.write(self.len() + offset, bytes);
    }

    /// The next `count` bytes, in place already, can be read now.
    pub(crate) fn extend(&mut self, count: usize) {
        assert!(count <= self.free(), "more in order than was ever placed");
        self.length += saturated(count);
    }

    /// Copies the first bytes out without taking them; how many.
    #[inline]
    pub(crate) fn peek(&self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len());
        self.rope.read(0, &mut into[..count]);
        count
    }

    /// Takes the first bytes; how many.
    #[inline]
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.peek(into);
        self.advance(count);
        count
    }

    /// Shows the first bytes to `take`, as many as lie together, and takes as many of them as it says.
    pub(crate) fn take(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        let first = self.rope.part(0, self.len());
        let count = take(first).min(first.len());
        self.advance(count);
        count
    }

    /// The first `count` bytes were read.
    #[inline]
    fn advance(&mut self, count: usize) {
        self.rope.note_use(self.length);
        self.rope.advance(count);
        self.length -= saturated(count);
    }

    /// There are no bytes, and none beyond a hole: what comes next lies where the first of the last have lain.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        self.rope.start_over();
    }

    /// Throws everything away, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.rope = Rope::new();
        self.length = 0;
    }

    /// As [`Rope::take_leftovers_of`], where data lie `beyond` those that can be read, too.
    pub(crate) fn take_leftovers_of(&mut self, other: &Self, beyond: &[Range<usize>]) {
        let readable = self.rope.in_pieces()..self.len();
        self.rope.take_leftovers_of(&other.rope, core::iter::once(&readable).chain(beyond));
    }

    pub(crate) fn check(&self, beyond: usize) {
        self.rope.check(self.len(), beyond);
        assert!(
            self.length <= self.capacity,
            "{} bytes in a receive buffer of {}",
            self.length,
            self.capacity
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_beyond_a_hole_becomes_readable_when_the_hole_is_filled() {
        let mut buffer = ReceiveBuffer::new(8);
        assert!(buffer.make_room(0, 6, &MemoryGrant::UNLIMITED));
        buffer.place(3, b"def");
        assert!(buffer.is_empty());
        buffer.place(0, b"abc");
        buffer.extend(6);
        let mut into = [0; 4];
        assert_eq!(buffer.read(&mut into), 4);
        assert_eq!(&into, b"abcd");
        assert_eq!((buffer.len(), buffer.free()), (2, 6));
    }

    /// Memory of 10,000 bytes, of which a part has arrived.
    fn offer() -> Offered {
        Some(Box::new((0..10_000_u16).map(|at| at.to_le_bytes()[0]).collect()))
    }

    #[test]
    fn memory_is_kept_for_data_that_fill_half_of_it() {
        let offered = offer();
        let memory = offered.as_ref().unwrap();
        for (range, kept) in [(100..5_100, true), (100..5_099, false), (5_904..10_000, false)] {
            let mut buffer = ReceiveBuffer::new(1 << 20);
            assert!(buffer.append(&memory[range.clone()], &MemoryGrant::UNLIMITED, &offered));
            assert_eq!(buffer.memory() == 10_000, kept, "{range:?}: {}", buffer.memory());
            buffer.check(0);
            assert_eq!(buffer.take_shared(usize::MAX), memory[range]);
        }
    }

    #[test]
    fn memory_is_not_kept_if_it_is_another_s_or_more_than_is_granted() {
        let (offered, others) = (offer(), offer());
        let memory = offered.as_ref().unwrap();
        let mut buffer = ReceiveBuffer::new(1 << 20);
        assert!(buffer.append(&memory[..6_000], &MemoryGrant::UNLIMITED, &others));
        assert_eq!(buffer.memory(), 8_192);
        let mut buffer = ReceiveBuffer::new(1 << 20);
        let grant = MemoryGrant { room: 9_999, ..MemoryGrant::UNLIMITED };
        assert!(buffer.append(&memory[..6_000], &grant, &offered));
        assert_eq!(buffer.memory(), 8_192);
    }
}
