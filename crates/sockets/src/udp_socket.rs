//! A UDP socket that is used like `std::net::UdpSocket`.

use crate::address::try_each;
use crate::error::Error;
use crate::shared::{Access, Shared, State};
use crate::socket::{Handle, Socket};
use crate::timeouts::Direction;
use crate::waiters::SocketId;
use linerate_stack::{Error as HostError, Fragmentation, Stack, UdpHandle, UdpOptions};
use linerate_units::Instant;
use linerate_wire::Unreachable;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A UDP socket.
///
/// ```
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # use linerate_sockets::{Net, StackConfig};
/// # let (left, _right) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// # let net = Net::builder(left, config).start()?;
/// let resolver = net.bind_udp("127.0.0.1:53")?;
/// let client = net.bind_udp("127.0.0.1:0")?;
/// client.send_to(b"query", "127.0.0.1:53")?;
/// let mut query = [0; 16];
/// let (length, from) = resolver.recv_from(&mut query)?;
/// assert_eq!((&query[..length], from), (&b"query"[..], client.local_addr()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Datagrams that wait in the send queue when the socket is dropped are still sent.
///
/// ICMP messages about datagrams of a connected socket cause an error such as `ConnectionRefused`.
/// The next call of a send or receive method returns this error.
#[derive(Debug)]
pub struct UdpSocket {
    pub(crate) socket: Arc<Socket<UdpHandle>>,
}

impl UdpSocket {
    pub(crate) fn socket(&self) -> &Socket<UdpHandle> {
        &self.socket
    }

    pub(crate) fn open(
        shared: &Arc<Shared>,
        local: SocketAddr,
        options: &UdpOptions,
    ) -> io::Result<Self> {
        let mut access = shared.access()?;
        access.check_running()?;
        let handle = access.stack.udp_bind(local, options).map_err(Error::from)?;
        Ok(Self { socket: Arc::new(Socket::new(shared, &mut access, handle)) })
    }

    /// Creates the UDP socket of a forwarded flow.
    pub(crate) fn adopted(socket: Socket<UdpHandle>) -> Self {
        Self { socket: Arc::new(socket) }
    }

    /// Reports to the source of a forwarded flow ([`Flow::Udp`](crate::Flow::Udp)), by an ICMP
    /// message, that the destination is unreachable. `error` is the reason, which the application
    /// knows from an error of its own socket to the destination.
    ///
    /// # Errors
    /// `NotConnected` if the socket does not belong to a forwarded flow, or if the flow has
    /// expired.
    pub fn report_unreachable(&self, error: Unreachable) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| stack.forward_unreachable(now, handle, error))?)
    }

    /// Waits for a datagram. Returns the number of bytes that were copied to `into`, and the
    /// sender. Bytes of the datagram that do not fit into `into` are discarded.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; an error that the network reported
    /// about this socket; `NetworkDown` when the network has stopped.
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(|state, _| state.stack.udp_receive_from(self.socket.handle, into))
    }

    /// Copies a datagram like [`UdpSocket::recv_from`], but leaves it in the queue.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub fn peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(|state, _| state.stack.udp_peek_from(self.socket.handle, into))
    }

    /// Waits for a datagram from the peer. Returns the number of bytes copied.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.recv_from(into).map(|(length, _)| length)
    }

    /// Copies a datagram like [`UdpSocket::recv`], but leaves it in the queue.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.peek_from(into).map(|(length, _)| length)
    }

    fn receive(
        &self,
        attempt: impl FnMut(&mut State, Instant) -> Result<(usize, SocketAddr), HostError>,
    ) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self.socket.block(Direction::Read, attempt)?;
        Ok((length, from))
    }

    /// Sends a datagram to the first of `addresses`. Waits while the send queue has no room for it.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram that is too long or an invalid destination; `WouldBlock` in
    /// non-blocking mode or after the timeout; `NetworkUnreachable` without a route.
    pub fn send_to(&self, data: &[u8], addresses: impl ToSocketAddrs) -> io::Result<usize> {
        let handle = self.socket.handle;
        let to = try_each(addresses, Ok)?;
        self.transmit(data, |state, now| state.stack.udp_send_to(now, handle, to, data))
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// `NotConnected` without a peer; an error that the network has reported since the previous
    /// call; those of [`UdpSocket::send_to`].
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        let handle = self.socket.handle;
        self.transmit(data, |state, now| state.stack.udp_send(now, handle, data))
    }

    fn transmit(
        &self,
        data: &[u8],
        attempt: impl FnMut(&mut State, Instant) -> Result<(), HostError>,
    ) -> io::Result<usize> {
        self.socket.block(Direction::Write, attempt)?;
        Ok(data.len())
    }

    /// Sets the peer: the socket receives datagrams only from the peer, and [`UdpSocket::send`]
    /// sends to the peer. Tries `addresses` one after the other until one is a valid destination
    /// with a route.
    ///
    /// # Errors
    /// `NetworkUnreachable` without a route; `InvalidInput` for an invalid destination.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<()> {
        try_each(addresses, |peer| {
            Ok(self.socket.call(|stack, now| stack.udp_connect(now, self.socket.handle, peer))?)
        })
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.call(|stack, _| stack.udp_peer_addr(self.socket.handle))?)
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.call(|stack, _| stack.udp_local_addr(self.socket.handle))?)
    }

    /// Does the socket exclude IPv4 (`IPV6_V6ONLY`)? A socket at `[::]` exchanges datagrams over
    /// both IP versions unless [`UdpOptions::only_v6`] is set. It reports the address of an IPv4
    /// peer as an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`).
    ///
    /// # Errors
    /// `Unsupported` for a socket at an IPv4 address.
    pub fn only_v6(&self) -> io::Result<bool> {
        Ok(self.socket.call(|stack, _| stack.udp_only_v6(self.socket.handle))?)
    }

    /// Clones the socket. Clones share the timeouts and the non-blocking mode.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::clone(&self.socket) })
    }

    /// Sets the timeout of receiving, after which a call fails with `WouldBlock`; `None` waits
    /// without limit.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.timeouts.set_timeout(Direction::Read, timeout)?)
    }

    /// Sets the timeout of sending, after which a call fails with `WouldBlock`; `None` waits
    /// without limit.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.timeouts.set_timeout(Direction::Write, timeout)?)
    }

    /// Returns the timeout of receiving.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.timeouts.timeout(Direction::Read))
    }

    /// Returns the timeout of sending.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.timeouts.timeout(Direction::Write))
    }

    /// Selects the non-blocking mode, in which calls fail with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.timeouts.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Allows or forbids sending to broadcast addresses.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        Ok(self.socket.call(|stack, _| stack.udp_set_broadcast(self.socket.handle, broadcast))?)
    }

    /// Is sending to broadcast addresses allowed?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(self.socket.call(|stack, _| stack.udp_broadcast(self.socket.handle))?)
    }

    /// Sets whether datagrams that exceed the path MTU are sent in fragments, or refused.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_fragmentation(&self, fragmentation: Fragmentation) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, _| stack.udp_set_fragmentation(handle, fragmentation))?)
    }

    /// Returns whether datagrams that exceed the path MTU are sent in fragments, or refused.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn fragmentation(&self) -> io::Result<Fragmentation> {
        Ok(self.socket.call(|stack, _| stack.udp_fragmentation(self.socket.handle))?)
    }

    /// Returns the path MTU to the peer in bytes: the MTU of the link, or a smaller value that a
    /// router has reported.
    ///
    /// # Errors
    /// `NotConnected`, or the reason why there is no path.
    pub fn path_mtu(&self) -> io::Result<usize> {
        Ok(self.socket.call(|stack, now| stack.udp_path_mtu(now, self.socket.handle))?)
    }

    /// Sets the TTL (IPv4) or hop limit (IPv6) of datagrams to unicast addresses, by default 64.
    ///
    /// # Errors
    /// `InvalidInput` for zero and above 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = u8::try_from(ttl).ok().filter(|&hops| hops > 0);
        let hops = hops.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.socket.call(|stack, _| stack.udp_set_hops(self.socket.handle, hops))?)
    }

    /// Returns the TTL or hop limit of datagrams to unicast addresses.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.socket.call(|stack, _| stack.udp_hops(self.socket.handle))?.into())
    }

    /// Divides `data` into datagrams of `segment` bytes, of which the last may be shorter, and
    /// sends them to the first of `addresses`. Waits while the send queue has no room for all of
    /// them. Returns the length of `data`.
    ///
    /// # Errors
    /// Those of [`UdpSocket::send_to`].
    pub fn send_segments(
        &self,
        data: &[u8],
        segment: NonZeroUsize,
        addresses: impl ToSocketAddrs,
    ) -> io::Result<usize> {
        let handle = self.socket.handle;
        let to = try_each(addresses, Ok)?;
        self.transmit(data, |state, now| {
            state.stack.udp_send_segments(now, handle, to, data, segment)
        })
    }

    /// Returns and clears the error that the network reported about a datagram of this socket.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.socket.call(|stack, _| stack.udp_take_error(self.socket.handle))?;
        Ok(error.map(|error| Error::from(error).into()))
    }
}

impl Handle for UdpHandle {
    fn id(self) -> SocketId {
        SocketId::Udp(self)
    }

    fn has_more(self, stack: &Stack, direction: Direction) -> bool {
        match direction {
            Direction::Read => stack.udp_is_readable(self).unwrap_or(false),
            // An event wakes one waiting thread when the send queue has room. The room may suffice
            // for more threads, which is not checked here. So a thread that has sent always wakes
            // the next one.
            Direction::Write => true,
        }
    }

    fn close(self, access: &mut Access<'_>, _: &Shared) {
        // This cannot fail: no other socket has this handle, so it was not closed before.
        let _ = access.stack.udp_close(self);
    }
}
