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

use crate::collections::list::{Links, List};
use crate::tcp::TcpSocket;
use crate::tcp::grant::Granted;
use linerate_tcp::{MemoryGrant, SMALLEST_BUFFER_MEMORY};

/// The smallest budget: what one connection needs in each direction.
const SMALLEST_BUDGET: usize = 2 * SMALLEST_BUFFER_MEMORY;

/// Holders are sorted by the number of bits in what they hold.
pub(crate) const CLASSES: usize = usize::BITS as usize + 1;

/// What a connection holds that has moved nothing yet is at most the part of the free memory that this
/// divides it by.
const PART: usize = 16;

/// Holders of one class that are asked in one go.
pub(crate) const ASKED: usize = 4;

/// How many connections that have held nothing since they were opened stay awake.
const NEWCOMERS: usize = 1_024;

/// The class of those.
const NEW: usize = 0;

/// The budget.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    /// Invariant: the sum over all connections, and at most `limit`.
    held: usize,
    /// Invariant: each connection that holds something is in its class, and at most [`NEWCOMERS`] are in [`NEW`].
    holders: Links,
    pub(crate) classes: [List; CLASSES],
    writers: Links,
    /// Applications that wait for memory to write into, the first first. Invariant: there is none for anybody
    /// while one waits.
    waiting: List,
    /// Was it short when it was last looked at?
    pub(crate) was_short: bool,
    /// How often what there is has changed: a grant is right until the next time.
    changes: u64,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(SMALLEST_BUDGET),
            held: 0,
            holders: Links::new(),
            classes: [List::EMPTY; CLASSES],
            writers: Links::new(),
            waiting: List::EMPTY,
            was_short: false,
            changes: 0,
        }
    }

    /// What a connection that holds `held` bytes may take now. Has as much gone through it already?
    pub(crate) fn grant(&self, held: usize, has_moved: bool) -> MemoryGrant {
        let part = if has_moved { 1 } else { PART };
        let free = self.limit - self.held;
        let least = if self.is_out() { 0 } else { SMALLEST_BUFFER_MEMORY };
        MemoryGrant {
            room: in_grant(free.saturating_sub(part * held) / (part + 1)),
            least: in_grant(least),
            tuning: !self.is_short(),
            is_awaited: self.is_awaited(),
        }
    }

    /// What a connection that holds nothing may take now, and for what that holds.
    pub(crate) fn first_grant(&self) -> (Granted, MemoryGrant) {
        (Granted { changes: self.changes, has_moved: false }, self.grant(0, false))
    }

    /// Lets a connection take what it may now. To be called before each step that may take memory: while it
    /// holds what it did, and so do all others, the connection knows already.
    #[inline(always)]
    pub(crate) fn supply(&self, socket: &mut TcpSocket) {
        // What has gone through it grows, so there is no way back from there.
        let Granted { changes, has_moved: knows } = socket.granted;
        if changes != self.changes
            || (!knows && has_moved(socket.held, socket.connection.moved_bytes()))
        {
            self.supply_anew(socket);
        }
    }

    /// Does the connection know what it may take, if as much has gone through it as it holds?
    #[inline(always)]
    pub(crate) const fn has_supplied(&self, socket: &TcpSocket) -> bool {
        socket.granted.changes == self.changes
    }

    #[cold]
    fn supply_anew(&self, socket: &mut TcpSocket) {
        let has_moved = has_moved(socket.held, socket.connection.moved_bytes());
        let granted = Granted { changes: self.changes, has_moved };
        if socket.granted != granted {
            socket.granted = granted;
            socket.connection.grant_memory(self.grant(socket.held, has_moved));
        }
    }

    /// Panics if a connection was told of other memory than there is.
    pub(crate) fn check_granted(&self, socket: &TcpSocket) {
        if socket.granted.changes == self.changes {
            let grant = self.grant(socket.held, socket.granted.has_moved);
            assert_eq!(
                socket.connection.granted_memory(),
                grant,
                "a grant is right until something changes"
            );
        }
    }

    /// Bytes that all connections hold.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn is_half_taken(&self) -> bool {
        self.held > self.limit / 2
    }

    pub(crate) const fn is_short(&self) -> bool {
        self.held > self.limit - self.limit / 4
    }

    /// Does somebody wait?
    pub(crate) const fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    const fn is_out(&self) -> bool {
        self.limit - self.held < SMALLEST_BUFFER_MEMORY
    }

    /// A connection holds another amount than before.
    pub(crate) fn follow(&mut self, connection: u32, before: usize, after: usize) {
        self.changes += 1;
        self.held = self.held - before + after;
        let (from, to) = (class_of(before), class_of(after));
        if from != to {
            if self.holders.contains(connection) {
                self.holders.remove(&mut self.classes[from], connection);
            }
            if to > 0 {
                self.holders.push_back(&mut self.classes[to], connection);
            }
        }
    }

    /// A connection was opened. The newcomer that is none any more, if there are too many.
    pub(crate) fn handle_newcomer(&mut self, connection: u32) -> Option<u32> {
        if !self.holders.contains(connection) {
            self.holders.push_back(&mut self.classes[NEW], connection);
        }
        if self.classes[NEW].len() <= NEWCOMERS {
            return None;
        }
        self.holders.pop_front(&mut self.classes[NEW])
    }

    /// The next holder of a class to be asked; after it all others of the class have their turn.
    pub(crate) fn ask(&mut self, class: usize) -> Option<u32> {
        let next = self.holders.pop_front(&mut self.classes[class])?;
        self.holders.push_back(&mut self.classes[class], next);
        Some(next)
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, connection: u32, held: usize) {
        if held > 0 {
            self.follow(connection, held, 0);
        }
        if self.holders.contains(connection) {
            self.holders.remove(&mut self.classes[NEW], connection);
        }
        self.stop_waiting(connection);
    }

    /// Nobody writes to the connection any more.
    #[inline]
    pub(crate) fn stop_waiting(&mut self, connection: u32) {
        if self.writers.contains(connection) {
            self.leave_waiting(connection);
        }
    }

    #[cold]
    fn leave_waiting(&mut self, connection: u32) {
        self.changes += 1;
        self.writers.remove(&mut self.waiting, connection);
    }

    /// An application waits to write to the connection.
    pub(crate) fn begin_waiting(&mut self, connection: u32) {
        if !self.writers.contains(connection) {
            self.changes += 1;
            self.writers.push_back(&mut self.waiting, connection);
        }
    }

    /// The next that waits, if there is memory for it.
    pub(crate) fn next_to_serve(&mut self) -> Option<u32> {
        if self.is_out() {
            return None;
        }
        let next = self.writers.pop_front(&mut self.waiting)?;
        self.changes += 1;
        Some(next)
    }

    /// Panics if the connections do not hold what is said, or more than they may, or somebody waits for
    /// what there is.
    pub(crate) fn check(&self, held: impl Iterator<Item = usize>) {
        assert_eq!(self.held, held.sum::<usize>(), "what connections hold is counted");
        assert!(self.held <= self.limit, "{} bytes of {} are held", self.held, self.limit);
        assert!(
            self.waiting.is_empty() || self.is_out(),
            "somebody waits for memory, and there is some"
        );
    }

    /// Panics if there are too many newcomers, or one that is gone or `holds` something.
    pub(crate) fn check_newcomers(&self, holds: impl Fn(u32) -> Option<usize>) {
        assert!(self.classes[NEW].len() <= NEWCOMERS, "newcomers are limited");
        for newcomer in self.holders.iter(&self.classes[NEW]) {
            assert_eq!(holds(newcomer), Some(0), "newcomers are connections that hold nothing");
        }
    }
}

/// Has as much gone through a connection as it holds?
const fn has_moved(held: usize, moved: u64) -> bool {
    moved > 0 && moved >= held as u64
}

/// More than a buffer can ever want is that.
fn in_grant(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Zero for nothing.
const fn class_of(held: usize) -> usize {
    (usize::BITS - held.leading_zeros()) as usize
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
        assert_eq!(
            [memory.ask(class), memory.ask(class), memory.ask(class)],
            [Some(1), Some(2), Some(1)]
        );
        memory.follow(1, 8_192, 4_096);
        assert_eq!([memory.ask(class), memory.ask(class)], [Some(2), Some(2)]);
        memory.forget(2, 8_192);
        memory.check([4_096, 4_096].into_iter());
    }

    #[test]
    fn the_oldest_of_too_many_newcomers_is_none_any_more_and_who_holds_something_is_none_either() {
        let mut memory = Memory::new(1_000_000);
        let limit = u32::try_from(NEWCOMERS).unwrap();
        assert!((0..limit).all(|connection| memory.handle_newcomer(connection).is_none()));
        assert_eq!((memory.handle_newcomer(3), memory.handle_newcomer(limit)), (None, Some(0)));
        memory.follow(1, 0, 4_096);
        memory.follow(1, 4_096, 0);
        memory.forget(2, 0);
        assert!(
            [limit + 1, limit + 2]
                .iter()
                .all(|&connection| memory.handle_newcomer(connection).is_none())
        );
        assert_eq!(memory.handle_newcomer(limit + 3), Some(3));
        memory.check_newcomers(|_| Some(0));
    }

    #[test]
    fn who_holds_much_leaves_sixteen_times_as_much_to_others() {
        let mut memory = Memory::new(1_700_000);
        let least = in_grant(SMALLEST_BUFFER_MEMORY);
        let grant = |memory: &Memory, held, moved| memory.grant(held, has_moved(held, moved));
        let everything = MemoryGrant { room: 100_000, least, tuning: true, is_awaited: false };
        assert_eq!(grant(&memory, 0, 0), everything);
        memory.follow(0, 0, 100_000);
        assert_eq!((grant(&memory, 100_000, 0).room, grant(&memory, 100_000, 0).least), (0, least));
        assert_eq!(grant(&memory, 0, 0).room, 94_117);
        assert_eq!(grant(&memory, 10_000, 0).room, 84_705);
        assert_eq!(grant(&memory, 100_000, 100_000).room, 750_000, "it makes use of what it holds");
        memory.follow(0, 100_000, 1_275_000);
        assert!(grant(&memory, 0, 0).tuning);
        memory.follow(0, 1_275_000, 1_275_001);
        assert!(!grant(&memory, 0, 0).tuning);
    }

    #[test]
    fn the_last_bytes_are_for_nobody() {
        let mut memory = Memory::new(0);
        memory.follow(0, 0, 4_096);
        assert_eq!(memory.grant(0, false).least, 4_096);
        memory.follow(1, 0, 2_048);
        assert_eq!(memory.grant(0, false).least, 0, "those who wait come first");
    }
}
