//! Memory for small buffers that was written a moment ago, and is in the processor's caches still.
//!
//! A host with very many connections has hardly any of their buffers in the caches, and most are empty most of the
//! time. A buffer in which nothing lies may as well lie elsewhere: so one that is about to be written to is given
//! memory that was in use last, for its own, and gives it back when it is empty again. Nobody holds more or less for
//! that.

use crate::stack::Stack;

impl Stack {
    /// The segments of this connection are about to have their turn, after those of others.
    #[inline]
    pub(crate) fn lend_memory(&mut self, index: u32) {
        debug_assert!(
            self.coalesced.as_ref().is_none_or(|run| !run.is_pending()),
            "nothing lies in a buffer of which its connection does not know"
        );
        if let Some(socket) = self.sockets.full_at(index) {
            self.warm_memory.lend_to_receive(socket);
        }
    }

    /// They have had it.
    #[inline]
    pub(crate) fn take_memory_back(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index) {
            self.warm_memory.take_back_sent(socket);
        }
    }
}
