//! The errors that the calls of an application on a host return.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use thiserror::Error;

/// The reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The handle is invalid, because its socket was closed.
    #[error("this handle was closed: the application must not use it any more")]
    Closed,
    /// The call would have to wait, for data to read, for room to write, or for a connection to
    /// accept. Try again after the next event of the socket.
    #[error("not now: try again after the next event of this socket")]
    WouldBlock,
    /// Another socket is bound to the local address and port, or a connection between this local
    /// address and port and the remote ones exists already.
    #[error("{0} is in use: choose another port, or wait until the other socket is gone")]
    AddressInUse(SocketAddr),
    /// The address does not belong to this host.
    #[error("{0} is no address of this host: choose one of its own, or 0.0.0.0")]
    AddressNotOurs(IpAddr),
    /// The socket is bound to a loopback address, and the destination is another host.
    #[error(
        "{0} is a loopback address, which reaches only this host: bind the socket to another \
         address, or to 0.0.0.0"
    )]
    Loopback(IpAddr),
    /// The local address and the destination are of different IP versions.
    #[error("{local} cannot reach {remote}: both ends need addresses of the same IP version")]
    OtherVersion {
        /// The local address.
        local: IpAddr,
        /// The destination.
        remote: IpAddr,
    },
    /// The destination has an IPv4 address, but the socket is for IPv6 only or is bound to a
    /// specific IPv6 address.
    #[error(
        "{0} is an IPv4 address, and the socket is for IPv6 only: bind one to `::` that admits \
         IPv4, or one of IPv4"
    )]
    OnlyIpv6(IpAddr),
    /// A socket for IPv6 only cannot be bound to an IPv4 address.
    #[error(
        "{0} is an IPv4 address, and the socket is to be for IPv6 only: bind it to an IPv6 \
         address, or admit IPv4"
    )]
    MappedBind(SocketAddr),
    /// The application has tried to set the option that excludes IPv4 on an IPv4 socket. Only IPv6
    /// sockets have this option.
    #[error("the socket at {0} is of IPv4, and only sockets of IPv6 can exclude IPv4")]
    NotIpv6(SocketAddr),
    /// The host has no interface with this number, which is the zone of a link-local address.
    #[error(
        "{address} is link-local, and the host has no interface {zone}: give the number of its \
         interface, or none"
    )]
    UnknownZone {
        /// The link-local address.
        address: Ipv6Addr,
        /// The number of the interface that the host does not have.
        zone: u32,
    },
    /// The link-local address has no zone, and the host has several interfaces.
    #[error("{0} is link-local, and the host has several interfaces: name one as its zone")]
    MissingZone(Ipv6Addr),
    /// The host has no interface with this number.
    #[error("the host has no interface {0}: give the number of one that it has")]
    UnknownInterface(u32),
    /// The host has reached its limit of interfaces.
    #[error("the host has {limit} interfaces already: remove some, or raise its limit")]
    TooManyInterfaces {
        /// The limit of interfaces.
        limit: usize,
    },
    /// The only interface of a host cannot be removed.
    #[error("a host keeps its only interface: add another one first")]
    OnlyInterface,
    /// The address cannot be assigned to an interface, because it is a multicast, broadcast,
    /// loopback, unspecified or IPv4-mapped IPv6 address.
    #[error("{0} cannot be an address of an interface: give it a unicast address of its network")]
    UnusableAddress(IpAddr),
    /// The interface has reached the limit of addresses.
    #[error("the interface has {limit} addresses already: remove some, or raise its limit")]
    TooManyAddresses {
        /// The limit of addresses.
        limit: usize,
    },
    /// The host has no address to send from.
    #[error("the host has no address: give it one in its configuration")]
    NoAddress,
    /// There is no route to the destination.
    #[error("no route to {0}: add one to the host's configuration")]
    NoRoute(IpAddr),
    /// The destination is invalid: port zero, the unspecified address, or a multicast group where a
    /// unicast address is required. For a raw socket, also an address whose IP version is not that
    /// of the socket.
    #[error(
        "{0} is not a valid destination: give the address of one host and a port that is not zero"
    )]
    InvalidDestination(SocketAddr),
    /// The destination is a broadcast address, and the application has not allowed broadcasts.
    #[error("{0} is a broadcast address: allow broadcasts on the socket first")]
    BroadcastForbidden(IpAddr),
    /// The segments of a connection from the requested local address and port would reach another
    /// shard of this host.
    #[error(
        "a connection from {local} belongs to shard {shard}: open it there, or leave the choice of \
         the port to the host"
    )]
    OtherShard {
        /// The requested local address.
        local: SocketAddr,
        /// The number of the shard that would receive the segments.
        shard: u16,
    },
    /// All ephemeral ports are in use for connections to this destination.
    #[error(
        "all ephemeral ports are in use towards {0}: close connections, or widen the range of ports"
    )]
    PortsExhausted(SocketAddr),
    /// The host has reached its limit of sockets.
    #[error("the host has {limit} sockets already: close some, or raise its limit")]
    TooManySockets {
        /// The limit of sockets.
        limit: usize,
    },
    /// The datagram is longer than its IP version or the whole send queue permits, or it exceeds
    /// the path MTU and must not be fragmented.
    #[error("the datagram is too long: {limit} bytes fit")]
    MessageTooLong {
        /// The largest size that fits, in bytes.
        limit: usize,
    },
    /// The address is not a multicast address.
    #[error("{0} is not a multicast group: give an address of 224.0.0.0/4 or ff00::/8")]
    NotAGroup(IpAddr),
    /// The socket has already joined the multicast group, for the given source or for all sources.
    #[error("the socket has joined {0} already: leave the group first to join it differently")]
    AlreadyJoined(IpAddr),
    /// The socket has not joined the multicast group, or not for the given source.
    #[error("the socket has not joined {0} in this way: there is nothing to leave or to change")]
    NotJoined(IpAddr),
    /// The host has reached its limit of multicast groups.
    #[error("the host has joined {limit} multicast groups already: leave some, or raise its limit")]
    TooManyGroups {
        /// The limit of groups.
        limit: usize,
    },
    /// The filter of the multicast group has reached the limit of sources.
    #[error("the group has {limit} sources in its filter already: remove some, or raise the limit")]
    TooManySources {
        /// The limit of sources.
        limit: usize,
    },
    /// The socket is not connected to a peer, and the call names no destination.
    #[error("the socket is not connected: name the destination")]
    NotConnected,
    /// The peer's host has reported that no socket listens at the port.
    #[error("the peer refused: the port is closed")]
    Refused,
    /// A router or the peer's host has reported that the destination is unreachable, or the next
    /// hop did not answer address resolution.
    #[error("the network reports that the destination cannot be reached")]
    Unreachable,
    /// An error of the TCP connection.
    #[error(transparent)]
    Tcp(linerate_tcp::Error),
}

/// Converts an error of a TCP connection. The error `WouldBlock` of a connection becomes
/// [`Error::WouldBlock`], which all kinds of sockets share.
impl From<linerate_tcp::Error> for Error {
    fn from(error: linerate_tcp::Error) -> Self {
        match error {
            linerate_tcp::Error::WouldBlock => Self::WouldBlock,
            error => Self::Tcp(error),
        }
    }
}
