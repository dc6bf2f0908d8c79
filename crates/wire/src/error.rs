//! The error of all parsers.

use thiserror::Error;

/// The rule that a received packet violates. The sender or the path is at fault, so the receiver
/// has no remedy: it counts and drops the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The packet is shorter than its header, or than a length in its header.
    #[error("{what} is cut short: {needed} bytes needed, {had} there")]
    Truncated {
        /// The name of the header.
        what: &'static str,
        /// The number of bytes that the header requires.
        needed: usize,
        /// The number of bytes that are present.
        had: usize,
    },
    /// A header field has a value that the protocol does not allow.
    #[error("{what} has {field} {value}, which the protocol does not allow")]
    Field {
        /// The name of the header.
        what: &'static str,
        /// The field's name in its RFC.
        field: &'static str,
        /// The value of the field.
        value: u32,
    },
    /// The checksum does not match the bytes that it covers.
    #[error("{what} has a wrong checksum")]
    Checksum {
        /// The name of the header.
        what: &'static str,
    },
}
