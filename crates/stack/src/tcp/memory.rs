//! The buffer memory of all connections: its distribution, the queue of waiting writers, and the
//! relief when it runs short.
//!
//! Connections share one budget, and take memory only for actual data. The limit of a connection is
//! a part of the memory that is free at the time (dynamic thresholds, Choudhury and Hahne 1998).
//! The part is a sixteenth, so that only many idle connections could exhaust the budget, each with
//! less than the previous one. For a connection that has already transferred as much as it holds,
//! the limit is all of the free memory. A connection without memory may take a minimum as long as
//! any memory is free.
//!
//! Above half of the budget, the largest holders return memory that was not used recently. Above
//! three quarters, or when a connection gets no memory, automatic growth stops, and the largest
//! holders also drop out-of-order data, which was not acknowledged and will be sent again.
//! Acknowledged data is never dropped. A peer thus cannot make the host exceed the budget by any
//! order of segments, and the connections that waste most memory lose it first.
//!
//! A writer without memory, whose buffer is empty, waits in a queue, and is served before others.
//! While a writer waits, other connections may use half of the memory that they hold; the other
//! half becomes free as their peers acknowledge data.
//!
//! A full connection takes four times the memory of a compact one. An idle connection is packed
//! after a second. Of new connections without buffer memory only a limited number stays full, so
//! that many idle connections that are opened together cannot exhaust the memory of the process.

use crate::collections::list::{Links, List};
use crate::tcp::TcpSocket;
use crate::tcp::grant::Granted;
use linerate_tcp::{MemoryGrant, SMALLEST_BUFFER_MEMORY};

/// Minimum budget in bytes: enough for one connection with the smallest buffer in each direction.
const SMALLEST_BUDGET: usize = 2 * SMALLEST_BUFFER_MEMORY;

/// Number of classes into which connections are sorted by the memory that they hold. The class is
/// the number of significant bits of the number of bytes.
pub(crate) const CLASSES: usize = usize::BITS as usize + 1;

/// Divisor of the free memory, for the limit of connections that have transferred less than they
/// hold.
const PART: usize = 16;

/// Number of connections of one class that must return memory in one pass.
pub(crate) const HOLDERS_PER_PASS: usize = 4;

/// Maximum number of connections that have never held buffer memory and are not compact.
const NEWCOMERS: usize = 1_024;

/// The class of connections that hold no buffer memory.
const NEW: usize = 0;

/// The budget of buffer memory, and the connections that share it.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    /// Number of bytes that all connections hold. Invariant: at most `limit`.
    held: usize,
    /// Links of the lists of connections, one list for each class. Invariant: each connection with
    /// memory is in the list of its class, and at most [`NEWCOMERS`] are in the list of [`NEW`].
    holders: Links,
    pub(crate) classes: [List; CLASSES],
    writers: Links,
    /// Connections whose application waits for memory to write, in this order. Invariant: while one
    /// waits, no memory is available.
    waiting: List,
    /// Whether memory was short when that was last checked.
    pub(crate) was_short: bool,
    /// Number of changes of the held memory. A grant is valid until the next change.
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

    /// Returns the grant for a connection that holds `held` bytes. `has_moved` says whether it has
    /// transferred at least as many.
    pub(crate) fn grant(&self, held: usize, has_moved: bool) -> MemoryGrant {
        let part = if has_moved { 1 } else { PART };
        let free = self.limit - self.held;
        let least = if self.is_exhausted() { 0 } else { SMALLEST_BUFFER_MEMORY };
        MemoryGrant {
            room: in_grant(free.saturating_sub(part * held) / (part + 1)),
            least: in_grant(least),
            tuning: !self.is_short(),
            is_awaited: self.is_awaited(),
        }
    }

    /// Returns the grant for a new connection, and the record of it.
    pub(crate) fn first_grant(&self) -> (Granted, MemoryGrant) {
        (Granted { changes: self.changes, has_moved: false }, self.grant(0, false))
    }

    /// Updates the grant of a connection. Must be called before each step that may allocate memory.
    /// It is cheap as long as no connection has changed the memory that it holds.
    #[inline(always)]
    pub(crate) fn supply(&self, socket: &mut TcpSocket) {
        // The number of transferred bytes only grows, so a connection that fulfilled this condition
        // still does.
        let Granted { changes, has_moved: knows } = socket.granted;
        if changes != self.changes
            || (!knows && has_moved(socket.held, socket.connection.moved_bytes()))
        {
            self.refresh_grant(socket);
        }
    }

    /// Returns whether the grant of a connection that has transferred as much as it holds is up to
    /// date.
    #[inline(always)]
    pub(crate) const fn has_supplied(&self, socket: &TcpSocket) -> bool {
        socket.granted.changes == self.changes
    }

    #[cold]
    fn refresh_grant(&self, socket: &mut TcpSocket) {
        let has_moved = has_moved(socket.held, socket.connection.moved_bytes());
        let granted = Granted { changes: self.changes, has_moved };
        if socket.granted != granted {
            socket.granted = granted;
            socket.connection.driver().grant_memory(self.grant(socket.held, has_moved));
        }
    }

    /// Panics if the memory grant of a connection differs from the grant that the accounting
    /// requires.
    pub(crate) fn check_granted(&self, socket: &TcpSocket) {
        if socket.granted.changes == self.changes {
            let grant = self.grant(socket.held, socket.granted.has_moved);
            assert_eq!(
                socket.connection.granted_memory(),
                grant,
                "a grant is valid until the next change"
            );
        }
    }

    /// Returns the number of bytes that all connections hold.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn is_half_taken(&self) -> bool {
        self.held > self.limit / 2
    }

    pub(crate) const fn is_short(&self) -> bool {
        self.held > self.limit - self.limit / 4
    }

    /// Returns whether an application waits for memory.
    pub(crate) const fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    const fn is_exhausted(&self) -> bool {
        self.limit - self.held < SMALLEST_BUFFER_MEMORY
    }

    /// Updates the accounting after a connection's memory has changed from `before` to `after`
    /// bytes.
    pub(crate) fn update(&mut self, connection: u32, before: usize, after: usize) {
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

    /// Adds a new connection. If there are too many without memory, returns the oldest of these,
    /// which must be made compact.
    pub(crate) fn handle_newcomer(&mut self, connection: u32) -> Option<u32> {
        if !self.holders.contains(connection) {
            self.holders.push_back(&mut self.classes[NEW], connection);
        }
        if self.classes[NEW].len() <= NEWCOMERS {
            return None;
        }
        self.holders.pop_front(&mut self.classes[NEW])
    }

    /// Returns the next connection of a class, in rotation.
    pub(crate) fn next_holder(&mut self, class: usize) -> Option<u32> {
        let next = self.holders.pop_front(&mut self.classes[class])?;
        self.holders.push_back(&mut self.classes[class], next);
        Some(next)
    }

    /// Removes a connection, which holds `held` bytes, from the accounting.
    pub(crate) fn forget(&mut self, connection: u32, held: usize) {
        if held > 0 {
            self.update(connection, held, 0);
        }
        if self.holders.contains(connection) {
            self.holders.remove(&mut self.classes[NEW], connection);
        }
        self.stop_waiting(connection);
    }

    /// Gives back the memory of connections from the index `sockets` on, which hold nothing.
    #[cold]
    pub(crate) fn shrink(&mut self, sockets: usize) {
        self.holders.shrink(sockets);
        self.writers.shrink(sockets);
    }

    /// Removes a connection from the queue of waiting writers.
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

    /// Adds a connection to the queue of waiting writers.
    pub(crate) fn begin_waiting(&mut self, connection: u32) {
        if !self.writers.contains(connection) {
            self.changes += 1;
            self.writers.push_back(&mut self.waiting, connection);
        }
    }

    /// Removes and returns the first waiting writer, if memory is available for it.
    pub(crate) fn next_writer(&mut self) -> Option<u32> {
        if self.is_exhausted() {
            return None;
        }
        let next = self.writers.pop_front(&mut self.waiting)?;
        self.changes += 1;
        Some(next)
    }

    /// Panics if the accounting is wrong, the limit is exceeded, or a writer waits although memory
    /// is available. `held` are the bytes that each connection holds.
    pub(crate) fn check(&self, held: impl Iterator<Item = usize>) {
        assert_eq!(self.held, held.sum::<usize>(), "the bytes of all connections are counted");
        assert!(self.held <= self.limit, "{} bytes of {} are held", self.held, self.limit);
        assert!(
            self.waiting.is_empty() || self.is_exhausted(),
            "a writer waits although there is memory"
        );
    }

    /// Panics if there are too many connections in [`NEW`], or one of them no longer exists or
    /// holds memory. `holds` returns the bytes that a connection holds.
    pub(crate) fn check_newcomers(&self, holds: impl Fn(u32) -> Option<usize>) {
        assert!(self.classes[NEW].len() <= NEWCOMERS, "newcomers are limited");
        for newcomer in self.holders.iter(&self.classes[NEW]) {
            assert_eq!(holds(newcomer), Some(0), "newcomers are connections that hold nothing");
        }
    }
}

/// Returns whether a connection has transferred at least as many bytes as it holds.
const fn has_moved(held: usize, moved: u64) -> bool {
    moved > 0 && moved >= held as u64
}

/// Converts a number of bytes to the type of a grant. Larger numbers saturate, which is harmless
/// because no buffer needs more.
fn in_grant(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Returns the class of a connection that holds `held` bytes.
const fn class_of(held: usize) -> usize {
    (usize::BITS - held.leading_zeros()) as usize
}

#[cfg(test)]
mod tests;
