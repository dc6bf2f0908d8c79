//! The buffer pool: memory for small buffers that is probably still in the processor's caches.
//!
//! With very many connections, hardly any of their buffers are in the caches, and most buffers are
//! empty most of the time. The memory of an empty buffer has no content, so it can be exchanged.
//! Therefore a buffer that is about to be filled swaps its memory for the most recently used memory
//! of the pool. When the buffer is empty again, it gives this memory back, and gets other memory in
//! exchange. Both pieces have equal size, so a connection always holds the same amount.

use crate::tcp::TcpSocket;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_tcp::SMALLEST_BUFFER_MEMORY;

/// Maximum number of buffers in the pool. The writes of one turn take up to half of these buffers.
/// The acknowledgements that free them arrive two turns later. So the buffers that two turns have
/// taken are in use at a time.
const CAPACITY: usize = 256;

/// A pool of recently used memory for buffers, and the memory that buffers have given for it in
/// exchange.
#[derive(Debug)]
pub(crate) struct BufferPool {
    /// Whether the pool is used. The pool pays off only with many connections.
    is_enabled: bool,
    /// A stack of memory to give to buffers. The memory at the end was used most recently, and is
    /// given first.
    recent: Vec<Box<[u8]>>,
    /// Memory that buffers have given in exchange for memory of the pool. Invariants: `recent` and
    /// `exchanged` together have at most [`CAPACITY`] elements, each of [`SMALLEST_BUFFER_MEMORY`]
    /// bytes.
    exchanged: Vec<Box<[u8]>>,
}

impl BufferPool {
    /// Creates an empty pool that is not enabled.
    pub(crate) const fn new() -> Self {
        Self { is_enabled: false, recent: Vec::new(), exchanged: Vec::new() }
    }

    /// Enables the pool. The caller has checked that there are enough connections.
    pub(crate) const fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Disables the pool and frees its memory. Buffers keep the memory that they have taken from
    /// the pool.
    #[inline]
    pub(crate) fn disable(&mut self) {
        if self.is_enabled {
            self.clear();
        }
    }

    #[cold]
    fn clear(&mut self) {
        *self = Self::new();
    }

    /// Swaps memory of the pool into the send buffer, before an application writes.
    #[inline(always)]
    pub(crate) fn give_to_send(&mut self, socket: &mut TcpSocket) {
        if self.is_enabled && !socket.pooled.to_send {
            // The application will now write to this connection. Before the host sends the written
            // data and receives their acknowledgement, it performs writes to other connections. In
            // this time, the prefetched memory arrives in the processor's caches.
            socket.prefetch_for_transmit();
            socket.pooled.to_send =
                self.give(|memory| socket.connection.driver().exchange_send_memory(memory));
        }
    }

    /// Swaps memory of the pool into the receive buffer, before a segment is handled.
    #[inline]
    pub(crate) fn give_to_receive(&mut self, socket: &mut TcpSocket) {
        if !socket.pooled.to_receive {
            socket.pooled.to_receive =
                self.give(|memory| socket.connection.driver().exchange_receive_memory(memory));
        }
    }

    /// Takes memory of the pool back from the receive buffer, if an application has emptied it.
    #[inline(always)]
    pub(crate) fn reclaim_after_read(&mut self, socket: &mut TcpSocket) {
        if socket.pooled.to_receive {
            socket.pooled.to_receive =
                !self.reclaim(|memory| socket.connection.driver().exchange_receive_memory(memory));
        }
    }

    /// Takes memory of the pool back from the send buffer, if an acknowledgement has emptied it.
    #[inline]
    pub(crate) fn reclaim_after_ack(&mut self, socket: &mut TcpSocket) {
        if socket.pooled.to_send {
            socket.pooled.to_send =
                !self.reclaim(|memory| socket.connection.driver().exchange_send_memory(memory));
        }
    }

    /// Offers the most recently used memory to `exchange`, which swaps it with the memory of a
    /// buffer if possible. Returns whether `exchange` has swapped the memory.
    #[inline(never)]
    fn give(&mut self, exchange: impl FnOnce(&mut Box<[u8]>) -> bool) -> bool {
        // Memory in `exchanged` was swapped out of buffers, which get memory in exchange when they
        // give back that of the pool. But if a connection ends without giving back, one piece of
        // `exchanged` is left over. So as a last resort, a piece of `exchanged` is given to another
        // buffer.
        let memory = self.recent.pop().or_else(|| self.allocate()).or_else(|| self.exchanged.pop());
        let Some(mut memory) = memory else { return false };
        let is_given = exchange(&mut memory);
        if is_given { &mut self.exchanged } else { &mut self.recent }.push(memory);
        is_given
    }

    /// Passes memory of `exchanged` to `exchange`, which swaps it with the memory of a buffer if
    /// that buffer is empty. Returns true if the memory was swapped. Also returns true if
    /// `exchanged` is empty: the buffer then keeps memory of the pool as its own.
    #[inline(never)]
    fn reclaim(&mut self, exchange: impl FnOnce(&mut Box<[u8]>) -> bool) -> bool {
        let Some(mut memory) = self.exchanged.pop() else { return true };
        let is_reclaimed = exchange(&mut memory);
        if is_reclaimed { &mut self.recent } else { &mut self.exchanged }.push(memory);
        is_reclaimed
    }

    /// Allocates memory, unless the pool has reached its maximum size.
    #[cold]
    fn allocate(&self) -> Option<Box<[u8]>> {
        let has_room = self.recent.len() + self.exchanged.len() < CAPACITY;
        has_room.then(|| alloc::vec![0; SMALLEST_BUFFER_MEMORY].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(fill: u8) -> Box<[u8]> {
        alloc::vec![fill; SMALLEST_BUFFER_MEMORY].into()
    }

    #[test]
    fn the_most_recently_used_memory_is_given_first() {
        let mut pool = BufferPool::new();
        let mut buffers = [memory(1), memory(2)];
        for buffer in &mut buffers {
            assert!(pool.give(|given| {
                core::mem::swap(given, buffer);
                true
            }));
        }
        for buffer in &mut buffers {
            buffer.fill(9);
        }
        for buffer in &mut buffers {
            assert!(pool.reclaim(|exchanged| {
                core::mem::swap(exchanged, buffer);
                true
            }));
        }
        assert_eq!(buffers.map(|buffer| buffer[0]), [2, 1], "each buffer has memory again");
        assert!(pool.recent.iter().all(|recent| recent[0] == 9) && pool.exchanged.is_empty());
    }

    #[test]
    fn memory_that_is_never_returned_is_replaced_within_the_capacity() {
        let mut pool = BufferPool::new();
        for _ in 0..3 * CAPACITY {
            assert!(pool.give(|given| {
                *given = memory(0);
                true
            }));
            assert!(pool.recent.len() + pool.exchanged.len() <= CAPACITY);
        }
    }

    #[test]
    fn a_disabled_pool_holds_no_memory() {
        let mut pool = BufferPool::new();
        pool.enable();
        assert!(pool.give(|_| true) && !pool.give(|_| false));
        assert_eq!((pool.recent.len(), pool.exchanged.len()), (1, 1));
        pool.disable();
        assert_eq!((pool.is_enabled, pool.recent.len(), pool.exchanged.len()), (false, 0, 0));
    }

    #[test]
    fn memory_that_a_buffer_refuses_stays_in_the_pool() {
        let mut pool = BufferPool::new();
        assert!(!pool.give(|_| false));
        assert_eq!((pool.recent.len(), pool.exchanged.len()), (1, 0));
        assert!(pool.reclaim(|_| unreachable!("no buffer gave memory in exchange")));
    }
}
