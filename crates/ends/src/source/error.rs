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
    /// The source cannot listen at its address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system would grant a smaller send buffer than requested.
    #[error("a send buffer of {requested} bytes is not available, {granted} are granted: {remedy}")]
    BufferTooLarge {
        /// Size of the requested send buffer in bytes.
        requested: u64,
        /// Send buffer in bytes that the system would grant. The size does not include the kernel's
        /// overhead, so it can be compared with the requested size.
        granted: u64,
        /// The remedy, as text for the user.
        remedy: String,
    },
    /// The peer cannot compare the data, because it is not a linerate sink.
    #[error("{peer} cannot verify ({reason}): leave --verify out, or start `linerate sink` there")]
    NoVerifier {
        /// The address of the peer.
        peer: String,
        /// The reason, as text for the user.
        reason: String,
    },
    /// The peer is a linerate sink that does not compare the data: it is busy, has another version,
    /// refuses the transfer or failed.
    #[error(
        "{peer} does not verify ({reason}): leave --verify out, or see the output of its \
         `linerate sink`"
    )]
    SinkFailed {
        /// The address of the peer.
        peer: String,
        /// The reason, as text for the user.
        reason: String,
    },
    /// The connection failed.
    #[error("the connection ended after {bytes} bytes were written ({source})")]
    Broken {
        /// Number of data bytes that the socket had accepted before the connection failed.
        bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
}
