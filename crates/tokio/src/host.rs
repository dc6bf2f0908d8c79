//! A host that several tasks share, the driver that supplies its packets and its clock, and the
//! host of the current task.

use crate::builder::Builder;
use crate::error::{End, Error};
use crate::waiters::{Registry, SocketId};
use linerate_link::Readiness;
use linerate_stack::{
    AddressOptions, Counters, DhcpLease, Error as HostError, FIRST_INTERFACE, InterfaceAddress,
    Link, Stack, StackConfig, Turn,
};
use linerate_tcp::Config;
use linerate_units::Instant;
use linerate_wire::IpCidr;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

thread_local! {
    static CURRENT: RefCell<Option<Net>> = const { RefCell::new(None) };
}

/// The functions that a host and its sockets call on the host's driver. A driver runs the turns of
/// a host, in a simulated network or on a real link.
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Requests a turn of the host.
    fn wake(&self);

    /// Returns the addresses of a name; none for an unknown name.
    fn resolve(&self, name: &str) -> Vec<IpAddr>;
}

/// The state of a host, behind the lock that its sockets and its driver share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stack: Stack,
    pub(crate) registry: Registry,
    /// The default configuration of connections.
    pub(crate) tcp_config: Config,
    /// The result of the most recent turn. It includes the time at which the driver will run the
    /// next turn.
    pub(crate) last: Turn,
    /// The reason why the host has stopped, if it has.
    pub(crate) end: Option<End>,
}

impl State {
    pub(crate) fn new(stack: Stack, tcp_config: &Config) -> Self {
        let tcp_config = *tcp_config;
        Self { stack, registry: Registry::default(), tcp_config, last: Turn::default(), end: None }
    }

    /// Returns an error if the driver has panicked, because the host may then be inconsistent.
    /// After a stop for any other reason, received data can still be read.
    pub(crate) fn check_usable(&self) -> Result<(), Error> {
        match self.end {
            Some(End::Panicked) => Err(Error::Ended(End::Panicked)),
            _ => Ok(()),
        }
    }

    /// Returns an error if the host has stopped.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        self.end.map_or(Ok(()), |end| Err(Error::Ended(end)))
    }

    /// Aborts all sockets for the reason `end`, and schedules the wake-up of all waiting tasks.
    /// Later turns send the resets. A second call has no effect.
    pub(crate) fn stop(&mut self, end: End, now: Instant) {
        if self.end.is_some() {
            return;
        }
        let sockets: Vec<_> = self.registry.ids().collect();
        for socket in sockets {
            // A connection keeps its received data after the abort, so the application can still
            // read it. The call fails only for a socket that was closed before, so the error is
            // ignored.
            let _ = match socket {
                SocketId::Tcp(handle) => {
                    self.stack.tcp_configure(now, handle, |connection| connection.abort(now))
                }
                SocketId::Listen(handle) => self.stack.tcp_listen_close(now, handle),
                SocketId::Udp(_) => Ok(()),
            };
        }
        self.stack.tcp_abort_orphans(now);
        self.mark_ended(end);
    }

    /// Marks the host as stopped. Does not call the stack, which a panic may have left
    /// inconsistent.
    pub(crate) fn mark_ended(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.registry.wake_all();
    }

    /// Has every closed socket sent its data, and is no packet left in a queue of the host?
    pub(crate) fn has_no_orphans(&self) -> bool {
        self.stack.orphans() == 0 && !self.stack.holds_packets()
    }

    /// Dispatches the events of the host to the waiting tasks.
    fn dispatch_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            self.registry.dispatch(&event, &self.stack);
        }
        if self.registry.has_forwarder() {
            self.registry.dispatch_flows(&mut self.stack);
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Arc<Mutex<State>>,
    driver: Box<dyn Driver>,
}

/// Executes `turn` on the locked host, on behalf of the driver. Appends the tasks to wake to `due`.
pub(crate) fn turn<T>(
    state: &Mutex<State>,
    due: &mut Vec<Waker>,
    turn: impl FnOnce(&mut State) -> T,
) -> T {
    let mut state = state.lock();
    let result = turn(&mut state);
    state.dispatch_events();
    state.registry.wake_turned();
    state.registry.move_due(due);
    result
}

/// A handle to a host. Clones refer to the same host. A socket belongs to the host of the task that
/// opens the socket ([`Net::scope`]).
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::{Net, sim};
///
/// let network = sim::Network::builder().build();
/// let (server, client) = (network.host("server"), network.host("client"));
/// let of_server: Net = server.net().clone();
/// client.run(async move {
///     // Sockets belong to the host of the task that opens them: here to the server.
///     let listener = of_server.scope(TcpListener::bind("0.0.0.0:80")).await.unwrap();
///     let stream = TcpStream::connect("server:80").await.unwrap();
///     assert_eq!(listener.accept().await.unwrap().1, stream.local_addr().unwrap());
///     assert_eq!(of_server.sockets().len(), 1, "the accepted connection was dropped");
/// });
/// ```
#[derive(Clone)]
pub struct Net {
    shared: Arc<Shared>,
    /// The number of the interface that [`Net::on`] has selected. Methods that concern a single
    /// interface, such as those that change its addresses, apply to it.
    interface: u32,
}

impl Net {
    /// Creates a builder for a host with this configuration on `link`, driven by the current
    /// runtime.
    pub fn builder<L: Link + Readiness + Send + 'static>(
        link: L,
        config: StackConfig,
    ) -> Builder<L> {
        Builder::new(link, config)
    }

    pub(crate) fn new(state: Arc<Mutex<State>>, driver: Box<dyn Driver>) -> Self {
        Self { shared: Arc::new(Shared { state, driver }), interface: FIRST_INTERFACE }
    }

    /// Returns the host of the current task; `None` if the task belongs to no host.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns the host of the current task.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the task belongs to no host.
    pub(crate) fn required() -> io::Result<Self> {
        Self::current().ok_or_else(|| Error::NoHost.into())
    }

    /// Makes this host the host of `future`: sockets that `future` opens belong to this host.
    pub fn scope<F: Future>(&self, future: F) -> Scoped<F> {
        Scoped { net: self.clone(), future: Box::pin(future) }
    }

    /// Makes this host the host of the current thread, for tasks without [`Net::scope`], until the
    /// guard is dropped. Call it in `on_thread_start` of a runtime's builder, so that all tasks of
    /// the runtime have this host.
    #[must_use = "dropping the guard ends it"]
    pub fn enter(&self) -> Entered {
        Entered { _restore: Restore(CURRENT.replace(Some(self.clone()))), _thread: PhantomData }
    }

    /// Stops the host at once: resets its connections, and ends all waiting calls. From then on,
    /// calls on its sockets fail with `NetworkDown`, except for reads of data received before.
    pub fn shutdown(&self) {
        self.call(|state, now| state.stop(End::ShutDown, now));
        self.shared.driver.wake();
    }

    /// Waits until closed sockets have nothing more to send, and then stops the host. Open sockets
    /// are reset.
    ///
    /// # Errors
    /// `TimedOut` if closed sockets still have data to send after `timeout`; the host is stopped in
    /// any case.
    ///
    /// # Panics
    /// Outside a runtime with timers.
    pub async fn finish(&self, timeout: Duration) -> io::Result<()> {
        let idle = poll_fn(|context| {
            let mut state = self.shared.state.lock();
            if state.end.is_some() || state.has_no_orphans() {
                Poll::Ready(())
            } else {
                state.registry.wait_for_turn(context.waker());
                Poll::Pending
            }
        });
        let finished = tokio::time::timeout(timeout, idle).await;
        self.shutdown();
        finished.map_err(|_| Error::Unfinished(timeout).into())
    }

    /// Returns the reason why the host has stopped, if it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.shared.state.lock().end
    }

    /// Returns a handle to this host for the interface with the number `interface`
    /// ([`Builder::interface`]). Without this method, a handle concerns the first interface. Only
    /// these methods depend on the interface: [`Net::addresses`], [`Net::add_address`],
    /// [`Net::remove_address`], [`Net::dhcp_lease`] and [`Net::dhcp_release`].
    ///
    /// ```
    /// # use linerate_link::memory::{MemoryConfig, pair};
    /// # use linerate_tokio::{InterfaceConfig, Net, StackConfig};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (left, _peer) = pair(MemoryConfig::default())?;
    /// # let (right, _other_peer) = pair(MemoryConfig::default())?;
    /// let first = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.1.1/24".parse()?);
    /// let second = InterfaceConfig::new("02:00:00:00:00:02".parse()?, "10.0.2.1/24".parse()?);
    /// let net = Net::builder(left, first).interface(second, right).start()?;
    /// assert_eq!(net.interfaces(), [1, 2]);
    /// assert_eq!(net.on(2)?.addresses()[0].cidr, "10.0.2.1/24".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `AddrNotAvailable` if the host has no such interface.
    pub fn on(&self, interface: u32) -> io::Result<Self> {
        let net = Self { interface, ..self.clone() };
        net.on_interface(|_, _| ()).map_err(Error::from)?;
        Ok(net)
    }

    /// Returns the numbers of the interfaces, which are the zones of their link-local addresses.
    #[must_use]
    pub fn interfaces(&self) -> Vec<u32> {
        self.shared.state.lock().stack.interfaces().collect()
    }

    /// Returns the addresses of the first interface, or of the interface that [`Net::on`] has
    /// selected. Includes addresses in every state, and the link-local address.
    #[must_use]
    pub fn addresses(&self) -> Vec<InterfaceAddress> {
        self.on_interface(|stack, _| stack.addresses().to_vec()).unwrap_or_default()
    }

    /// Adds an address, or renews its lifetimes if the interface has it already. The network of the
    /// address gets a direct route.
    ///
    /// # Errors
    /// `InvalidInput` for a multicast, loopback or unspecified address; `QuotaExceeded` if the
    /// interface already has the maximum number of addresses.
    pub fn add_address(&self, address: IpCidr, options: &AddressOptions) -> io::Result<()> {
        let added = self.on_interface(|stack, now| stack.add_address(now, address, options));
        added.flatten().map_err(|error| Error::from(error).into())
    }

    /// Removes and returns an address. The connections of the address end at once with
    /// `ConnectionAborted`, without a reset to the peer. Listeners and UDP sockets stay bound to
    /// the address, and receive nothing until it is added again.
    pub fn remove_address(&self, address: IpAddr) -> Option<InterfaceAddress> {
        self.on_interface(|stack, now| stack.remove_address(now, address)).ok()?
    }

    /// Returns the current DHCP lease ([`StackConfig::dhcp`]), or `None` if there is none.
    ///
    /// [`StackConfig::dhcp`]: crate::StackConfig::dhcp
    #[must_use]
    pub fn dhcp_lease(&self) -> Option<DhcpLease> {
        self.on_interface(|stack, _| stack.dhcp_lease().cloned()).ok()?
    }

    /// Releases the DHCP lease: the server gets the address back, and connections of the address
    /// end.
    pub fn dhcp_release(&self) {
        // An error means that the interface no longer exists, so it has no lease to release.
        let _ = self.on_interface(Stack::dhcp_release);
    }

    /// Executes `call` for the interface of this handle ([`Net::on`]).
    fn on_interface<T>(&self, call: impl FnOnce(&mut Stack, Instant) -> T) -> Result<T, HostError> {
        let interface = self.interface;
        self.call(|state, now| state.stack.on(interface, |stack| call(stack, now)))
    }

    /// Returns the counters of the host, named as in /proc/net/snmp.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.state.lock().stack.counters()
    }

    /// Returns the open sockets of the host, with the columns of `netstat`.
    #[must_use]
    pub fn sockets(&self) -> Vec<SocketEntry> {
        let state = self.shared.state.lock();
        state.registry.ids().filter_map(|id| SocketEntry::of(id, &state.stack)).collect()
    }

    /// Returns the addresses of a name, in the order in which a program should try them (RFC 6724
    /// §6). The result is empty for an unknown name.
    pub(crate) fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let mut addresses = self.shared.driver.resolve(name);
        self.shared.state.lock().stack.select_destinations(&mut addresses);
        addresses
    }

    /// Executes `step` on the locked host, on behalf of a socket or of the application. Tasks are
    /// woken after the host is unlocked: a waker may own a socket, and dropping the socket locks
    /// the host.
    pub(crate) fn call<T>(&self, step: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut due = Vec::new();
        let (result, wants_turn) = {
            let mut state = self.shared.state.lock();
            // The time is read only after the host is locked. A caller that locks the host later
            // therefore never has an earlier time.
            let now = self.shared.driver.now();
            let result = step(&mut state, now);
            state.dispatch_events();
            let wants_turn = state.stack.wants_turn_since(&state.last);
            state.registry.move_due(&mut due);
            (result, wants_turn)
        };
        if wants_turn {
            self.shared.driver.wake();
        }
        due.into_iter().for_each(Waker::wake);
        result
    }

    /// Executes `step` as a turn of the driver ([`turn`]).
    pub(crate) fn turn<T>(&self, due: &mut Vec<Waker>, step: impl FnOnce(&mut State) -> T) -> T {
        turn(&self.shared.state, due, step)
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("sockets", &self.sockets()).finish_non_exhaustive()
    }
}

/// A future whose sockets belong to a given host ([`Net::scope`]).
///
/// ```
/// use linerate_tokio::net::UdpSocket;
/// use linerate_tokio::sim;
///
/// let network = sim::Network::builder().build();
/// let (one, other) = (network.host("one"), network.host("other"));
/// let net = other.net().clone();
/// let expected = other.ipv4().unwrap();
/// one.run(async move {
///     // A scoped future can be spawned as a task, and stays on its host.
///     let scoped = net.scope(async move { UdpSocket::bind((expected, 9)).await });
///     let socket = tokio::task::spawn_local(scoped).await.unwrap().unwrap();
///     assert_eq!(socket.local_addr().unwrap().ip(), expected);
/// });
/// ```
pub struct Scoped<F> {
    net: Net,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = CURRENT.replace(Some(self.net.clone()));
        // When `_restore` is dropped, the thread's previous host becomes current again. The drop
        // also takes place if the future panics.
        let _restore = Restore(before);
        self.future.as_mut().poll(context)
    }
}

impl<F> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("net", &self.net).finish_non_exhaustive()
    }
}

/// A guard that sets the host of a thread until it is dropped ([`Net::enter`]).
///
/// ```
/// use linerate_tokio::{Net, sim};
///
/// let network = sim::Network::builder().build();
/// let host = network.host("host");
/// assert!(Net::current().is_none());
/// let entered = host.net().enter();
/// assert!(Net::current().is_some());
/// drop(entered);
/// assert!(Net::current().is_none());
/// ```
#[derive(Debug)]
pub struct Entered {
    _restore: Restore,
    /// Makes the type neither `Send` nor `Sync`: the guard must be dropped by the thread whose host
    /// it sets.
    _thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Restore(Option<Net>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// An open socket, with the columns of `netstat`.
///
/// ```
/// use linerate_tokio::net::TcpListener;
/// use linerate_tokio::{Net, sim};
///
/// sim::lo(async {
///     let _listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
///     let sockets = Net::current().unwrap().sockets();
///     assert_eq!((sockets[0].protocol, sockets[0].state.as_str()), ("tcp", "Listen"));
///     assert!(sockets[0].to_string().contains("127.0.0.1:80"));
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketEntry {
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// Number of received bytes that the application has not read.
    pub received: usize,
    /// Number of sent bytes that the peer has not acknowledged.
    pub unacknowledged: usize,
    /// The address on this host.
    pub local: SocketAddr,
    /// The address of the peer, if there is one.
    pub peer: Option<SocketAddr>,
    /// The state of a connection, `Listen` for a listener, or empty for UDP.
    pub state: String,
}

impl SocketEntry {
    fn of(id: SocketId, stack: &Stack) -> Option<Self> {
        let entry = |protocol, local: SocketAddr, peer: Option<SocketAddr>, state| Self {
            protocol,
            received: 0,
            unacknowledged: 0,
            local,
            peer,
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
