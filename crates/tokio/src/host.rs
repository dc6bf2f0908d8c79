//! A host that tasks share, the driver that carries its packets and its time, and the host of the
//! current task.

use crate::error::Error;
use crate::waiters::{Registry, SocketId};
use linerate_stack::{Counters, Stack, Turn};
use linerate_units::Instant;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

thread_local! {
    static CURRENT: RefCell<Option<Net>> = const { RefCell::new(None) };
}

/// The party that turns a host: the driver of a simulated network or of a real link.
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Requests a turn of the host.
    fn wake(&self);

    /// Returns the address of a name.
    fn resolve(&self, name: &str) -> Option<IpAddr>;
}

/// The state of a host.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stack: Stack,
    pub(crate) registry: Registry,
    /// The last turn. The driver knows when the next one is due.
    pub(crate) last: Turn,
}

impl State {
    /// Dispatches the events of the host to the waiting tasks.
    fn dispatch_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            self.registry.dispatch(&event, &self.stack);
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    driver: Box<dyn Driver>,
}

/// A host. Clones refer to the same one. Sockets belong to the host of the task that opens them
/// ([`Net::scope`]).
#[derive(Clone)]
pub struct Net {
    shared: Arc<Shared>,
}

impl Net {
    pub(crate) fn new(stack: Stack, driver: Box<dyn Driver>) -> Self {
        let state = State { stack, registry: Registry::default(), last: Turn::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), driver }) }
    }

    /// Returns the host of the current task.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns the host of the current task.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the task runs on no host.
    pub(crate) fn required() -> io::Result<Self> {
        Self::current().ok_or_else(|| Error::NoHost.into())
    }

    /// Makes this the host of `future`: the sockets that it opens are sockets of this host.
    pub fn scope<F: Future>(&self, future: F) -> Scoped<F> {
        Scoped { net: self.clone(), future: Box::pin(future) }
    }

    /// Returns the counters of the host, named as in /proc/net/snmp.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.state.lock().stack.counters()
    }

    /// Returns the open sockets of the host, as netstat lists them.
    #[must_use]
    pub fn sockets(&self) -> Vec<SocketEntry> {
        let state = self.shared.state.lock();
        state.registry.ids().filter_map(|id| SocketEntry::of(id, &state.stack)).collect()
    }

    pub(crate) fn resolve(&self, name: &str) -> Option<IpAddr> {
        self.shared.driver.resolve(name)
    }

    /// Executes a call of a socket on the locked host. Tasks are woken after it is unlocked,
    /// because a waker may own a socket.
    pub(crate) fn call<T>(&self, step: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = self.shared.driver.now();
        let (result, wants_turn, due) = {
            let mut state = self.shared.state.lock();
            let result = step(&mut state, now);
            state.dispatch_events();
            let wants_turn = state.stack.wants_turn_since(&state.last);
            (result, wants_turn, state.registry.take_due())
        };
        if wants_turn {
            self.shared.driver.wake();
        }
        due.into_iter().for_each(Waker::wake);
        result
    }

    /// Executes a turn of the driver on the locked host. Appends the tasks to wake to `due`.
    pub(crate) fn turn<T>(&self, due: &mut Vec<Waker>, turn: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.shared.state.lock();
        let result = turn(&mut state);
        state.dispatch_events();
        due.append(&mut state.registry.take_due());
        result
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("sockets", &self.sockets()).finish_non_exhaustive()
    }
}

/// A future on a host ([`Net::scope`]).
pub struct Scoped<F> {
    net: Net,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = CURRENT.replace(Some(self.net.clone()));
        // Restores the host also if the future panics.
        let _restore = Restore(before);
        self.future.as_mut().poll(context)
    }
}

impl<F> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("net", &self.net).finish_non_exhaustive()
    }
}

struct Restore(Option<Net>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// An open socket, as netstat lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketEntry {
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// Bytes that the application has not read.
    pub received: usize,
    /// Bytes that the peer has not acknowledged.
    pub unacknowledged: usize,
    /// The address on this host.
    pub local: SocketAddr,
    /// The address of the peer, if there is one.
    pub peer: Option<SocketAddr>,
    /// The state of a connection, `Listen`, or nothing for UDP.
    pub state: String,
}

impl SocketEntry {
    fn of(id: SocketId, stack: &Stack) -> Option<Self> {
        let entry = |protocol, local: SocketAddrV4, peer: Option<SocketAddrV4>, state| Self {
            protocol,
            received: 0,
            unacknowledged: 0,
            local: local.into(),
            peer: peer.map(SocketAddr::from),
            state,
        };
        Some(match id {
            SocketId::Listen(handle) => {
                entry("tcp", stack.tcp_listen_addr(handle).ok()?, None, "Listen".to_owned())
            }
            SocketId::Udp(handle) => {
                let peer = stack.udp_peer_addr(handle).ok();
                entry("udp", stack.udp_local_addr(handle).ok()?, peer, String::new())
            }
            SocketId::Tcp(handle) => {
                let connection = stack.tcp(handle)?;
                let peer = stack.tcp_peer_addr(handle).ok();
                let state = format!("{:?}", connection.state());
                Self {
                    received: connection.readable_bytes(),
                    unacknowledged: connection.unacknowledged_bytes(),
                    ..entry("tcp", stack.tcp_local_addr(handle).ok()?, peer, state)
                }
            }
        })
    }
}

impl fmt::Display for SocketEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer.map_or_else(|| "*".to_owned(), |peer| peer.to_string());
        let Self { protocol, received, unacknowledged, local, state, .. } = self;
        write!(f, "{protocol} {received:>8} {unacknowledged:>8} {local:<21} {peer:<21} {state}")
    }
}
