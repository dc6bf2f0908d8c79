//! A network, and the operations for which `std::net` has free functions: connect, bind, listen.

use crate::address::try_each;
use crate::builder::Builder;
use crate::error::{End, Error};
use crate::forwarder::Forwarder;
use crate::reactor::Activity;
use crate::shared::Shared;
use crate::tcp_listener::TcpListener;
use crate::tcp_stream::TcpStream;
use crate::timeouts::WaitLimit;
use crate::udp_socket::UdpSocket;
use linerate_link::Readiness;
use linerate_link::shard::{HandoverWatch, Handovers};
use linerate_stack::{
    AddressOptions, ConnectOptions, Counters, Destinations, DhcpLease, Error as HostError,
    FIRST_INTERFACE, FIRST_SHARD, ForwardOptions, InterfaceAddress, Link, ListenOptions, Opening,
    Route, Stack, StackConfig, UdpOptions, Verdict,
};
use linerate_wire::IpCidr;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A network: a host on a link, with the thread that drives the host. With several shards, each
/// shard has a thread. Clones of a `Net` refer to the same network.
///
/// ```
/// use linerate_link::memory::{MemoryConfig, pair};
/// use linerate_sockets::{ConnectOptions, CongestionName, Config, Net, StackConfig};
///
/// let (left, _right) = pair(MemoryConfig::default())?;
/// let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let tcp = Config { congestion: CongestionName::Bbr, ..config.tcp };
/// let net = Net::builder(left, config).start()?;
/// let _listener = net.bind("10.0.0.1:80")?;
/// // One connection with another congestion control than the others.
/// let options = ConnectOptions { config: Some(tcp), ..ConnectOptions::default() };
/// let stream = net.connect_with("10.0.0.1:80", &options)?;
/// assert_eq!(stream.peer_addr()?.port(), 80);
/// net.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The network exists until [`Net::shutdown`], or until the last clone is dropped. Then its threads
/// end, and its connections are reset. Data that had arrived by then can still be read. All other
/// reads and writes fail with [`ErrorKind::NetworkDown`](io::ErrorKind::NetworkDown), including
/// calls that are waiting. A network also ends while sockets exist, if all clones of its `Net` are
/// dropped.
#[derive(Clone)]
pub struct Net {
    running: Arc<Running>,
    /// The number of the interface that [`Net::on`] has selected. Methods that concern a single
    /// interface, such as those that change its addresses, apply to it.
    interface: u32,
}

impl Net {
    /// Creates a builder for a network: a host with this configuration on `link`.
    pub fn builder<L: Link + Readiness + Send + 'static>(
        link: L,
        config: StackConfig,
    ) -> Builder<L> {
        Builder::new(link, config)
    }

    /// Creates the network of these shards, without their threads. [`Net::add_thread`] adds each
    /// thread when it has been started.
    pub(crate) fn new(shards: Arc<[Arc<Shared>]>, watches: Vec<HandoverWatch>) -> Self {
        let (threads, next) = (Mutex::default(), AtomicUsize::new(0));
        let running = Arc::new(Running { shards, watches, threads, next });
        Self { running, interface: FIRST_INTERFACE }
    }

    /// Adds the thread of a shard. The thread is joined when the network stops.
    pub(crate) fn add_thread(&self, thread: JoinHandle<()>) {
        self.running.threads.lock().push(thread);
    }

    /// Opens a connection. Tries `addresses` one after the other until a peer accepts. If
    /// `addresses` is a host name, the operating system resolves it. Its DNS queries do not pass
    /// through this network.
    ///
    /// # Errors
    /// `ConnectionRefused` if no listener has this address; `TimedOut` if no answer arrives within
    /// the time that the configuration allows; `NetworkUnreachable` without a route;
    /// `HostUnreachable` if an ICMP message reports that the peer is unreachable. If all addresses
    /// fail, the error is that of the last address.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<TcpStream> {
        self.connect_with(addresses, &ConnectOptions::default())
    }

    /// Opens a connection with options, such as a local address or a TCP configuration.
    ///
    /// # Errors
    /// Those of [`Net::connect`]; `AddrInUse` if the local address in `options` is in use;
    /// `AddrNotAvailable` if the host has no such address.
    pub fn connect_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> io::Result<TcpStream> {
        Ok(self.connect_with_data(addresses, options, &[])?.0)
    }

    /// Opens a connection whose send buffer contains `first` from the beginning. Returns the
    /// connection, and how many bytes of `first` fitted into the buffer.
    ///
    /// With [`ConnectOptions::fast_open`], the SYN carries these bytes if the host has a cookie
    /// that this server sent earlier. This saves a round trip (RFC 7413). If the first of
    /// `addresses` does not answer, the connection to the next one begins with the same bytes.
    ///
    /// # Errors
    /// Those of [`Net::connect_with`].
    pub fn connect_with_data(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ConnectOptions,
        first: &[u8],
    ) -> io::Result<(TcpStream, usize)> {
        try_each(addresses, |peer| Ok(self.open(peer, options, first, WaitLimit::Forever)?))
    }

    /// Opens a connection. Fails if the connection is not open after `timeout`.
    ///
    /// # Errors
    /// Those of [`Net::connect`]; `TimedOut` after `timeout`; `InvalidInput` for a timeout of zero.
    pub fn connect_timeout(
        &self,
        address: &SocketAddr,
        timeout: Duration,
    ) -> io::Result<TcpStream> {
        if timeout.is_zero() {
            return Err(Error::ZeroTimeout.into());
        }
        let options = ConnectOptions::default();
        Ok(self.open(*address, &options, &[], WaitLimit::Within(timeout))?.0)
    }

    /// Opens a connection on the next shard in rotation, or on the shard that owns the local port
    /// given in `options`.
    fn open(
        &self,
        peer: SocketAddr,
        options: &ConnectOptions,
        first: &[u8],
        limit: WaitLimit,
    ) -> Result<(TcpStream, usize), Error> {
        let shards = &self.running.shards;
        let next = self.running.next.fetch_add(1, Ordering::Relaxed) % shards.len();
        match TcpStream::open(&shards[next], peer, options, first, limit) {
            Err(Error::Host(HostError::OtherShard { shard, .. })) => {
                TcpStream::open(&shards[usize::from(shard)], peer, options, first, limit)
            }
            opened => opened,
        }
    }

    /// Listens for connections at the first of `addresses` that the host can use. Port zero selects
    /// a free port.
    ///
    /// # Errors
    /// `AddrInUse` if another socket has the port; `AddrNotAvailable` if the host has no such
    /// address.
    pub fn bind(&self, addresses: impl ToSocketAddrs) -> io::Result<TcpListener> {
        self.bind_with(addresses, &ListenOptions::default())
    }

    /// Listens with options, such as the lengths of queues or a TCP configuration.
    ///
    /// # Errors
    /// Those of [`Net::bind`].
    pub fn bind_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ListenOptions,
    ) -> io::Result<TcpListener> {
        try_each(addresses, |local| TcpListener::open(&self.running.shards, local, options))
    }

    /// Opens a UDP socket at the first of `addresses` that the host can use. Port zero selects a
    /// free port.
    ///
    /// # Errors
    /// Those of [`Net::bind`].
    pub fn bind_udp(&self, addresses: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        self.bind_udp_with(addresses, &UdpOptions::default())
    }

    /// Opens a UDP socket with options, such as the lengths of its queues.
    ///
    /// # Errors
    /// Those of [`Net::bind`].
    pub fn bind_udp_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &UdpOptions,
    ) -> io::Result<UdpSocket> {
        try_each(addresses, |local| UdpSocket::open(self.first(), local, options))
    }

    /// Creates a forwarder, which accepts flows to `destinations`. These need not be addresses of
    /// this host. A listener or UDP socket that is bound to a destination gets its packets, and the
    /// forwarder does not.
    ///
    /// The host calls `hook` with the first packet of each flow. `hook` decides whether the flow is
    /// accepted, rejected, deferred or dropped. The host is locked while `hook` runs, so `hook`
    /// must not use sockets of this network.
    ///
    /// # Errors
    /// `AddrInUse` if the network already has a forwarder; `Unsupported` if it has several shards.
    pub fn forward(
        &self,
        destinations: Destinations,
        options: &ForwardOptions,
        hook: impl FnMut(&Opening) -> Verdict + Send + 'static,
    ) -> io::Result<Forwarder> {
        if self.shards() > 1 {
            return Err(Error::Shards.into());
        }
        Ok(Forwarder::open(self.first(), destinations, options, hook)?)
    }

    /// Returns a handle to this network for the interface with the number `interface`
    /// ([`Builder::interface`]). Without this method, a handle concerns the first interface. Only
    /// these methods depend on the interface: [`Net::addresses`], [`Net::add_address`],
    /// [`Net::remove_address`], [`Net::dhcp_lease`] and [`Net::dhcp_release`].
    ///
    /// ```
    /// # use linerate_link::memory::{MemoryConfig, pair};
    /// # use linerate_sockets::{InterfaceConfig, Net, StackConfig};
    /// # let (left, _peer) = pair(MemoryConfig::default())?;
    /// # let (right, _other_peer) = pair(MemoryConfig::default())?;
    /// let first = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.1.1/24".parse()?);
    /// let second = InterfaceConfig::new("02:00:00:00:00:02".parse()?, "10.0.2.1/24".parse()?);
    /// let net = Net::builder(left, first).interface(second, right).start()?;
    /// assert_eq!(net.interfaces()?, [1, 2]);
    /// assert_eq!(net.on(2)?.addresses()?[0].cidr, "10.0.2.1/24".parse()?);
    /// // Sockets belong to all interfaces.
    /// let _listener = net.bind("10.0.2.1:80")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `AddrNotAvailable` if the host has no such interface; or if the network has panicked.
    pub fn on(&self, interface: u32) -> io::Result<Self> {
        let net = Self { interface, ..self.clone() };
        net.on_interface(self.first(), |_, _| ())?;
        Ok(net)
    }

    /// Returns the numbers of the interfaces. The number of an interface is also the zone of its
    /// link-local addresses.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn interfaces(&self) -> io::Result<Vec<u32>> {
        Ok(self.first().access()?.stack.interfaces().collect())
    }

    /// Returns the addresses of the first interface, or of the interface that [`Net::on`] has
    /// selected. The result includes the link-local address, and addresses that are not usable,
    /// such as duplicates.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        self.on_interface(self.first(), |stack, _| stack.addresses().to_vec())
    }

    /// Waits until duplicate address detection has ended for all addresses of the host. If an
    /// interface forms addresses from router advertisements, also waits until it has such an
    /// address. An address that another host uses does not cause an error; [`Net::addresses`]
    /// reports it as a duplicate.
    ///
    /// # Errors
    /// `TimedOut` after `timeout`; `NetworkDown` if the network has stopped.
    pub fn wait_for_addresses(&self, timeout: Duration) -> io::Result<()> {
        Ok(self.first().wait_for_addresses(timeout)?)
    }

    /// Sorts destinations, such as the addresses of a host name, by preference (RFC 6724 §6). A
    /// program should try them in the resulting order.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn select_destinations(&self, destinations: &mut [IpAddr]) -> io::Result<()> {
        self.first().access()?.stack.select_destinations(destinations);
        Ok(())
    }

    /// Adds an address to the interface, or sets new lifetimes if the interface already has it.
    /// Also adds a direct route to the network of the address.
    ///
    /// ```
    /// # use linerate_link::memory::{MemoryConfig, pair};
    /// # use linerate_sockets::{AddressOptions, Net, StackConfig};
    /// # let (left, _right) = pair(MemoryConfig::default())?;
    /// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
    /// # let net = Net::builder(left, config).start()?;
    /// net.add_address("10.0.0.2/24".parse()?, &AddressOptions::default())?;
    /// let _listener = net.bind("10.0.0.2:80")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a multicast, loopback or unspecified address; `QuotaExceeded` at the
    /// limit of addresses; or if the network has panicked.
    pub fn add_address(&self, address: IpCidr, options: &AddressOptions) -> io::Result<()> {
        for shard in &*self.running.shards {
            let add = |stack: &mut Stack, now| stack.add_address(now, address, options);
            self.on_interface(shard, add)?.map_err(Error::from)?;
        }
        Ok(())
    }

    /// Removes an address from the interface, and returns it. Connections from the address end at
    /// once with `ConnectionAborted`, without a reset to the peer. Listeners and UDP sockets stay
    /// bound to the address, but receive nothing until it is added again.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn remove_address(&self, address: IpAddr) -> io::Result<Option<InterfaceAddress>> {
        let mut removed = None;
        for shard in &*self.running.shards {
            let remove = |stack: &mut Stack, now| stack.remove_address(now, address);
            removed = self.on_interface(shard, remove)?.or(removed);
        }
        Ok(removed)
    }

    /// Returns the current DHCP lease ([`StackConfig::dhcp`]). Returns `None` if the interface has
    /// no lease.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn dhcp_lease(&self) -> io::Result<Option<DhcpLease>> {
        self.on_interface(self.first(), |stack, _| stack.dhcp_lease().cloned())
    }

    /// Releases the DHCP lease: tells the server that the address is free, stops the DHCP client,
    /// and removes the address. The connections from the address end.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn dhcp_release(&self) -> io::Result<()> {
        for shard in &*self.running.shards {
            self.on_interface(shard, Stack::dhcp_release)?;
        }
        Ok(())
    }

    /// Adds a route. It replaces an earlier added route with the same destinations, metric and
    /// interface. Existing connections send their packets along the new route, but keep the window
    /// clamp and the MTU of the route that it replaces.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn add_route(&self, route: Route) -> io::Result<()> {
        for shard in &*self.running.shards {
            shard.access()?.stack.add_route(route);
        }
        Ok(())
    }

    /// Removes the route whose prefix is exactly `destination`, and returns it. A route that the
    /// host has learnt can also be removed.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn remove_route(&self, destination: IpCidr) -> io::Result<Option<Route>> {
        let mut removed = None;
        for shard in &*self.running.shards {
            removed = shard.access()?.stack.remove_route(destination).or(removed);
        }
        Ok(removed)
    }

    /// Returns the counters of the host, summed over its shards. The names are those in
    /// /proc/net/snmp.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn counters(&self) -> io::Result<Counters> {
        let mut sum = Counters::default();
        for shard in &*self.running.shards {
            sum += shard.access()?.stack.counters();
        }
        Ok(sum)
    }

    /// Returns the number of shards, each of which has a thread.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.running.shards.len()
    }

    /// Returns for each shard how many frames it has handed over to other shards, and taken over
    /// from them. Empty if there is only one shard.
    #[must_use]
    pub fn handovers(&self) -> Vec<Handovers> {
        self.running.watches.iter().map(HandoverWatch::look).collect()
    }

    /// Returns the activity counters, each summed over all threads of the network.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let of = |shard: &Arc<Shared>| shard.lock().activity;
        self.running.shards.iter().map(of).fold(Activity::default(), Activity::plus)
    }

    /// Returns the reason why the network has stopped, if it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.running.shards.iter().find_map(|shard| shard.lock().end)
    }

    /// Stops the network at once: resets its connections and joins its threads. Data that closed
    /// sockets have not sent yet is lost. [`Net::finish`] sends this data before it stops the
    /// network.
    pub fn shutdown(&self) {
        self.running.shutdown();
    }

    /// Stops the network after the data of closed sockets has been sent: waits until their
    /// connections have ended or are in TIME-WAIT. Connections whose sockets are still open are
    /// reset.
    ///
    /// # Errors
    /// `TimedOut` if the connections of closed sockets do not end within `timeout`. The network is
    /// then stopped nevertheless.
    pub fn finish(&self, timeout: Duration) -> io::Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        let shards = self.running.shards.iter();
        let is_idle: Result<Vec<_>, _> =
            shards.map(|shard| shard.wait_for_orphans(deadline)).collect();
        self.shutdown();
        if is_idle?.contains(&false) { Err(Error::Unfinished(timeout).into()) } else { Ok(()) }
    }

    /// Executes `call` on one shard, for the interface that [`Net::on`] has selected.
    fn on_interface<T>(
        &self,
        shard: &Shared,
        call: impl FnOnce(&mut Stack, linerate_units::Instant) -> T,
    ) -> io::Result<T> {
        let mut access = shard.access()?;
        let now = access.now();
        let called = access.stack.on(self.interface, |stack| call(stack, now));
        Ok(called.map_err(Error::from)?)
    }

    /// Returns the first shard. UDP sockets and the forwarder exist only there. All shards have the
    /// same interfaces and addresses, so queries about them need only this shard.
    fn first(&self) -> &Arc<Shared> {
        &self.running.shards[usize::from(FIRST_SHARD)]
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("activity", &self.activity()).field("end", &self.end()).finish()
    }
}

/// The shards and threads of a network, which all clones of a [`Net`] share. Dropping it stops the
/// network.
struct Running {
    /// The shards of the host. A host that is not divided into shards is the only element.
    shards: Arc<[Arc<Shared>]>,
    watches: Vec<HandoverWatch>,
    /// The threads of all shards. `shutdown` holds the lock while it joins them. So a concurrent
    /// second call of `shutdown` also returns only after the threads have ended.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Number of calls that opened a connection. It determines the shard of the next connection.
    next: AtomicUsize,
}

impl Running {
    fn shutdown(&self) {
        let mut threads = self.threads.lock();
        self.shards.iter().for_each(|shard| shard.request_stop(End::ShutDown));
        for thread in threads.drain(..) {
            // Joining returns an error if the thread has panicked. This error is ignored, because
            // calls on sockets report that the network has ended by a panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown();
    }
}
