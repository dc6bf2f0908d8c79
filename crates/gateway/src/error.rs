//! The errors of a gateway.

use linerate_link::MonotonicClock;
use linerate_stack::{Error, LinkError};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// The reason why a gateway cannot start or continue.
///
/// ```
/// use linerate_gateway::{Gateway, GatewayConfig, GatewayError};
/// use linerate_link::memory::{MemoryConfig, pair};
///
/// let (link, _clients) = pair(MemoryConfig::default())?;
/// let mut gateway = Gateway::new(link, &GatewayConfig::default(), [7; 32])?;
/// let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let error = gateway.serve_metrics(taken.local_addr()?).unwrap_err();
/// assert!(matches!(error, GatewayError::Metrics { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The link failed.
    #[error("the clients cannot be reached: {0}")]
    Link(#[from] LinkError),
    /// The host refuses to listen for flows.
    #[error(transparent)]
    Host(#[from] Error),
    /// The operating system refused an operation on descriptors.
    #[error("the system could not {what} ({})", io::Error::from(*errno))]
    System {
        /// The operation, in a form that follows "could not".
        what: &'static str,
        /// The error number that the system returned.
        errno: Errno,
    },
    /// The metrics cannot be served at the requested address.
    #[error("no metrics can be served at {address} ({source}): choose another address or port")]
    Metrics {
        /// The address that was requested.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl GatewayError {
    /// Returns a function that converts an error number of the operation `what` to a gateway error.
    pub(crate) fn of(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { what, errno }
    }
}

/// The clock that all parts of a gateway use.
pub(crate) const CLOCK: MonotonicClock = MonotonicClock;
