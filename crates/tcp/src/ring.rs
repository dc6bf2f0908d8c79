//! A ring of bytes whose size is a power of two, for both socket buffers.

use alloc::vec::Vec;
use linerate_wire::checksum::{Sum, copy_and_sum};

/// Bytes addressed by their distance from a head that only moves forward.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ring {
    storage: Vec<u8>,
    head: usize,
}

impl Ring {
    /// A ring without memory.
    pub(crate) const fn new() -> Self {
        Self { storage: Vec::new(), head: 0 }
    }

    /// Takes memory for `capacity` bytes, if there is none yet. The pages are touched only when
    /// they are written.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if self.storage.is_empty() {
            self.storage = alloc::vec![0; capacity.next_power_of_two()];
        }
    }

    /// Writes `bytes` at `offset` from the head.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let at = self.at(offset);
        let (first, second) = bytes.split_at(bytes.len().min(self.storage.len() - at));
        self.storage[at..at + first.len()].copy_from_slice(first);
        self.storage[..second.len()].copy_from_slice(second);
    }

    /// Copies the bytes at `offset` from the head out.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        let (first, second) = self.slices(offset, into.len());
        let (front, back) = into.split_at_mut(first.len());
        front.copy_from_slice(first);
        back.copy_from_slice(second);
    }

    /// Copies the bytes at `offset` from the head out and sums them on the way.
    pub(crate) fn read_and_sum(&self, offset: usize, into: &mut [u8]) -> Sum {
        let (first, second) = self.slices(offset, into.len());
        let (front, back) = into.split_at_mut(first.len());
        let sum = copy_and_sum(first, front);
        if back.is_empty() { sum } else { sum.append(copy_and_sum(second, back), front.len()) }
    }

    /// Moves the head forward, past bytes that are done with.
    pub(crate) fn advance(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count);
    }

    fn slices(&self, offset: usize, length: usize) -> (&[u8], &[u8]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_end_of_the_storage() {
        let mut ring = Ring::new();
        ring.reserve(5);
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
    fn an_empty_ring_reads_nothing() {
        Ring::new().read(0, &mut []);
    }
}
