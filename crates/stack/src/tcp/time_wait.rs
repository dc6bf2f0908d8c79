//! Connections in TIME-WAIT, in the order in which they end, and one timer for nearly all of them.
//!
//! They end in the order in which they have come, as long as each waits for as long as the one before it. So whoever
//! is kept as nothing but what TIME-WAIT needs stands in the queue without a timer of its own: the queue's comes
//! due a little after the first of them may end, and ends all that may end by then. To wait for a little longer
//! costs nothing but the record; TIME-WAIT is never shorter than it has to be (RFC 9293 §3.6.1).

use crate::collections::list::List;
use crate::collections::timer_wheel::TimerId;
use linerate_units::{Duration, Instant};

/// How much longer than it has to be TIME-WAIT may be, as a part of it.
const LONGER: u64 = 16;
/// Connections that end at a time: as long as others may have to wait.
pub(crate) const AT_A_TIME: usize = 16;

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpTimer {
    /// The queue's.
    Queue,
    /// That of the connection with this number.
    Of(u32),
}

impl TimerId for TcpTimer {
    #[inline]
    fn number(self) -> u32 {
        match self {
            Self::Queue => 0,
            Self::Of(index) => index + 1,
        }
    }

    #[inline]
    fn from_number(number: u32) -> Self {
        number.checked_sub(1).map_or(Self::Queue, Self::Of)
    }
}

/// The queue of those in TIME-WAIT.
#[derive(Debug)]
pub(crate) struct TimeWait {
    /// All of them. Invariant: those that have no timer of their own stand there in the order of their ends.
    pub(crate) list: List,
    /// When the last of those ends that have no timer of their own.
    pub(crate) latest: Instant,
    /// How long after the end of the first the queue's timer comes due.
    pub(crate) late: Duration,
    /// How many were passed over since somebody came, went, or was found to do nothing but wait. All of them: nobody does.
    pub(crate) passed: usize,
}

impl TimeWait {
    /// Nobody waits; it takes so long as a rule.
    pub(crate) fn new(span: Duration) -> Self {
        Self { list: List::EMPTY, latest: Instant::ZERO, late: span / LONGER, passed: 0 }
    }

    /// How many wait.
    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }
}
