//! Sockets as the laboratory uses them, the kernel's and those of a host of linerate's own: opened with every
//! option set and read back, filled and drained against a deadline, and asked what they saw.

mod congestion;
mod counters;
mod intake;
mod listening;
mod network;
mod open;
mod outflow;
mod own_counters;
mod stream;

pub(crate) use congestion::Congestion;
pub(crate) use counters::{Sampler, counters};
pub(crate) use intake::{Intake, Taken};
pub(crate) use listening::Listening;
pub use network::{Network, NetworkError, OwnNetwork};
#[cfg(test)]
pub(crate) use open::deaf_port;
pub(crate) use open::{
    Options, connect, grant_receive, grant_send, listen, max_segment, remedy_for_buffer,
};
pub(crate) use outflow::{Contents, Given, Outflow};
pub(crate) use own_counters::of_connection;
pub(crate) use stream::Stream;

use std::io;
use std::time::Duration;

/// Did a read or a write end only because its time was over? Then nothing is wrong.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// How long a thread may sit in one read or write before it asks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);
