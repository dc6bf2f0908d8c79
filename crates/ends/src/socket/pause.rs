//! Reads and writes that end because their time is over.

use std::io;
use std::time::Duration;

/// Did a read or a write end only because its time was over? Then nothing is wrong.
#[must_use]
pub fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// How long a thread may sit in one read or write before it asks whether it should go on.
pub(crate) const SLICE: Duration = Duration::from_millis(100);
