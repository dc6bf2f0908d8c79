//! The calls by which the receive path with lookup prefetch uses the buffer pool. The module
//! `tcp::buffer_pool` contains the pool and explains its purpose.

use crate::stack::Stack;

impl Stack {
    /// Gives memory of the pool, which is probably in the processor's caches, to the receive buffer
    /// of a connection. Called before a frame with a segment of this connection is handled.
    #[inline]
    pub(crate) fn pool_receive_buffer(&mut self, index: u32) {
        debug_assert!(
            self.coalesced.as_ref().is_none_or(|run| !run.is_pending()),
            "no coalesced segment has data in a buffer that counts as empty"
        );
        if let Some(socket) = self.sockets.full_at(index) {
            self.buffer_pool.give_to_receive(socket);
        }
    }

    /// Returns memory of the send buffer of a connection to the pool, if acknowledgements have
    /// emptied the buffer. Called when the next frame does not belong to this connection, so that
    /// no further acknowledgement follows at once.
    #[inline]
    pub(crate) fn reclaim_send_buffer(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index) {
            self.buffer_pool.reclaim_after_ack(socket);
        }
    }
}
