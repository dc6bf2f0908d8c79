//! `linerate source`: makes bytes as fast as they are taken, for a sink it connects to or for
//! whoever connects.
//!
//! Plain peers get the characters of RFC 864 and not a byte besides. A linerate sink can be asked
//! to compare: then the bytes are those of a pattern that knows each byte's place.

mod error;
mod fountain;
mod offer;
mod supply;

pub use error::SourceError;
pub use fountain::{Drawn, Event, Fountain};
pub use offer::{Delivered, give, give_verified};
pub use supply::Supply;

#[cfg(test)]
mod tests;
