//! The kernel's sockets as the laboratory uses them: opened with every option set and read back,
//! filled and drained against a deadline, and asked what they saw.

mod congestion;
mod counters;
mod intake;
mod open;
mod outflow;

pub(crate) use congestion::Congestion;
pub(crate) use counters::{Sampler, counters};
pub(crate) use intake::{Intake, Taken};
#[cfg(test)]
pub(crate) use open::deaf_port;
pub(crate) use open::{Options, connect, dial, grant_receive, grant_send, listen, max_segment};
pub(crate) use outflow::{Contents, Given, Outflow};

use std::io;
use std::time::Duration;

/// Did a read or a write end only because its time was over? Then nothing is wrong.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// How long a thread may sit in one read or write before it asks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);
