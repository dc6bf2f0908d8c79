//! A TCP connection that is used like `std::net::TcpStream`. This file contains opening, and the
//! common options. The submodules contain rarer options (`uncommon_options`), reading and writing
//! (`bytes`), and closing (`closing`).

mod bytes;
mod closing;
mod uncommon_options;

use crate::error::Error;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::timeouts::{Direction, WaitLimit};
use linerate_stack::{ConnectOptions, Error as HostError, Stack, TcpHandle};
use linerate_tcp::{Connection, Information, KeepAlive, State, Statistics};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A TCP connection.
///
/// ```
/// use std::io::{Read, Write};
/// use std::time::Duration;
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # use linerate_sockets::{Net, StackConfig};
/// # let (left, _right) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// # let net = Net::builder(left, config).start()?;
/// let listener = net.bind("127.0.0.1:80")?;
/// let mut client = net.connect("127.0.0.1:80")?;
/// client.set_nodelay(true)?;
/// client.set_user_timeout(Some(Duration::from_secs(30)))?;
/// client.set_dscp(46)?;
/// client.write_all(b"request")?;
/// drop(client);
///
/// let (mut server, _peer) = listener.accept()?;
/// server.set_read_timeout(Some(Duration::from_secs(5)))?;
/// let mut request = String::new();
/// server.read_to_string(&mut request)?;
/// assert_eq!(request, "request");
/// assert!(server.tcp_info()?.effective_mss > 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The stream behaves like `std::net::TcpStream`: clones refer to one connection, one thread can
/// read `&TcpStream` while another writes to it, a read of `Ok(0)` is the end of the stream, and
/// dropping the last clone closes the connection. There are three differences:
///
/// - After an error has ended the connection, every call reports this error. A kernel reports the
///   error once, and then an orderly end of the stream.
/// - One write takes at most 256 KiB.
/// - There is no file descriptor; [`Poller`](crate::Poller) has one for any number of sockets.
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket<TcpHandle>>,
}

impl TcpStream {
    /// Opens a connection to `peer`. Writes `first` to the send buffer before the SYN is sent.
    /// Returns the stream, and how many bytes of `first` fitted into the buffer.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        peer: SocketAddr,
        options: &ConnectOptions,
        first: &[u8],
        limit: WaitLimit,
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
        let opened = socket.block_within(Direction::Write, limit, |state, _| {
            outcome_of_opening(&state.stack, socket.handle)
        });
        match (opened, limit) {
            (Ok(()), _) => Ok((Self { socket: Arc::new(socket) }, taken)),
            (Err(Error::TimedOut(_)), WaitLimit::Within(within)) => {
                Err(Error::ConnectTimedOut { peer, within })
            }
            (Err(error), _) => Err(error),
        }
    }

    pub(crate) fn socket(&self) -> &Socket<TcpHandle> {
        &self.socket
    }

    /// Creates the stream of a connection that a listener or a forwarder has accepted.
    pub(crate) fn accepted(socket: Socket<TcpHandle>) -> Self {
        Self { socket: Arc::new(socket) }
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let peer = self.socket.call(|stack, _| stack.tcp_peer_addr(self.socket.handle))?;
        Ok(peer)
    }

    /// Returns the address and port on this host.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let local = self.socket.call(|stack, _| stack.tcp_local_addr(self.socket.handle))?;
        Ok(local)
    }

    /// Clones the stream. Clones share the timeouts and the non-blocking mode.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::clone(&self.socket) })
    }

    /// Closes one direction of the connection or both. Closing the sending direction sends a FIN
    /// after the written data. After the receiving direction is closed, reads return the end of the
    /// stream, also those that are already waiting. Data that the peer sends later is discarded.
    ///
    /// # Errors
    /// `NotConnected` if the connection has ended.
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

    /// Sets the timeout of reads; `None` waits without limit. If no data arrives within the
    /// timeout, a read fails with `WouldBlock`, as in `std::net` on Unix.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.timeouts.set_timeout(Direction::Read, timeout)?)
    }

    /// Sets the timeout of writes; `None` waits without limit. If there is no room in the send
    /// buffer within the timeout, a write fails with `WouldBlock`.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.timeouts.set_timeout(Direction::Write, timeout)?)
    }

    /// Returns the timeout of reads.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.timeouts.timeout(Direction::Read))
    }

    /// Returns the timeout of writes.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.socket.timeouts.timeout(Direction::Write))
    }

    /// Selects the non-blocking mode, in which calls fail with `WouldBlock` instead of waiting. A
    /// call that is already waiting continues to wait.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.timeouts.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Disables Nagle's algorithm (`TCP_NODELAY`): a partial segment is sent at once. With Nagle's
    /// algorithm, it would wait while earlier data is unacknowledged.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.configure(|connection| connection.set_no_delay(nodelay))
    }

    /// Is Nagle's algorithm disabled?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inspect(Connection::no_delay)
    }

    /// Sets the size of the send buffer (`SO_SNDBUF`). From then on, the host does not tune the
    /// size automatically. Threads that wait for room in the buffer continue if a larger size
    /// provides it.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_send_buffer(bytes))
        })?)
    }

    /// Sets the size of the receive buffer (`SO_RCVBUF`). From then on, the host does not tune the
    /// size automatically. The window that the SYN or SYN-ACK offered was based on the size before
    /// this call. To limit that window too, set the size in [`ConnectOptions::config`] or with
    /// [`TcpListener::set_config`](crate::TcpListener::set_config).
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        self.configure(|connection| connection.set_receive_buffer(bytes))
    }

    /// Returns the current size of the send buffer in bytes.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn send_buffer(&self) -> io::Result<usize> {
        self.inspect(Connection::send_buffer)
    }

    /// Returns the current size of the receive buffer in bytes.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        self.inspect(Connection::receive_buffer)
    }

    /// Sets how long closing waits until the peer has acknowledged everything (`SO_LINGER`).
    ///
    /// With `None`, the default, closing does not wait, and the host sends the remaining data in
    /// the background. With zero, closing resets the connection, and unsent data is lost. With any
    /// other time, closing waits, and resets the connection if data is still unacknowledged after
    /// that time.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.configure(|connection| connection.set_linger(linger.map(Into::into)))
    }

    /// Returns how long closing waits until the peer has acknowledged everything.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.inspect(Connection::linger)?.map(Into::into))
    }

    /// Enables keep-alive probes: while nothing arrives from the peer, the host sends probes, and
    /// ends the connection with `TimedOut` if the peer does not answer them. `None` disables the
    /// probes.
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

    /// Returns the keep-alive settings, if probes are enabled.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        self.inspect(Connection::keep_alive)
    }

    /// Sets the user timeout (`TCP_USER_TIMEOUT`). When written data has been unacknowledged for
    /// `timeout`, the connection ends with `TimedOut`, whether the peer is silent or keeps its
    /// window closed. Without a user timeout, the connection to a silent peer ends after 15 minutes
    /// by default.
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

    /// Returns the user timeout that the application has set, or the one that the peer has
    /// requested. A request of the peer counts only if the configuration allows it (RFC 5482).
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn user_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.inspect(Connection::user_timeout)?.map(Into::into))
    }

    /// Returns the error that ended the connection, if there is one. Unlike the method of
    /// `std::net`, this method does not clear the error: the next call returns it again.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inspect(Connection::error)?;
        Ok(error.map(|error| Error::Host(HostError::Tcp(error)).into()))
    }

    /// Returns the state of the connection.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn state(&self) -> io::Result<State> {
        self.inspect(Connection::state)
    }

    /// Returns the counters of the connection.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn statistics(&self) -> io::Result<Statistics> {
        self.inspect(|connection| connection.statistics().clone())
    }

    /// Returns a snapshot of the connection's variables, like `TCP_INFO`.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn tcp_info(&self) -> io::Result<Information> {
        self.inspect(Connection::information)
    }

    /// Returns the number of bytes received and not yet read, like `SIOCINQ`.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn readable_bytes(&self) -> io::Result<usize> {
        self.inspect(Connection::readable_bytes)
    }

    /// Returns the number of bytes written and not yet acknowledged, like `SIOCOUTQ`.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn unacknowledged_bytes(&self) -> io::Result<usize> {
        self.inspect(Connection::unacknowledged_bytes)
    }

    fn inspect<T>(&self, getter: impl FnOnce(&Connection) -> T) -> io::Result<T> {
        let handle = self.socket.handle;
        Ok(self
            .socket
            .call(|stack, _| stack.tcp(handle).as_deref().map(getter).ok_or(HostError::Closed))?)
    }

    fn configure(&self, change: impl FnOnce(&mut Connection)) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, now| stack.tcp_configure(now, handle, change))?)
    }
}

/// Returns whether a connection was opened: `Ok` if it was, or the error that prevented it. Returns
/// the error `WouldBlock` while the handshake is in progress.
pub(crate) fn outcome_of_opening(stack: &Stack, handle: TcpHandle) -> Result<(), HostError> {
    let connection = stack.tcp(handle).ok_or(HostError::Closed)?;
    match connection.state() {
        State::SynSent | State::SynReceived => Err(HostError::WouldBlock),
        // A closed connection without an error was open and has ended in an orderly way. So opening
        // it has succeeded, and the application can still read what it received.
        State::Closed => connection.error().map_or(Ok(()), |error| Err(error.into())),
        _ => Ok(()),
    }
}
