//! Why a call on a host failed.

use core::net::{Ipv4Addr, SocketAddrV4};
use thiserror::Error;

/// What went wrong, and whose doing it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The application uses a handle that it has closed.
    #[error("this handle was closed: the application must not use it any more")]
    Closed,
    /// Nothing there yet, or no room yet. Come back after the event that announces a change.
    #[error("not now: try again after the next event of this socket")]
    WouldBlock,
    /// Another socket of this host has the address, or this conversation exists already.
    #[error("{0} is in use: choose another port, or wait until the other socket is gone")]
    AddressInUse(SocketAddrV4),
    /// The application asks for an address that this host does not have.
    #[error("{0} is no address of this host: choose one of its own, or 0.0.0.0")]
    AddressNotOurs(Ipv4Addr),
    /// The socket is bound to an address by which a host knows itself, and speaks with nobody else.
    #[error(
        "from {0} a host speaks with itself alone: bind the socket to another of its addresses, or to 0.0.0.0"
    )]
    Loopback(Ipv4Addr),
    /// The host has no address to speak from.
    #[error("the host has no address: give it one in its configuration")]
    NoAddress,
    /// No route leads to the destination.
    #[error("no route leads to {0}: add one to the host's configuration")]
    NoRoute(Ipv4Addr),
    /// The destination cannot be spoken to: port zero, a group, or nobody in particular.
    #[error("{0} cannot be spoken to: give the address of one host and a port that is not zero")]
    InvalidDestination(SocketAddrV4),
    /// The destination is every host of a network, and the application has not allowed that.
    #[error("{0} is a broadcast address: allow broadcasts on the socket first")]
    BroadcastForbidden(Ipv4Addr),
    /// The connection belongs to another shard of this host, which the link gives its segments to.
    #[error(
        "a connection from {local} belongs to shard {shard}: open it there, or leave the port to the host"
    )]
    OtherShard {
        /// The address that was asked for.
        local: SocketAddrV4,
        /// The number of the shard.
        shard: u16,
    },
    /// Every ephemeral port has a conversation with this destination.
    #[error(
        "all ephemeral ports are in use towards {0}: close connections, or widen the range of ports"
    )]
    PortsExhausted(SocketAddrV4),
    /// The host has as many sockets as it may have.
    #[error("the host has {limit} sockets already: close some, or raise its limit")]
    TooManySockets {
        /// Sockets that the host may have.
        limit: usize,
    },
    /// The datagram does not fit a packet of this path, and this host sends no fragments; or there is never room for
    /// it among what its socket may have to send.
    #[error("the datagram is too long: {limit} bytes fit")]
    MessageTooLong {
        /// Bytes of data that fit.
        limit: usize,
    },
    /// The socket has no peer to send to.
    #[error("the socket is not connected: name the destination")]
    NotConnected,
    /// The peer's host said that nobody has the port.
    #[error("the peer refused: nothing has that port")]
    Refused,
    /// The network or the peer's host said that the destination cannot be reached.
    #[error("the network reports that the destination cannot be reached")]
    Unreachable,
    /// What happened to the connection.
    #[error(transparent)]
    Tcp(linerate_tcp::Error),
}

/// That there is nothing yet is said with the same word for sockets of all kinds.
impl From<linerate_tcp::Error> for Error {
    fn from(error: linerate_tcp::Error) -> Self {
        match error {
            linerate_tcp::Error::WouldBlock => Self::WouldBlock,
            error => Self::Tcp(error),
        }
    }
}
