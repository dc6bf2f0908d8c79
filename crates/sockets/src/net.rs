//! A network of one's own, and what `std::net` does with free functions: connect, bind, listen.

use crate::address::{ipv4, try_each};
use crate::builder::Builder;
use crate::error::{End, Error};
use crate::patience::Limit;
use crate::reactor::Activity;
use crate::shared::Shared;
use crate::tcp_listener::TcpListener;
use crate::tcp_stream::TcpStream;
use crate::udp_socket::UdpSocket;
use linerate_link::Readiness;
use linerate_link::shard::{HandoverWatch, Handovers};
use linerate_stack::{
    ConnectOptions, Counters, Error as HostError, FIRST_SHARD, Link, ListenOptions, StackConfig,
    UdpOptions,
};
use linerate_wire::Ipv4Cidr;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One host on one link, and the thread that turns it, or a thread for each shard. Clones are the same network.
///
/// The network lives as long as a clone of this does, or until [`Net::shutdown`]. Then its thread ends,
/// its connections are reset, and every call on one of its sockets, also one that is waiting, fails with
/// an error that says so. Sockets alone do not keep it alive.
#[derive(Clone)]
pub struct Net {
    running: Arc<Running>,
}

impl Net {
    /// Begins a network: a host of this configuration, on `link`.
    pub fn builder<L: Link + Readiness + Send + 'static>(
        link: L,
        config: StackConfig,
    ) -> Builder<L> {
        Builder::new(link, config)
    }

    /// The network of these shards, whose threads are still to be started, by [`Net::keep`].
    pub(crate) fn new(shards: Arc<[Arc<Shared>]>, watches: Vec<HandoverWatch>) -> Self {
        let (threads, next) = (Mutex::default(), AtomicUsize::new(0));
        Self { running: Arc::new(Running { shards, watches, threads, next }) }
    }

    /// Keeps a thread that turns one of the shards, to wait for its end.
    pub(crate) fn keep(&self, thread: JoinHandle<()>) {
        self.running.threads.lock().push(thread);
    }

    /// Opens a connection, to the first of `addresses` that answers. A name is looked up by the
    /// operating system, over its network and not over this one.
    ///
    /// # Errors
    /// `ConnectionRefused` if nothing listens there, `TimedOut` if nobody answers within the time that
    /// the configuration allows, `NetworkUnreachable` without a route, `HostUnreachable` if the network
    /// says so, `Unsupported` for IPv6.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> io::Result<TcpStream> {
        self.connect_with(addresses, &ConnectOptions::default())
    }

    /// Opens a connection from an address, or with TCP rules, of the application's choice.
    ///
    /// # Errors
    /// As for [`Net::connect`]; `AddrInUse` or `AddrNotAvailable` for the chosen address.
    pub fn connect_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> io::Result<TcpStream> {
        Ok(self.connect_with_data(addresses, options, &[])?.0)
    }

    /// Opens a connection with its first bytes written already, and says how many of them there was room
    /// for. With [`ConnectOptions::fast_open`] they leave with the SYN if the server has been met before, and
    /// its answer is back one round trip earlier (RFC 7413). If the first of `addresses` does not answer, the
    /// next gets the same bytes.
    ///
    /// # Errors
    /// As for [`Net::connect_with`].
    pub fn connect_with_data(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ConnectOptions,
        first: &[u8],
    ) -> io::Result<(TcpStream, usize)> {
        try_each(addresses, |peer| Ok(self.open(peer, options, first, Limit::Endless)?))
    }

    /// Opens a connection, and gives up after `timeout`.
    ///
    /// # Errors
    /// As for [`Net::connect`]; `TimedOut` after `timeout`; `InvalidInput` for a timeout of zero.
    pub fn connect_timeout(
        &self,
        address: &SocketAddr,
        timeout: Duration,
    ) -> io::Result<TcpStream> {
        if timeout.is_zero() {
            return Err(Error::ZeroTimeout.into());
        }
        let peer = ipv4(*address)?;
        let options = ConnectOptions::default();
        Ok(self.open(peer, &options, &[], Limit::Within(timeout))?.0)
    }

    /// Opens a connection on the next shard, or on the one that its port belongs to.
    fn open(
        &self,
        peer: SocketAddrV4,
        options: &ConnectOptions,
        first: &[u8],
        limit: Limit,
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

    /// Listens for connections at the first of `addresses` that can be had. Port zero asks for a port
    /// that is free.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable` if the host has no such address, `Unsupported` for IPv6.
    pub fn bind(&self, addresses: impl ToSocketAddrs) -> io::Result<TcpListener> {
        self.bind_with(addresses, &ListenOptions::default())
    }

    /// Listens with queues, or TCP rules, of the application's choice.
    ///
    /// # Errors
    /// As for [`Net::bind`].
    pub fn bind_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &ListenOptions,
    ) -> io::Result<TcpListener> {
        try_each(addresses, |local| TcpListener::open(&self.running.shards, local, options))
    }

    /// Makes a UDP socket at the first of `addresses` that can be had. Port zero asks for a port that is
    /// free.
    ///
    /// # Errors
    /// As for [`Net::bind`].
    pub fn bind_udp(&self, addresses: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        self.bind_udp_with(addresses, &UdpOptions::default())
    }

    /// Makes a UDP socket with queues of the application's choice.
    ///
    /// # Errors
    /// As for [`Net::bind`].
    pub fn bind_udp_with(
        &self,
        addresses: impl ToSocketAddrs,
        options: &UdpOptions,
    ) -> io::Result<UdpSocket> {
        try_each(addresses, |local| UdpSocket::open(self.first(), local, options))
    }

    /// The addresses of the host.
    #[must_use]
    pub fn addresses(&self) -> &[Ipv4Cidr] {
        &self.first().addresses
    }

    /// What the host has counted, in the words of /proc/net/snmp.
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

    /// How many shards the host has, each with a thread.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.running.shards.len()
    }

    /// What each shard has had to do with frames of the others; nothing where there is one only.
    #[must_use]
    pub fn handovers(&self) -> Vec<Handovers> {
        self.running.watches.iter().map(HandoverWatch::look).collect()
    }

    /// What the threads of the network have done so far.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let of = |shard: &Arc<Shared>| shard.lock().activity;
        self.running.shards.iter().map(of).fold(Activity::default(), Activity::and)
    }

    /// Why the network runs no longer, if that is so.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.running.shards.iter().find_map(|shard| shard.lock().end)
    }

    /// Ends the network at once: resets its connections and ends its thread. When this returns, nothing
    /// of it runs any more. What a closed socket still had to send is lost; see [`Net::finish`].
    pub fn shutdown(&self) {
        self.running.shutdown();
    }

    /// Ends the network when closed sockets have nothing more to send. What is not closed is reset.
    ///
    /// # Errors
    /// `TimedOut` if that took longer than `patience`; the network has ended all the same.
    pub fn finish(&self, patience: Duration) -> io::Result<()> {
        let deadline = Instant::now().checked_add(patience);
        let shards = self.running.shards.iter();
        let quiet: Result<Vec<_>, _> =
            shards.map(|shard| shard.wait_for_orphans(deadline)).collect();
        self.shutdown();
        if quiet?.contains(&false) { Err(Error::Unfinished(patience).into()) } else { Ok(()) }
    }

    /// The shard that has everything that is no connection.
    fn first(&self) -> &Arc<Shared> {
        &self.running.shards[usize::from(FIRST_SHARD)]
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("activity", &self.activity()).field("end", &self.end()).finish()
    }
}

/// The network while somebody holds it.
struct Running {
    /// The host, or its shards; one at least.
    shards: Arc<[Arc<Shared>]>,
    watches: Vec<HandoverWatch>,
    /// Held while the threads are joined, so that whoever comes second returns no earlier.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Connections opened: each shard has its turn.
    next: AtomicUsize,
}

impl Running {
    fn shutdown(&self) {
        let mut threads = self.threads.lock();
        self.shards.iter().for_each(|shard| shard.leave(End::ShutDown));
        for thread in threads.drain(..) {
            // A panic was told to everybody who has a socket.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown();
    }
}
