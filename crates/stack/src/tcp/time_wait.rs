//! The queue of connections in TIME-WAIT. Nearly all of these connections share one timer.
//!
//! As long as TIME-WAIT has the same duration for all connections, they leave TIME-WAIT in the
//! order in which they entered it. Therefore a TIME-WAIT record needs no timer of its own. The
//! timer of the queue expires a little after the end of the first record, and then all ended
//! records are removed. TIME-WAIT thus lasts a little longer than required, which costs only
//! memory, but never shorter (RFC 9293 §3.6.1).

use crate::collections::list::List;
use crate::collections::timer_wheel::TimerId;
use linerate_units::{Duration, Instant};

/// Divisor of the usual duration of TIME-WAIT. The quotient is the delay of the queue's timer, by
/// which TIME-WAIT can last longer than usual.
const EXTENSION_DIVISOR: u64 = 16;
/// Maximum number of entries of the queue that one expiry of its timer handles, so that the expiry
/// does not take long.
pub(crate) const ENDS_PER_EXPIRY: usize = 16;

/// The identifier of a TCP timer in the timer wheel of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpTimer {
    /// The timer that all TIME-WAIT records share.
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
    /// All connections in TIME-WAIT. Invariant: the TIME-WAIT records in the list are in the order
    /// in which they end, except records with a timer of their own.
    pub(crate) list: List,
    /// Latest end of TIME-WAIT among the records that the timer of the queue ends; reset to
    /// [`Instant::ZERO`] when the queue contains no record. A new record that ends before this time
    /// gets a timer of its own.
    pub(crate) latest: Instant,
    /// Delay of the queue's timer: the timer expires this long after the end of the first record.
    pub(crate) delay: Duration,
    /// Number of successive connections at the front of the list that had no TIME-WAIT record and
    /// were moved to the back. The count restarts when a record is added, removed or found at the
    /// front. If it reaches the length of the list, the list contains no record.
    pub(crate) skipped: usize,
}

impl TimeWait {
    /// Creates an empty queue. `span` is the usual duration of TIME-WAIT.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            list: List::EMPTY,
            latest: Instant::ZERO,
            delay: span / EXTENSION_DIVISOR,
            skipped: 0,
        }
    }

    /// Returns the number of connections in TIME-WAIT.
    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }
}
