//! `linerate source`: sends data as fast as the socket accepts it, to a sink or to any peer that
//! connects.
//!
//! Data that the receiver does not compare consists of the characters of RFC 864. A linerate sink
//! that compares the data gets a pattern in which each byte depends on its position.

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
