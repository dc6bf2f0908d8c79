//! The bytes that the application has written and the peer has not acknowledged: a ring that knows
//! the sequence number of its first byte.

use crate::MemoryGrant;
use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::ring::SMALLEST_BUFFER_MEMORY;
use crate::rope::{LEAST_PIECE, Rope};
use alloc::boxed::Box;
use bytes::Bytes;
use core::hint::cold_path;
use linerate_units::Instant;
use linerate_wire::SeqNum;
use linerate_wire::checksum::Sum;

/// A send buffer. Memory is taken for bytes that are written.
///
/// Invariant: its bytes are in its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SendBuffer {
    rope: Rope,
    /// Memory was taken for what is about to be written.
    prepared: bool,
    start: SeqNum,
    length: u32,
    capacity: u32,
}

packed!(SendBuffer { rope, prepared, start, length, capacity });

impl SendBuffer {
    pub(crate) fn new(start: SeqNum, capacity: usize) -> Self {
        Self { rope: Rope::new(), prepared: false, start, length: 0, capacity: saturated(capacity) }
    }

    /// Bytes from the first that is not acknowledged to the last that was written.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    /// Bytes that can be written. There may be more in the buffer than its capacity, if that has shrunk.
    pub(crate) const fn free(&self) -> usize {
        self.capacity.saturating_sub(self.length) as usize
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = saturated(capacity);
    }

    /// Bytes of memory that it holds.
    pub(crate) const fn memory(&self) -> usize {
        self.rope.memory()
    }

    /// Gives back the memory that is not needed for what is in it, or about to be, nor for what was in it of
    /// late.
    pub(crate) fn give_back_unused(&mut self, now: Instant) {
        self.rope.give_back_unused(now, self.needed());
    }

    /// Gives back the memory that is not needed for what is in it, or about to be.
    pub(crate) fn give_back_free(&mut self) {
        self.rope.give_back(self.needed());
    }

    /// Gives back the memory that is not needed for what is in it. What was to be written has not been.
    pub(crate) fn give_back(&mut self) {
        self.prepared = false;
        self.rope.give_back(self.len());
    }

    /// Lies in `memory` from now on, and gives its own for that, if it is empty and they are as large.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.length == 0 && self.rope.exchange(memory)
    }

    /// The sequence number after the last byte.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + self.length
    }

    /// Takes the least memory that can be written into, if so much is granted; true if there is some now.
    pub(crate) fn prepare(&mut self, grant: &MemoryGrant) -> bool {
        self.prepared = self.rope.make_room(self.rope.in_pieces() + 1, self.capacity(), grant);
        self.prepared
    }

    /// Takes as much of `data` as there is room for, without taking more memory than is granted; how much.
    #[inline]
    pub(crate) fn append(&mut self, data: &[u8], grant: &MemoryGrant) -> usize {
        let count = self.make_room(data.len(), grant);
        if count > 0 {
            self.start_over_if_empty();
            self.rope.write(self.len(), &data[..count]);
            self.extend(count);
        }
        count
    }

    /// Has `fill` write into the place of the next bytes, of which there are at most `wanted`, and say how
    /// many it has written: that many, and whether as many as are wanted have room.
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
        let room = self.rope.place(self.len(), count);
        let written = fill(room).min(room.len());
        if written > 0 {
            self.extend(written);
        }
        (written, count == wanted)
    }

    /// Takes as much of `data` as there is room for, off its front: whole if it is worth it, and nobody waits for
    /// memory; how much.
    pub(crate) fn append_shared(&mut self, data: &mut Bytes, grant: &MemoryGrant) -> usize {
        let room = if grant.is_awaited { 0 } else { self.free().min(grant.room as usize) };
        let count = data.len().min(room);
        if count < LEAST_PIECE {
            let count = self.append(data, grant);
            let _ = data.split_to(count);
            return count;
        }
        self.prepared = false;
        self.rope.push(self.len(), data.split_to(count), count);
        self.length += saturated(count);
        count
    }

    /// Bytes that are in it, or about to be: at least one in the ring.
    fn needed(&self) -> usize {
        self.len().max(self.rope.in_pieces() + usize::from(self.prepared))
    }

    /// Makes room for `wanted` bytes, or as many as there is room for without taking more memory than is
    /// granted; how many.
    #[inline]
    fn make_room(&mut self, wanted: usize, grant: &MemoryGrant) -> usize {
        let mut most = self.capacity();
        if grant.is_awaited {
            cold_path();
            most = self.fair_share();
        }
        let count = wanted.min(most.saturating_sub(self.len()));
        if self.rope.make_room(self.len() + count, self.capacity(), grant) {
            return count;
        }
        // As much as can be had is better than nothing.
        self.rope.make_room(self.rope.reach(grant), self.capacity(), grant);
        count.min(self.rope.holds() - self.len())
    }

    /// Where nothing waits for an acknowledgement, what is written next lies where the last has lain.
    #[inline(always)]
    const fn start_over_if_empty(&mut self) {
        if self.length == 0 {
            self.rope.start_over();
        }
    }

    /// The next `count` bytes are in their place.
    fn extend(&mut self, count: usize) {
        self.prepared = false;
        self.length += saturated(count);
        self.rope.note_use(self.length);
    }

    /// Lets go of everything before `seq`; how many bytes.
    pub(crate) fn release_to(&mut self, seq: SeqNum) -> usize {
        if !seq.after(self.start) {
            return 0;
        }
        // A FIN that is acknowledged lies one number beyond the bytes.
        let count = ((seq - self.start) as usize).min(self.len());
        self.rope.advance(count);
        self.length -= saturated(count);
        self.start += saturated(count);
        count
    }

    /// What may be in it while others have nothing: what was taken for this, or half of what it holds; who
    /// holds the least that there is has to let go of it first.
    fn fair_share(&self) -> usize {
        let memory = self.rope.holds();
        let half = if memory > SMALLEST_BUFFER_MEMORY { memory / 2 } else { 0 };
        self.capacity().min(if self.prepared { memory } else { half })
    }

    /// Copies the bytes from `seq` on out and sums them on the way.
    #[inline(never)]
    pub(crate) fn copy_and_sum(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.copy_and_sum_in_a_row(seq, into)
    }

    /// The same, drawn in where one segment is copied after the other.
    #[inline(always)]
    pub(crate) fn copy_and_sum_in_a_row(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.rope.read_and_sum((seq - self.start) as usize, into)
    }

    /// Copies the bytes from `seq` on out.
    pub(crate) fn copy(&self, seq: SeqNum, into: &mut [u8]) {
        self.rope.read((seq - self.start) as usize, into);
    }

    /// `length` bytes from `seq` on, where they are, if that is in no more than two parts.
    pub(crate) fn parts(&self, seq: SeqNum, length: usize) -> Option<[&[u8]; 2]> {
        let offset = (seq - self.start) as usize;
        assert!(offset + length <= self.len(), "what is to be gathered is not there any more");
        self.rope.two_parts(offset, length)
    }

    /// Throws everything away, and gives the memory back. Nothing was written beyond `sent`, as far as anybody asks.
    pub(crate) fn clear(&mut self, sent: SeqNum) {
        self.start = sent;
        self.rope = Rope::new();
        self.prepared = false;
        self.length = 0;
    }

    /// As [`Rope::take_leftovers_of`].
    pub(crate) fn take_leftovers_of(&mut self, other: &Self) {
        let written = self.rope.in_pieces()..self.len();
        self.rope.take_leftovers_of(&other.rope, [&written]);
    }

    pub(crate) fn check(&self) {
        self.rope.check(self.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_bytes_leave_and_make_room() {
        let mut buffer = SendBuffer::new(SeqNum::new(u32::MAX), 4);
        assert_eq!(buffer.append(b"abcdef", &MemoryGrant::UNLIMITED), 4);
        assert_eq!(buffer.release_to(SeqNum::new(1)), 2);
        assert_eq!((buffer.start, buffer.len(), buffer.free()), (SeqNum::new(1), 2, 2));
        let mut into = [0; 2];
        buffer.copy_and_sum(SeqNum::new(1), &mut into);
        assert_eq!(&into, b"cd");
    }

    #[test]
    fn an_acknowledged_fin_lies_beyond_the_bytes() {
        let mut buffer = SendBuffer::new(SeqNum::new(0), 4);
        buffer.append(b"ab", &MemoryGrant::UNLIMITED);
        assert_eq!(buffer.release_to(SeqNum::new(3)), 2);
        assert_eq!((buffer.start, buffer.len()), (SeqNum::new(2), 0));
    }
}
