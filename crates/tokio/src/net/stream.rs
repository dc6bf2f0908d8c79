//! Connections.

use super::tcp::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::address::ToSocketAddrs;
use crate::error::Error;
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use linerate_stack::{ConnectOptions, Error as HostError, Stack, TcpHandle};
use linerate_tcp::{Connection, State};
use linerate_units::Instant;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes that one call copies while it holds the lock.
const LARGEST_COPY: usize = 256 << 10;

/// A connection, as `tokio::net::TcpStream`. Reading opens the window of the peer, so a slow reader
/// slows the peer down.
#[derive(Debug)]
pub struct TcpStream {
    socket: Socket,
    handle: TcpHandle,
}

impl TcpStream {
    /// Connects the host of the current task to the first address that answers. Dropping the future
    /// gives the attempt up.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, `NetworkUnreachable`; `NotFound` for an unknown name;
    /// `AddrNotAvailable` if the task runs on no host.
    pub async fn connect<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let net = Net::required()?;
        let addresses = address.to_socket_addrs(&net)?;
        let mut outcome = Err(Error::NoAddress.into());
        for peer in addresses {
            outcome = Self::open(&net, peer).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn open(net: &Net, peer: SocketAddr) -> io::Result<Self> {
        let options = ConnectOptions::default();
        let (socket, handle) =
            Socket::open(net, SocketId::Tcp, |stack, now| stack.tcp_connect(now, peer, &options))?;
        socket.wait(Direction::Read, |stack, _| outcome_of_opening(stack, handle)).await?;
        Ok(Self { socket, handle })
    }

    /// Creates the stream of an accepted connection.
    pub(super) fn accepted(net: &Net, handle: TcpHandle) -> Self {
        Self { socket: Socket::adopt(net, SocketId::Tcp(handle)), handle }
    }

    /// Splits the stream into borrowed halves.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Splits the stream into halves that can move to different tasks. Dropping the write half
    /// closes the sending direction.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Arc::new(self);
        (OwnedReadHalf::new(Arc::clone(&stream)), OwnedWriteHalf::new(stream))
    }

    /// Copies received data without removing it, as soon as there is some.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.socket.wait(Direction::Read, |stack, _| stack.tcp_peek(self.handle, into)).await
    }

    /// Waits until there is data to read, or the stream has ended.
    ///
    /// # Errors
    /// None; a connection that has failed is readable.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket
            .wait(Direction::Read, |stack, _| match stack.tcp_peek(self.handle, &mut [0]) {
                Err(HostError::WouldBlock) => Err(HostError::WouldBlock),
                _ => Ok(()),
            })
            .await
    }

    /// Waits for room in the send buffer. As in `tokio::net`, the next write can still be refused.
    ///
    /// # Errors
    /// None; a connection that has failed is writable.
    pub async fn writable(&self) -> io::Result<()> {
        self.socket.wait_for_room().await
    }

    /// Reads what has been received.
    ///
    /// # Errors
    /// `WouldBlock` if that is nothing; the reason why the connection has ended.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.socket.attempt(Direction::Read, |stack, now| self.read(stack, now, into))
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; the reason why the connection has ended.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.socket.attempt(Direction::Write, |stack, now| self.write(stack, now, data))
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// `NotConnected` after the end of the connection.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.tcp_peer_addr(self.handle))
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// `NotConnected` after the end of the connection.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.tcp_local_addr(self.handle))
    }

    /// Sends small segments without waiting for acknowledgements (`TCP_NODELAY`).
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.call(|stack, now| {
            stack.tcp_configure(now, self.handle, |connection| connection.set_no_delay(nodelay))
        })
    }

    /// Is Nagle's algorithm disabled?
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inspect(Connection::no_delay)
    }

    /// Returns the error that ended the connection, if there is one.
    ///
    /// # Errors
    /// None; `tokio::net` has a system call here that can fail.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inspect(Connection::error)?;
        Ok(error.map(|error| Error::Host(HostError::Tcp(error)).into()))
    }

    fn inspect<T>(&self, getter: impl FnOnce(&Connection) -> T) -> io::Result<T> {
        self.socket
            .call(|stack, _| stack.tcp(self.handle).as_deref().map(getter).ok_or(HostError::Closed))
    }

    /// Closes a direction.
    pub(super) fn close_direction(&self, direction: Shutdown) -> io::Result<()> {
        self.socket.call(|stack, now| match direction {
            Shutdown::Write => stack.tcp_shutdown_write(now, self.handle),
            Shutdown::Read => stack.tcp_shutdown_read(now, self.handle),
            Shutdown::Both => {
                stack.tcp_shutdown_write(now, self.handle)?;
                stack.tcp_shutdown_read(now, self.handle)
            }
        })
    }

    fn read(&self, stack: &mut Stack, now: Instant, into: &mut [u8]) -> Result<usize, HostError> {
        let most = into.len().min(LARGEST_COPY);
        stack.tcp_read(now, self.handle, &mut into[..most])
    }

    fn write(&self, stack: &mut Stack, now: Instant, data: &[u8]) -> Result<usize, HostError> {
        let piece = &data[..data.len().min(LARGEST_COPY)];
        match stack.tcp_write(now, self.handle, piece)? {
            0 if !data.is_empty() => Err(HostError::WouldBlock),
            written => Ok(written),
        }
    }

    pub(super) fn poll_read_shared(
        &self,
        context: &Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = into.remaining().min(LARGEST_COPY);
        let free = into.initialize_unfilled_to(most);
        let read = self
            .socket
            .poll(Direction::Read, context, |stack, now| stack.tcp_read(now, self.handle, free));
        read.map(|result| result.map(|count| into.advance(count)))
    }

    pub(super) fn poll_write_shared(
        &self,
        context: &Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll(Direction::Write, context, |stack, now| self.write(stack, now, data))
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_shared(context, into)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_shared(context, data)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.close_direction(Shutdown::Write))
    }
}

/// Returns the result of opening a connection: `WouldBlock` while it is in progress.
fn outcome_of_opening(stack: &Stack, handle: TcpHandle) -> Result<(), HostError> {
    let connection = stack.tcp(handle).ok_or(HostError::Closed)?;
    match connection.state() {
        State::SynSent | State::SynReceived => Err(HostError::WouldBlock),
        // The connection was opened and has ended since. Its data can be read.
        State::Closed => connection.error().map_or(Ok(()), |error| Err(error.into())),
        _ => Ok(()),
    }
}
