//! The bytes that have arrived and wait for the application: a ring, with room behind its end
//! where data beyond a hole already lies in place.

use crate::MemoryGrant;
use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::ring::Ring;
use linerate_units::Instant;

/// A receive buffer. Memory is taken for bytes that arrive.
///
/// Invariant: `length ≤ capacity`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceiveBuffer {
    ring: Ring,
    length: u32,
    capacity: u32,
}

packed!(ReceiveBuffer { ring, length, capacity });

impl ReceiveBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ring: Ring::new(), length: 0, capacity: saturated(capacity) }
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
        self.ring.memory()
    }

    /// Makes sure of memory for `length` bytes that belong `offset` bytes behind those that can be read,
    /// without taking more than is granted. False if that is not enough.
    #[inline]
    pub(crate) fn make_room(&mut self, offset: usize, length: usize, grant: &MemoryGrant) -> bool {
        self.ring.make_room(self.len() + offset + length, self.capacity(), grant)
    }

    /// Gives back the memory that is not needed for what can be read and `beyond` bytes behind it, nor for
    /// what could be read of late.
    pub(crate) fn give_back_unused(&mut self, now: Instant, beyond: usize) {
        self.ring.give_back_unused(now, self.len() + beyond);
    }

    /// An empty buffer gives its memory back.
    pub(crate) fn give_back(&mut self) {
        self.ring.give_back(self.len());
    }

    /// Puts `bytes` behind those that can be read, and lets them be read, if no more memory is needed than is
    /// granted.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8], grant: &MemoryGrant) -> bool {
        let has_room = self.make_room(0, bytes.len(), grant);
        if has_room {
            self.place(0, bytes);
            self.length += saturated(bytes.len());
        }
        has_room
    }

    /// Puts `bytes` to where they belong, `offset` bytes behind those that can be read. They fit:
    /// the window that was offered says so. There is memory for them.
    #[inline]
    pub(crate) fn place(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.free(), "data beyond the window was not cut off");
        self.ring.write(self.len() + offset, bytes);
    }

    /// The next `count` bytes, in place already, can be read now.
    pub(crate) fn extend(&mut self, count: usize) {
        assert!(count <= self.free(), "more in order than was ever placed");
        self.length += saturated(count);
    }

    /// Copies the first bytes out without taking them; how many.
    pub(crate) fn peek(&self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len());
        self.ring.read(0, &mut into[..count]);
        count
    }

    /// Takes the first bytes; how many.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.peek(into);
        self.ring.note_use(self.len());
        self.ring.advance(count);
        self.length -= saturated(count);
        count
    }

    /// Throws everything away, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.ring = Ring::new();
        self.length = 0;
    }

    pub(crate) fn check(&self) {
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
}
