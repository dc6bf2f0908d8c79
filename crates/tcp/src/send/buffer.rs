//! The bytes that the application has written and the peer has not acknowledged: a ring that knows
//! the sequence number of its first byte.

use crate::ring::Ring;
use linerate_wire::SeqNum;
use linerate_wire::checksum::Sum;

/// A send buffer. Memory is taken for bytes that are written.
///
/// Invariant: its bytes are in its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SendBuffer {
    ring: Ring,
    start: SeqNum,
    length: usize,
    capacity: usize,
}

impl SendBuffer {
    pub(crate) const fn new(start: SeqNum, capacity: usize) -> Self {
        Self { ring: Ring::new(), start, length: 0, capacity }
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

    /// Gives back the memory that is not needed for what is in it.
    pub(crate) fn give_back(&mut self) {
        self.ring.give_back(self.length);
    }

    /// The sequence number after the last byte.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + wire_length(self.length)
    }

    /// Takes as much of `data` as there is room for, without taking more than `memory` bytes; how much.
    pub(crate) fn append(&mut self, data: &[u8], memory: usize) -> usize {
        let mut count = data.len().min(self.free());
        if !self.ring.make_room(self.length + count, self.capacity, memory) {
            // As much as can be had is better than nothing.
            let most = self.ring.memory().saturating_add(memory);
            let most = most.checked_ilog2().map_or(0, |bits| 1 << bits);
            self.ring.make_room(most, self.capacity, memory);
            count = count.min(self.ring.memory() - self.length);
        }
        if count > 0 {
            self.ring.write(self.length, &data[..count]);
            self.length += count;
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

    /// Copies the bytes from `seq` on out and sums them on the way.
    pub(crate) fn copy_and_sum(&self, seq: SeqNum, into: &mut [u8]) -> Sum {
        self.ring.read_and_sum((seq - self.start) as usize, into)
    }

    /// Throws everything away, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.ring = Ring::new();
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
        assert_eq!(buffer.append(b"abcdef", usize::MAX), 4);
        assert_eq!(buffer.release_to(SeqNum::new(1)), 2);
        assert_eq!((buffer.start, buffer.len(), buffer.free()), (SeqNum::new(1), 2, 2));
        let mut into = [0; 2];
        buffer.copy_and_sum(SeqNum::new(1), &mut into);
        assert_eq!(&into, b"cd");
    }

    #[test]
    fn an_acknowledged_fin_lies_beyond_the_bytes() {
        let mut buffer = SendBuffer::new(SeqNum::new(0), 4);
        buffer.append(b"ab", usize::MAX);
        assert_eq!(buffer.release_to(SeqNum::new(3)), 2);
        assert_eq!((buffer.start, buffer.len()), (SeqNum::new(2), 0));
    }
}
