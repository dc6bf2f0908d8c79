//! The buffer memory of all connections: its distribution among connections, the queue of
//! applications that wait to write, and the measures when memory runs short.
//!
//! Connections share one budget of memory, and take memory only for actual data. The memory of a
//! connection is limited to a part of the memory that is free at that time (dynamic thresholds,
//! Choudhury and Hahne 1998). This part is a sixteenth, so that only very many idle connections
//! together could exhaust the budget. For a connection that has already transferred as many bytes
//! as it holds, the limit is all of the free memory. A connection without memory may take the
//! smallest buffer as long as that much memory is free.
//!
//! If connections hold more than half of the budget, the largest holders return memory that they
//! have not used recently. If they hold more than three quarters, or a connection gets no memory,
//! two further measures apply. Buffers stop growing automatically, and the largest holders also
//! drop out-of-order data. The peer retransmits this data, because the host has not acknowledged
//! it. The host never drops acknowledged data. Thus no peer can make the host exceed the budget,
//! whatever the order of its segments.
//!
//! An application cannot write if the send buffer of its connection has no memory and gets none.
//! The application then waits in a queue. When memory becomes free, the queue gets it before other
//! connections. While an application waits, other connections may use half of the memory that they
//! hold; the other half becomes free as their peers acknowledge data.
//!
//! A connection in full form takes about five times the memory of a compact connection. A
//! connection is packed into compact form after it was idle for a second. Of the connections that
//! have never held buffer memory, only a limited number stays in full form. Thus many connections
//! that are opened at once cannot exhaust the memory of the process.

use crate::collections::list::{Links, List};
use crate::tcp::TcpSocket;
use crate::tcp::grant::Granted;
use linerate_tcp::{MemoryGrant, SMALLEST_BUFFER_MEMORY};

/// Minimum budget in bytes: enough for one connection with the smallest buffer in each direction.
const SMALLEST_BUDGET: usize = 2 * SMALLEST_BUFFER_MEMORY;

/// Number of classes into which connections are sorted by the amount of memory that they hold. The
/// class of a connection is the bit length of this number of bytes, so each class holds up to twice
/// as much as the class below.
pub(crate) const CLASSES: usize = usize::BITS as usize + 1;

/// Divisor for the memory limit of a connection that has transferred fewer bytes than it holds. Its
/// limit is the free part of the budget, divided by this number.
const PART: usize = 16;

/// Maximum number of connections of each class from which the host takes memory back in one pass
/// over the classes.
pub(crate) const HOLDERS_PER_PASS: usize = 4;

/// Maximum number of connections in full form that have never held buffer memory.
const NEWCOMERS: usize = 1_024;

/// The class of new connections, which hold no buffer memory yet.
const NEW: usize = 0;

/// The budget of buffer memory, and the connections that share it.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    /// Number of bytes that all connections hold. Invariant: at most `limit`.
    held: usize,
    /// Links of the lists in `classes`. Invariant: each connection with buffer memory is in the
    /// list of its class, and the list of [`NEW`] has at most [`NEWCOMERS`] connections.
    holders: Links,
    pub(crate) classes: [List; CLASSES],
    writers: Links,
    /// Connections whose application waits for memory to write, in the order in which they began to
    /// wait. Invariant: while this list is not empty, less memory than the smallest buffer is free.
    waiting: List,
    /// Whether memory was short at the host's most recent check.
    pub(crate) was_short: bool,
    /// Number of changes to `held` and `waiting`. A memory grant is valid until this number
    /// changes.
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

    /// Returns the memory grant for a connection that holds `held` bytes: the amount of further
    /// memory that it may take. `has_moved` says whether the connection has transferred at least
    /// `held` bytes. If so, its limit is all of the free memory instead of a sixteenth.
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

    /// Returns the memory grant for a new connection, and the record of the accounting by which the
    /// host later notices that the grant is outdated.
    pub(crate) fn first_grant(&self) -> (Granted, MemoryGrant) {
        (Granted { changes: self.changes, has_moved: false }, self.grant(0, false))
    }

    /// Updates the memory grant of a connection if it is outdated. Must be called before each step
    /// that may allocate buffer memory. The call is cheap while the accounting does not change.
    #[inline(always)]
    pub(crate) fn supply(&self, socket: &mut TcpSocket) {
        // A grant becomes outdated for two reasons. First, the memory of some connection or the
        // queue of writers has changed, so `changes` differs. Second, this connection has
        // transferred as many bytes as it holds, and may therefore hold more. The second reason
        // cannot recur, because transferred bytes only grow. So it is not checked once a grant has
        // considered it.
        let Granted { changes, has_moved: knows } = socket.granted;
        if changes != self.changes
            || (!knows && has_moved(socket.held, socket.connection.moved_bytes()))
        {
            self.refresh_grant(socket);
        }
    }

    /// Returns whether the accounting has not changed since `socket` got its most recent grant. If
    /// so, the grant is up to date, provided that [`Granted::is_final`] returns true.
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

    /// Returns whether an application waits for memory to write.
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

    /// Adds a new connection. If there are too many connections in the class [`NEW`], removes and
    /// returns the oldest connection of this class, which the caller must make compact.
    pub(crate) fn handle_newcomer(&mut self, connection: u32) -> Option<u32> {
        if !self.holders.contains(connection) {
            self.holders.push_back(&mut self.classes[NEW], connection);
        }
        if self.classes[NEW].len() <= NEWCOMERS {
            return None;
        }
        self.holders.pop_front(&mut self.classes[NEW])
    }

    /// Returns the connection at the front of a class, and moves it to the back. Repeated calls
    /// thus return all connections of the class in turn.
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

    /// Frees the list links of the sockets whose index is at least `sockets`. These sockets no
    /// longer exist.
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

    /// Removes and returns the connection that has waited longest for memory to write. Returns
    /// `None` if no connection waits, or less memory than the smallest buffer is free.
    pub(crate) fn next_writer(&mut self) -> Option<u32> {
        if self.is_exhausted() {
            return None;
        }
        let next = self.writers.pop_front(&mut self.waiting)?;
        self.changes += 1;
        Some(next)
    }

    /// Panics if the accounting is wrong, the limit is exceeded, or an application waits although
    /// memory is available. `held` yields the number of bytes that each connection holds.
    pub(crate) fn check(&self, held: impl Iterator<Item = usize>) {
        assert_eq!(self.held, held.sum::<usize>(), "the bytes of all connections are counted");
        assert!(self.held <= self.limit, "{} bytes of {} are held", self.held, self.limit);
        assert!(
            self.waiting.is_empty() || self.is_exhausted(),
            "a writer waits although there is memory"
        );
    }

    /// Panics if the class [`NEW`] has too many connections, or contains a connection that no
    /// longer exists or that holds memory. `holds` returns the number of bytes that a connection
    /// holds.
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

/// Converts a number of bytes to the integer type of a memory grant. A number that is too large
/// becomes the maximum of nearly 4 GiB, which is more than any buffer needs.
fn in_grant(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Returns the class of a connection that holds `held` bytes.
const fn class_of(held: usize) -> usize {
    (usize::BITS - held.leading_zeros()) as usize
}

#[cfg(test)]
mod tests;
