//! Accounting of buffer memory. When a connection takes memory, the host may take unused memory
//! back from other connections. When memory becomes free, the host gives it to connections whose
//! applications wait to write. The module `tcp::memory` describes the policy.

use crate::stack::Stack;
use crate::tcp::memory::CLASSES;
use crate::tcp::memory::HOLDERS_PER_PASS;
use crate::tcp::{Owner, TcpTimer};
use linerate_tcp::Events;

impl Stack {
    /// Returns the number of bytes of memory that the buffers of all connections hold.
    #[must_use]
    pub const fn buffer_memory(&self) -> usize {
        self.memory.held()
    }

    /// Updates the accounting after a connection has taken or returned memory. If it has taken
    /// memory, and more than half of the budget is in use, takes unused memory back from the
    /// connections that hold the most. Then gives free memory to connections whose applications
    /// wait to write.
    #[cold]
    pub(crate) fn handle_memory_change(&mut self, index: u32) {
        if self.memory.is_awaited()
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            socket.connection.driver().leave_memory_to_others();
        }
        let has_grown = self.account_memory(index);
        let is_short = self.memory.is_short();
        self.counted.tcp_extra.memory_pressures += u64::from(is_short && !self.memory.was_short);
        self.memory.was_short = is_short;
        if has_grown && self.memory.is_half_taken() {
            self.relieve_holders(is_short);
        }
        self.serve_writers();
    }

    /// Subtracts the memory of a connection, which is about to be freed, from the accounting.
    pub(crate) fn forget_memory(&mut self, index: u32) {
        if let Some(socket) = self.sockets.tcp_at(index) {
            let held = core::mem::take(&mut socket.held);
            self.memory.forget(index, held);
            self.serve_writers();
        }
    }

    /// Updates the accounting with the memory that a connection holds now. Returns whether the
    /// connection holds more memory than before.
    fn account_memory(&mut self, index: u32) -> bool {
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        let held = socket.connection.buffer_memory();
        let before = core::mem::replace(&mut socket.held, held);
        self.memory.update(index, before, held);
        held > before
    }

    /// Takes unused memory back from the connections that hold the most memory. If `can_drop_data`
    /// is true, also drops their out-of-order data. Connections are grouped in classes by the
    /// memory that they hold. Each call visits a few connections of each class in rotation. It
    /// begins with the class whose connections hold the most, and stops when at most half of the
    /// budget is in use.
    fn relieve_holders(&mut self, can_drop_data: bool) {
        for class in (1..CLASSES).rev() {
            let count = self.memory.classes[class].len().min(HOLDERS_PER_PASS);
            for _ in 0..count {
                let Some(index) = self.memory.next_holder(class) else { break };
                self.take_back(index, can_drop_data);
            }
            if count > 0 && !self.memory.is_half_taken() {
                break;
            }
        }
    }

    fn take_back(&mut self, index: u32, can_drop_data: bool) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let pruned = socket.connection.driver().give_memory_back(self.now, can_drop_data);
        self.counted.tcp_extra.pruned += u64::from(pruned);
        self.account_memory(index);
    }

    /// Counts a received segment whose data was refused for lack of memory. Takes memory back from
    /// the connections that hold the most, so that a retransmission can be accepted.
    #[cold]
    pub(crate) fn refuse_memory(&mut self) {
        self.counted.tcp_extra.memory_refusals += 1;
        self.relieve_holders(self.memory.is_short());
        self.serve_writers();
    }

    /// Queues a connection whose application could not write for lack of memory. Takes memory back
    /// from the connections that hold the most, to give it to this connection.
    #[cold]
    pub(crate) fn wait_for_memory(&mut self, index: u32) {
        self.counted.tcp_extra.memory_waits += 1;
        self.memory.begin_waiting(index);
        self.relieve_holders(true);
        self.serve_writers();
    }

    /// Gives memory to connections whose applications wait to write, in the order in which they
    /// began to wait. A connection gets its memory before its application is notified. Otherwise
    /// another connection could take the memory in between, and the application could not write
    /// despite the event. Each iteration removes one connection from the queue, so the cost per
    /// write that had to wait is constant.
    #[inline]
    fn serve_writers(&mut self) {
        if self.memory.is_awaited() {
            self.serve_waiting();
        }
    }

    #[inline(never)]
    fn serve_waiting(&mut self) {
        while let Some(index) = self.memory.next_writer() {
            let Some(socket) = self.sockets.tcp_at(index) else { continue };
            self.memory.supply(socket);
            if socket.owner == Owner::Application
                && socket.connection.driver().prepare_to_write(self.now)
            {
                self.timers.arm(TcpTimer::Connection(index), socket.connection.poll_timeout());
                self.events.note(index, Events::WRITABLE.bits());
                self.account_memory(index);
            }
        }
    }
}
