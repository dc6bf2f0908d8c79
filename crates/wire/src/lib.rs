//! The layout of bytes on the wire: headers, options, checksums and serial-number arithmetic.
//!
//! Nothing here knows about time, connections, or who is talking, and nothing allocates. Every
//! parser takes the bytes as they came and answers with a value that cannot be wrong, or with a
//! [`Malformed`] that says which rule they broke; no input panics.

#![no_std]
#![deny(unsafe_code)]

pub mod checksum;
mod error;
mod protocol;
mod seq;
mod tcp;
mod tcp_options;

pub use checksum::Sum;
pub use error::Malformed;
pub use protocol::Protocol;
pub use seq::SeqNum;
pub use tcp::{Segment, TcpFlags, TcpHeader};
pub use tcp_options::{SackBlock, SackBlocks, TIMESTAMPS_PREFIX, TcpOptions, Timestamps};
