//! The queue of connections in TIME-WAIT, with one timer for nearly all of them.
//!
//! Connections end in the order in which they entered TIME-WAIT, as long as all have the same
//! duration. So a TIME-WAIT record needs no timer of its own: the timer of the queue expires a
//! little after the end of the first record, and removes all that have ended. A TIME-WAIT that is a
//! little longer costs only memory. It is never shorter than required (RFC 9293 §3.6.1).

use crate::collections::list::List;
use crate::collections::timer_wheel::TimerId;
use linerate_units::{Duration, Instant};

/// TIME-WAIT may be extended by this fraction.
const EXTENSION_DIVISOR: u64 = 16;
/// Connections that are ended by one expiry, to limit its duration.
pub(crate) const ENDS_PER_EXPIRY: usize = 16;

/// The timers of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpTimer {
    /// The timer of the TIME-WAIT queue.
    Queue,
    /// The timer of the connection at this index.
    Connection(u32),
}

impl TimerId for TcpTimer {
    #[inline]
    fn number(self) -> u32 {
        match self {
            Self::Queue => 0,
            Self::Connection(index) => index + 1,
        }
    }

    #[inline]
    fn from_number(number: u32) -> Self {
        number.checked_sub(1).map_or(Self::Queue, Self::Connection)
    }
}

/// The queue of connections in TIME-WAIT.
#[derive(Debug)]
pub(crate) struct TimeWait {
    /// All connections in TIME-WAIT. Invariant: the records are in the order of their ends.
    pub(crate) list: List,
    /// The end of the last record.
    pub(crate) latest: Instant,
    /// The delay of the timer of the queue after the end of the first record.
    pub(crate) delay: Duration,
    /// Number of entries skipped since a record was added, removed or found. If all entries were
    /// skipped, there is no record to end.
    pub(crate) skipped: usize,
}

impl TimeWait {
    /// Creates an empty queue. TIME-WAIT usually lasts for `span`.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            list: List::EMPTY,
            latest: Instant::ZERO,
            delay: span / EXTENSION_DIVISOR,
            skipped: 0,
        }
    }

    /// Returns the number of connections.
    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }
}
