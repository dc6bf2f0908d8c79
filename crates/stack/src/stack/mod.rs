//! The type [`Stack`], which is a TCP/IP stack: its fields, its construction and its getters. Each
//! submodule adds the methods of one protocol or task to [`Stack`]. The types that hold the state
//! of the protocols are in other modules of the crate, which do not use [`Stack`].

mod addresses;
mod arp;
mod autoconfiguration;
mod buffer_pool;
mod detection;
mod dhcp;
mod echo;
mod fast_open;
mod forward;
mod fragments;
pub(crate) mod groups;
mod handover;
mod icmp;
mod icmpv6;
mod interfaces;
mod ip;
mod listen;
mod memory;
mod neighbor_discovery;
mod raw;
mod router_discovery;
mod rx;
mod services;
mod tcp;
mod transmit;
pub(crate) mod turn;
mod udp;

use crate::collections::list::Links;
use crate::collections::packet_queue::PacketQueue;
use crate::collections::timer_wheel::TimerWheel;
use crate::collections::token_bucket::TokenBucket;
use crate::config::{Limits, StackConfig};
use crate::counters::Counters;
use crate::demux::Demux;
use crate::demux::flow::Hosts;
use crate::event::{Event, EventQueue};
use crate::forward::Forwarding;
use crate::handle::ListenHandle;
use crate::icmp::EchoFlows;
use crate::ip::CachedRoute;
use crate::ip::fragment_ids::FragmentIds;
use crate::ip::identification::Identification;
use crate::ip::interface::Interface;
use crate::ip::path_mtu::PathMtus;
use crate::ip::reassembly::Reassembly;
use crate::ip::route::{Route, RouteOrigin, Routes};
use crate::ip::zone::FIRST_INTERFACE;
use crate::keys::Keys;
use crate::link::{Capabilities, Medium};
use crate::ports::Ports;
use crate::ready::{Ready, Sender};
use crate::rx::coalesce::Coalesced;
use crate::rx::unconnected::Unconnected;
use crate::services::Deadlines;
use crate::sockets::{Socket, Sockets};
use crate::steering::{Shard, Steering};
use crate::tcp::batch::BatchHeaders;
use crate::tcp::buffer_pool::BufferPool;
use crate::tcp::challenge_limit::ChallengeLimit;
use crate::tcp::fast_open::FastOpenCache;
use crate::tcp::fast_open::cookie::FastOpenCookies;
use crate::tcp::isn::IsnGenerator;
use crate::tcp::listen::syn_ack::SynAckForms;
use crate::tcp::listen::syn_cookie::SynCookieIssuer;
use crate::tcp::memory::Memory;
use crate::tcp::{HostHeaders, TcpConfigs, TcpTimer, TimeWait};
use crate::tx::ScatterGather;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hint::cold_path;
use linerate_units::Instant;
use linerate_wire::IpCidr;

/// The TCP/IP stack of one host, without I/O: its methods take received frames, the current time
/// and the calls of applications, and return frames to send and events.
///
/// Names of methods: `handle_*` takes input, `poll_*` returns output, nouns are getters, and other
/// verbs are calls of applications. [`crate::Host`] combines a stack with a link.
#[derive(Debug)]
pub struct Stack {
    /// The current interface: the interface that methods without an interface number use
    /// ([`interfaces`]).
    pub(crate) interface: Interface,
    /// All interfaces except the current one.
    pub(crate) others: Vec<Box<Interface>>,
    /// The secret keys of the host, from which the keys of later added interfaces are derived.
    pub(crate) keys: Keys,
    /// The result of the most recent route lookup for a destination other than this host. It is
    /// `None` before the first lookup. It becomes `None` again when addresses or the current
    /// interface change.
    pub(crate) cached_route: Option<CachedRoute>,
    /// The segments of one connection that are being coalesced: an ACK batch, or a GRO run of data;
    /// `None` if there are none. Invariant: the receive path delivers these segments before any
    /// other part of the stack runs.
    pub(crate) coalesced: Option<Coalesced>,
    pub(crate) routes: Routes,
    pub(crate) path_mtus: PathMtus,
    pub(crate) reassembly: Reassembly,
    pub(crate) fragment_ids: FragmentIds,
    pub(crate) sockets: Sockets,
    /// Indices of TCP connections, by local and remote address and port.
    pub(crate) flows: Demux,
    /// Indices of TCP listeners, by their bound address and port.
    pub(crate) listeners: Demux,
    /// Indices of UDP sockets, by the address and port to which they are bound. The key of a socket
    /// of a forwarded flow also contains the address and port of its peer.
    pub(crate) datagrams: Demux,
    pub(crate) forwarding: Forwarding,
    /// Indices of the raw sockets.
    pub(crate) raw: Vec<u32>,
    pub(crate) udp_ports: Ports,
    pub(crate) tcp_ports: Ports,
    pub(crate) isn: IsnGenerator,
    pub(crate) shard: Shard,
    /// The function that assigns each connection to a shard.
    pub(crate) steering: Steering,
    /// Received segments that belong to no connection and wait to be handled. Invariant: while a
    /// segment waits here, [`Sender::Replies`] is in `local_ready`, so that a turn will handle the
    /// segment.
    pub(crate) unconnected: Unconnected,
    pub(crate) cookies: SynCookieIssuer,
    pub(crate) syn_acks: SynAckForms,
    pub(crate) fast_open_cookies: FastOpenCookies,
    pub(crate) fast_opens: FastOpenCache,
    /// Indices of connections that a peer has opened by Fast Open and whose handshake is
    /// incomplete, each with its listener. The listener limits their number.
    pub(crate) pending_fast: BTreeMap<u32, ListenHandle>,
    pub(crate) tcp_configs: TcpConfigs,
    /// The timers of connections, of TIME-WAIT records, and of forwarded UDP flows.
    pub(crate) timers: TimerWheel<TcpTimer>,
    /// The deadline of reassembly, and the earliest deadline of all interfaces except the current
    /// one. The deadlines of the current interface are in `interface`.
    pub(crate) deadlines: Deadlines,
    /// The links of all linked lists of sockets: `time_wait`, the queues of listeners, and the
    /// lists of forwarded UDP flows. A socket is in at most one list.
    pub(crate) queues: Links,
    pub(crate) time_wait: TimeWait,
    pub(crate) orphans: usize,
    /// Generator of the Identification field of IPv4 packets that carry TCP segments.
    pub(crate) identification: Identification,
    /// The header template for the two addresses of the connection that was opened most recently. A
    /// new connection between the same addresses reuses the template.
    pub(crate) recent_headers: HostHeaders,
    /// The header template of the segments that one connection is sending in a batch.
    pub(crate) batch: BatchHeaders,
    /// Whether the frame that is being written may leave its data in the send buffer
    /// (scatter-gather), and if so, whether it does.
    pub(crate) scatter_gather: ScatterGather,
    /// The ring of senders that have packets to this host itself. In this ring, the entry
    /// [`Sender::Replies`] stands for the packets in `local` and for the segments in `unconnected`.
    pub(crate) local_ready: Ready,
    /// A reusable buffer for one segment from this host to itself.
    pub(crate) scratch: Vec<u8>,
    /// Queued packets from this host to itself, each with the number of the interface that handles
    /// the packet.
    pub(crate) local: PacketQueue<u16>,
    /// Frames that other shards must handle, each with the number of the shard that must handle it.
    pub(crate) handovers: PacketQueue<u16>,
    pub(crate) events: EventQueue,
    pub(crate) echoes: EchoFlows,
    /// The sources and identifiers of recent large echo requests from other hosts, used to check
    /// whether an ICMP report of a path MTU is about a reply to one of these requests.
    pub(crate) answered_echoes: EchoFlows,
    pub(crate) icmp_errors: TokenBucket,
    pub(crate) resets: TokenBucket,
    pub(crate) challenges: ChallengeLimit,
    pub(crate) answer_broadcast_echo: bool,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    /// Memory for small socket buffers. It was used recently, so it is probably still in the
    /// processor's caches.
    pub(crate) buffer_pool: BufferPool,
    pub(crate) counted: Counters,
    /// The current time of the host: the latest of all times that callers have given, and of all
    /// arrival times of frames.
    pub(crate) now: Instant,
}

/// # Construction and configuration
impl Stack {
    /// Creates a host. All its secrets and random numbers are derived from `seed`, so two hosts
    /// with equal configuration, seed and input give equal output.
    #[must_use]
    pub fn new(config: StackConfig, seed: [u8; 32]) -> Self {
        let keys = Keys::new(seed);
        let limits = config.limits;
        let mut routes = Routes::default();
        let (first, prediction) = (config.first_interface(), config.frame_prediction);
        #[allow(clippy::cast_possible_truncation, reason = "it is one")]
        let interface = Interface::new(FIRST_INTERFACE as u16, &first, &limits, prediction, &keys);
        config.routes.into_iter().for_each(|route| routes.insert(RouteOrigin::Static, route));
        let (isn, no_hosts) = (IsnGenerator::new(&keys), Hosts::V4([0; 8]));
        let mut stack = Self {
            interface,
            others: Vec::new(),
            keys,
            cached_route: None,
            coalesced: None,
            routes,
            path_mtus: PathMtus::new(limits.path_mtus, keys.table("path MTUs")),
            reassembly: Reassembly::new(limits.reassembly),
            fragment_ids: FragmentIds::new(&keys),
            sockets: Sockets::new(limits.sockets),
            flows: Demux::new(keys.table("flows")),
            listeners: Demux::new(keys.table("listeners")),
            datagrams: Demux::new(keys.table("datagrams")),
            forwarding: Forwarding::new(&keys),
            raw: Vec::new(),
            udp_ports: Ports::new(config.ephemeral_ports.clone(), &keys),
            tcp_ports: Ports::new(config.ephemeral_ports, &keys),
            shard: config.shard,
            steering: Steering::with_keys(&keys, config.shard.count),
            unconnected: Unconnected::new(keys.draw("unconnected segments", 0)),
            cookies: SynCookieIssuer::new(&keys),
            syn_acks: SynAckForms::default(),
            fast_open_cookies: FastOpenCookies::new(&keys),
            fast_opens: FastOpenCache::new(limits.fast_open_servers, &keys),
            pending_fast: BTreeMap::new(),
            tcp_configs: TcpConfigs::new(&config.tcp),
            timers: TimerWheel::new(),
            deadlines: Deadlines::new(),
            queues: Links::new(),
            time_wait: TimeWait::new(config.tcp.msl * 2),
            orphans: 0,
            identification: Identification::new(config.count_packets),
            recent_headers: HostHeaders::new(no_hosts, isn.timestamp_offset(&no_hosts)),
            isn,
            batch: BatchHeaders::new(),
            scatter_gather: ScatterGather::Off,
            local_ready: Ready::new(),
            scratch: Vec::new(),
            local: PacketQueue::new(limits.local_bytes),
            handovers: PacketQueue::new(limits.local_bytes),
            events: EventQueue::new(limits.echo_events),
            echoes: EchoFlows::default(),
            answered_echoes: EchoFlows::default(),
            icmp_errors: TokenBucket::new(limits.icmp_errors),
            resets: TokenBucket::new(limits.resets),
            challenges: ChallengeLimit::new(limits.challenges, keys.visible("challenges")),
            answer_broadcast_echo: config.answer_broadcast_echo,
            limits,
            memory: Memory::new(limits.buffer_bytes),
            buffer_pool: BufferPool::new(),
            counted: Counters::default(),
            now: Instant::ZERO,
        };
        stack.begin_interface();
        stack
    }

    /// Sets the capabilities of the link of the current interface. Call this method before opening
    /// sockets, because a connection takes the MTU of the link when it is opened.
    /// [`crate::Host::new`] calls this method.
    pub fn attach(&mut self, capabilities: Capabilities) {
        self.interface.attach(capabilities);
        if capabilities.medium == Medium::Ip {
            self.assign_without_detection();
        }
    }

    /// Adds a route. It replaces a route that the application has added before with the same
    /// destinations, metric and interface. An added route takes precedence over learned routes with
    /// the same destinations and metric. Learned routes come from a DHCP server, from a router, or
    /// from an address of this host, whose network is on the link. Existing connections send along
    /// the new route, but keep their window clamp and MTU. If the packets of a connection are too
    /// large for the MTU of the link of the new route, the connection is aborted.
    pub fn add_route(&mut self, route: Route) {
        self.routes.insert(RouteOrigin::Static, route);
    }

    /// Removes and returns the route whose prefix is exactly `destination` and which the host
    /// currently uses. The application may have added this route, or the host may have learnt it.
    /// The next best route with this prefix, if any, takes its place. Returns `None` if there is no
    /// route with this prefix.
    pub fn remove_route(&mut self, destination: IpCidr) -> Option<Route> {
        self.routes.remove(destination)
    }

    /// Returns the capabilities of the link of the current interface.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.interface.capabilities
    }
}

/// # Host driver: events and timers
impl Stack {
    /// Removes and returns the next event for the application; `None` if there is no event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() { None } else { self.next_event() }
    }

    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        match self.events.poll_socket() {
            Some((index, kind)) => self.sockets.event(index, kind),
            None => self.events.poll_host(),
        }
    }

    /// Runs up to `budget` timers that are due at `now`, and returns the number of timers that ran.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant, budget: usize) -> usize {
        self.advance_clock(now);
        if now < self.poll_timeout() {
            return 0;
        }
        cold_path();
        self.expire(now, budget)
    }

    fn expire(&mut self, now: Instant, budget: usize) -> usize {
        let mut expired = 0;
        while expired < budget
            && (self.handle_connection_timeout(now)
                || self.handle_neighbor_timeout(now)
                || self.handle_service_timeout(now))
        {
            expired += 1;
        }
        expired
    }

    /// Returns the deadline of the earliest timer: the time at which [`Stack::handle_timeout`] must
    /// be called next. Returns [`Instant::NEVER`] if no timer is armed.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.interface.poll_timeout().min(self.timers.next()).min(self.deadlines.next())
    }

    /// Does any sender have a frame to send on the link? The frame may still have to wait for
    /// address resolution.
    #[inline]
    #[must_use]
    pub fn wants_transmit(&self) -> bool {
        !self.interface.ready.is_empty()
    }
}

/// # Observation
impl Stack {
    /// Returns a copy of the counters of the host, including those of its interfaces.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counted;
        let (predicted, mut prefetched) = (self.cached_segments(), 0);
        for interface in self.all_interfaces() {
            counters.neighbor += *interface.neighbors.counters();
            prefetched += interface.flow_cache.prefetched;
        }
        counters.receive.packets += predicted;
        counters.ip.in_receives += predicted;
        counters.ip.in_delivers += predicted;
        counters.tcp.in_segments += predicted;
        let (repeats, lookups) = self.flows.repeats();
        counters.tcp_extra.flow_repeats = repeats + predicted - prefetched;
        counters.tcp_extra.flow_lookups = lookups + predicted;
        counters
    }

    /// Returns the number of segments that the flow caches of all interfaces have recognized.
    pub(crate) fn cached_segments(&self) -> u64 {
        self.all_interfaces().map(|interface| interface.flow_cache.hits).sum()
    }

    /// Returns the number of received segments that belonged to the same flow as the segment
    /// received before them.
    pub(crate) const fn flow_repeats(&self) -> u64 {
        self.flows.repeats().0 + self.interface.flow_cache.hits
    }

    /// Returns the number of orphans: connections that the application has closed, and that have
    /// neither ended nor reached TIME-WAIT.
    #[must_use]
    pub const fn orphans(&self) -> usize {
        self.orphans
    }

    /// Does the host have packets to send that are not in the send queue of a socket? These are
    /// replies, datagrams of closed sockets, and packets that wait for address resolution.
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        self.all_interfaces()
            .any(|interface| interface.has_replies() || interface.neighbors.has_queued_packets())
    }

    /// Checks the invariants of the host and of all its sockets. The time that this takes grows
    /// with the number of sockets, so it is meant for tests and fuzzers.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn check(&self) {
        self.routes.check();
        self.all_interfaces().for_each(|interface| self.check_interface(interface));
        self.path_mtus.check();
        self.reassembly.check();
        self.check_raw();
        self.fast_opens.check();
        self.local.check();
        self.handovers.check();
        self.unconnected.check();
        self.check_forwarding();
        assert!(self.batch.is_committed(), "the frames of a batch are committed");
        assert!(
            self.coalesced.as_ref().is_none_or(|run| !run.is_pending()),
            "coalesced segments are flushed after each batch"
        );
        assert!(self.flows.has_no_batch(), "a lookup prefetch ends with its batch");
        let is_scheduled = self.local_ready.contains(Sender::Replies);
        assert!(
            is_scheduled || (self.local.is_empty() && self.unconnected.is_empty()),
            "local packets are in the ring of local senders"
        );
        self.check_senders(&self.local_ready);
        for index in self.events.sockets() {
            assert!(self.sockets.get(index).is_some(), "events are of existing sockets");
        }
        for (index, socket) in self.sockets.iter() {
            match socket {
                Socket::Tcp(socket) => self.check_tcp(index, socket),
                Socket::Compact(_) | Socket::TimeWait(_) => {
                    socket.as_tcp().iter().for_each(|socket| self.check_tcp(index, socket));
                }
                Socket::Listen(listener) => self.check_listener(index, listener),
                Socket::Udp(socket) => self.check_udp(index, socket),
                Socket::Raw(_) => {}
            }
        }
        self.check_connections();
        let keys = |(index, socket): (u32, &Socket)| match socket {
            Socket::Listen(_) if self.forwarding.of_listener(index).is_some() => 0,
            Socket::Listen(listener) => listener.binding.flows().count(),
            Socket::Udp(socket) => socket.flows().count(),
            _ => 0,
        };
        assert_eq!(
            self.datagrams.len() + self.listeners.len(),
            self.sockets.iter().map(keys).sum::<usize>(),
            "the tables contain only keys of listeners and UDP sockets"
        );
    }

    /// Checks the invariants of an interface. Panics if one is broken.
    fn check_interface(&self, interface: &Interface) {
        interface.check();
        interface.groups.check(|index| matches!(self.sockets.get(index), Some(Socket::Udp(_))));
        self.check_senders(&interface.ready);
    }

    fn check_senders(&self, ready: &Ready) {
        for sender in ready.iter() {
            let Sender::Socket(index) = sender else { continue };
            assert!(self.sockets.get(index).is_some(), "senders are existing sockets");
        }
    }

    /// Advances the clock of the host to `now`. A time before the current one has no effect: the
    /// timestamps of a link may go back, but the clock must not.
    #[inline]
    pub(crate) fn advance_clock(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.sockets.now = self.now;
    }
}
