//! The two ends of a measured transfer: source, sink, and the control connection between them.
//!
//! An end writes or reads through a socket of the kernel or of a linerate host. It collects the
//! counters of its TCP, and reports why the transfer ended. This crate does not depend on the
//! crates that plan a series of transfers and evaluate the results.

#![forbid(unsafe_code)]

pub mod control;
mod ended;
mod interrupt;
pub mod iperf3;
pub mod machine;
pub mod observe;
mod own_host;
mod peer;
mod serde_text;
pub mod serve;
pub mod sink;
pub mod socket;
pub mod source;
pub mod workload;

pub use ended::Ended;
pub use interrupt::Interrupt;
pub use own_host::{Location, OwnHost};
pub use peer::{ParsePeerError, Peer};
