//! The send buffer: written data that is not yet acknowledged, addressed by sequence number.

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

/// A send buffer. Memory is allocated when data is written.
///
/// Invariant: the allocated memory holds all bytes of the buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SendBuffer {
    storage: SegmentedBuffer,
    /// Whether memory for the next write was allocated in advance by [`SendBuffer::prepare`].
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

    /// Returns the number of bytes in the buffer, which were written and are not acknowledged.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns the number of bytes that can be written. Zero if the buffer contains more bytes than
    /// its capacity, because the capacity was reduced after they were written.
    pub(crate) const fn free(&self) -> usize {
        self.capacity.saturating_sub(self.length) as usize
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = saturated(capacity);
    }

    /// Returns the number of bytes of memory that the buffer uses.
    pub(crate) const fn memory(&self) -> usize {
        self.storage.memory()
    }

    /// Frees memory that is not needed for data or a prepared write, and was not used recently.
    pub(crate) fn give_back_unused(&mut self, now: Instant) {
        self.storage.give_back_unused(now, self.needed());
    }

    /// Frees memory that is not needed for data or a prepared write.
    pub(crate) fn give_back_free(&mut self) {
        self.storage.give_back(self.needed());
    }

    /// Frees all memory that is not needed for data, including memory for a prepared write.
    pub(crate) fn give_back(&mut self) {
        self.prepared = false;
        self.storage.give_back(self.len());
    }

    /// Swaps the memory of the buffer with `memory`, if the buffer is empty and both memories have
    /// equal size. Returns whether the memories were swapped.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.length == 0 && self.storage.exchange(memory)
    }

    /// Returns the sequence number after the final byte of the written data.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + self.length
    }

    /// Allocates memory for a write of at least one byte, if the capacity and the grant permit.
    /// Returns whether there is such memory.
    pub(crate) fn prepare(&mut self, grant: &MemoryGrant) -> bool {
        self.prepared =
            self.storage.make_room(self.storage.piece_bytes() + 1, self.capacity(), grant);
        self.prepared
    }

    /// Appends as much of `data` as the capacity and the grant permit, and returns the number of
    /// bytes appended.
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

    /// Passes free memory of the buffer to `fill`, which writes data there: up to `wanted` bytes,
    /// as far as they are contiguous. Returns the number of bytes written, and whether there was
    /// room for all `wanted` bytes.
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

    /// Moves as much of `data` as fits into the buffer, and returns the number of bytes moved. The
    /// bytes are not copied, unless they are few or other connections wait for memory.
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

    /// Returns the number of bytes for which memory must stay allocated: the written data, and if a
    /// write is prepared, at least one byte in the ring.
    fn needed(&self) -> usize {
        self.len().max(self.storage.piece_bytes() + usize::from(self.prepared))
    }

    /// Allocates memory for `wanted` bytes, or for as many bytes as the capacity and the grant
    /// permit. Returns the number of these bytes.
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
        // The grant is too small for `count` bytes, so the buffer allocates as much as the grant
        // permits.
        self.storage.make_room(self.storage.reach(grant), self.capacity(), grant);
        count.min(self.storage.holds() - self.len())
    }

    /// Moves the start of an empty buffer to the beginning of its memory, which is likely in the
    /// CPU's cache.
    #[inline(always)]
    const fn start_over_if_empty(&mut self) {
        if self.length == 0 {
            self.storage.start_over();
        }
    }

    /// Appends `count` bytes that were already written to the buffer's memory.
    fn extend(&mut self, count: usize) {
        self.prepared = false;
        self.length += saturated(count);
        self.storage.note_use(self.length);
    }

    /// Removes the bytes before `seq`, which are acknowledged, and returns their number.
    pub(crate) fn release_to(&mut self, seq: SeqNum) -> usize {
        if !seq.after(self.start) {
            return 0;
        }
        // `seq` may be the number after an acknowledged FIN. The FIN has a sequence number, but is
        // not a byte in the buffer.
        let count = ((seq - self.start) as usize).min(self.len());
        self.storage.advance(count);
        self.length -= saturated(count);
        self.start += saturated(count);
        count
    }

    /// Returns the number of bytes up to which the buffer may be filled while other connections
    /// wait for memory. If a write is prepared, it is all of the allocated memory. Otherwise it is
    /// half of that memory, or zero if no more than the smallest amount is allocated.
    fn fair_share(&self) -> usize {
        let memory = self.storage.holds();
        let half = if memory > SMALLEST_BUFFER_MEMORY { memory / 2 } else { 0 };
        self.capacity().min(if self.prepared { memory } else { half })
    }

    /// Copies the bytes from `seq` on to `into`, fills `into` completely, and returns the partial
    /// checksum of the bytes.
    #[inline(never)]
    pub(crate) fn copy_and_sum(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.copy_and_sum_inlined(seq, into)
    }

    /// Does the work of [`Self::copy_and_sum`]. This copy of it is inlined in loops over segments.
    #[inline(always)]
    pub(crate) fn copy_and_sum_inlined(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.storage.read_and_sum((seq - self.start) as usize, into)
    }

    /// Copies the bytes from `seq` on to `into`, and fills `into` completely.
    pub(crate) fn copy(&self, seq: SeqNum, into: &mut [u8]) {
        self.storage.read((seq - self.start) as usize, into);
    }

    /// Returns the `length` bytes from `seq` as two slices. `None` if they have more than two
    /// contiguous parts.
    pub(crate) fn parts(&self, seq: SeqNum, length: usize) -> Option<[&[u8]; 2]> {
        let offset = (seq - self.start) as usize;
        assert!(offset + length <= self.len(), "scatter-gather data is not in the buffer any more");
        self.storage.two_parts(offset, length)
    }

    /// Discards all data and frees the memory, because the connection has ended. `sent` is the
    /// sequence number at which the empty buffer then begins.
    pub(crate) fn clear(&mut self, sent: SeqNum) {
        self.start = sent;
        self.storage = SegmentedBuffer::new();
        self.prepared = false;
        self.length = 0;
    }

    /// Overwrites the memory that contains no data with that of `other`. A comparison of the two
    /// buffers then considers only data; see [`SegmentedBuffer::copy_unused_memory`].
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
