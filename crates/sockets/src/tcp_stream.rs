//! A TCP connection that is read and written like `std::net::TcpStream`.

use crate::error::Error;
use crate::patience::{Limit, Side};
use crate::shared::{Access, Shared};
use crate::socket::{Handle, Socket};
use crate::waiters::SocketId;
use linerate_stack::{ConnectOptions, Error as HostError, Stack, TcpHandle};
use linerate_tcp::{Connection, Information, KeepAlive, State, Statistics};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::{self, Duration};

/// Bytes that one call copies at most while it has the host to itself.
const LARGEST_COPY: usize = 256 << 10;

/// A TCP connection.
///
/// It means what it means in `std::net`: clones are one connection, one thread can read `&TcpStream`
/// while another writes it, a read of `Ok(0)` is the end, and the last clone to go closes. Three things
/// differ. An error that ended the connection stays its error, where a kernel tells it once and then
/// shows what looks like a clean end. One write takes 256 KiB at most. There is no file descriptor.
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket<TcpHandle>>,
}

impl TcpStream {
    /// Opens a connection to `peer`.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        peer: SocketAddrV4,
        options: &ConnectOptions,
        limit: Limit,
    ) -> io::Result<Self> {
        let socket = {
            let mut access = shared.access()?;
            access.check_running()?;
            let now = access.now();
            let handle = access.stack.tcp_connect(now, peer, options).map_err(Error::from)?;
            Socket::new(shared, &mut access, handle)
        };
        let opened = socket
            .block_within(Side::Write, limit, |state, _| outcome_of_opening(&state.stack, socket.handle));
        match (opened, limit) {
            (Ok(()), _) => Ok(Self { socket: Arc::new(socket) }),
            (Err(Error::TimedOut(_)), Limit::Within(within)) => {
                Err(Error::ConnectTimedOut { peer: peer.into(), within }.into())
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// A connection that was accepted.
    pub(crate) fn accepted(socket: Socket<TcpHandle>) -> Self {
        Self { socket: Arc::new(socket) }
    }

    /// The address and port of the peer.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = self.socket.call(|stack, _| stack.tcp_peer_addr(self.socket.handle))?;
        Ok(peer.into())
    }

    /// The address and port on this host.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let local = self.socket.call(|stack, _| stack.tcp_local_addr(self.socket.handle))?;
        Ok(local.into())
    }

    /// The same connection once more. Timeouts and the non-blocking mode are common to all clones.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::clone(&self.socket) })
    }

    /// Closes one direction or both. A closed sending direction ends with what was written; threads that
    /// wait for a closed receiving direction wake up and read its end. What the peer sends after that is
    /// thrown away.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            if stack.tcp(handle).is_none_or(|connection| connection.state() == State::Closed) {
                return Err(HostError::NotConnected);
            }
            if how != Shutdown::Write {
                stack.tcp_shutdown_read(now, handle)?;
            }
            if how != Shutdown::Read {
                stack.tcp_shutdown_write(now, handle)?;
            }
            Ok(())
        })?)
    }

    /// Copies what there is to read without taking it; otherwise as a read.
    ///
    /// # Errors
    /// As for reading.
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        Ok(self
            .socket
            .block(Side::Read, |state, _| state.stack.tcp_peek(self.socket.handle, shorten(into)))?)
    }

    /// How long a read may wait; `None` for ever. A read that takes longer fails with `WouldBlock`, as in
    /// `std::net` on Unix.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.patience.set_timeout(Side::Read, timeout)?)
    }

    /// How long a write may wait for room; `None` for ever. A write that takes longer fails with
    /// `WouldBlock`.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.patience.set_timeout(Side::Write, timeout)?)
    }

    /// How long a read may wait.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.patience.timeout(Side::Read))
    }

    /// How long a write may wait.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.patience.timeout(Side::Write))
    }

    /// Lets calls that would wait fail with `WouldBlock` instead. A call that waits already goes on.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.patience.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Sends segments that are not full at once, without Nagle's wait for the acknowledgement of what
    /// went before.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.configure(|connection| connection.set_no_delay(nodelay))
    }

    /// Are segments that are not full sent at once?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.look(Connection::no_delay)
    }

    /// How long closing waits until the peer has acknowledged everything. `None`, the rule: not at all,
    /// and the host goes on sending without the application. Zero: closing resets the connection, and
    /// what was not sent is lost. Else closing waits, and resets the connection if that was too short.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.configure(|connection| connection.set_linger(linger.map(Into::into)))
    }

    /// How long closing waits until the peer has acknowledged everything.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.look(Connection::linger)?.map(Into::into))
    }

    /// Asks a silent peer for a sign of life, and ends the connection with `TimedOut` without one.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_keep_alive(now, keep_alive))
        })?)
    }

    /// How a silent peer is asked for a sign of life, if it is.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        self.look(Connection::keep_alive)
    }

    /// Why the connection ended, unless both ends agreed to it. Taking it does not make it go away.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.look(Connection::error)?;
        Ok(error.map(|error| Error::Host(HostError::Tcp(error)).into()))
    }

    /// Where the connection stands.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn state(&self) -> io::Result<State> {
        self.look(Connection::state)
    }

    /// What the connection has counted.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn statistics(&self) -> io::Result<Statistics> {
        self.look(|connection| connection.statistics().clone())
    }

    /// How the connection stands, in numbers, as `TCP_INFO` tells of a kernel's.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn information(&self) -> io::Result<Information> {
        self.look(Connection::information)
    }

    fn look<T>(&self, question: impl FnOnce(&Connection) -> T) -> io::Result<T> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, _| stack.tcp(handle).map(question).ok_or(HostError::Closed))?)
    }

    fn configure(&self, change: impl FnOnce(&mut Connection)) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| stack.tcp_configure(now, handle, change))?)
    }

    /// Reads into the buffers in their order, as far as there is something.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let handle = self.socket.handle;
        Ok(self.socket.block(Side::Read, |state, now| {
            let mut read = 0;
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
                let wanted = buffer.len().min(LARGEST_COPY - read);
                match state.stack.tcp_read(now, handle, &mut buffer[..wanted]) {
                    Ok(count) => read += count,
                    Err(_) if read > 0 => break,
                    Err(error) => return Err(error),
                }
                if read == LARGEST_COPY {
                    break;
                }
            }
            Ok(read)
        })?)
    }

    /// Writes the pieces in their order, as far as there is room.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let handle = self.socket.handle;
        let is_nothing = pieces.iter().all(|piece| piece.is_empty());
        Ok(self.socket.block(Side::Write, |state, now| {
            let mut written = 0;
            // Nothing at all is written, too: the connection may have ended, which has to be said.
            for piece in pieces.iter().filter(|piece| is_nothing || !piece.is_empty()) {
                let piece = &piece[..piece.len().min(LARGEST_COPY - written)];
                let count = state.stack.tcp_write(now, handle, piece)?;
                written += count;
                if count < piece.len() || written == LARGEST_COPY {
                    break;
                }
            }
            if written > 0 || is_nothing { Ok(written) } else { Err(HostError::WouldBlock) }
        })?)
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.receive(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive(buffers)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(pieces)
    }

    /// Nothing is held back here; what waits in the host's buffer is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Write for TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Handle for TcpHandle {
    fn id(self) -> SocketId {
        SocketId::Tcp(self)
    }

    fn has_more(self, stack: &Stack, side: Side) -> bool {
        stack.tcp(self).is_some_and(|connection| match side {
            Side::Read => connection.readable_bytes() > 0 || connection.is_at_end_of_stream(),
            Side::Write => connection.writable_bytes() > 0 || !connection.state().may_write(),
        })
    }

    fn close(self, access: &mut Access<'_>, shared: &Shared) {
        let is_in_time = wait_for_acknowledgement(self, access, shared);
        let now = access.now();
        // Neither can fail: nobody else has this handle.
        let _ =
            if is_in_time { access.stack.tcp_close(now, self) } else { access.stack.tcp_abort(now, self) };
    }
}

/// Waits, if the application has asked for that, until the peer has acknowledged everything including
/// our end; false if the time it has allowed is over.
fn wait_for_acknowledgement(handle: TcpHandle, access: &mut Access<'_>, shared: &Shared) -> bool {
    let Some(linger) = linger_of(handle, &access.stack) else { return true };
    let now = access.now();
    // It can be shut down already; then that is what is waited for.
    let _ = access.stack.tcp_shutdown_write(now, handle);
    let deadline = time::Instant::now().checked_add(linger);
    let mut in_time = true;
    while in_time && access.end.is_none() && has_unacknowledged(handle, &access.stack) {
        in_time = access.wait(shared.turned(), deadline);
    }
    !has_unacknowledged(handle, &access.stack)
}

/// How long to wait. What was received and not read resets the connection anyway.
fn linger_of(handle: TcpHandle, stack: &Stack) -> Option<Duration> {
    let connection = stack.tcp(handle).filter(|connection| connection.readable_bytes() == 0)?;
    let linger: Duration = connection.linger()?.into();
    Some(linger).filter(|linger| !linger.is_zero())
}

fn has_unacknowledged(handle: TcpHandle, stack: &Stack) -> bool {
    let state = stack.tcp(handle).map_or(State::Closed, Connection::state);
    !matches!(state, State::FinWait2 | State::TimeWait | State::Closed | State::SynSent)
}

fn shorten(buffer: &mut [u8]) -> &mut [u8] {
    let length = buffer.len().min(LARGEST_COPY);
    &mut buffer[..length]
}

/// What has become of a connection that was asked for.
fn outcome_of_opening(stack: &Stack, handle: TcpHandle) -> Result<(), HostError> {
    let connection = stack.tcp(handle).ok_or(HostError::Closed)?;
    match connection.state() {
        State::SynSent | State::SynReceived => Err(HostError::WouldBlock),
        // One that was opened and has ended since was opened: what it has is to be read.
        State::Closed => connection.error().map_or(Ok(()), |error| Err(error.into())),
        _ => Ok(()),
    }
}
