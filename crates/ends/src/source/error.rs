//! Errors of a source.

use crate::serve::ListenError;
use std::io;
use thiserror::Error;

/// The reason why a source failed.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The peer does not accept connections.
    #[error("{peer} cannot be reached ({source}): check that a sink listens there")]
    Unreachable {
        /// The address of the peer.
        peer: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The source cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The kernel would grant less than the requested buffer.
    #[error("a send buffer of {requested} bytes is not available, {granted} are granted: {remedy}")]
    BufferTooLarge {
        /// Number of bytes that were requested.
        requested: u64,
        /// Number of bytes that would be granted.
        granted: u64,
        /// The remedy, as text for the user.
        remedy: String,
    },
    /// The peer is not a linerate sink, which alone can compare the data.
    #[error("{peer} cannot verify ({reason}): leave --verify out, or start `linerate sink` there")]
    NoVerifier {
        /// The address of the peer.
        peer: String,
        /// The reason, as text for the user.
        reason: String,
    },
    /// The connection failed.
    #[error("the connection ended after {bytes} bytes were written ({source})")]
    Broken {
        /// Number of bytes that the socket had accepted by then.
        bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
}
