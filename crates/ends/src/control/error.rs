//! Errors of a control connection.

use super::lines::LineError;
use std::io;
use thiserror::Error;

/// The reason why a sink on another machine cannot be used. Callers add the address of the sink to
/// the message.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The name of the peer has no address, or no address accepts a connection.
    #[error("no connection: {0}")]
    Unreachable(#[source] io::Error),
    /// The peer is not a linerate sink.
    #[error("the peer is not linerate: it sent {}", said.as_deref().unwrap_or("nothing"))]
    NotLinerate {
        /// The first line that the peer sent or began to send, shortened and made printable; `None`
        /// if the peer sent nothing.
        said: Option<String>,
    },
    /// The peer is a linerate sink with this other version of the control protocol.
    #[error(
        "it uses version {0} of the control connection and this program version 1: use one release"
    )]
    OtherVersion(String),
    /// The sink rejects the connection for this reason, such as too many connected sweeps.
    #[error("it is busy: {0}")]
    Busy(String),
    /// The sink refuses the request for this reason.
    #[error("{0}")]
    Refused(String),
    /// The sink's reply is valid, but does not belong to the request.
    #[error("its reply does not match the request")]
    OutOfTurn,
    /// The sink reports that it has read an impossible number of bytes.
    #[error(
        "it reports that it has read {said} bytes, which is impossible: {sent} of {asked} were sent"
    )]
    WrongCount {
        /// Number of bytes that the sink reports as read.
        said: u64,
        /// Number of bytes that the source has sent.
        sent: u64,
        /// Number of bytes that the run was to transfer.
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
