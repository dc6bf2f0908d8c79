//! The bytes that the application has written and the peer has not acknowledged: a ring that knows
//! the sequence number of its first byte.

use crate::MemoryGrant;
use crate::rest::pack::packed;
use crate::ring::{Ring, SMALLEST_BUFFER_MEMORY};
use linerate_units::Instant;
use linerate_wire::SeqNum;
use linerate_wire::checksum::Sum;

/// A send buffer. Memory is taken for bytes that are written.
///
/// Invariant: its bytes are in its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SendBuffer {
    ring: Ring,
    /// Memory was taken for what is about to be written.
    prepared: bool,
    start: SeqNum,
    length: usize,
    capacity: usize,
}

packed!(SendBuffer { ring, prepared, start, length, capacity });

impl SendBuffer {
    pub(crate) const fn new(start: SeqNum, capacity: usize) -> Self {
        Self { ring: Ring::new(), prepared: false, start, length: 0, capacity }
    }

    /// Bytes from the first that is not acknowledged to the last that was written.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Bytes that can be written. There may be more in the buffer than its capacity, if that has shrunk.
    pub(crate) const fn free(&self) -> usize {
        self.capacity.saturating_sub(self.length)
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) const fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Bytes of memory that it holds.
    pub(crate) const fn memory(&self) -> usize {
        self.ring.memory()
    }

    /// Gives back the memory that is not needed for what is in it, or about to be, nor for what was in it of
    /// late.
    pub(crate) fn give_back_unused(&mut self, now: Instant) {
        self.ring.give_back_unused(now, self.length.max(usize::from(self.prepared)));
    }

    /// Gives back the memory that is not needed for what is in it, or about to be.
    pub(crate) fn give_back_free(&mut self) {
        self.ring.give_back(self.length.max(usize::from(self.prepared)));
    }

    /// Gives back the memory that is not needed for what is in it. What was to be written has not been.
    pub(crate) fn give_back(&mut self) {
        self.prepared = false;
        self.ring.give_back(self.length);
    }

    /// The sequence number after the last byte.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + wire_length(self.length)
    }

    /// Takes the least memory that can be written into, if so much is granted; true if there is some now.
    pub(crate) fn prepare(&mut self, grant: &MemoryGrant) -> bool {
        self.prepared = self.ring.make_room(1, self.capacity, grant);
        self.prepared
    }

    /// Takes as much of `data` as there is room for, without taking more memory than is granted; how much.
    pub(crate) fn append(&mut self, data: &[u8], grant: &MemoryGrant) -> usize {
        let most = if grant.is_awaited { self.fair_share() } else { self.capacity };
        let mut count = data.len().min(most.saturating_sub(self.length));
        if !self.ring.make_room(self.length + count, self.capacity, grant) {
            // As much as can be had is better than nothing.
            self.ring.make_room(self.ring.reach(grant), self.capacity, grant);
            count = count.min(self.ring.memory() - self.length);
        }
        if count > 0 {
            self.prepared = false;
            self.ring.write(self.length, &data[..count]);
            self.length += count;
            self.ring.note_use(self.length);
        }
        count
    }

    /// Lets go of everything before `seq`; how many bytes.
    pub(crate) fn release_to(&mut self, seq: SeqNum) -> usize {
        if !seq.after(self.start) {
            return 0;
        }
        // A FIN that is acknowledged lies one number beyond the bytes.
        let count = ((seq - self.start) as usize).min(self.length);
        self.ring.advance(count);
        self.length -= count;
        self.start += wire_length(count);
        count
    }

    /// What may be in it while others have nothing: what was taken for this, or half of what it holds; who
    /// holds the least that there is has to let go of it first.
    fn fair_share(&self) -> usize {
        let memory = self.ring.memory();
        let half = if memory > SMALLEST_BUFFER_MEMORY { memory / 2 } else { 0 };
        self.capacity.min(if self.prepared { memory } else { half })
    }

    /// Copies the bytes from `seq` on out and sums them on the way.
    pub(crate) fn copy_and_sum(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.ring.read_and_sum((seq - self.start) as usize, into)
    }

    /// Copies the bytes from `seq` on out.
    pub(crate) fn copy(&self, seq: SeqNum, into: &mut [u8]) {
        self.ring.read((seq - self.start) as usize, into);
    }

    /// Throws everything away, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.ring = Ring::new();
        self.prepared = false;
        self.length = 0;
    }

    pub(crate) fn check(&self) {
        assert!(self.length <= self.memory(), "{} bytes in a memory of {}", self.length, self.memory());
    }
}

/// A buffer's length as a length in sequence space: configuration keeps buffers below 2^30.
fn wire_length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
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
