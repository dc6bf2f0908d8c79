//! The receive buffer: the readable bytes, and room after them for out-of-order data.

use crate::MemoryGrant;
use crate::compact::pack::packed;
use crate::receive::saturated;
use crate::ring::Following;
use crate::segmented_buffer::{LEAST_PIECE, SegmentedBuffer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;
use core::ops::Range;
use linerate_units::Instant;

/// The link's memory that contains the segment being processed, if the connection may keep a
/// reference to it. The type contains a box because it is nearly always `None`: with the box, it
/// takes half the space in the connection.
pub(crate) type Offered = Option<Box<Arc<[u8]>>>;

/// A receive buffer. Memory is allocated when data arrives.
///
/// Invariant: `length ≤ capacity`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceiveBuffer {
    storage: SegmentedBuffer,
    length: u32,
    capacity: u32,
}

packed!(ReceiveBuffer { storage, length, capacity });

impl ReceiveBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { storage: SegmentedBuffer::new(), length: 0, capacity: saturated(capacity) }
    }

    /// Returns the number of readable bytes.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Returns the number of bytes that fit after the readable bytes.
    pub(crate) const fn free(&self) -> usize {
        (self.capacity - self.length) as usize
    }

    /// Sets the capacity. If `capacity` is smaller than the sum of the readable bytes and the
    /// announced `window`, the capacity becomes that sum.
    pub(crate) fn set_capacity(&mut self, capacity: usize, window: usize) {
        self.capacity = saturated(capacity.max(self.len() + window));
    }

    /// Returns the number of bytes of memory that the buffer uses.
    pub(crate) const fn memory(&self) -> usize {
        self.storage.memory()
    }

    /// Ensures that there is memory for `length` bytes at `offset` from the end of the readable
    /// data. Returns false if the grant is too small.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, offset: usize, length: usize, grant: &MemoryGrant) -> bool {
        self.storage.make_room(self.len() + offset + length, self.capacity(), grant)
    }

    /// Frees memory that was not used recently and holds neither readable data nor out-of-order
    /// data. All out-of-order data lies in the `beyond` bytes after the readable data.
    pub(crate) fn give_back_unused(&mut self, now: Instant, beyond: usize) {
        self.storage.give_back_unused(now, self.len() + beyond);
    }

    /// Frees the memory of an empty buffer.
    pub(crate) fn give_back(&mut self) {
        self.storage.give_back(self.len());
    }

    /// Swaps the memory of the buffer with `memory`, if the buffer is empty and both memories have
    /// equal size. There must be no out-of-order data, which would be lost with the memory.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.is_empty() && self.storage.exchange(memory)
    }

    /// Appends `bytes` to the readable data. Returns false if the grant is too small. If `bytes`
    /// lie in `offered`, the buffer may keep a reference to that memory instead of a copy. There
    /// must be no out-of-order data, because memory that is shared by reference cannot be inserted
    /// before it.
    #[inline(always)]
    pub(crate) fn append(&mut self, bytes: &[u8], grant: &MemoryGrant, offered: &Offered) -> bool {
        let is_large = bytes.len() >= LEAST_PIECE;
        (is_large && self.keep_whole(bytes, grant, offered)) || self.append_copy(bytes, grant)
    }

    /// Returns contiguous memory for the next `length` bytes in order, if there is any. The caller
    /// writes data there, and then makes it readable by [`Self::take_in_place`]. There must be no
    /// out-of-order data, which the caller could overwrite.
    #[inline(always)]
    pub(crate) fn room_for_next(&mut self, length: usize) -> Option<&mut [u8]> {
        self.storage.place_of_next(self.len(), length)
    }

    /// Whether the next `length` bytes in order can be copied to the memory that the buffer has.
    /// There must be no out-of-order data, which these bytes could overwrite.
    #[inline(always)]
    pub(crate) fn has_place_for_next(&self, length: usize) -> bool {
        length < LEAST_PIECE && self.storage.has_place(self.len() + length)
    }

    /// Writes `bytes` over the final bytes of the readable data. [`Self::take_in_place`] must have
    /// counted them already, after [`Self::has_place_for_next`] has returned true.
    #[inline(always)]
    pub(crate) fn write_last(&mut self, bytes: &[u8]) {
        self.storage.write_last(self.len(), bytes);
    }

    /// Returns the range of free memory after the next `length` bytes in order.
    /// [`Self::room_for_next`] must have returned memory for these bytes.
    #[inline(always)]
    pub(crate) fn following(&self, length: usize) -> Following {
        self.storage.following(self.len(), length)
    }

    /// Returns the range of free memory after the readable data. `None` if the buffer contains
    /// [shared pieces](SegmentedBuffer).
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Following> {
        self.storage.next(self.len())
    }

    /// Returns the memory that `following` describes.
    #[inline(always)]
    pub(crate) fn room_for_following(&mut self, following: Following) -> &mut [u8] {
        self.storage.place_of_following(following)
    }

    /// Counts the next `length` bytes as readable. Either they were written to
    /// [`Self::room_for_next`], or [`Self::write_last`] will write them before the application can
    /// read.
    #[inline(always)]
    pub(crate) fn take_in_place(&mut self, length: u32) {
        debug_assert!(
            length as usize <= self.free(),
            "a window was offered for more than there was room"
        );
        self.length += length;
    }

    /// Keeps `bytes` in the `offered` memory without a copy, if they fill at least half of it.
    /// Without this minimum, a peer that sends small segments could make us keep much more memory
    /// than data. Returns whether the bytes were kept.
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
        self.storage.push(self.len(), whole, size);
        self.length += saturated(bytes.len());
        true
    }

    /// Removes and returns up to `most` of the first bytes. Bytes in shared memory are not copied.
    pub(crate) fn take_shared(&mut self, most: usize) -> Bytes {
        let taken = self.storage.share(self.len(), most);
        self.advance(taken.len());
        taken
    }

    /// Appends a copy of `bytes` to the readable data. Returns false if the grant is too small.
    #[inline(always)]
    pub(crate) fn append_copy(&mut self, bytes: &[u8], grant: &MemoryGrant) -> bool {
        let has_room = self.make_room(0, bytes.len(), grant);
        if has_room {
            self.place(0, bytes);
            self.length += saturated(bytes.len());
        }
        has_room
    }

    /// Stores `bytes` at `offset` from the end of the readable data. They must lie in the announced
    /// window, and [`Self::make_room`] must have provided the memory for them.
    #[inline(always)]
    pub(crate) fn place(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.free(), "data beyond the window was not cut off");
        self.storage.write(self.len() + offset, bytes);
    }

    /// Makes the next `count` bytes readable. They have arrived out of order and are already in
    /// their place.
    pub(crate) fn extend(&mut self, count: usize) {
        assert!(count <= self.free(), "more in-order bytes than the buffer has room for");
        self.length += saturated(count);
    }

    /// Copies the first readable bytes to `into` without removing them, and returns their number.
    #[inline]
    pub(crate) fn peek(&self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len());
        self.storage.read(0, &mut into[..count]);
        count
    }

    /// Copies the first readable bytes to `into`, removes them, and returns their number.
    #[inline]
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.peek(into);
        self.advance(count);
        count
    }

    /// Passes readable bytes to `take`, beginning with the first, as far as they are contiguous in
    /// memory. Removes as many bytes as `take` returns.
    pub(crate) fn take(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        let first = self.storage.part(0, self.len());
        let count = take(first).min(first.len());
        self.advance(count);
        count
    }

    /// Removes the first `count` readable bytes.
    #[inline]
    fn advance(&mut self, count: usize) {
        self.storage.note_use(self.length);
        self.storage.advance(count);
        self.length -= saturated(count);
    }

    /// Moves the start of the empty buffer to the beginning of its memory, which is likely in the
    /// CPU's cache. There must be no out-of-order data, whose place is relative to the start.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        self.storage.start_over();
    }

    /// Discards all data, and frees the memory.
    pub(crate) fn clear(&mut self) {
        self.storage = SegmentedBuffer::new();
        self.length = 0;
    }

    /// Overwrites the memory that contains no data with that of `other`. A comparison of the two
    /// buffers then considers only data. `beyond` lists the ranges of out-of-order data, as
    /// offsets.
    pub(crate) fn copy_unused_memory(&mut self, other: &Self, beyond: &[Range<usize>]) {
        let readable = self.storage.piece_bytes()..self.len();
        self.storage.copy_unused_memory(&other.storage, core::iter::once(&readable).chain(beyond));
    }

    pub(crate) fn check(&self, beyond: usize) {
        self.storage.check(self.len(), beyond);
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

    /// Returns 10,000 bytes of offered memory, to which the buffer may keep a reference.
    fn offer() -> Offered {
        Some(Box::new((0..10_000_u16).map(|at| at.to_le_bytes()[0]).collect()))
    }

    #[test]
    fn offered_memory_is_kept_if_data_fills_half_of_it() {
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
    fn offered_memory_is_not_kept_if_foreign_or_beyond_the_grant() {
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
