//! TCP connections.

use super::tcp::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::address::ToSocketAddrs;
use crate::error::Error;
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use bytes::BufMut;
use linerate_stack::{ConnectOptions, Error as HostError, Stack, TcpHandle};
use linerate_tcp::{Connection, State};
use linerate_units::Instant;
use linerate_wire::TypeOfService;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::num::NonZeroU8;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::task::yield_now;

/// Maximum number of bytes that one read or write copies while it holds the lock of the host.
const LARGEST_COPY: usize = 256 << 10;

/// A TCP connection, like `tokio::net::TcpStream`. Data that the application has not read takes up
/// the receive window, so a slow reader slows the peer down.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let serve = async {
///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///     let (mut stream, _peer) = listener.accept().await.unwrap();
///     stream.write_all(b"hello").await.unwrap();
/// };
/// sim::client_server(serve, async {
///     let mut stream = TcpStream::connect("server:80").await.unwrap();
///     let mut text = String::new();
///     stream.read_to_string(&mut text).await.unwrap();
///     assert_eq!(text, "hello");
/// });
/// ```
#[derive(Debug)]
pub struct TcpStream {
    socket: Socket,
    handle: TcpHandle,
}

impl TcpStream {
    /// Connects the host of the current task. If `address` stands for several addresses, they are
    /// tried one after another until a connection is established. Dropping the future aborts the
    /// attempt.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, `NetworkUnreachable`; `NotFound` for an unknown name;
    /// `AddrNotAvailable` if the task belongs to no host.
    pub async fn connect<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        let net = Net::required()?;
        let addresses = address.to_socket_addrs(&net)?;
        let mut outcome = Err(Error::NoAddress.into());
        for peer in addresses {
            let (options, service) = (ConnectOptions::default(), TypeOfService::default());
            outcome = Self::open(&net, peer, &options, service).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    pub(super) async fn open(
        net: &Net,
        peer: SocketAddr,
        options: &ConnectOptions,
        service: TypeOfService,
    ) -> io::Result<Self> {
        let (socket, handle) = Socket::open(net, SocketId::Tcp, |stack, now| {
            let handle = stack.tcp_connect(now, peer, options)?;
            if service != TypeOfService::default() {
                stack.tcp_set_type_of_service(handle, service)?;
            }
            Ok(handle)
        })?;
        socket.wait(Direction::Read, |stack, _| outcome_of_opening(stack, handle)).await?;
        Ok(Self { socket, handle })
    }

    /// Creates the stream of a connection that is established already, with its registered socket.
    pub(super) const fn opened(socket: Socket, handle: TcpHandle) -> Self {
        Self { socket, handle }
    }

    /// Creates the stream of a connection that a listener or forwarder has accepted, and registers
    /// its socket.
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

    /// Waits for received data, and copies it without removing it.
    ///
    /// # Errors
    /// The error that ended the connection; `NetworkDown` when the host has stopped.
    pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.socket.wait(Direction::Read, |stack, _| stack.tcp_peek(self.handle, into)).await
    }

    /// Copies received data without removing it. If there is none, registers the task to be woken.
    ///
    /// # Errors
    /// The error that ended the connection; `NetworkDown` when the host has stopped.
    pub fn poll_peek(
        &self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(0));
        }
        let most = into.remaining().min(LARGEST_COPY);
        let free = into.initialize_unfilled_to(most);
        let peeked = self
            .socket
            .poll(Direction::Read, context, |stack, _| stack.tcp_peek(self.handle, free));
        peeked.map(|result| result.inspect(|&count| into.advance(count)))
    }

    /// Waits until the stream is ready in one of the directions of `interest`. Cancellation-safe.
    ///
    /// # Errors
    /// Never. A connection that has failed counts as ready.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let ready = poll_fn(|context| {
            self.socket.poll_ready(interest, context, |stack| self.readiness(stack))
        });
        Ok(ready.await)
    }

    /// Waits until there is data to read, or the stream has ended. Cancellation-safe.
    ///
    /// # Errors
    /// Never. A connection that has failed counts as readable.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Waits for room in the send buffer. As in `tokio::net`, the next write can still fail with
    /// `WouldBlock`. Cancellation-safe.
    ///
    /// # Errors
    /// Never. A connection that has failed counts as writable.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    /// Is there data to read, or has the stream ended? If not, the task is registered to be woken.
    ///
    /// # Errors
    /// Never. A connection that has failed counts as readable.
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |stack: &Stack| self.readiness(stack);
        self.socket.poll_ready(Interest::READABLE, context, look).map(|_| Ok(()))
    }

    /// Is there room in the send buffer? If not, the task is registered to be woken.
    ///
    /// # Errors
    /// Never. A connection that has failed counts as writable.
    pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |stack: &Stack| self.readiness(stack);
        self.socket.poll_ready(Interest::WRITABLE, context, look).map(|_| Ok(()))
    }

    /// Returns the readiness of the stream except `WRITABLE`. Whether there is room to write is
    /// tracked by [`Socket`].
    fn readiness(&self, stack: &Stack) -> Ready {
        let mut ready = Ready::EMPTY;
        if !matches!(stack.tcp_peek(self.handle, &mut [0]), Err(HostError::WouldBlock)) {
            ready |= Ready::READABLE;
        }
        let Some(connection) = stack.tcp(self.handle) else { return ready };
        if connection.is_at_end_of_stream() || connection.state() == State::Closed {
            ready |= Ready::READ_CLOSED;
        }
        if !connection.state().may_write() {
            ready |= Ready::WRITE_CLOSED;
        }
        ready
    }

    /// Calls `attempt` if the stream is ready in one of the directions of `interest`.
    ///
    /// # Errors
    /// `WouldBlock` if the stream is not ready; those of `attempt`.
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

    /// Calls `attempt` each time when the stream is ready, until its result is not `WouldBlock`.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            self.ready(interest).await?;
            match attempt() {
                // The stream was reported as ready, but `attempt` would block. Before the next
                // attempt, other tasks run. One of them is the driver of the host, which handles
                // the event that makes the stream ready.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => yield_now().await,
                result => return result,
            }
        }
    }

    /// Reads received data without waiting. Returns the number of bytes read.
    ///
    /// # Errors
    /// `WouldBlock` if no data has arrived; the reason why the connection has ended.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.socket.attempt(Direction::Read, |stack, now| self.read(stack, now, into))
    }

    /// Reads received data into several buffers without waiting. Returns the number of bytes read.
    ///
    /// # Errors
    /// Those of [`TcpStream::try_read`].
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        self.socket.attempt(Direction::Read, |stack, now| {
            let mut read = 0;
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
                let wanted = buffer.len().min(LARGEST_COPY - read);
                match stack.tcp_read(now, self.handle, &mut buffer[..wanted]) {
                    Ok(count) => read += count,
                    Err(_) if read > 0 => break,
                    Err(error) => return Err(error),
                }
                if read == LARGEST_COPY {
                    break;
                }
            }
            Ok(read)
        })
    }

    /// Reads received data without waiting, and appends it to `buffer`. Returns the number of bytes
    /// read.
    ///
    /// # Errors
    /// Those of [`TcpStream::try_read`].
    pub fn try_read_buf<B: BufMut>(&self, buffer: &mut B) -> io::Result<usize> {
        if !buffer.has_remaining_mut() {
            return Ok(0);
        }
        self.socket.attempt(Direction::Read, |stack, now| {
            stack.tcp_read_with(now, self.handle, |data| {
                let piece = &data[..data.len().min(buffer.remaining_mut()).min(LARGEST_COPY)];
                buffer.put_slice(piece);
                piece.len()
            })
        })
    }

    /// Writes as much of the beginning of `data` as the send buffer has room for, without waiting.
    /// Returns the number of bytes written.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; the reason why the connection has ended.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.socket.attempt(Direction::Write, |stack, now| self.write(stack, now, data))
    }

    /// Writes several pieces in their order, without waiting, as far as the send buffer has room.
    /// Returns the number of bytes written.
    ///
    /// # Errors
    /// Those of [`TcpStream::try_write`].
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let write = |stack: &mut Stack, now| self.write_vectored(stack, now, pieces);
        self.socket.attempt(Direction::Write, write)
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.tcp_peer_addr(self.handle))
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.tcp_local_addr(self.handle))
    }

    /// Disables (true) or enables (false) Nagle's algorithm (`TCP_NODELAY`). While it is disabled,
    /// small segments do not wait for acknowledgements.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.call(|stack, now| {
            stack.tcp_configure(now, self.handle, |connection| connection.set_no_delay(nodelay))
        })
    }

    /// Is Nagle's algorithm disabled?
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inspect(Connection::no_delay)
    }

    /// Sets what happens to unsent data when the stream is dropped (`SO_LINGER`). With zero, the
    /// connection is reset and unsent data is lost. Any other time has no effect, because dropping
    /// never waits: the host sends the remaining data in the background.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        let linger = linger.map(Into::into);
        self.socket.call(|stack, now| {
            stack.tcp_configure(now, self.handle, |connection| connection.set_linger(linger))
        })
    }

    /// Makes the drop of the stream reset the connection, instead of closing it with a FIN.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the linger time ([`TcpStream::set_linger`]); `None` if the stream has none.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.inspect(Connection::linger)?.map(Into::into))
    }

    /// Sets the time to live of the connection's packets.
    ///
    /// # Errors
    /// `InvalidInput` for zero, and above 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let valid = u8::try_from(ttl).ok().and_then(NonZeroU8::new);
        let invalid =
            Error::InvalidOption { option: "time to live", value: ttl, range: "1 to 255" };
        let valid = valid.ok_or(invalid)?;
        self.socket.call(|stack, _| stack.tcp_set_ttl(self.handle, valid))
    }

    /// Returns the time to live of the connection's packets.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn ttl(&self) -> io::Result<u32> {
        self.socket.call(|stack, _| stack.tcp_ttl(self.handle)).map(u32::from)
    }

    /// Returns the error that ended the connection, if there is one.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inspect(Connection::error)?;
        Ok(error.map(|error| Error::Host(HostError::Tcp(error)).into()))
    }

    fn inspect<T>(&self, getter: impl FnOnce(&Connection) -> T) -> io::Result<T> {
        self.socket
            .call(|stack, _| stack.tcp(self.handle).as_deref().map(getter).ok_or(HostError::Closed))
    }

    /// Closes the connection in a direction, or in both.
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

    /// Writes the pieces in their order, as far as the send buffer has room.
    fn write_vectored(
        &self,
        stack: &mut Stack,
        now: Instant,
        pieces: &[IoSlice<'_>],
    ) -> Result<usize, HostError> {
        let is_nothing = pieces.iter().all(|piece| piece.is_empty());
        let mut written = 0;
        // Empty pieces are skipped. If all pieces are empty, one is written nevertheless, because
        // this call must fail if the connection has ended.
        for piece in pieces.iter().filter(|piece| is_nothing || !piece.is_empty()) {
            let piece = &piece[..piece.len().min(LARGEST_COPY - written)];
            let count = stack.tcp_write(now, self.handle, piece)?;
            written += count;
            if count < piece.len() || written == LARGEST_COPY {
                break;
            }
        }
        if written > 0 || is_nothing { Ok(written) } else { Err(HostError::WouldBlock) }
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

    pub(super) fn poll_write_vectored_shared(
        &self,
        context: &Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = |stack: &mut Stack, now| self.write_vectored(stack, now, pieces);
        self.socket.poll(Direction::Write, context, write)
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

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored_shared(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.close_direction(Shutdown::Write))
    }
}

/// Returns the result of opening a connection. The error is `WouldBlock` while opening is in
/// progress.
pub(super) fn outcome_of_opening(stack: &Stack, handle: TcpHandle) -> Result<(), HostError> {
    let connection = stack.tcp(handle).ok_or(HostError::Closed)?;
    match connection.state() {
        State::SynSent | State::SynReceived => Err(HostError::WouldBlock),
        // The connection was opened and has since been closed, without an error. So opening it has
        // succeeded, and the application can still read the received data.
        State::Closed => connection.error().map_or(Ok(()), |error| Err(error.into())),
        _ => Ok(()),
    }
}
