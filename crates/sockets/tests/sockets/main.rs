//! Two networks in one process, and programs that use them like `std::net`.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod datagrams;
mod endings;
mod listeners;
mod networks;
mod pattern;
mod program;
mod streams;
mod timeouts;
mod wakeups;
