//! The errors of a gateway.

use linerate_link::MonotonicClock;
use linerate_stack::{Error, LinkError};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// The reason why a gateway cannot begin or continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The link cannot carry packets.
    #[error("the clients cannot be reached: {0}")]
    Link(#[from] LinkError),
    /// The host cannot listen.
    #[error(transparent)]
    Host(#[from] Error),
    /// The system cannot create or wait for descriptors.
    #[error("the system could not {what} ({})", io::Error::from(*errno))]
    System {
        /// The attempted operation, as an infinitive.
        what: &'static str,
        /// The error number of the system.
        errno: Errno,
    },
    /// The address for metrics cannot be used.
    #[error("no metrics can be served at {address} ({source}): choose another address or port")]
    Metrics {
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

impl GatewayError {
    /// Returns a function that converts the error of an attempt.
    pub(crate) fn of(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { what, errno }
    }
}

/// The clock of a gateway.
pub(crate) const CLOCK: MonotonicClock = MonotonicClock;
