//! A listener that is used like `std::net::TcpListener`.

use crate::error::Error;
use crate::event_count::EventCount;
use crate::shared::{Access, Shared};
use crate::socket::{Handle, Socket};
use crate::tcp_stream::TcpStream;
use crate::timeouts::{Direction, Timeouts, WaitLimit};
use crate::waiters::SocketId;
use linerate_stack::{
    Error as HostError, ListenHandle, ListenOptions, ListenStatistics, Stack, TcpHandle,
};
use linerate_tcp::Config;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A listener for incoming connections.
///
/// ```
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # use linerate_sockets::{Net, StackConfig};
/// # let (left, _right) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// # let net = Net::builder(left, config).start()?;
/// let listener = net.bind("127.0.0.1:0")?;
/// let client = net.connect(listener.local_addr()?)?;
/// let (_stream, peer) = listener.accept()?;
/// assert_eq!(peer, client.local_addr()?);
/// assert_eq!(listener.statistics()?.acceptable, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropping the last clone closes the listener, and resets connections that have not been accepted.
#[derive(Debug)]
pub struct TcpListener {
    listeners: Arc<ShardListeners>,
}

/// The listeners that form one [`TcpListener`]: one on each shard, all at the same address. There
/// is at least one.
#[derive(Debug)]
struct ShardListeners {
    sockets: Vec<Socket<ListenHandle>>,
    /// Counts the events of new connections on all shards. Threads in [`TcpListener::accept`] wait
    /// until this count changes.
    events: Arc<EventCount>,
    timeouts: Timeouts,
    /// Number of rounds over the listeners so far. It determines the listener with which the next
    /// round starts, so that no shard is preferred.
    next: AtomicUsize,
}

impl ShardListeners {
    /// Returns the listener on the first shard. It is opened first, so its shard selects the port
    /// if the application passed port zero. It is closed last.
    fn first(&self) -> &Socket<ListenHandle> {
        &self.sockets[0]
    }

    /// Returns all listeners. The start advances by one listener with each call.
    fn round_robin(&self) -> impl Iterator<Item = &Socket<ListenHandle>> {
        let begin = self.next.fetch_add(1, Ordering::Relaxed);
        (0..self.sockets.len())
            .map(move |step| &self.sockets[begin.wrapping_add(step) % self.sockets.len()])
    }
}

impl Drop for ShardListeners {
    fn drop(&mut self) {
        while self.sockets.pop().is_some() {}
    }
}

impl TcpListener {
    pub(crate) fn sockets(&self) -> &[Socket<ListenHandle>] {
        &self.listeners.sockets
    }

    pub(crate) fn open(
        shards: &[Arc<Shared>],
        mut local: SocketAddr,
        options: &ListenOptions,
    ) -> io::Result<Self> {
        let part = |whole: usize| whole.div_ceil(shards.len());
        let options = ListenOptions {
            backlog: part(options.backlog),
            syn_backlog: part(options.syn_backlog),
            fast_open: options.fast_open.map(part),
            ..*options
        };
        let mut listeners = ShardListeners {
            sockets: Vec::new(),
            events: Arc::default(),
            timeouts: Timeouts::default(),
            next: AtomicUsize::new(0),
        };
        for shared in shards {
            let mut access = shared.access()?;
            access.check_running()?;
            let handle = access.stack.tcp_listen(local, &options).map_err(Error::from)?;
            local = access.stack.tcp_listen_addr(handle).map_err(Error::from)?;
            listeners.sockets.push(Socket::with_events(
                &listeners.events,
                shared,
                &mut access,
                handle,
            ));
        }
        Ok(Self { listeners: Arc::new(listeners) })
    }

    /// Waits for the next connection, and returns it with the peer's address.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout ([`TcpListener::set_timeout`]);
    /// `InvalidInput` after [`TcpListener::shutdown`]; `NetworkDown` when the network has stopped.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let ShardListeners { events, timeouts, .. } = &*self.listeners;
        let (limit, begun) = (timeouts.limit(Direction::Read), Instant::now());
        let deadline = match limit {
            WaitLimit::NoWait => Some(begun),
            // If the time is so long that the clock cannot represent the deadline, the call waits
            // without a deadline.
            WaitLimit::Within(time) => begun.checked_add(time),
            WaitLimit::Forever => None,
        };
        loop {
            let seen = events.count();
            for listener in self.listeners.round_robin() {
                if let Some((socket, peer)) = accept_next(listener)? {
                    // One event may announce several connections, but wakes only one thread, which
                    // is this one. So the next waiting thread is woken, to accept another
                    // connection.
                    events.notify_one();
                    return Ok((TcpStream::accepted(socket), peer));
                }
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(Error::Host(HostError::WouldBlock).into());
            }
            self.listeners.first().shared.lock().activity.waits += 1;
            events.wait(seen, deadline);
        }
    }

    /// Returns an endless iterator over incoming connections.
    #[must_use]
    pub const fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Closes the listener and its clones. Calls of threads that wait in [`TcpListener::accept`]
    /// fail. `std::net` has no such function.
    ///
    /// # Errors
    /// `NotConnected` if it was closed before.
    pub fn shutdown(&self) -> io::Result<()> {
        for listener in self.listeners.sockets.iter().rev() {
            listener.call_and_wake(|stack, now| stack.tcp_listen_close(now, listener.handle))?;
        }
        Ok(())
    }

    /// Returns the local address of the listener.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let listener = self.listeners.first();
        Ok(listener.call(|stack, _| stack.tcp_listen_addr(listener.handle))?)
    }

    /// Does the listener exclude IPv4 (`IPV6_V6ONLY`)? A listener at `[::]` accepts connections
    /// over both IP versions unless [`ListenOptions::only_v6`] is set. It reports the address of an
    /// IPv4 peer as an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`).
    ///
    /// # Errors
    /// `Unsupported` for a listener at an IPv4 address; `NotConnected` after
    /// [`TcpListener::shutdown`].
    pub fn only_v6(&self) -> io::Result<bool> {
        let listener = self.listeners.first();
        Ok(listener.call(|stack, _| stack.tcp_listen_only_v6(listener.handle))?)
    }

    /// Returns the number of connections that wait to be accepted, and the listener's counters, for
    /// example of dropped SYNs and of SYN cookies.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn statistics(&self) -> io::Result<ListenStatistics> {
        let mut sum = ListenStatistics::default();
        for listener in &self.listeners.sockets {
            sum += listener.call(|stack, _| stack.tcp_listen_statistics(listener.handle))?;
        }
        Ok(sum)
    }

    /// Clones the listener. Clones share the timeout and the non-blocking mode.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { listeners: Arc::clone(&self.listeners) })
    }

    /// Selects the non-blocking mode, in which [`TcpListener::accept`] fails with `WouldBlock`
    /// instead of waiting. Accepted connections do not inherit the mode.
    ///
    /// # Errors
    /// None. The result type is that of `std::net`, where a system call can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.listeners.timeouts.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Sets the timeout of [`TcpListener::accept`] for the listener and its clones. A call that
    /// waits longer fails with `WouldBlock`; `None` waits without limit. `std::net` has no such
    /// function; the socket option of operating systems is `SO_RCVTIMEO`.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.listeners.timeouts.set_timeout(Direction::Read, timeout)?)
    }

    /// Sets the TCP configuration of connections whose SYN arrives from now on; `None` selects the
    /// host's configuration. A configuration that is set on an accepted connection would come too
    /// late: the size of the receive buffer, for example, determines the window scale in the
    /// SYN-ACK.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn set_config(&self, config: Option<Config>) -> io::Result<()> {
        for listener in &self.listeners.sockets {
            listener.call(|stack, _| stack.tcp_listen_configure(listener.handle, config))?;
        }
        Ok(())
    }
}

/// Accepts the connection that has waited longest on the shard of `listener`. Returns `None` if no
/// connection waits there.
fn accept_next(
    listener: &Socket<ListenHandle>,
) -> Result<Option<(Socket<TcpHandle>, SocketAddr)>, Error> {
    let mut access = listener.shared.access()?;
    if let Some((handle, peer)) = access.stack.tcp_accept(listener.handle) {
        return Ok(Some((Socket::new(&listener.shared, &mut access, handle), peer)));
    }
    access.check_running()?;
    match access.stack.tcp_listen_addr(listener.handle) {
        Ok(_) => Ok(None),
        Err(_) => Err(Error::ListenerShutDown),
    }
}

/// An iterator that accepts incoming connections ([`TcpListener::incoming`]). It never ends: after
/// the network has stopped, every item is an error.
///
/// ```
/// use linerate_sockets::{Net, StackConfig};
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let listener = net.bind("127.0.0.1:80")?;
/// let clients = [net.connect("127.0.0.1:80")?, net.connect("127.0.0.1:80")?];
/// for (client, stream) in clients.iter().zip(listener.incoming()) {
///     assert_eq!(stream?.peer_addr()?, client.local_addr()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

impl Handle for ListenHandle {
    fn id(self) -> SocketId {
        SocketId::Listen(self)
    }

    /// Always true, without a check whether another connection or flow waits. At worst, a thread of
    /// a [`Forwarder`](crate::Forwarder) or a poller wakes up for nothing. Threads of a
    /// [`TcpListener`] do not depend on this result: they wait for the listeners of all shards
    /// together ([`EventCount`]).
    fn has_more(self, _: &Stack, _: Direction) -> bool {
        true
    }

    fn close(self, access: &mut Access<'_>, _: &Shared) {
        let now = access.now();
        // An error means that [`TcpListener::shutdown`] has closed the listener before, so it is
        // ignored.
        let _ = access.stack.tcp_listen_close(now, self);
    }
}
