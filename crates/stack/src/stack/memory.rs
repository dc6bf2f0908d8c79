//! The memory that the buffers of all connections hold together: who may take some, who waits for it, and
//! who gives some back when it runs short.
//!
//! Connections draw on one budget, and only for data that is there. None may grow beyond a part of what is
//! free after it has grown (dynamic thresholds, Choudhury and Hahne 1998): a sixteenth, so that it takes many
//! that hold memory for nothing, each with less than the ones before, to use it up; all of it, if as much
//! as it holds has gone through it already. Everybody who has nothing may take a little, for as long as there
//! is any, so that each can say something.
//!
//! When half of the budget is taken, the largest holders give back what nothing lies in, nor did of late.
//! When three quarters are, or somebody gets nothing, buffers grow no more by themselves, and the largest
//! holders also lose what lies beyond holes: it was never acknowledged, so its sender still has it. What was
//! acknowledged is never taken away. So a peer cannot make the host hold more than the budget, however it
//! orders its segments, and who holds most for nothing loses it first.
//!
//! Who has something to write, nothing in its buffer whose acknowledgement would wake it, and gets no memory,
//! waits in a queue, and is given some before anybody else is. While one waits, the others may fill half
//! of what they hold, and the other half comes free as their peers acknowledge.
//!
//! A connection itself takes memory, too: four times as much awake as at rest. Who idles rests after a second,
//! and of those that have held nothing since they were opened, only the last stay awake for so long: however
//! many are opened at once, and say nothing, they never take that memory all together.

use crate::stack::Stack;
use crate::tcp::memory::ASKED;
use crate::tcp::memory::CLASSES;
use crate::tcp::{Owner, TcpTimer};
use linerate_tcp::Events;

impl Stack {
    /// Bytes of memory that the buffers of all connections hold.
    #[must_use]
    pub const fn buffer_memory(&self) -> usize {
        self.memory.held()
    }

    /// A connection's buffers hold more or less than before, or others wait for what it does not need.
    #[cold]
    pub(crate) fn follow_memory(&mut self, index: u32) {
        if self.memory.is_awaited()
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            socket.connection.leave_memory_to_others();
        }
        let has_grown = self.count_memory(index);
        let is_short = self.memory.is_short();
        self.counted.tcp_extra.memory_pressures += u64::from(is_short && !self.memory.was_short);
        self.memory.was_short = is_short;
        if has_grown && self.memory.is_half_taken() {
            self.relieve_memory(is_short);
        }
        self.serve_writers();
    }

    /// A connection is dropped, with what it holds.
    pub(crate) fn forget_memory(&mut self, index: u32) {
        if let Some(socket) = self.sockets.tcp_at(index) {
            let held = core::mem::take(&mut socket.held);
            self.memory.forget(index, held);
            self.serve_writers();
        }
    }

    /// Counts what a connection holds now; true if that is more than before.
    fn count_memory(&mut self, index: u32) -> bool {
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        let held = socket.connection.buffer_memory();
        let before = core::mem::replace(&mut socket.held, held);
        self.memory.follow(index, before, held);
        held > before
    }

    /// Asks the largest holders to give back what they do not need; if it must be, what was never
    /// acknowledged. Some of each class are asked, so the next time it is the turn of others.
    fn relieve_memory(&mut self, must: bool) {
        for class in (1..CLASSES).rev() {
            let asked = self.memory.classes[class].len().min(ASKED);
            for _ in 0..asked {
                let Some(index) = self.memory.ask(class) else { break };
                self.take_back(index, must);
            }
            if asked > 0 && !self.memory.is_half_taken() {
                break;
            }
        }
    }

    fn take_back(&mut self, index: u32, must: bool) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let pruned = socket.connection.give_memory_back(self.now, must);
        self.counted.tcp_extra.pruned += u64::from(pruned);
        self.count_memory(index);
    }

    /// There was no memory for what a peer has sent.
    #[cold]
    pub(crate) fn refuse_memory(&mut self) {
        self.counted.tcp_extra.memory_refusals += 1;
        self.relieve_memory(self.memory.is_short());
        self.serve_writers();
    }

    /// An application could write nothing for want of memory: it is told when there is some.
    #[cold]
    pub(crate) fn wait_for_memory(&mut self, index: u32) {
        self.counted.tcp_extra.memory_waits += 1;
        self.memory.begin_waiting(index);
        self.relieve_memory(true);
        self.serve_writers();
    }

    /// Gives those who wait to write what memory there is, the first first. They hold it from then on, so
    /// nobody can be quicker, and who is told that it can write can. Each turn of the loop was paid for by
    /// a write.
    #[inline]
    fn serve_writers(&mut self) {
        if self.memory.is_awaited() {
            self.serve_waiting();
        }
    }

    #[inline(never)]
    fn serve_waiting(&mut self) {
        while let Some(index) = self.memory.next_to_serve() {
            let Some(socket) = self.sockets.tcp_at(index) else { continue };
            self.memory.supply(socket);
            if socket.owner == Owner::Application && socket.connection.prepare_to_write(self.now) {
                self.timers.arm(TcpTimer::Connection(index), socket.connection.poll_timeout());
                self.events.note(index, Events::WRITABLE.bits());
                self.count_memory(index);
            }
        }
    }
}
