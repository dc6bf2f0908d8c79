//! Errors of socket calls, with the [`ErrorKind`] that `tokio::net` reports for each.

use linerate_stack::{LinkError, SMALLEST_MTU};
use std::io::{self, ErrorKind};
use std::time::Duration;
use thiserror::Error;

/// The error inside the [`io::Error`] that a socket returns ([`io::Error::get_ref`]).
///
/// ```
/// use linerate_tokio::net::TcpStream;
/// use linerate_tokio::{Error, sim};
/// use std::io::ErrorKind;
///
/// sim::lo(async {
///     let error = TcpStream::connect("nosuch:80").await.unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::NotFound);
///     let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
///     assert_eq!(inner, Some(&Error::UnknownName("nosuch".to_owned())));
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the host, the peer or the network.
    #[error(transparent)]
    Host(#[from] linerate_stack::Error),
    /// The application gave no address.
    #[error("no address was given: give at least one")]
    NoAddress,
    /// The text is neither an address nor the name of a host of this network.
    #[error("`{0}` is not an address with a port, nor a host of this network: add the host first")]
    UnknownName(String),
    /// The current task belongs to no host.
    #[error(
        "this task runs on no host of a network: start it by `Host::spawn`, or by `spawn_local` \
         in a task of the host; `tokio::spawn` takes `Net::scope`"
    )]
    NoHost,
    /// The socket has a local address already.
    #[error("the socket is bound already: create another one for another address")]
    AlreadyBound,
    /// The host has a forwarder already.
    #[error("this host has a forwarder already: let its hook decide about these flows, too")]
    ForwarderExists,
    /// The value is outside the range of the option.
    #[error("{value} is no valid {option}: give {range}")]
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// The value that the application gave.
        value: u32,
        /// The valid values.
        range: &'static str,
    },
    /// The MTU of the link is too small for a segment.
    #[error(
        "a link with an MTU of {0} bytes is too narrow for a host: give it at least {SMALLEST_MTU}"
    )]
    NarrowLink(usize),
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

/// The reason why a host has stopped. All its sockets have ended with it.
///
/// ```
/// use linerate_tokio::{End, Net, sim};
///
/// sim::lo(async {
///     let net = Net::current().unwrap();
///     assert_eq!(net.end(), None);
///     net.shutdown();
///     assert_eq!(net.end(), Some(End::ShutDown));
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// The application shut the host down.
    #[error("the application has shut this host down: create a new one to go on")]
    ShutDown,
    /// The link has failed: its interface is down, the other endpoint of the link was closed, or a
    /// system call failed.
    #[error("the machine took the link away, and every socket has ended with it: {0}")]
    Link(#[from] LinkError),
    /// The runtime that drove the host was dropped.
    #[error(
        "the runtime that drove this host has ended: keep it as long as the sockets are in use"
    )]
    Runtime,
    /// The task that drives the host panicked, which is a bug of linerate.
    #[error(
        "the task that drives this host has panicked: that is a bug of linerate, please report \
         what it printed"
    )]
    Panicked,
}

impl Error {
    /// Returns the kind of the `io::Error` that `tokio::net` returns for this cause.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => error.kind(),
            Self::NoAddress
            | Self::NarrowLink(_)
            | Self::AlreadyBound
            | Self::InvalidOption { .. } => ErrorKind::InvalidInput,
            Self::UnknownName(_) => ErrorKind::NotFound,
            Self::NoHost => ErrorKind::AddrNotAvailable,
            Self::ForwarderExists => ErrorKind::AddrInUse,
            Self::Unfinished(_) => ErrorKind::TimedOut,
            Self::Ended(End::ShutDown | End::Link(_) | End::Runtime) => ErrorKind::NetworkDown,
            Self::Ended(End::Panicked) => ErrorKind::Other,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        // `try_read` and similar calls often fail with `WouldBlock`. It is returned without a
        // message, because an error without a message needs no allocation.
        if error == Error::Host(linerate_stack::Error::WouldBlock) {
            ErrorKind::WouldBlock.into()
        } else {
            Self::new(error.kind(), error)
        }
    }
}
