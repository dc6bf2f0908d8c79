//! Why a sink on another machine cannot be used.

use super::lines::LineError;
use std::io;
use thiserror::Error;

/// Why a sink on another machine cannot be used. The address is the caller's to add.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The name has no address, or nothing answers at it.
    #[error("no connection: {0}")]
    Unreachable(#[source] io::Error),
    /// Something else listens there: it said this, or nothing.
    #[error("no linerate answers, but {}", said.as_deref().unwrap_or("silence"))]
    Stranger {
        /// The beginning of what it said, made printable.
        said: Option<String>,
    },
    /// A linerate of another release listens there.
    #[error(
        "it speaks version {0} of the control connection and this program version 1: use one release"
    )]
    OtherVersion(String),
    /// The sink serves others already.
    #[error("it is busy: {0}")]
    Busy(String),
    /// The sink says no to what was asked.
    #[error("{0}")]
    Refused(String),
    /// The sink answered with something else than was asked for.
    #[error("its answer does not belong to the question")]
    OutOfTurn,
    /// It cannot have read what it says it has.
    #[error("it says that it has read {said} bytes, which cannot be: {sent} of {asked} were sent")]
    WrongCount {
        /// Bytes that it says it has read.
        said: u64,
        /// Bytes that it was sent.
        sent: u64,
        /// Bytes that it was to read.
        asked: u64,
    },
    /// The conversation broke off.
    #[error(transparent)]
    Line(#[from] LineError),
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        Self::Line(error.into())
    }
}
