//! A UDP socket that is used like `std::net::UdpSocket`.

use crate::address::try_each;
use crate::error::Error;
use crate::patience::Side;
use crate::shared::{Access, Shared, State};
use crate::socket::{Handle, Socket};
use crate::waiters::SocketId;
use linerate_stack::{Error as HostError, Stack, UdpHandle, UdpOptions};
use linerate_units::Instant;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// A UDP socket. What it was told to send leaves although it is dropped, as far as the host has room for it.
///
/// A call of one that is connected fails with what the network has reported about a datagram sent
/// before, such as `ConnectionRefused`.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Arc<Socket<UdpHandle>>,
}

impl UdpSocket {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        local: SocketAddrV4,
        options: &UdpOptions,
    ) -> io::Result<Self> {
        let mut access = shared.access()?;
        access.check_running()?;
        let handle = access.stack.udp_bind(local, options).map_err(Error::from)?;
        Ok(Self { socket: Arc::new(Socket::new(shared, &mut access, handle)) })
    }

    /// Waits for a datagram; returns how many bytes of it were copied, and who sent it. What does not
    /// fit into the buffer is lost.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; what the network has reported about this
    /// socket; `NetworkDown` when the network has ended.
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(|state, _| state.stack.udp_receive_from(self.socket.handle, into))
    }

    /// Does what [`UdpSocket::recv_from`] does, and leaves the datagram where it is.
    ///
    /// # Errors
    /// As for [`UdpSocket::recv_from`].
    pub fn peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(|state, _| state.stack.udp_peek_from(self.socket.handle, into))
    }

    /// Waits for a datagram from the peer.
    ///
    /// # Errors
    /// As for [`UdpSocket::recv_from`].
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.recv_from(into).map(|(length, _)| length)
    }

    /// Does what [`UdpSocket::recv`] does, and leaves the datagram where it is.
    ///
    /// # Errors
    /// As for [`UdpSocket::recv_from`].
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.peek_from(into).map(|(length, _)| length)
    }

    fn receive(
        &self,
        attempt: impl FnMut(&mut State, Instant) -> Result<(usize, SocketAddrV4), HostError>,
    ) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self.socket.block(Side::Read, attempt)?;
        Ok((length, from.into()))
    }

    /// Sends a datagram to the first of `addresses`, and waits if the host has too many that wait for
    /// the link.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram that is too long or a destination that cannot be; `WouldBlock` in
    /// non-blocking mode or after the timeout; `NetworkUnreachable` without a route.
    pub fn send_to(&self, data: &[u8], addresses: impl ToSocketAddrs) -> io::Result<usize> {
        let handle = self.socket.handle;
        let to = try_each(addresses, Ok)?;
        self.transmit(data, |state, now| state.stack.udp_send_to(now, handle, to, data))
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// `NotConnected` without a peer; what the network has reported since the last call; as for
    /// [`UdpSocket::send_to`].
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        let handle = self.socket.handle;
        self.transmit(data, |state, now| state.stack.udp_send(now, handle, data))
    }

    fn transmit(
        &self,
        data: &[u8],
        attempt: impl FnMut(&mut State, Instant) -> Result<(), HostError>,
    ) -> io::Result<usize> {
        self.socket.block(Side::Write, attempt)?;
        Ok(data.len())
    }

    /// Names the peer: only its datagrams arrive from now on, and [`UdpSocket::send`] sends to it. Of
    /// several addresses the first that can be sent to is taken.
    ///
    /// # Errors
    /// `NetworkUnreachable` without a route; `InvalidInput` for an address that cannot be sent to.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<()> {
        try_each(addresses, |peer| {
            Ok(self.socket.call(|stack, now| stack.udp_connect(now, self.socket.handle, peer))?)
        })
    }

    /// The peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.call(|stack, _| stack.udp_peer_addr(self.socket.handle))?.into())
    }

    /// What the socket is bound to.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.call(|stack, _| stack.udp_local_addr(self.socket.handle))?.into())
    }

    /// The same socket once more. Timeouts and the non-blocking mode are common to all clones.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::clone(&self.socket) })
    }

    /// How long receiving may wait; `None` for ever.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.patience.set_timeout(Side::Read, timeout)?)
    }

    /// How long sending may wait for room; `None` for ever.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.patience.set_timeout(Side::Write, timeout)?)
    }

    /// How long receiving may wait.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.patience.timeout(Side::Read))
    }

    /// How long sending may wait for room.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.patience.timeout(Side::Write))
    }

    /// Lets calls that would wait fail with `WouldBlock` instead.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.patience.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Allows or forbids sending to all hosts of a network.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        Ok(self.socket.call(|stack, _| stack.udp_set_broadcast(self.socket.handle, broadcast))?)
    }

    /// May the socket send to all hosts of a network?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(self.socket.call(|stack, _| stack.udp_broadcast(self.socket.handle))?)
    }

    /// Takes what the network has reported about a datagram of this socket.
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

    fn has_more(self, stack: &Stack, side: Side) -> bool {
        match side {
            Side::Read => stack.udp_is_readable(self).unwrap_or(false),
            // One event of room stands for all that were refused.
            Side::Write => true,
        }
    }

    fn close(self, access: &mut Access<'_>, _: &Shared) {
        // It cannot fail: nobody else has this handle.
        let _ = access.stack.udp_close(self);
    }
}
