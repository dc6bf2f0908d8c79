//! Datagram sockets.

use crate::address::{ToSocketAddrs, try_each};
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use linerate_stack::{Error as HostError, UdpHandle, UdpOptions};
use std::io;
use std::net::SocketAddr;

/// A datagram socket, as `tokio::net::UdpSocket`.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    handle: UdpHandle,
}

impl UdpSocket {
    /// Opens a socket at the first usable address on the host of the current task. Port zero
    /// selects a free port.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable` if the host has no such address, or the task runs on no
    /// host.
    pub async fn bind<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let net = Net::required()?;
        let addresses = address.to_socket_addrs(&net)?;
        try_each(&addresses, |local| {
            let options = UdpOptions::default();
            let (socket, handle) =
                Socket::open(&net, SocketId::Udp, |stack, _| stack.udp_bind(local, &options))?;
            Ok(Self { socket, handle })
        })
    }

    /// Sets the peer: the socket receives only its datagrams, and [`UdpSocket::send`] sends to it.
    ///
    /// # Errors
    /// `NetworkUnreachable` without a route; `InvalidInput` for an invalid destination.
    pub async fn connect<A: ToSocketAddrs>(&self, address: A) -> io::Result<()> {
        let addresses = address.to_socket_addrs(&self.socket.net)?;
        try_each(&addresses, |peer| {
            self.socket.call(|stack, now| stack.udp_connect(now, self.handle, peer))
        })
    }

    /// Sends a datagram to the first address. Waits while the send queue is full.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram that is too long or an invalid destination;
    /// `NetworkUnreachable` without a route.
    pub async fn send_to<A: ToSocketAddrs>(&self, data: &[u8], target: A) -> io::Result<usize> {
        let addresses = target.to_socket_addrs(&self.socket.net)?;
        let to = try_each(addresses.get(..1).unwrap_or_default(), Ok)?;
        self.socket
            .wait(Direction::Write, |stack, now| stack.udp_send_to(now, self.handle, to, data))
            .await?;
        Ok(data.len())
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

    /// Receives a datagram. The part that exceeds `into` is lost. Cancellation-safe.
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

    /// Receives a datagram like [`UdpSocket::recv_from`].
    ///
    /// # Errors
    /// Those of [`UdpSocket::recv_from`].
    pub async fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.recv_from(into).await.map(|(length, _)| length)
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

    /// Receives a datagram that has arrived.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; those of [`UdpSocket::recv_from`].
    pub fn try_recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self
            .socket
            .attempt(Direction::Read, |stack, _| stack.udp_receive_from(self.handle, into))?;
        Ok((length, from))
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock` if the send queue is full; those of [`UdpSocket::send_to`].
    pub fn try_send_to(&self, data: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.socket.attempt(Direction::Write, |stack, now| {
            stack.udp_send_to(now, self.handle, target, data)
        })?;
        Ok(data.len())
    }

    /// Waits until a datagram has arrived, or the network has reported an error.
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket
            .wait(Direction::Read, |stack, _| match stack.udp_is_readable(self.handle) {
                Ok(false) => Err(HostError::WouldBlock),
                _ => Ok(()),
            })
            .await
    }

    /// Waits for room in the send queue. As in `tokio::net`, the next send can still be refused.
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
    pub async fn writable(&self) -> io::Result<()> {
        self.socket.wait_for_room().await
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
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
