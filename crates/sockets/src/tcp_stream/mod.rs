//! A TCP connection that is used like `std::net::TcpStream`: opened, asked and set up here and in `rare`, read
//! and written in `bytes`, let go of in `closing`.

mod bytes;
mod closing;
mod rare;

use crate::error::Error;
use crate::patience::{Limit, Side};
use crate::shared::Shared;
use crate::socket::Socket;
use linerate_stack::{ConnectOptions, Error as HostError, Stack, TcpHandle};
use linerate_tcp::{Connection, Information, KeepAlive, State, Statistics};
use std::io;
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

/// A TCP connection.
///
/// It means what it means in `std::net`: clones are one connection, one thread can read `&TcpStream`
/// while another writes it, a read of `Ok(0)` is the end, and the last clone to go closes. Three things
/// differ. An error that ended the connection stays its error, where a kernel tells it once and then
/// shows what looks like a clean end. One write takes 256 KiB at most. There is no file descriptor, and no
/// `ttl` of one socket.
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket<TcpHandle>>,
}

impl TcpStream {
    /// Opens a connection to `peer`, whose first bytes are written before its SYN leaves; how many.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        peer: SocketAddrV4,
        options: &ConnectOptions,
        first: &[u8],
        limit: Limit,
    ) -> Result<(Self, usize), Error> {
        let (socket, taken) = {
            let mut access = shared.access()?;
            access.check_running()?;
            let now = access.now();
            let handle = access.stack.tcp_connect(now, peer, options).map_err(Error::from)?;
            let socket = Socket::new(shared, &mut access, handle);
            (socket, access.stack.tcp_write(now, handle, first))
        };
        let taken = taken.map_err(Error::from)?;
        let opened = socket.block_within(Side::Write, limit, |state, _| {
            outcome_of_opening(&state.stack, socket.handle)
        });
        match (opened, limit) {
            (Ok(()), _) => Ok((Self { socket: Arc::new(socket) }, taken)),
            (Err(Error::TimedOut(_)), Limit::Within(within)) => {
                Err(Error::ConnectTimedOut { peer: peer.into(), within })
            }
            (Err(error), _) => Err(error),
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

    /// Fixes the size of the send buffer (`SO_SNDBUF`), which grows with the path otherwise. A thread that waits for
    /// room finds it in one that has become larger.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_send_buffer(bytes))
        })?)
    }

    /// Fixes the size of the receive buffer (`SO_RCVBUF`), which grows with what is read otherwise. A size
    /// that the first window shall keep to is set in the configuration with which the stream is opened.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        self.configure(|connection| connection.set_receive_buffer(bytes))
    }

    /// Bytes that can be in the send buffer now.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn send_buffer(&self) -> io::Result<usize> {
        self.look(Connection::send_buffer)
    }

    /// Bytes that can be in the receive buffer now.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        self.look(Connection::receive_buffer)
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
            stack
                .tcp_configure(now, handle, |connection| connection.set_keep_alive(now, keep_alive))
        })?)
    }

    /// How a silent peer is asked for a sign of life, if it is.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        self.look(Connection::keep_alive)
    }

    /// Ends the connection with `TimedOut` when what was written has not been acknowledged for so long,
    /// whether the peer is silent or keeps its window closed. `None`, the rule, leaves a silent peer a
    /// quarter of an hour. (`TCP_USER_TIMEOUT`.)
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::ZeroTimeout.into());
        }
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| {
            let timeout = timeout.map(Into::into);
            stack.tcp_configure(now, handle, |connection| connection.set_user_timeout(now, timeout))
        })?)
    }

    /// How long what was written may stay unacknowledged, if that was said by the application, or by the
    /// peer where the configuration lets it.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn user_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.look(Connection::user_timeout)?.map(Into::into))
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
        Ok(self
            .socket
            .call(|stack, _| stack.tcp(handle).as_deref().map(question).ok_or(HostError::Closed))?)
    }

    fn configure(&self, change: impl FnOnce(&mut Connection)) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| stack.tcp_configure(now, handle, change))?)
    }
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
