//! Tests with the kernel of this machine as the peer of our host. Its TCP and UDP are reached over
//! a TAP device, in a network namespace that each test creates. If the machine forbids that, the
//! tests print that they are skipped. If the environment has `CI=true`, they fail instead.
//!
//! Two measurements run only on request: see `against` and `floods`.
//!
//! Environment variables set the number of bytes of transfers, and the time for which a receiver
//! does not read:
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

/// Returns the value of the environment variable `name`, or the default `usual` if it is unset.
fn setting<T: FromStr<Err: std::fmt::Display>>(name: &str, usual: &str) -> T {
    let text = env::var(name).unwrap_or_else(|_| usual.to_owned());
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}
