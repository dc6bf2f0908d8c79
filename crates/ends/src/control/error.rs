//! Errors of a control connection.

use super::lines::LineError;
use std::io;
use thiserror::Error;

/// The reason why a sink on another machine cannot be used. The caller adds the address.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The name has no address, or no address accepts connections.
    #[error("no connection: {0}")]
    Unreachable(#[source] io::Error),
    /// The peer is another program.
    #[error("the peer is not linerate: it sent {}", said.as_deref().unwrap_or("nothing"))]
    NotLinerate {
        /// The start of the data that it sent, made printable; `None` if it sent nothing.
        said: Option<String>,
    },
    /// The peer is a linerate of another version.
    #[error(
        "it uses version {0} of the control connection and this program version 1: use one release"
    )]
    OtherVersion(String),
    /// The sink serves its maximum number of sweeps.
    #[error("it is busy: {0}")]
    Busy(String),
    /// The sink refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The reply does not match the request.
    #[error("its reply does not match the request")]
    OutOfTurn,
    /// The number of bytes in the sink's report is impossible.
    #[error(
        "it reports that it has read {said} bytes, which is impossible: {sent} of {asked} were sent"
    )]
    WrongCount {
        /// Bytes in the report.
        said: u64,
        /// Bytes sent.
        sent: u64,
        /// Bytes requested.
        asked: u64,
    },
    /// The control connection failed.
    #[error(transparent)]
    Line(#[from] LineError),
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        Self::Line(error.into())
    }
}
