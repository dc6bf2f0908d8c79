//! UDP sockets.

use crate::address::{ToSocketAddrs, try_each};
use crate::error::Error;
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use linerate_stack::{Fragmentation, Stack, UdpHandle, UdpOptions};
use linerate_wire::Unreachable;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use tokio::io::{Interest, ReadBuf, Ready};

/// A UDP socket, like `tokio::net::UdpSocket`.
///
/// ```
/// use linerate_tokio::net::UdpSocket;
/// use linerate_tokio::sim;
///
/// sim::lo(async {
///     let left = UdpSocket::bind("127.0.0.1:0").await.unwrap();
///     let right = UdpSocket::bind("127.0.0.1:0").await.unwrap();
///     left.send_to(b"hello", right.local_addr().unwrap()).await.unwrap();
///     let mut data = [0; 8];
///     let (length, from) = right.recv_from(&mut data).await.unwrap();
///     assert_eq!((&data[..length], from), (&b"hello"[..], left.local_addr().unwrap()));
/// });
/// ```
#[derive(Debug)]
pub struct UdpSocket {
    pub(super) socket: Socket,
    pub(super) handle: UdpHandle,
}

impl UdpSocket {
    /// Opens a socket on the host of the current task. If `address` stands for several addresses,
    /// the socket gets the first that can be bound. Port zero selects a free port.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable` if the host has no such address, or the task belongs to no
    /// host.
    pub async fn bind<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        Self::bind_with(address, &UdpOptions::default()).await
    }

    /// Opens a socket with options, such as the lengths of its queues, or whether a socket at
    /// `[::]` excludes IPv4. `tokio::net` has no such function.
    ///
    /// # Errors
    /// Those of [`UdpSocket::bind`].
    pub async fn bind_with<A: ToSocketAddrs>(address: A, options: &UdpOptions) -> io::Result<Self> {
        let net = Net::required()?;
        let addresses = address.to_socket_addrs(&net)?;
        try_each(&addresses, |local| {
            let (socket, handle) =
                Socket::open(&net, SocketId::Udp, |stack, _| stack.udp_bind(local, options))?;
            Ok(Self { socket, handle })
        })
    }

    /// Does the socket exclude IPv4 (`IPV6_V6ONLY`)? A socket at `[::]` exchanges datagrams over
    /// both IP versions unless [`UdpOptions::only_v6`] is set, and shows IPv4 addresses as
    /// IPv4-mapped IPv6 addresses (`::ffff:192.0.2.1`).
    ///
    /// # Errors
    /// `Unsupported` for a socket at an IPv4 address.
    pub fn only_v6(&self) -> io::Result<bool> {
        self.socket.call(|stack, _| stack.udp_only_v6(self.handle))
    }

    /// Creates the socket of a UDP flow, which the forwarder of the host has opened under `handle`.
    pub(super) fn adopted(net: &Net, handle: UdpHandle) -> Self {
        Self { socket: Socket::adopt(net, SocketId::Udp(handle)), handle }
    }

    /// Reports to the source of a forwarded flow ([`Flow::Udp`](super::Flow::Udp)) that its
    /// destination is unreachable. `error` is the reason, as the application learned it when it
    /// tried to reach the destination.
    ///
    /// # Errors
    /// `NotConnected` if the socket does not belong to a forwarded flow, or if the flow has
    /// expired.
    pub fn report_unreachable(&self, error: Unreachable) -> io::Result<()> {
        self.socket.call(|stack, now| stack.forward_unreachable(now, self.handle, error))
    }

    /// Sets the peer: the socket receives datagrams only from the peer, and [`UdpSocket::send`]
    /// sends to the peer.
    ///
    /// # Errors
    /// `NetworkUnreachable` without a route; `InvalidInput` for an invalid destination.
    pub async fn connect<A: ToSocketAddrs>(&self, address: A) -> io::Result<()> {
        let addresses = address.to_socket_addrs(&self.socket.net)?;
        try_each(&addresses, |peer| {
            self.socket.call(|stack, now| stack.udp_connect(now, self.handle, peer))
        })
    }

    /// Sends a datagram to the first address of `target` that has the IP version of the socket.
    /// Waits while the send queue is full.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram that is too long or an invalid destination;
    /// `NetworkUnreachable` without a route.
    pub async fn send_to<A: ToSocketAddrs>(&self, data: &[u8], target: A) -> io::Result<usize> {
        let addresses = target.to_socket_addrs(&self.socket.net)?;
        let to = match *addresses.as_slice() {
            [only] => only,
            _ => self.first_of_version(&addresses)?,
        };
        self.socket
            .wait(Direction::Write, |stack, now| stack.udp_send_to(now, self.handle, to, data))
            .await?;
        Ok(data.len())
    }

    fn first_of_version(&self, addresses: &[SocketAddr]) -> io::Result<SocketAddr> {
        let is_ipv4 = self.local_addr()?.is_ipv4();
        let of_version = addresses.iter().find(|address| address.is_ipv4() == is_ipv4);
        Ok(*of_version.or_else(|| addresses.first()).ok_or(Error::NoAddress)?)
    }

    /// Sends a datagram to the peer. Waits while the send queue is full.
    ///
    /// # Errors
    /// `NotConnected` without a peer; an error that the network has reported.
    pub async fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.socket
            .wait(Direction::Write, |stack, now| stack.udp_send(now, self.handle, data))
            .await?;
        Ok(data.len())
    }

    /// Waits for a datagram. Returns the number of bytes copied, and the sender. Bytes that do not
    /// fit into the buffer are discarded. Cancellation-safe.
    ///
    /// # Errors
    /// An error that the network has reported about a datagram of this socket.
    pub async fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self
            .socket
            .wait(Direction::Read, |stack, _| stack.udp_receive_from(self.handle, into))
            .await?;
        Ok((length, from))
    }

    /// Waits for a datagram like [`UdpSocket::recv_from`], but returns only the number of bytes
    /// copied.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub async fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.recv_from(into).await.map(|(length, _)| length)
    }

    /// Copies a datagram like [`UdpSocket::recv`], but leaves it in the queue.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.peek_from(into).await.map(|(length, _)| length)
    }

    /// Copies a datagram like [`UdpSocket::recv_from`], but leaves it in the queue.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub async fn peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self
            .socket
            .wait(Direction::Read, |stack, _| stack.udp_peek_from(self.handle, into))
            .await?;
        Ok((length, from))
    }

    /// Receives a datagram without waiting. Returns the number of bytes copied, and the sender.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; otherwise the errors of [`UdpSocket::recv_from`].
    pub fn try_recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self
            .socket
            .attempt(Direction::Read, |stack, _| stack.udp_receive_from(self.handle, into))?;
        Ok((length, from))
    }

    /// Sends a datagram without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if the send queue is full; otherwise the errors of [`UdpSocket::send_to`].
    pub fn try_send_to(&self, data: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.socket.attempt(Direction::Write, |stack, now| {
            stack.udp_send_to(now, self.handle, target, data)
        })?;
        Ok(data.len())
    }

    /// Receives a datagram like [`UdpSocket::try_recv_from`], but returns only the number of bytes
    /// copied. Without a peer ([`UdpSocket::connect`]), it can come from any sender.
    ///
    /// # Errors
    /// Those of [`UdpSocket::try_recv_from`].
    pub fn try_recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.try_recv_from(into).map(|(length, _)| length)
    }

    /// Copies a datagram like [`UdpSocket::try_recv_from`], but leaves it in the queue.
    ///
    /// # Errors
    /// Those of [`UdpSocket::try_recv_from`].
    pub fn try_peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let peek = |stack: &mut Stack, _| stack.udp_peek_from(self.handle, into);
        let (length, from) = self.socket.attempt(Direction::Read, peek)?;
        Ok((length, from))
    }

    /// Sends a datagram to the peer without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if the send queue is full; otherwise the errors of [`UdpSocket::send`].
    pub fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        let send = |stack: &mut Stack, now| stack.udp_send(now, self.handle, data);
        self.socket.attempt(Direction::Write, send)?;
        Ok(data.len())
    }

    /// Receives a datagram, and returns its sender. If there is none, registers the task to be
    /// woken.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let free = into.initialize_unfilled();
        let receive = |stack: &mut Stack, _| stack.udp_receive_from(self.handle, free);
        let (length, from) = ready!(self.socket.poll(Direction::Read, context, receive))?;
        into.advance(length);
        Poll::Ready(Ok(from))
    }

    /// Receives a datagram. If there is none, registers the task to be woken.
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv`].
    pub fn poll_recv(
        &self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_recv_from(context, into).map_ok(drop)
    }

    /// Sends a datagram. If the send queue is full, registers the task to be woken.
    ///
    /// # Errors
    /// Those of [`UdpSocket::send_to`].
    pub fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        data: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        let send = |stack: &mut Stack, now| stack.udp_send_to(now, self.handle, target, data);
        self.socket.poll(Direction::Write, context, send).map_ok(|()| data.len())
    }

    /// Sends a datagram to the peer. If the send queue is full, registers the task to be woken.
    ///
    /// # Errors
    /// Those of [`UdpSocket::send`].
    pub fn poll_send(&self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let send = |stack: &mut Stack, now| stack.udp_send(now, self.handle, data);
        self.socket.poll(Direction::Write, context, send).map_ok(|()| data.len())
    }

    /// Waits until the socket is ready in one of the directions of `interest`. Cancellation-safe.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let ready = poll_fn(|context| {
            self.socket.poll_ready(interest, context, |stack| self.readiness(stack))
        });
        Ok(ready.await)
    }

    /// Waits until a datagram has arrived, or the network has reported an error.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Waits for room in the send queue. As in `tokio::net`, the next send can still fail with
    /// `WouldBlock`.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    /// Has a datagram arrived? If not, the task is registered to be woken.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn poll_recv_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |stack: &Stack| self.readiness(stack);
        self.socket.poll_ready(Interest::READABLE, context, look).map(|_| Ok(()))
    }

    /// Is there room in the send queue? If not, the task is registered to be woken.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |stack: &Stack| self.readiness(stack);
        self.socket.poll_ready(Interest::WRITABLE, context, look).map(|_| Ok(()))
    }

    /// Returns whether the socket is readable, as a `Ready` without `WRITABLE`. Whether there is
    /// room to send is tracked by [`Socket`].
    fn readiness(&self, stack: &Stack) -> Ready {
        match stack.udp_is_readable(self.handle) {
            Ok(false) => Ready::EMPTY,
            _ => Ready::READABLE,
        }
    }

    /// Calls `attempt` if the socket is ready in one of the directions of `interest`.
    ///
    /// # Errors
    /// `WouldBlock` if the socket is not ready; those of `attempt`.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        attempt: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        if self.socket.readiness(interest, |stack| self.readiness(stack)).is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        attempt()
    }

    /// Allows or forbids sending to broadcast addresses.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.socket.call(|stack, _| stack.udp_set_broadcast(self.handle, broadcast))
    }

    /// Is sending to broadcast addresses allowed?
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.socket.call(|stack, _| stack.udp_broadcast(self.handle))
    }

    /// Sets whether datagrams that exceed the path MTU are sent in fragments, or refused.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_fragmentation(&self, fragmentation: Fragmentation) -> io::Result<()> {
        self.socket.call(|stack, _| stack.udp_set_fragmentation(self.handle, fragmentation))
    }

    /// Returns whether datagrams that exceed the path MTU are sent in fragments, or refused.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn fragmentation(&self) -> io::Result<Fragmentation> {
        self.socket.call(|stack, _| stack.udp_fragmentation(self.handle))
    }

    /// Sets the TTL or hop limit of datagrams, except those to multicast groups. The default is 64.
    ///
    /// # Errors
    /// `InvalidInput` for zero and above 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = u8::try_from(ttl).ok().filter(|&hops| hops > 0);
        let hops = hops.ok_or(io::ErrorKind::InvalidInput)?;
        self.socket.call(|stack, _| stack.udp_set_hops(self.handle, hops))
    }

    /// Returns the TTL or hop limit of datagrams, except those to multicast groups.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn ttl(&self) -> io::Result<u32> {
        self.socket.call(|stack, _| stack.udp_hops(self.handle)).map(u32::from)
    }

    /// Returns and clears the error that the network reported about a datagram of this socket.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.socket.call(|stack, _| stack.udp_take_error(self.handle))?;
        Ok(error.map(|error| Error::Host(error).into()))
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.udp_local_addr(self.handle))
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.udp_peer_addr(self.handle))
    }
}
