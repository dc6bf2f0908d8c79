//! `linerate source`: sends data as fast as the socket accepts it. The source connects to a sink,
//! or listens and serves every peer that connects.
//!
//! The data depends on the receiver. A linerate sink that compares the data gets a pattern in which
//! each byte depends on its position. All other receivers get the characters of RFC 864.

mod connecting;
mod error;
mod listening_source;
mod supply;

pub use connecting::{Delivered, send, send_verified};
pub use error::SourceError;
pub use listening_source::{Event, ListeningSource, Served};
pub use supply::Supply;

#[cfg(test)]
mod tests;
