//! Timeouts of reads and writes that are only used to poll a condition.

use std::io;
use std::time::Duration;

/// Did a read or write end only because of its timeout?
#[must_use]
pub fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Maximum time of one read or write, after which the thread checks whether it should stop.
pub(crate) const SLICE: Duration = Duration::from_millis(100);
