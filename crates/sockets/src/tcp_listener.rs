//! A listener that is used like `std::net::TcpListener`.

use crate::error::Error;
use crate::gate::Gate;
use crate::patience::{Limit, Patience, Side};
use crate::shared::{Access, Shared};
use crate::socket::{Handle, Socket};
use crate::tcp_stream::TcpStream;
use crate::waiters::SocketId;
use linerate_stack::{
    Error as HostError, ListenHandle, ListenOptions, ListenStatistics, Stack, TcpHandle,
};
use linerate_tcp::Config;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A place at which connections arrive. The last clone to go ends it; connections that nobody has
/// accepted are then reset.
#[derive(Debug)]
pub struct TcpListener {
    doors: Arc<Doors>,
}

/// One listener on each shard of the host, one at least, all at the same address.
#[derive(Debug)]
struct Doors {
    sockets: Vec<Socket<ListenHandle>>,
    /// Where threads wait for all of them.
    gate: Arc<Gate>,
    patience: Patience,
    /// Which of them is looked at first: each has its turn.
    next: AtomicUsize,
}

impl Doors {
    /// The one whose shard decided which port is free. It was opened first, and closes last.
    fn first(&self) -> &Socket<ListenHandle> {
        &self.sockets[0]
    }

    fn in_turn(&self) -> impl Iterator<Item = &Socket<ListenHandle>> {
        let begin = self.next.fetch_add(1, Ordering::Relaxed);
        (0..self.sockets.len())
            .map(move |step| &self.sockets[begin.wrapping_add(step) % self.sockets.len()])
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        while self.sockets.pop().is_some() {}
    }
}

impl TcpListener {
    pub(crate) fn open(
        shards: &[Arc<Shared>],
        mut local: SocketAddrV4,
        options: &ListenOptions,
    ) -> io::Result<Self> {
        let part = |whole: usize| whole.div_ceil(shards.len());
        let options = ListenOptions {
            backlog: part(options.backlog),
            syn_backlog: part(options.syn_backlog),
            fast_open: options.fast_open.map(part),
            ..*options
        };
        let mut doors = Doors {
            sockets: Vec::new(),
            gate: Arc::default(),
            patience: Patience::default(),
            next: AtomicUsize::new(0),
        };
        for shared in shards {
            let mut access = shared.access()?;
            access.check_running()?;
            let handle = access.stack.tcp_listen(local, &options).map_err(Error::from)?;
            local = access.stack.tcp_listen_addr(handle).map_err(Error::from)?;
            doors.sockets.push(Socket::behind(&doors.gate, shared, &mut access, handle));
        }
        Ok(Self { doors: Arc::new(doors) })
    }

    /// Waits for the next connection, and returns it with the address of its peer.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode if there is none, or if none has come in the time that
    /// [`TcpListener::set_timeout`] gives; `InvalidInput` after [`TcpListener::shutdown`]; `NetworkDown` when the
    /// network has ended.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Doors { gate, patience, .. } = &*self.doors;
        let (limit, begun) = (patience.limit(Side::Read), Instant::now());
        let deadline = match limit {
            Limit::None => Some(begun),
            // A time beyond measure is no limit.
            Limit::Within(time) => begun.checked_add(time),
            Limit::Endless => None,
        };
        loop {
            let seen = gate.openings();
            for door in self.doors.in_turn() {
                if let Some((socket, peer)) = take_next(door)? {
                    // One opening stands for all connections that came since the last.
                    gate.open();
                    return Ok((TcpStream::accepted(socket), peer.into()));
                }
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(Error::Host(HostError::WouldBlock).into());
            }
            self.doors.first().shared.lock().activity.waits += 1;
            gate.wait(seen, deadline);
        }
    }

    /// The connections that arrive, without end.
    #[must_use]
    pub const fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Ends the listener although there are clones of it, or threads that wait for a connection: they
    /// get an error. `std::net` has no word for this.
    ///
    /// # Errors
    /// `NotConnected` if it was ended before.
    pub fn shutdown(&self) -> io::Result<()> {
        for door in self.doors.sockets.iter().rev() {
            door.call_and_wake(|stack, now| stack.tcp_listen_close(now, door.handle))?;
        }
        Ok(())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let door = self.doors.first();
        Ok(door.call(|stack, _| stack.tcp_listen_addr(door.handle))?.into())
    }

    /// How many connections wait, and what the listener has counted: SYNs that were dropped, cookies.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn statistics(&self) -> io::Result<ListenStatistics> {
        let mut sum = ListenStatistics::default();
        for door in &self.doors.sockets {
            sum += door.call(|stack, _| stack.tcp_listen_statistics(door.handle))?;
        }
        Ok(sum)
    }

    /// The same listener once more. The non-blocking mode is common to all clones.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { doors: Arc::clone(&self.doors) })
    }

    /// Lets [`TcpListener::accept`] fail with `WouldBlock` instead of waiting. Connections that it
    /// accepts wait as usual.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.doors.patience.set_nonblocking(nonblocking);
        Ok(())
    }

    /// How long [`TcpListener::accept`] may wait; `None` for ever. One that takes longer fails with `WouldBlock`.
    /// It is common to all clones. `std::net` has no word for this, the system has `SO_RCVTIMEO`.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.doors.patience.set_timeout(Side::Read, timeout)?)
    }

    /// Has connections whose SYN arrives from now on keep to `config`, or to the host's rules: how large their
    /// buffers are decides the first window and the window's scale, so that it is too late on the stream.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn set_config(&self, config: Option<Config>) -> io::Result<()> {
        for door in &self.doors.sockets {
            door.call(|stack, _| stack.tcp_listen_configure(door.handle, config))?;
        }
        Ok(())
    }
}

/// The connection that has waited longest at one of the doors.
fn take_next(
    door: &Socket<ListenHandle>,
) -> Result<Option<(Socket<TcpHandle>, SocketAddrV4)>, Error> {
    let mut access = door.shared.access()?;
    if let Some((handle, peer)) = access.stack.tcp_accept(door.handle) {
        return Ok(Some((Socket::new(&door.shared, &mut access, handle), peer)));
    }
    access.check_running()?;
    match access.stack.tcp_listen_addr(door.handle) {
        Ok(_) => Ok(None),
        Err(_) => Err(Error::ListenerShutDown),
    }
}

/// The connections that arrive at a listener. It never ends by itself; after the end of the network
/// each is an error.
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

    /// Nobody waits for one alone.
    fn has_more(self, _: &Stack, _: Side) -> bool {
        true
    }

    fn close(self, access: &mut Access<'_>, _: &Shared) {
        let now = access.now();
        // It may have been shut down already.
        let _ = access.stack.tcp_listen_close(now, self);
    }
}
