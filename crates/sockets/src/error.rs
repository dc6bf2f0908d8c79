//! Why a call on a socket failed: a sentence for each cause, under the kind of error by which a
//! program written for `std::net` knows it.

use linerate_link::WaitError;
use linerate_stack::{LinkError, SMALLEST_MTU};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, SocketAddrV6};
use std::time::Duration;
use thiserror::Error;

/// What is inside of the [`io::Error`] that a socket returns ([`io::Error::get_ref`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// What the host, the peer or the network says.
    #[error(transparent)]
    Host(#[from] linerate_stack::Error),
    /// Nothing arrived, or no room came, within the time that the application had set. `std::net`
    /// reports this as [`ErrorKind::WouldBlock`] on Unix, and so does this.
    #[error(
        "nothing happened within the socket's timeout of {0:?}: try again, or set a longer one"
    )]
    TimedOut(Duration),
    /// The peer has not answered within the time that the application allowed.
    #[error(
        "{peer} did not answer within {within:?}: it is down, or something between drops what is sent"
    )]
    ConnectTimedOut {
        /// Who was called.
        peer: SocketAddr,
        /// How long was waited.
        within: Duration,
    },
    /// The application gave an address of IPv6.
    #[error("{0} is an IPv6 address, and this host speaks IPv4 only: give an IPv4 address")]
    Ipv6(SocketAddrV6),
    /// The application gave no address at all.
    #[error("no address was given: give one at least")]
    NoAddress,
    /// The application set a timeout of no time.
    #[error(
        "a timeout of zero is none: give `None` to wait without end, or set the socket to non-blocking"
    )]
    ZeroTimeout,
    /// The application, or the machine, gave a link in whose packets no segment fits.
    #[error(
        "a link with an MTU of {0} bytes is too narrow for a host: give it {SMALLEST_MTU} at least"
    )]
    NarrowLink(usize),
    /// The application has ended the listener while it was waiting for a connection.
    #[error("the application has shut this listener down: it accepts no more")]
    ListenerShutDown,
    /// Closed sockets still had something to send when the application's patience was at its end.
    #[error(
        "closed sockets still had data to send after {0:?}, and it is lost: their peers did not take it in that time"
    )]
    Unfinished(Duration),
    /// The host runs no longer.
    #[error(transparent)]
    Ended(#[from] End),
}

/// Why the host of a [`Net`](crate::Net) runs no longer. All its sockets have ended with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// The application has ended it.
    #[error("the application has shut this network down: make a new one to go on")]
    ShutDown,
    /// Its link carries no more frames. The machine is at fault, or who runs it.
    #[error("the machine took the link away, and every socket has ended with it: {0}")]
    Link(#[from] LinkError),
    /// The machine does not let it wait.
    #[error(
        "the machine does not let this network wait for its link, and every socket has ended: {0}"
    )]
    Wait(#[from] WaitError),
    /// It has met a case that must not be.
    #[error(
        "the thread of this network has panicked: that is a bug of linerate, please report what it printed"
    )]
    Panicked,
}

impl Error {
    /// Is it that there is nothing yet?
    pub(crate) const fn is_would_block(&self) -> bool {
        matches!(self, Self::Host(linerate_stack::Error::WouldBlock))
    }

    /// The kind by which a program knows it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => kind_of(*error),
            Self::TimedOut(_) => ErrorKind::WouldBlock,
            Self::ConnectTimedOut { .. } | Self::Unfinished(_) => ErrorKind::TimedOut,
            Self::Ipv6(_) => ErrorKind::Unsupported,
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
        | Host::Loopback(_)
        | Host::MessageTooLong { .. }
        | Host::OtherShard { .. } => ErrorKind::InvalidInput,
        Host::BroadcastForbidden(_) => ErrorKind::PermissionDenied,
        Host::TooManySockets { .. } => ErrorKind::QuotaExceeded,
        Host::Refused => ErrorKind::ConnectionRefused,
        Host::Unreachable => ErrorKind::HostUnreachable,
        Host::Tcp(error) => kind_of_ended(error),
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
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        // A program that polls gets this often: without a message it costs no memory.
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
