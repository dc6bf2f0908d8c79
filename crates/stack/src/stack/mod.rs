//! The host: its parts, its construction and its views. The protocols act on it in the submodules; their
//! state is in the folders beside this one, which know nothing of [`Stack`].

mod arp;
mod echo;
mod fast_open;
mod icmp;
mod ip;
mod listen;
mod memory;
mod rx;
mod tcp;
mod transmit;
pub(crate) mod turn;
mod udp;
mod warm_memory;

use crate::collections::list::Links;
use crate::collections::packet_queue::PacketQueue;
use crate::collections::timer_wheel::TimerWheel;
use crate::collections::token_bucket::TokenBucket;
use crate::config::{Limits, StackConfig};
use crate::counters::Counters;
use crate::demux::Demux;
use crate::ethernet::neighbor::Neighbors;
use crate::event::{Event, EventQueue};
use crate::handle::ListenHandle;
use crate::icmp::EchoFlows;
use crate::ip::CachedRoute;
use crate::ip::identification::Identification;
use crate::ip::interface::Interface;
use crate::ip::path_mtu::PathMtus;
use crate::ip::route::{Route, Routes};
use crate::keys::Keys;
use crate::link::Capabilities;
use crate::ports::Ports;
use crate::ready::{Ready, Sender};
use crate::rx::coalesce::Coalesced;
use crate::rx::flow_cache::FlowCache;
use crate::sockets::{Socket, Sockets};
use crate::steering::{Shard, Steering};
use crate::tcp::burst::BurstHeaders;
use crate::tcp::challenge_limit::ChallengeLimit;
use crate::tcp::fast_open::FastOpenCache;
use crate::tcp::fast_open::cookie::FastOpenMint;
use crate::tcp::isn::InitialNumbers;
use crate::tcp::listen::syn_cookie::CookieJar;
use crate::tcp::memory::Memory;
use crate::tcp::warm_memory::WarmMemory;
use crate::tcp::{HostHeaders, TcpConfigs, TcpTimer, TimeWait};
use crate::tx::{Gathering, Reply};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hint::cold_path;
use core::net::Ipv4Addr;
use linerate_units::Instant;
use linerate_wire::Ipv4Cidr;

/// One host: it takes frames, time and the wishes of applications, and gives frames and events.
///
/// It speaks one grammar: getters, `handle_*` for what came in, plain verbs for the application,
/// `poll_*` for what goes out. [`crate::Host`] joins it with a link.
#[derive(Debug)]
pub struct Stack {
    pub(crate) interface: Interface,
    pub(crate) flow_cache: FlowCache,
    /// Where packets for the destination go that was asked for last.
    pub(crate) cached_route: Option<CachedRoute>,
    /// Segments that wait for others of their run, or the run of data that the last frames have brought.
    /// Invariant: while data wait, nothing else has happened to the host.
    pub(crate) coalesced: Option<Coalesced>,
    pub(crate) routes: Routes,
    pub(crate) neighbors: Neighbors,
    pub(crate) path_mtus: PathMtus,
    pub(crate) sockets: Sockets,
    /// Connections by both their ends.
    pub(crate) flows: Demux,
    /// Listeners by what they are bound to.
    pub(crate) listeners: Demux,
    /// UDP sockets by what they are bound to.
    pub(crate) datagrams: Demux,
    pub(crate) udp_ports: Ports,
    pub(crate) tcp_ports: Ports,
    pub(crate) numbers: InitialNumbers,
    pub(crate) shard: Shard,
    /// Which connections are this shard's.
    pub(crate) steering: Steering,
    pub(crate) cookies: CookieJar,
    pub(crate) mint: FastOpenMint,
    pub(crate) fast_opens: FastOpenCache,
    /// Connections that were opened fast and whose handshake is not complete, with the listener that counts
    /// them: no more than its limit each.
    pub(crate) pending_fast: BTreeMap<u32, ListenHandle>,
    pub(crate) tcp_configs: TcpConfigs,
    /// When connections want to be looked after.
    pub(crate) timers: TimerWheel<TcpTimer>,
    /// Connections stand in one queue at a time: `time_wait`, or one of a listener.
    pub(crate) queues: Links,
    pub(crate) time_wait: TimeWait,
    pub(crate) orphans: usize,
    /// Who wants to send to the link.
    pub(crate) ready: Ready,
    /// What segments have in IPv4's identification.
    pub(crate) identification: Identification,
    /// What stands in front of the segments of the connection that was opened last, but for its ports.
    pub(crate) recent_headers: HostHeaders,
    /// The headers of the burst that leaves.
    pub(crate) burst: BurstHeaders,
    /// Where the data of the frame are that leaves, if not in it.
    pub(crate) gathering: Gathering,
    /// Who wants to send to this host itself.
    pub(crate) local_ready: Ready,
    /// Where segments from this host to itself are written.
    pub(crate) scratch: Vec<u8>,
    /// What the host itself has to send to the link.
    pub(crate) replies: PacketQueue<Reply>,
    /// Packets from this host to itself.
    pub(crate) local: PacketQueue<()>,
    pub(crate) events: EventQueue,
    pub(crate) echoes: EchoFlows,
    pub(crate) icmp_errors: TokenBucket,
    pub(crate) resets: TokenBucket,
    pub(crate) challenges: ChallengeLimit,
    pub(crate) answer_broadcast_echo: bool,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    /// Memory for buffers of connections that have their turn among many.
    pub(crate) warm_memory: WarmMemory,
    pub(crate) counted: Counters,
    /// The latest time that the host has been told.
    pub(crate) now: Instant,
}

impl Stack {
    /// A host. Everything about it that others must not be able to guess is drawn from `seed`: the
    /// same seed, the same bytes.
    #[must_use]
    pub fn new(config: StackConfig, seed: [u8; 32]) -> Self {
        let keys = Keys::new(seed);
        let limits = config.limits;
        let mut routes = Routes::default();
        let direct = config.addresses.iter().map(|&network| Route::direct(network));
        direct.chain(config.routes).for_each(|route| routes.insert(route));
        Self {
            interface: Interface::new(config.mac, config.addresses),
            flow_cache: FlowCache::new(config.frame_prediction),
            cached_route: None,
            coalesced: None,
            routes,
            neighbors: Neighbors::new(limits.neighbors, keys.table("neighbours")),
            path_mtus: PathMtus::new(limits.path_mtus, keys.table("path MTUs")),
            sockets: Sockets::new(limits.sockets),
            flows: Demux::new(keys.table("flows")),
            listeners: Demux::new(keys.table("listeners")),
            datagrams: Demux::new(keys.table("datagrams")),
            udp_ports: Ports::new(config.ephemeral_ports.clone(), &keys),
            tcp_ports: Ports::new(config.ephemeral_ports, &keys),
            numbers: InitialNumbers::new(&keys),
            shard: config.shard,
            steering: Steering::with_keys(&keys, config.shard.count),
            cookies: CookieJar::new(&keys),
            mint: FastOpenMint::new(&keys),
            fast_opens: FastOpenCache::new(limits.fast_open_servers, &keys),
            pending_fast: BTreeMap::new(),
            tcp_configs: TcpConfigs::new(&config.tcp),
            timers: TimerWheel::new(),
            queues: Links::new(),
            time_wait: TimeWait::new(config.tcp.msl * 2),
            orphans: 0,
            ready: Ready::new(),
            identification: Identification::new(config.count_packets),
            recent_headers: HostHeaders::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED),
            burst: BurstHeaders::new(),
            gathering: Gathering::Unwanted,
            local_ready: Ready::new(),
            scratch: Vec::new(),
            replies: PacketQueue::new(limits.reply_bytes),
            local: PacketQueue::new(limits.local_bytes),
            events: EventQueue::new(limits.echo_events),
            echoes: EchoFlows::default(),
            icmp_errors: TokenBucket::new(limits.icmp_errors.0, limits.icmp_errors.1),
            resets: TokenBucket::new(limits.resets.0, limits.resets.1),
            challenges: ChallengeLimit::new(limits.challenges, keys.visible("challenges")),
            answer_broadcast_echo: config.answer_broadcast_echo,
            limits,
            memory: Memory::new(limits.buffer_bytes),
            warm_memory: WarmMemory::new(),
            counted: Counters::default(),
            now: Instant::ZERO,
        }
    }

    /// Tells the host what its link can do. [`crate::Host::new`] does; sockets should be opened
    /// after it.
    pub const fn attach(&mut self, capabilities: Capabilities) {
        self.interface.attach(capabilities);
    }

    /// Adds a route, in place of the one to the same destinations. Connections take their packets
    /// along it from now on; their window clamp and MTU stay what they were.
    pub fn add_route(&mut self, route: Route) {
        self.routes.insert(route);
    }

    /// Removes the route to exactly these destinations, if there is one.
    pub fn remove_route(&mut self, destination: Ipv4Cidr) -> Option<Route> {
        self.routes.remove(destination)
    }

    /// The addresses of the host.
    #[must_use]
    pub fn addresses(&self) -> &[Ipv4Cidr] {
        &self.interface.addresses
    }

    /// What the host's link can do.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.interface.capabilities
    }

    /// The next thing that an application may want to know.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() { None } else { self.next_event() }
    }

    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        match self.events.poll_socket() {
            // Only sockets that exist have events, and they are of their kind.
            Some((index, kind)) => self.sockets.event(index, kind),
            None => self.events.poll_echo(),
        }
    }

    /// Lets timers that are due at `now` expire, at most `budget` of them, and returns how many did.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant, budget: usize) -> usize {
        self.pass_time(now);
        if now < self.poll_timeout() {
            return 0;
        }
        cold_path();
        self.expire(now, budget)
    }

    fn expire(&mut self, now: Instant, budget: usize) -> usize {
        let mut expired = 0;
        while expired < budget
            && (self.handle_connection_timeout(now) || self.handle_neighbor_timeout(now))
        {
            expired += 1;
        }
        expired
    }

    /// When [`Stack::handle_timeout`] must be called at the latest; [`Instant::NEVER`] if not at all.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.neighbors.poll_timeout().min(self.timers.next())
    }

    /// Is there a frame to be sent? (It may turn out that it waits for a neighbour's answer.)
    #[inline]
    #[must_use]
    pub fn wants_transmit(&self) -> bool {
        !self.ready.is_empty()
    }

    /// What the host has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = Counters { neighbor: *self.neighbors.counters(), ..self.counted };
        let predicted = self.flow_cache.hits;
        counters.receive.packets += predicted;
        counters.ip.in_receives += predicted;
        counters.ip.in_delivers += predicted;
        counters.tcp.in_segments += predicted;
        let (repeats, lookups) = self.flows.repeats();
        counters.tcp_extra.flow_repeats = repeats + predicted - self.flow_cache.prefetched;
        counters.tcp_extra.flow_lookups = lookups + predicted;
        counters
    }

    /// How often a flow was counted as that of the frame before.
    pub(crate) const fn flow_repeats(&self) -> u64 {
        self.flows.repeats().0 + self.flow_cache.hits
    }

    /// Connections that no application holds any more and that have not ended: they still have something
    /// to send, or wait for their peers to close too.
    #[must_use]
    pub const fn orphans(&self) -> usize {
        self.orphans
    }

    /// Has the host anything to send that is no socket's: replies, datagrams of closed sockets, or packets that wait
    /// for a neighbour's answer?
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        self.has_replies() || self.neighbors.has_queued_packets()
    }

    /// Judges every invariant of the host and of its parts. For tests and fuzzers: it looks at
    /// everything.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check(&self) {
        self.routes.check();
        self.neighbors.check();
        self.path_mtus.check();
        self.fast_opens.check();
        self.replies.check();
        self.local.check();
        assert!(self.burst.is_told(), "each connection knows what has left of it");
        assert!(
            self.coalesced.as_ref().is_none_or(|run| !run.waits()),
            "nothing waits for longer than its batch"
        );
        assert!(self.flows.foresees_nothing(), "nor is anything foreseen beyond it");
        let called = self.ready.contains(Sender::Replies);
        assert!(called || !self.has_replies(), "what the host has to send stands in the ring");
        let called = self.local_ready.contains(Sender::Replies);
        assert!(
            called || self.local.is_empty(),
            "what the host has to send to itself stands in its ring"
        );
        for sender in self.ready.iter().chain(self.local_ready.iter()) {
            let Sender::Socket(index) = sender else { continue };
            assert!(self.sockets.get(index).is_some(), "only sockets that exist want to send");
        }
        for index in self.events.sockets() {
            assert!(self.sockets.get(index).is_some(), "only sockets that exist have events");
        }
        for (index, socket) in self.sockets.iter() {
            match socket {
                Socket::Tcp(socket) => self.check_tcp(index, socket),
                Socket::Resting(_) | Socket::Waiting(_) => {
                    socket.as_tcp().iter().for_each(|socket| self.check_tcp(index, socket));
                }
                Socket::Listen(listener) => self.check_listener(index, listener),
                Socket::Udp(socket) => self.check_udp(index, socket),
            }
        }
        self.check_connections();
        let bound = self.sockets.iter().filter(|(_, socket)| socket.as_tcp().is_none()).count();
        assert_eq!(
            self.datagrams.len() + self.listeners.len(),
            bound,
            "each other socket is bound once"
        );
    }

    /// Time never goes back, whatever stamps the link puts on frames.
    #[inline]
    pub(crate) fn pass_time(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.sockets.now = self.now;
    }
}
