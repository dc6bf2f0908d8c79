//! The kernel of this machine as the peer: its TCP and UDP, over a TAP device in a network
//! namespace that each test creates. If the machine forbids that, the tests print that they are
//! skipped. They fail instead if the environment has `CI=true`.
//!
//! The comparison with the kernel's sender runs only on request: see `against`.
//!
//! Environment variables set the size of transfers, and the time for which a receiver stalls:
//!
//! ```text
//! LINERATE_TRANSFER_BYTES=1GiB LINERATE_STALL=60s \
//!     cargo test --release -p linerate-sockets --test reality
//! ```

#![allow(clippy::unwrap_used, reason = "test helpers unwrap as tests do")]
#![allow(clippy::print_stdout, reason = "test helpers print as tests do")]

mod against;
mod autoconfiguration;
mod captured;
mod conversations;
mod dual_stack;
mod floods;
mod fragments;
mod interfaces;
mod ipv6;
mod isn_recorder;
mod kernel;
mod marks;
mod multicast;
mod offloads;
mod packets;
mod paths;
#[path = "../common/pattern.rs"]
mod pattern;
mod queues;
mod routed_paths;
#[path = "../common/store.rs"]
mod store;
mod transfers;

use std::env;
use std::str::FromStr;

/// Returns the value of an environment variable, or a default.
fn setting<T: FromStr<Err: std::fmt::Display>>(name: &str, usual: &str) -> T {
    let text = env::var(name).unwrap_or_else(|_| usual.to_owned());
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}
