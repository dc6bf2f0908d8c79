//! Errors of socket calls: one variant for each cause, mapped to the [`ErrorKind`] that `std::net`
//! reports for it.

use linerate_link::WaitError;
use linerate_stack::{LinkError, SMALLEST_MTU};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// The error inside the [`io::Error`] that a socket returns ([`io::Error::get_ref`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the host, the peer or the network.
    #[error(transparent)]
    Host(#[from] linerate_stack::Error),
    /// The timeout that the application set has expired. `std::net` reports this as
    /// [`ErrorKind::WouldBlock`] on Unix, and so does this crate.
    #[error(
        "nothing happened within the socket's timeout of {0:?}: try again, or set a longer one"
    )]
    TimedOut(Duration),
    /// The peer did not answer within the connection timeout that the application set.
    #[error(
        "{peer} did not answer within {within:?}: it is down, or something between drops packets"
    )]
    ConnectTimedOut {
        /// The address of the peer.
        peer: SocketAddr,
        /// The connection timeout.
        within: Duration,
    },
    /// The application gave no address.
    #[error("no address was given: give at least one")]
    NoAddress,
    /// The application set a timeout of zero.
    #[error(
        "a timeout of zero is invalid: give `None` to wait without limit, or set the socket to \
         non-blocking"
    )]
    ZeroTimeout,
    /// The MTU of the link is too small for a segment.
    #[error(
        "a link with an MTU of {0} bytes is too narrow for a host: give it at least {SMALLEST_MTU}"
    )]
    NarrowLink(usize),
    /// The application shut the listener down while a thread waited for a connection.
    #[error("the application has shut this listener down: it accepts no more connections")]
    ListenerShutDown,
    /// Closed sockets still had data to send when the timeout expired.
    #[error(
        "closed sockets still had data to send after {0:?}, and it is lost: their peers did not \
         acknowledge it in that time"
    )]
    Unfinished(Duration),
    /// The host has stopped.
    #[error(transparent)]
    Ended(#[from] End),
}

/// The reason why the host of a [`Net`](crate::Net) has stopped. All its sockets have ended with
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// The application shut it down.
    #[error("the application has shut this network down: create a new one to go on")]
    ShutDown,
    /// The link carries no more frames. The cause is the machine or its administrator.
    #[error("the machine took the link away, and every socket has ended with it: {0}")]
    Link(#[from] LinkError),
    /// The operating system refused to wait for the link.
    #[error(
        "the machine does not let this network wait for its link, and every socket has ended: {0}"
    )]
    Wait(#[from] WaitError),
    /// A thread of the network panicked, which is a bug of linerate.
    #[error(
        "a thread of this network has panicked: that is a bug of linerate, please report what it \
         printed"
    )]
    Panicked,
}

impl Error {
    /// Would the call have to wait?
    pub(crate) const fn is_would_block(&self) -> bool {
        matches!(self, Self::Host(linerate_stack::Error::WouldBlock))
    }

    /// Returns the kind that a program written for `std::net` expects.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => kind_of(*error),
            Self::TimedOut(_) => ErrorKind::WouldBlock,
            Self::ConnectTimedOut { .. } | Self::Unfinished(_) => ErrorKind::TimedOut,
            Self::NoAddress | Self::ZeroTimeout | Self::NarrowLink(_) | Self::ListenerShutDown => {
                ErrorKind::InvalidInput
            }
            Self::Ended(End::ShutDown | End::Link(_) | End::Wait(_)) => ErrorKind::NetworkDown,
            Self::Ended(End::Panicked) => ErrorKind::Other,
        }
    }
}

const fn kind_of(error: linerate_stack::Error) -> ErrorKind {
    use linerate_stack::Error as Host;
    match error {
        Host::WouldBlock => ErrorKind::WouldBlock,
        Host::Closed | Host::NotConnected => ErrorKind::NotConnected,
        Host::AddressInUse(_) => ErrorKind::AddrInUse,
        Host::AddressNotOurs(_) | Host::NoAddress | Host::PortsExhausted(_) => {
            ErrorKind::AddrNotAvailable
        }
        Host::NoRoute(_) => ErrorKind::NetworkUnreachable,
        Host::InvalidDestination(_)
        | Host::OtherVersion { .. }
        | Host::Loopback(_)
        | Host::MessageTooLong { .. }
        | Host::OtherShard { .. } => ErrorKind::InvalidInput,
        Host::BroadcastForbidden(_) => ErrorKind::PermissionDenied,
        Host::TooManySockets { .. } => ErrorKind::QuotaExceeded,
        Host::Refused => ErrorKind::ConnectionRefused,
        Host::Unreachable => ErrorKind::HostUnreachable,
        Host::Tcp(error) => kind_of_ended(error),
        _ => ErrorKind::Other,
    }
}

const fn kind_of_ended(error: linerate_tcp::Error) -> ErrorKind {
    use linerate_tcp::Error as Tcp;
    match error {
        Tcp::WouldBlock => ErrorKind::WouldBlock,
        Tcp::Shutdown => ErrorKind::BrokenPipe,
        Tcp::Refused => ErrorKind::ConnectionRefused,
        Tcp::Reset => ErrorKind::ConnectionReset,
        Tcp::Aborted | Tcp::DataAfterClose | Tcp::Contradiction => ErrorKind::ConnectionAborted,
        Tcp::TimedOut => ErrorKind::TimedOut,
        Tcp::Unreachable => ErrorKind::HostUnreachable,
        _ => ErrorKind::Other,
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        // Polling programs get this error often; without a message it needs no allocation.
        if error.is_would_block() {
            ErrorKind::WouldBlock.into()
        } else {
            Self::new(error.kind(), error)
        }
    }
}

impl From<End> for io::Error {
    fn from(end: End) -> Self {
        Error::from(end).into()
    }
}
