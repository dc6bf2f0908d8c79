//! The kernel of this machine as the peer: its TCP and its UDP, over a TAP device in a network that each
//! test makes for itself. Where the machine forbids that, the tests say aloud that they were skipped, and
//! fail where the environment has `CI=true`.
//!
//! Beside the kernel's CUBIC our sender is measured only when that is asked for: see `against`.
//!
//! How much is transferred, and how long a receiver stands still, can be set:
//!
//! ```text
//! LINERATE_TRANSFER_BYTES=1GiB LINERATE_STALL=60s cargo test --release -p linerate-sockets --test reality
//! ```

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]
#![allow(clippy::print_stdout, reason = "helpers of tests print as tests do")]

mod against;
mod conversations;
mod kernel;
mod marks;
mod offloads;
mod packets;
mod paths;
#[path = "../common/pattern.rs"]
mod pattern;
mod queues;
mod spy;
#[path = "../common/store.rs"]
mod store;
mod transfers;

use std::env;
use std::str::FromStr;

/// What the environment says, or else `usual`.
fn setting<T: FromStr<Err: std::fmt::Display>>(name: &str, usual: &str) -> T {
    let text = env::var(name).unwrap_or_else(|_| usual.to_owned());
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}
