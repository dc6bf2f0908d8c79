//! The host as a whole: its parts, how it is made, and what can be asked of all of it. What it does
//! is in the files of the protocols: `receive` and `ipv4` from the link upwards, `transmit` towards the link,
//! `arp`, `icmp` and `udp`.

use crate::config::StackConfig;
use crate::counters::Counters;
use crate::demux::Demux;
use crate::echo::EchoFlows;
use crate::event::{Event, EventQueue, UdpEvent};
use crate::interface::Interface;
use crate::keys::Keys;
use crate::link::Capabilities;
use crate::neighbor::Neighbors;
use crate::packet_queue::PacketQueue;
use crate::path_mtu::PathMtus;
use crate::ports::Ports;
use crate::ready::{Ready, Sender};
use crate::route::{Route, Routes};
use crate::sockets::{Socket, Sockets};
use crate::token_bucket::TokenBucket;
use crate::transmit::Reply;
use linerate_units::Instant;
use linerate_wire::Ipv4Cidr;

/// One host: it takes frames, time and the wishes of applications, and gives frames and events.
///
/// It speaks one grammar: getters, `handle_*` for what came in, plain verbs for the application,
/// `poll_*` for what goes out. [`crate::Host`] joins it with a link.
#[derive(Debug)]
pub struct Stack {
    pub(crate) interface: Interface,
    pub(crate) routes: Routes,
    pub(crate) neighbors: Neighbors,
    pub(crate) path_mtus: PathMtus,
    pub(crate) sockets: Sockets,
    /// UDP sockets by what they are bound to.
    pub(crate) datagrams: Demux,
    pub(crate) udp_ports: Ports,
    /// Who wants to send to the link.
    pub(crate) ready: Ready,
    /// What the host itself has to send to the link.
    pub(crate) replies: PacketQueue<Reply>,
    /// Packets from this host to itself.
    pub(crate) local: PacketQueue<()>,
    pub(crate) events: EventQueue,
    pub(crate) echoes: EchoFlows,
    pub(crate) icmp_errors: TokenBucket,
    pub(crate) answer_broadcast_echo: bool,
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
            routes,
            neighbors: Neighbors::new(limits.neighbors, keys.table("neighbours")),
            path_mtus: PathMtus::new(limits.path_mtus, keys.table("path MTUs")),
            sockets: Sockets::new(limits.sockets),
            datagrams: Demux::new(keys.table("datagrams")),
            udp_ports: Ports::new(config.ephemeral_ports, &keys),
            ready: Ready::new(),
            replies: PacketQueue::new(limits.reply_bytes),
            local: PacketQueue::new(limits.local_bytes),
            events: EventQueue::new(limits.echo_events),
            echoes: EchoFlows::default(),
            icmp_errors: TokenBucket::new(limits.icmp_errors.0, limits.icmp_errors.1),
            answer_broadcast_echo: config.answer_broadcast_echo,
            counted: Counters::default(),
            now: Instant::ZERO,
        }
    }

    /// Tells the host what its link can do. [`crate::Host::new`] does; sockets should be opened
    /// after it.
    pub const fn attach(&mut self, capabilities: Capabilities) {
        self.interface.capabilities = capabilities;
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
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some((index, kind)) = self.events.poll_socket() {
            let udp = self.sockets.udp_handle(index).zip(UdpEvent::of(kind));
            if let Some((handle, event)) = udp {
                return Some(Event::Udp(handle, event));
            }
        }
        self.events.poll_echo()
    }

    /// Lets timers that are due at `now` expire, at most `budget` of them, and returns how many did.
    pub fn handle_timeout(&mut self, now: Instant, budget: usize) -> usize {
        self.pass_time(now);
        (0..budget).take_while(|_| self.handle_neighbor_timeout(now)).count()
    }

    /// When [`Stack::handle_timeout`] must be called at the latest; [`Instant::NEVER`] if not at all.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.neighbors.poll_timeout()
    }

    /// Is there a frame to be sent? (It may turn out that it waits for a neighbour's answer.)
    #[must_use]
    pub fn wants_transmit(&self) -> bool {
        !self.ready.is_empty() || self.has_replies()
    }

    /// What the host has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { neighbor: *self.neighbors.counted(), ..self.counted }
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
        self.replies.check();
        self.local.check();
        for sender in self.ready.iter() {
            let Sender::Socket(index) = sender else { continue };
            assert!(self.sockets.get(index).is_some(), "only sockets that exist want to send");
        }
        for index in self.events.sockets() {
            assert!(self.sockets.get(index).is_some(), "only sockets that exist have events");
        }
        for (index, socket) in self.sockets.iter() {
            match socket {
                Socket::Udp(socket) => self.check_udp(index, socket),
            }
        }
        assert_eq!(self.datagrams.len(), self.sockets.iter().count(), "each socket is bound once");
    }

    /// Time never goes back, whatever stamps the link puts on frames.
    pub(crate) fn pass_time(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}
