//! What is wrong with bytes that were meant to be a packet.

use thiserror::Error;

/// The rule that the bytes broke. The sender, or something on the path, is at fault; the only
/// thing to do with such a packet is to count and drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Fewer bytes than the header, or than a length inside it, promises.
    #[error("{what} is cut short: {needed} bytes needed, {had} there")]
    Truncated {
        /// The header that was being read.
        what: &'static str,
        /// Bytes that the header promises.
        needed: usize,
        /// Bytes that are there.
        had: usize,
    },
    /// A field holds a value that the protocol does not allow.
    #[error("{what} has {field} {value}, which the protocol does not allow")]
    Field {
        /// The header that was being read.
        what: &'static str,
        /// The field's name in its RFC.
        field: &'static str,
        /// The value found.
        value: u32,
    },
    /// The checksum does not fit the bytes.
    #[error("{what} has a wrong checksum")]
    Checksum {
        /// The header that was being read.
        what: &'static str,
    },
}
