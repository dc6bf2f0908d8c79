//! The memory that the buffers of all connections hold together, and who gives some back when it runs
//! short.
//!
//! Connections draw on one budget, and only for data that is there. When three quarters of it are taken,
//! the largest holders give back what nothing lies in; from half of it on, buffers grow no more by
//! themselves. When seven eighths are taken, or somebody gets nothing, the largest holders also lose what
//! lies beyond holes: it was never acknowledged, so its sender still has it. What was acknowledged is
//! never taken away. So a peer cannot make the host hold more than the budget, however it orders its
//! segments, and who holds most for nothing loses it first.

use crate::event::tcp_kind;
use crate::list::{Links, List};
use crate::stack::Stack;
use crate::tcp::Owner;
use linerate_tcp::{Event, MemoryGrant};

/// Holders are sorted by the number of bits in what they hold.
const CLASSES: usize = usize::BITS as usize + 1;

/// Holders of one class that are asked in one go.
const ASKED: usize = 4;

/// The budget.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    /// Invariant: the sum over all connections, and at most `limit`.
    held: usize,
    holders: Links,
    classes: [List; CLASSES],
    /// Applications that had something to write, for which there was no memory.
    writers: Links,
    waiting: List,
    /// Was it short when it was last looked at?
    was_short: bool,
}

impl Memory {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            limit,
            held: 0,
            holders: Links::new(),
            classes: [List::EMPTY; CLASSES],
            writers: Links::new(),
            waiting: List::EMPTY,
            was_short: false,
        }
    }

    /// What one connection may take now.
    pub(crate) const fn grant(&self) -> MemoryGrant {
        MemoryGrant { room: self.limit.saturating_sub(self.held), tuning: self.held < self.limit / 2 }
    }

    /// Bytes that all connections hold.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    const fn is_short(&self) -> bool {
        self.held > self.limit - self.limit / 4
    }

    const fn is_nearly_out(&self) -> bool {
        self.held > self.limit - self.limit / 8
    }

    /// A connection holds another amount than before.
    fn follow(&mut self, connection: u32, before: usize, after: usize) {
        self.held = self.held - before + after;
        let (from, to) = (class_of(before), class_of(after));
        if from != to {
            if from > 0 {
                self.holders.remove(&mut self.classes[from], connection);
            }
            if to > 0 {
                self.holders.push_back(&mut self.classes[to], connection);
            }
        }
    }

    /// The next holder of a class to be asked; after it all others of the class have their turn.
    fn ask(&mut self, class: usize) -> Option<u32> {
        let next = self.holders.pop_front(&mut self.classes[class])?;
        self.holders.push_back(&mut self.classes[class], next);
        Some(next)
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, connection: u32, held: usize) {
        self.follow(connection, held, 0);
        if self.writers.contains(connection) {
            self.writers.remove(&mut self.waiting, connection);
        }
    }

    /// Panics if the connections do not hold what is said, or more than they may.
    pub(crate) fn check(&self, held: impl Iterator<Item = usize>) {
        assert_eq!(self.held, held.sum::<usize>(), "what connections hold is counted");
        assert!(self.held <= self.limit, "{} bytes of {} are held", self.held, self.limit);
    }
}

/// Zero for nothing.
const fn class_of(held: usize) -> usize {
    (usize::BITS - held.leading_zeros()) as usize
}

impl Stack {
    /// Bytes of memory that the buffers of all connections hold.
    #[must_use]
    pub const fn buffer_memory(&self) -> usize {
        self.memory.held()
    }

    /// A connection's buffers hold more or less than before.
    #[cold]
    pub(crate) fn follow_memory(&mut self, index: u32) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let held = socket.connection.buffer_memory();
        let before = core::mem::replace(&mut socket.held, held);
        self.memory.follow(index, before, held);
        if held > before && self.memory.is_short() {
            self.relieve_memory(self.memory.is_nearly_out());
        }
        let is_short = self.memory.is_short();
        self.counted.tcp_extra.memory_pressures += u64::from(is_short && !self.memory.was_short);
        self.memory.was_short = is_short;
        if held < before {
            self.wake_writers();
        }
    }

    /// Asks the largest holders to give back what they do not need; if it must be, what was never
    /// acknowledged. Some of each class are asked, so the next time it is the turn of others.
    pub(crate) fn relieve_memory(&mut self, must: bool) {
        for class in (1..CLASSES).rev() {
            let asked = self.memory.classes[class].len().min(ASKED);
            for _ in 0..asked {
                let Some(index) = self.memory.ask(class) else { break };
                self.take_back(index, must);
            }
            if asked > 0 && !self.memory.is_short() {
                break;
            }
        }
        self.wake_writers();
    }

    fn take_back(&mut self, index: u32, must: bool) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        socket.connection.give_memory_back();
        let pruned = must && socket.connection.prune();
        let held = socket.connection.buffer_memory();
        let before = core::mem::replace(&mut socket.held, held);
        self.memory.follow(index, before, held);
        self.counted.tcp_extra.pruned += u64::from(pruned);
    }

    /// An application could not write for want of memory: it is told when there is some.
    pub(crate) fn wait_for_memory(&mut self, index: u32) {
        if !self.memory.writers.contains(index) {
            self.memory.writers.push_back(&mut self.memory.waiting, index);
        }
        self.relieve_memory(true);
    }

    /// There is memory again: those who wait for it try, the first first.
    fn wake_writers(&mut self) {
        for _ in 0..ASKED {
            if self.memory.is_short() {
                return;
            }
            let Some(index) = self.memory.writers.pop_front(&mut self.memory.waiting) else { return };
            if self.sockets.tcp_at(index).is_some_and(|socket| socket.owner == Owner::Application) {
                self.events.note(index, tcp_kind(Event::Writable));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_sorted_by_size_and_asked_in_turn() {
        let mut memory = Memory::new(1_000_000);
        memory.follow(0, 0, 4_096);
        memory.follow(1, 0, 8_192);
        memory.follow(2, 0, 8_192);
        assert_eq!(memory.held(), 20_480);
        let class = class_of(8_192);
        assert_eq!([memory.ask(class), memory.ask(class), memory.ask(class)], [Some(1), Some(2), Some(1)]);
        memory.follow(1, 8_192, 4_096);
        assert_eq!([memory.ask(class), memory.ask(class)], [Some(2), Some(2)]);
        memory.forget(2, 8_192);
        memory.check([4_096, 4_096].into_iter());
    }

    #[test]
    fn from_half_of_the_budget_on_nothing_is_tuned() {
        let mut memory = Memory::new(100);
        memory.follow(0, 0, 49);
        assert_eq!(memory.grant(), MemoryGrant { room: 51, tuning: true });
        memory.follow(0, 49, 50);
        assert_eq!(memory.grant(), MemoryGrant { room: 50, tuning: false });
    }
}
