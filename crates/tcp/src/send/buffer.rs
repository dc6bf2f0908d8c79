//! The send buffer: bytes that were written and are not yet acknowledged, addressed by sequence
//! number.

use crate::MemoryGrant;
use crate::compact::pack::packed;
use crate::receive::saturated;
use crate::ring::SMALLEST_BUFFER_MEMORY;
use crate::segmented_buffer::{LEAST_PIECE, SegmentedBuffer};
use alloc::boxed::Box;
use bytes::Bytes;
use core::hint::cold_path;
use linerate_units::Instant;
use linerate_wire::SeqNum;
use linerate_wire::checksum::Sum;

/// A send buffer. Memory is allocated for bytes that are written.
///
/// Invariant: the allocated memory holds all bytes of the buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SendBuffer {
    storage: SegmentedBuffer,
    /// Whether memory was allocated ahead of the next write.
    prepared: bool,
    start: SeqNum,
    length: u32,
    capacity: u32,
}

packed!(SendBuffer { storage, prepared, start, length, capacity });

impl SendBuffer {
    pub(crate) fn new(start: SeqNum, capacity: usize) -> Self {
        Self {
            storage: SegmentedBuffer::new(),
            prepared: false,
            start,
            length: 0,
            capacity: saturated(capacity),
        }
    }

    /// Returns the number of bytes in the buffer: written and not acknowledged.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns how many bytes can be written. The buffer may hold more than its capacity after that
    /// has shrunk.
    pub(crate) const fn free(&self) -> usize {
        self.capacity.saturating_sub(self.length) as usize
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = saturated(capacity);
    }

    /// Returns the bytes of memory held.
    pub(crate) const fn memory(&self) -> usize {
        self.storage.memory()
    }

    /// Frees memory that is needed neither for data, for the next write, nor for recent use.
    pub(crate) fn give_back_unused(&mut self, now: Instant) {
        self.storage.give_back_unused(now, self.needed());
    }

    /// Frees memory that is needed neither for data nor for the next write.
    pub(crate) fn give_back_free(&mut self) {
        self.storage.give_back(self.needed());
    }

    /// Frees all memory that is not needed for data, including that of a prepared write that has
    /// not happened.
    pub(crate) fn give_back(&mut self) {
        self.prepared = false;
        self.storage.give_back(self.len());
    }

    /// Swaps the buffer's memory with `memory` if the buffer is empty and both have the same size.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.length == 0 && self.storage.exchange(memory)
    }

    /// Returns the sequence number after the last byte.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + self.length
    }

    /// Allocates the minimum memory for a write, if the grant allows; returns whether the buffer
    /// has room.
    pub(crate) fn prepare(&mut self, grant: &MemoryGrant) -> bool {
        self.prepared =
            self.storage.make_room(self.storage.piece_bytes() + 1, self.capacity(), grant);
        self.prepared
    }

    /// Appends as much of `data` as fits within the grant, and returns the number of bytes
    /// appended.
    #[inline]
    pub(crate) fn append(&mut self, data: &[u8], grant: &MemoryGrant) -> usize {
        let count = self.make_room(data.len(), grant);
        if count > 0 {
            self.start_over_if_empty();
            self.storage.write(self.len(), &data[..count]);
            self.extend(count);
        }
        count
    }

    /// Lets `fill` write up to `wanted` bytes directly into the buffer. Returns the number of bytes
    /// written, and whether there was room for `wanted`.
    pub(crate) fn fill(
        &mut self,
        wanted: usize,
        grant: &MemoryGrant,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> (usize, bool) {
        let count = self.make_room(wanted, grant);
        if count == 0 {
            return (0, wanted == 0);
        }
        self.start_over_if_empty();
        let room = self.storage.place(self.len(), count);
        let written = fill(room).min(room.len());
        if written > 0 {
            self.extend(written);
        }
        (written, count == wanted)
    }

    /// Moves as much of `data` into the buffer as fits, and returns the number of bytes moved.
    /// Small data is copied; so is all data while other connections wait for memory.
    pub(crate) fn append_shared(&mut self, data: &mut Bytes, grant: &MemoryGrant) -> usize {
        let room = if grant.is_awaited { 0 } else { self.free().min(grant.room as usize) };
        let count = data.len().min(room);
        if count < LEAST_PIECE {
            let count = self.append(data, grant);
            let _ = data.split_to(count);
            return count;
        }
        self.prepared = false;
        self.storage.push(self.len(), data.split_to(count), count);
        self.length += saturated(count);
        count
    }

    /// Returns the number of bytes of memory in use: the written data, and at least one byte if a
    /// write is prepared.
    fn needed(&self) -> usize {
        self.len().max(self.storage.piece_bytes() + usize::from(self.prepared))
    }

    /// Ensures memory for `wanted` bytes, or for as many as the grant permits, and returns their
    /// number.
    #[inline]
    fn make_room(&mut self, wanted: usize, grant: &MemoryGrant) -> usize {
        let mut most = self.capacity();
        if grant.is_awaited {
            cold_path();
            most = self.fair_share();
        }
        let count = wanted.min(most.saturating_sub(self.len()));
        if self.storage.make_room(self.len() + count, self.capacity(), grant) {
            return count;
        }
        // The grant is smaller than needed: use all of it.
        self.storage.make_room(self.storage.reach(grant), self.capacity(), grant);
        count.min(self.storage.holds() - self.len())
    }

    /// Restarts an empty buffer at the beginning of its memory, which is in the cache.
    #[inline(always)]
    const fn start_over_if_empty(&mut self) {
        if self.length == 0 {
            self.storage.start_over();
        }
    }

    /// Appends `count` bytes that are already in place.
    fn extend(&mut self, count: usize) {
        self.prepared = false;
        self.length += saturated(count);
        self.storage.note_use(self.length);
    }

    /// Removes the bytes before `seq`, and returns their number.
    pub(crate) fn release_to(&mut self, seq: SeqNum) -> usize {
        if !seq.after(self.start) {
            return 0;
        }
        // An acknowledged FIN is one number beyond the bytes.
        let count = ((seq - self.start) as usize).min(self.len());
        self.storage.advance(count);
        self.length -= saturated(count);
        self.start += saturated(count);
        count
    }

    /// Returns the capacity that applies while other connections wait for memory: a prepared
    /// allocation, or half of the allocated memory. A buffer of the smallest size must be empty
    /// before the next write.
    fn fair_share(&self) -> usize {
        let memory = self.storage.holds();
        let half = if memory > SMALLEST_BUFFER_MEMORY { memory / 2 } else { 0 };
        self.capacity().min(if self.prepared { memory } else { half })
    }

    /// Copies the bytes from `seq` to `into`, and returns their checksum.
    #[inline(never)]
    pub(crate) fn copy_and_sum(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.copy_and_sum_inlined(seq, into)
    }

    /// Inlined [`Self::copy_and_sum`], for loops over segments.
    #[inline(always)]
    pub(crate) fn copy_and_sum_inlined(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.storage.read_and_sum((seq - self.start) as usize, into)
    }

    /// Copies the bytes from `seq` to `into`.
    pub(crate) fn copy(&self, seq: SeqNum, into: &mut [u8]) {
        self.storage.read((seq - self.start) as usize, into);
    }

    /// Returns the `length` bytes from `seq` in place, if they lie in at most two parts.
    pub(crate) fn parts(&self, seq: SeqNum, length: usize) -> Option<[&[u8]; 2]> {
        let offset = (seq - self.start) as usize;
        assert!(offset + length <= self.len(), "scatter-gather data is not in the buffer any more");
        self.storage.two_parts(offset, length)
    }

    /// Discards all data and frees the memory. The stream then ends at `sent`.
    pub(crate) fn clear(&mut self, sent: SeqNum) {
        self.start = sent;
        self.storage = SegmentedBuffer::new();
        self.prepared = false;
        self.length = 0;
    }

    /// Copies from `other` the memory that holds no data; see
    /// [`SegmentedBuffer::copy_unused_memory`].
    pub(crate) fn copy_unused_memory(&mut self, other: &Self) {
        let written = self.storage.piece_bytes()..self.len();
        self.storage.copy_unused_memory(&other.storage, [&written]);
    }

    pub(crate) fn check(&self) {
        self.storage.check(self.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_bytes_are_removed_and_make_room() {
        let mut buffer = SendBuffer::new(SeqNum::new(u32::MAX), 4);
        assert_eq!(buffer.append(b"abcdef", &MemoryGrant::UNLIMITED), 4);
        assert_eq!(buffer.release_to(SeqNum::new(1)), 2);
        assert_eq!((buffer.start, buffer.len(), buffer.free()), (SeqNum::new(1), 2, 2));
        let mut into = [0; 2];
        buffer.copy_and_sum(SeqNum::new(1), &mut into);
        assert_eq!(&into, b"cd");
    }

    #[test]
    fn an_acknowledged_fin_is_beyond_the_bytes() {
        let mut buffer = SendBuffer::new(SeqNum::new(0), 4);
        buffer.append(b"ab", &MemoryGrant::UNLIMITED);
        assert_eq!(buffer.release_to(SeqNum::new(3)), 2);
        assert_eq!((buffer.start, buffer.len()), (SeqNum::new(2), 0));
    }
}
