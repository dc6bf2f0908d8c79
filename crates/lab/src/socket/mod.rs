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
pub(crate) use open::{Options, connect, grant_receive, grant_send, listen, max_segment};
pub(crate) use outflow::{Given, Outflow};

/// How long a thread may sit in one read or write before it asks whether it should go on.
const SLICE: std::time::Duration = std::time::Duration::from_millis(100);
