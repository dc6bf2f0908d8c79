//! Reasons why a source cannot write.

use crate::serve::ListenError;
use std::io;
use thiserror::Error;

/// Why a source could not give.
#[derive(Debug, Error)]
pub enum SourceError {
    /// Nothing takes a connection there.
    #[error("{peer} cannot be reached ({source}): see that something listens there")]
    Unreachable {
        /// Its address.
        peer: String,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody can connect, because nobody can listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Less than asked for is granted.
    #[error("a send buffer of {requested} bytes is not to be had, {granted} are granted: {remedy}")]
    BufferTooLarge {
        /// Bytes asked for.
        requested: u64,
        /// Bytes granted.
        granted: u64,
        /// How to get more, or what else to ask for.
        remedy: String,
    },
    /// The peer is no linerate sink, so that it cannot compare.
    #[error("{peer} cannot verify ({reason}): leave --verify out, or start `linerate sink` there")]
    NoVerifier {
        /// Its address.
        peer: String,
        /// What it said or did.
        reason: String,
    },
    /// The connection broke.
    #[error("the connection ended after {bytes} bytes were written ({source})")]
    Broken {
        /// Bytes that the socket had taken.
        bytes: u64,
        /// What the system says.
        source: io::Error,
    },
}
