//! Errors of socket calls: one variant for each cause, mapped to the [`ErrorKind`] that `std::net`
//! reports for it.

use linerate_link::WaitError;
use linerate_stack::{LinkError, SMALLEST_MTU};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// The error inside the [`io::Error`] that a socket returns ([`io::Error::get_ref`]).
///
/// ```
/// use linerate_sockets::{Error, Net, StackConfig};
/// use std::io::ErrorKind;
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let error = net.bind("192.0.2.1:80").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
/// let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
/// assert!(matches!(inner, Some(Error::Host(linerate_stack::Error::AddressNotOurs(_)))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the host, the peer or the network.
    #[error(transparent)]
    Host(#[from] linerate_stack::Error),
    /// A call has waited longer than the timeout that the application set for the socket.
    /// `std::net` reports this as [`ErrorKind::WouldBlock`] on Unix, and so does this crate.
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
    /// The application passed an empty list of addresses.
    #[error("no address was given: give at least one")]
    NoAddress,
    /// The application set a timeout of zero.
    #[error(
        "a timeout of zero is invalid: give `None` to wait without limit, or set the socket to \
         non-blocking"
    )]
    ZeroTimeout,
    /// The socket is registered with a [`Poller`](crate::Poller) already.
    #[error("the socket is registered with a poller already: deregister it there first")]
    Registered,
    /// The host has a forwarder already.
    #[error("this network has a forwarder already: let its hook decide about these flows, too")]
    ForwarderExists,
    /// The application called [`Net::forward`](crate::Net::forward) on a network with several
    /// shards.
    #[error("a network with several shards cannot forward flows: start it on one link")]
    Shards,
    /// The builder got several queues and several interfaces, which cannot be combined.
    #[error("a network with several queues has one interface: give it one queue of each link")]
    ShardedInterfaces,
    /// The value that the application gave for an option is outside the range of the option.
    #[error("{value} is no valid {option}: give {range}")]
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// The value that the application gave.
        value: u32,
        /// The valid values.
        range: &'static str,
    },
    /// The MTU of the link, which this variant contains in bytes, is below [`SMALLEST_MTU`].
    #[error(
        "a link with an MTU of {0} bytes is too narrow for a host: give it at least {SMALLEST_MTU}"
    )]
    NarrowLink(usize),
    /// The listener accepts no connections, because the application has shut it down.
    #[error("the application has shut this listener down: it accepts no more connections")]
    ListenerShutDown,
    /// Connections of closed sockets had not ended, or packets were still queued, when the timeout
    /// of [`Net::finish`](crate::Net::finish) expired.
    #[error(
        "closed sockets still had data to send after {0:?}, and it is lost: their peers did not \
         acknowledge it in that time"
    )]
    Unfinished(Duration),
    /// The addresses of the host were not all usable when the timeout of
    /// [`Net::wait_for_addresses`](crate::Net::wait_for_addresses) expired.
    #[error(
        "the host has no usable address after {0:?}: no router answers, or other hosts have its \
         addresses"
    )]
    Unaddressed(Duration),
    /// The host has stopped.
    #[error(transparent)]
    Ended(#[from] End),
}

/// The reason why the host of a [`Net`](crate::Net) has stopped. All its sockets have ended with
/// it.
///
/// ```
/// use linerate_sockets::{End, Net, StackConfig};
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// assert_eq!(net.end(), None);
/// net.shutdown();
/// assert_eq!(net.end(), Some(End::ShutDown));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// The application shut the network down.
    #[error("the application has shut this network down: create a new one to go on")]
    ShutDown,
    /// The link has failed: its interface is down, the other endpoint of the link was closed, or a
    /// system call failed.
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
    /// Is this the error of a call that could not complete without waiting?
    pub(crate) const fn is_would_block(&self) -> bool {
        matches!(self, Self::Host(linerate_stack::Error::WouldBlock))
    }

    /// Returns the kind that `std::net` reports for this cause.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => error.kind(),
            Self::TimedOut(_) => ErrorKind::WouldBlock,
            Self::ConnectTimedOut { .. } | Self::Unfinished(_) | Self::Unaddressed(_) => {
                ErrorKind::TimedOut
            }
            Self::NoAddress
            | Self::ZeroTimeout
            | Self::NarrowLink(_)
            | Self::ShardedInterfaces
            | Self::ListenerShutDown
            | Self::InvalidOption { .. } => ErrorKind::InvalidInput,
            Self::Registered => ErrorKind::AlreadyExists,
            Self::ForwarderExists => ErrorKind::AddrInUse,
            Self::Shards => ErrorKind::Unsupported,
            Self::Ended(End::ShutDown | End::Link(_) | End::Wait(_)) => ErrorKind::NetworkDown,
            Self::Ended(End::Panicked) => ErrorKind::Other,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        // A program with non-blocking sockets gets `WouldBlock` often. So the error is created from
        // its kind only, without a message: this needs no allocation.
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
