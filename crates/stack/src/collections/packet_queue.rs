//! A FIFO queue of packets with a limit in bytes, and a free list of packet buffers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Number of bytes charged for each packet in addition to its length. Without this charge, any
/// number of empty packets would fit into a queue.
const OVERHEAD: usize = 64;

/// Maximum number of buffers in the free list.
const SPARE: usize = 16;

/// A FIFO queue of packets, each with a tag of the type `T`.
#[derive(Debug)]
pub(crate) struct PacketQueue<T> {
    packets: VecDeque<(T, Vec<u8>)>,
    /// Cost of all queued packets in bytes: their lengths, and [`OVERHEAD`] for each packet.
    /// Invariant: at most `limit`.
    cost: usize,
    limit: usize,
    spare: Vec<Vec<u8>>,
}

impl<T> PacketQueue<T> {
    /// Creates an empty queue whose packets may together cost `limit` bytes. Each packet costs its
    /// length plus [`OVERHEAD`].
    pub(crate) const fn new(limit: usize) -> Self {
        Self { packets: VecDeque::new(), cost: 0, limit, spare: Vec::new() }
    }

    /// Creates an empty queue with a limit of `limit` bytes. If a packet of `length` bytes would
    /// not fit into it, the limit is larger: just enough for this packet.
    pub(crate) const fn with_room_for(length: usize, limit: usize) -> Self {
        let least = length + OVERHEAD;
        Self::new(if limit > least { limit } else { least })
    }

    /// Returns the length in bytes of the largest packet that fits into an empty queue.
    pub(crate) const fn largest(&self) -> usize {
        self.limit.saturating_sub(OVERHEAD)
    }

    /// Appends a packet of `length` bytes, whose content `write` fills in. If the packet would
    /// exceed the limit of the queue, returns false without calling `write`.
    pub(crate) fn push_with(
        &mut self,
        tag: T,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        if self.cost + length + OVERHEAD > self.limit {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.resize(length, 0);
        write(&mut buffer);
        self.cost += length + OVERHEAD;
        self.packets.push_back((tag, buffer));
        true
    }

    /// Returns whether the queue has room for `count` more packets whose total length is `bytes`.
    pub(crate) const fn has_room_for(&self, count: usize, bytes: usize) -> bool {
        self.cost + bytes + count * OVERHEAD <= self.limit
    }

    /// Returns whether the queue would have room for `count` packets whose total length is `bytes`,
    /// if it were empty.
    pub(crate) const fn can_contain(&self, count: usize, bytes: usize) -> bool {
        bytes + count * OVERHEAD <= self.limit
    }

    /// Appends a copy of a packet. Returns false if the packet would exceed the limit of the queue.
    pub(crate) fn push(&mut self, tag: T, packet: &[u8]) -> bool {
        self.push_with(tag, packet.len(), |bytes| bytes.copy_from_slice(packet))
    }

    /// Returns the packet at the front, with its tag.
    pub(crate) fn front(&self) -> Option<(&T, &[u8])> {
        self.packets.front().map(|(tag, packet)| (tag, packet.as_slice()))
    }

    /// Removes and returns the packet at the front, with its tag. When the caller no longer needs
    /// the packet, it should pass the buffer to [`PacketQueue::recycle`].
    pub(crate) fn pop(&mut self) -> Option<(T, Vec<u8>)> {
        let (tag, packet) = self.packets.pop_front()?;
        self.cost -= packet.len() + OVERHEAD;
        Some((tag, packet))
    }

    /// Removes the packet at the front, and puts its buffer on the free list.
    pub(crate) fn drop_front(&mut self) {
        if let Some((_, buffer)) = self.pop() {
            self.recycle(buffer);
        }
    }

    /// Puts a buffer on the free list, so that a later packet needs no allocation. Frees the buffer
    /// if the list is full.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        let cost: usize = self.packets.iter().map(|(_, packet)| packet.len() + OVERHEAD).sum();
        assert_eq!(self.cost, cost, "the cost is the sum of what the packets cost");
        assert!(self.cost <= self.limit, "packets are limited");
        assert!(self.spare.len() <= SPARE, "spare buffers are limited");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_and_a_full_queue_refuses() {
        let mut queue = PacketQueue::new(3 * OVERHEAD + 10);
        assert!(queue.push('a', b"12345") && queue.push('b', b"") && queue.push('c', b"67890"));
        assert!(!queue.push('d', b""));
        queue.check();
        assert_eq!(queue.pop(), Some(('a', b"12345".to_vec())));
        assert_eq!(queue.front(), Some((&'b', &[][..])));
        queue.drop_front();
        assert_eq!(queue.front(), Some((&'c', &b"67890"[..])));
        queue.drop_front();
        assert!(queue.is_empty());
        queue.check();
    }

    #[test]
    fn a_recycled_buffer_is_reused() {
        let mut queue = PacketQueue::new(1_000);
        assert!(queue.push((), &[1; 100]));
        let ((), buffer) = queue.pop().unwrap();
        let memory = buffer.as_ptr();
        queue.recycle(buffer);
        assert!(queue.push((), &[2; 50]));
        assert_eq!(queue.front().unwrap().1.as_ptr(), memory);
    }
}
