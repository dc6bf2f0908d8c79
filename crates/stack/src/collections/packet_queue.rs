//! Packets that wait: in the order in which they came, bounded in bytes, in memory that is used
//! again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What a packet costs beside its bytes, so that empty ones cannot fill the memory either.
const OVERHEAD: usize = 64;

/// Buffers kept for the packets to come.
const SPARE: usize = 16;

/// A queue of packets, each with a tag.
#[derive(Debug)]
pub(crate) struct PacketQueue<T> {
    packets: VecDeque<(T, Vec<u8>)>,
    /// Invariant: the sum of what the packets cost, at most `limit`.
    cost: usize,
    limit: usize,
    spare: Vec<Vec<u8>>,
}

impl<T> PacketQueue<T> {
    /// A queue for packets of `limit` bytes together.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { packets: VecDeque::new(), cost: 0, limit, spare: Vec::new() }
    }

    /// The same, and one with room for a packet of `length` bytes in any case.
    pub(crate) const fn with_room_for(length: usize, limit: usize) -> Self {
        let least = length + OVERHEAD;
        Self::new(if limit > least { limit } else { least })
    }

    /// Bytes of the largest packet for which there is room when no other waits.
    pub(crate) const fn largest(&self) -> usize {
        self.limit.saturating_sub(OVERHEAD)
    }

    /// Puts a packet of `length` bytes, which `write` writes, at the back. False if there is no room
    /// for it; `write` is not asked then.
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

    /// Puts a copy of a packet at the back. False if there is no room for it.
    pub(crate) fn push(&mut self, tag: T, packet: &[u8]) -> bool {
        self.push_with(tag, packet.len(), |bytes| bytes.copy_from_slice(packet))
    }

    /// The packet at the front.
    pub(crate) fn front(&self) -> Option<(&T, &[u8])> {
        self.packets.front().map(|(tag, packet)| (tag, packet.as_slice()))
    }

    /// Takes the packet at the front; [`PacketQueue::give_back`] its buffer after use.
    pub(crate) fn pop(&mut self) -> Option<(T, Vec<u8>)> {
        let (tag, packet) = self.packets.pop_front()?;
        self.cost -= packet.len() + OVERHEAD;
        Some((tag, packet))
    }

    /// Drops the packet at the front, and keeps its buffer.
    pub(crate) fn drop_front(&mut self) {
        if let Some((_, buffer)) = self.pop() {
            self.give_back(buffer);
        }
    }

    /// Takes back the buffer of a packet that was popped.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Does none wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Panics if the cost is not what the packets say.
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
    fn packets_leave_in_order_and_no_more_enter_than_fit() {
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
    fn a_buffer_that_was_given_back_is_used_again() {
        let mut queue = PacketQueue::new(1_000);
        assert!(queue.push((), &[1; 100]));
        let ((), buffer) = queue.pop().unwrap();
        let memory = buffer.as_ptr();
        queue.give_back(buffer);
        assert!(queue.push((), &[2; 50]));
        assert_eq!(queue.front().unwrap().1.as_ptr(), memory);
    }
}
