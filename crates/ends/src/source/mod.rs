//! `linerate source`: sends data as fast as it is accepted, to a sink it connects to or to peers
//! that connect.
//!
//! Plain peers get the characters of RFC 864 and nothing else. For a linerate sink that compares,
//! the data is a pattern that depends on the position.

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
