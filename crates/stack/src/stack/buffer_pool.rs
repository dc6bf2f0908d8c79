//! Use of the buffer pool by the receive path with lookup prefetch (see `tcp::buffer_pool`).

use crate::stack::Stack;

impl Stack {
    /// Gives memory of the pool to the receive buffer of a connection, before a segment of the
    /// connection is handled.
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

    /// Takes the pool's memory back from the send buffer of a connection, if acknowledgements have
    /// emptied the buffer. Called when the next received frame belongs to another connection.
    #[inline]
    pub(crate) fn reclaim_send_buffer(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index) {
            self.buffer_pool.reclaim_after_ack(socket);
        }
    }
}
