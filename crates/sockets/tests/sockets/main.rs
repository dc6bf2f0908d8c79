//! Tests with two networks in one process, whose sockets are used like those of `std::net`.

#![allow(clippy::unwrap_used, reason = "test helpers unwrap as tests do")]

mod building;
mod congestion;
mod datagrams;
mod endings;
mod forwarder;
mod interfaces;
mod listeners;
mod networks;
#[path = "../common/pattern.rs"]
mod pattern;
mod poller;
mod program;
mod shards;
#[path = "../common/store.rs"]
mod store;
mod streams;
mod timeouts;
mod wakeups;
mod wrong_use;
