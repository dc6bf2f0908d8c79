//! Memory for small buffers that was written a moment ago, and is in the processor's caches still.
//!
//! A host with very many connections has hardly any of their buffers in the caches, and most are empty most of the
//! time. A buffer in which nothing lies may as well lie elsewhere: so one that is about to be written to is given
//! memory that was in use last, for its own, and gives it back when it is empty again. Nobody holds more or less for
//! that.

use crate::tcp::TcpSocket;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_tcp::SMALLEST_BUFFER_MEMORY;

/// Pieces that are lent at a time: what is written to in two turns, and in a third until the first are acknowledged.
const MOST: usize = 256;

/// The memory that is lent, and what was given for it.
#[derive(Debug)]
pub(crate) struct WarmMemory {
    /// Are there connections enough that it is worth it?
    is_on: bool,
    /// Memory that can be lent, what was in use last at the end.
    warm: Vec<Box<[u8]>>,
    /// Memory of connections that were lent some. Invariant: with `warm` at most [`MOST`] pieces, each of
    /// [`SMALLEST_BUFFER_MEMORY`].
    cold: Vec<Box<[u8]>>,
}

impl WarmMemory {
    /// Nothing is lent.
    pub(crate) const fn new() -> Self {
        Self { is_on: false, warm: Vec::new(), cold: Vec::new() }
    }

    /// There are so many connections that it is worth it.
    pub(crate) const fn begin(&mut self) {
        self.is_on = true;
    }

    /// There are not any more.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.is_on {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        *self = Self::new();
    }

    /// An application is about to write.
    #[inline(always)]
    pub(crate) fn lend_to_send(&mut self, socket: &mut TcpSocket) {
        if self.is_on && !socket.pooled.to_send {
            // Its segment leaves when others have been written to, too, and its acknowledgement comes when they have
            // left: all that both need is fetched meanwhile.
            socket.prefetch_for_transmit();
            socket.pooled.to_send =
                self.lend(|memory| socket.connection.exchange_send_memory(memory));
        }
    }

    /// A segment is about to arrive.
    #[inline]
    pub(crate) fn lend_to_receive(&mut self, socket: &mut TcpSocket) {
        if !socket.pooled.to_receive {
            socket.pooled.to_receive =
                self.lend(|memory| socket.connection.exchange_receive_memory(memory));
        }
    }

    /// An application has read.
    #[inline(always)]
    pub(crate) fn take_back_read(&mut self, socket: &mut TcpSocket) {
        if socket.pooled.to_receive {
            socket.pooled.to_receive =
                !self.take_back(|memory| socket.connection.exchange_receive_memory(memory));
        }
    }

    /// A segment has arrived, perhaps an acknowledgement.
    #[inline]
    pub(crate) fn take_back_sent(&mut self, socket: &mut TcpSocket) {
        if socket.pooled.to_send {
            socket.pooled.to_send =
                !self.take_back(|memory| socket.connection.exchange_send_memory(memory));
        }
    }

    #[inline(never)]
    fn lend(&mut self, exchange: impl FnOnce(&mut Box<[u8]>) -> bool) -> bool {
        // A connection may end with what it was lent; what it gave for that is lent in its place then.
        let memory = self.warm.pop().or_else(|| self.make()).or_else(|| self.cold.pop());
        let Some(mut memory) = memory else { return false };
        let is_lent = exchange(&mut memory);
        if is_lent { &mut self.cold } else { &mut self.warm }.push(memory);
        is_lent
    }

    #[inline(never)]
    fn take_back(&mut self, exchange: impl FnOnce(&mut Box<[u8]>) -> bool) -> bool {
        let Some(mut memory) = self.cold.pop() else { return true };
        let is_back = exchange(&mut memory);
        if is_back { &mut self.warm } else { &mut self.cold }.push(memory);
        is_back
    }

    #[cold]
    fn make(&self) -> Option<Box<[u8]>> {
        let has_room = self.warm.len() + self.cold.len() < MOST;
        has_room.then(|| alloc::vec![0; SMALLEST_BUFFER_MEMORY].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(fill: u8) -> Box<[u8]> {
        alloc::vec![fill; SMALLEST_BUFFER_MEMORY].into()
    }

    #[test]
    fn what_was_in_use_last_is_lent_next() {
        let mut memory = WarmMemory::new();
        let mut buffers = [piece(1), piece(2)];
        for buffer in &mut buffers {
            assert!(memory.lend(|lent| {
                core::mem::swap(lent, buffer);
                true
            }));
        }
        for buffer in &mut buffers {
            buffer.fill(9);
        }
        for buffer in &mut buffers {
            assert!(memory.take_back(|given| {
                core::mem::swap(given, buffer);
                true
            }));
        }
        assert_eq!(buffers.map(|buffer| buffer[0]), [2, 1], "each has one of the same size again");
        assert!(memory.warm.iter().all(|warm| warm[0] == 9) && memory.cold.is_empty());
    }

    #[test]
    fn what_is_never_given_back_does_not_end_the_lending() {
        let mut memory = WarmMemory::new();
        for _ in 0..3 * MOST {
            assert!(memory.lend(|lent| {
                *lent = piece(0);
                true
            }));
            assert!(memory.warm.len() + memory.cold.len() <= MOST);
        }
    }

    #[test]
    fn where_connections_have_become_few_nothing_is_kept() {
        let mut memory = WarmMemory::new();
        memory.begin();
        assert!(memory.lend(|_| true) && !memory.lend(|_| false));
        assert_eq!((memory.warm.len(), memory.cold.len()), (1, 1));
        memory.end();
        assert_eq!((memory.is_on, memory.warm.len(), memory.cold.len()), (false, 0, 0));
    }

    #[test]
    fn what_does_not_fit_is_kept() {
        let mut memory = WarmMemory::new();
        assert!(!memory.lend(|_| false));
        assert_eq!((memory.warm.len(), memory.cold.len()), (1, 0));
        assert!(memory.take_back(|_| unreachable!("nothing was given")));
    }
}
