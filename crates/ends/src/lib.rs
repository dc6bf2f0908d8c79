//! The two ends of a measured transfer: source, sink, and the control connection between them.
//!
//! An end writes or reads over a socket of the kernel's or of a linerate host, counts what its TCP
//! tells, and says how it ended. Plans, benches and reports are not known here.

#![forbid(unsafe_code)]

pub mod control;
mod ended;
mod interrupt;
pub mod machine;
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
pub use own_host::OwnHost;
pub use peer::{ParsePeerError, Peer};
