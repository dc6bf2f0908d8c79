//! Errors of socket calls, with the [`ErrorKind`] that `tokio::net` reports for each.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV6;
use thiserror::Error;

/// The error inside the [`io::Error`] that a socket returns ([`io::Error::get_ref`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the host, the peer or the network.
    #[error(transparent)]
    Host(#[from] linerate_stack::Error),
    /// The application gave an IPv6 address.
    #[error("{0} is an IPv6 address, and this host supports IPv4 only: give an IPv4 address")]
    Ipv6(SocketAddrV6),
    /// The application gave no address.
    #[error("no address was given: give at least one")]
    NoAddress,
    /// The text is neither an address nor the name of a host of this network.
    #[error("`{0}` is not an address with a port, nor a host of this network: add the host first")]
    UnknownName(String),
    /// The task runs on no host.
    #[error(
        "this task runs on no host of a network: start it by `Host::spawn`, or by `spawn_local` \
         in a task of the host; `tokio::spawn` takes `Net::scope`"
    )]
    NoHost,
}

impl Error {
    /// Returns the kind that a program written for `tokio::net` expects.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => kind_of(*error),
            Self::Ipv6(_) => ErrorKind::Unsupported,
            Self::NoAddress => ErrorKind::InvalidInput,
            Self::UnknownName(_) => ErrorKind::NotFound,
            Self::NoHost => ErrorKind::AddrNotAvailable,
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
        // `try_read` and its like fail often in this way; without a message it needs no allocation.
        if error == Error::Host(linerate_stack::Error::WouldBlock) {
            ErrorKind::WouldBlock.into()
        } else {
            Self::new(error.kind(), error)
        }
    }
}
