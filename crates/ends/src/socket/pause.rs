//! Short timeouts of reads and writes (pauses). After each pause, a thread checks whether it should
//! stop.

use std::io;
use std::time::Duration;

/// Did a read or write fail only because its timeout expired or a signal interrupted it?
#[must_use]
pub fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Timeout of a single read or write, after which the thread checks whether it should stop.
pub(crate) const SLICE: Duration = Duration::from_millis(100);
