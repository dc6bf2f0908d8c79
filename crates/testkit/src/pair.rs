//! Two hosts and the wire between them, in virtual time. The invariants of both hosts are checked
//! after each step.

use crate::test_link::TestLink;
use crate::{Fate, Network, Wire};
use linerate_stack::{Capabilities, Host, Medium, Stack, StackConfig, Turn};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Ipv4Cidr, Ipv4Header, Ipv4Packet, MacAddress};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The host with address 192.0.2.1, usually the client.
    Left,
    /// The host with address 192.0.2.2.
    Right,
}

impl Side {
    /// The left and the right host.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// Returns the opposite side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Returns the IPv4 address of the host, whose prefix has 24 bits.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, self as u8 + 1)
    }

    /// Returns the host's MAC address.
    #[must_use]
    pub const fn mac(self) -> MacAddress {
        MacAddress::new([2, 0, 0, 0, 0, self as u8 + 1])
    }

    /// Returns the default configuration of the host.
    ///
    /// # Panics
    /// Never: 24 is a valid prefix length.
    #[must_use]
    pub fn config(self) -> StackConfig {
        let Some(cidr) = Ipv4Cidr::new(self.address(), 24) else { panic!("a prefix of 24 bits") };
        StackConfig::new(self.mac(), cidr.into())
    }
}

/// Converts `end`, which must have an IPv4 address, to an IPv4 socket address.
///
/// # Panics
/// If it has an IPv6 address.
#[must_use]
pub fn ipv4_end(end: SocketAddr) -> SocketAddrV4 {
    match end {
        SocketAddr::V4(end) => end,
        SocketAddr::V6(end) => panic!("{end} is an end over IPv6"),
    }
}

/// Parameters of a pair of hosts and of the network between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Seed of the random faults of the network, and of the secrets of the hosts.
    pub seed: u64,
    /// The network between the two hosts.
    pub network: Network,
    /// Whether the wire carries Ethernet frames or IP packets.
    pub medium: Medium,
    /// Size of the largest IP packet on the links, in bytes.
    pub mtu: usize,
    /// Maximum number of frames in the send queue of a host's link. After each turn of the host,
    /// all frames are moved from the queue to the wire.
    pub capacity: usize,
    /// Minimum time between two turns of a host. Each turn handles a limited number of frames, so
    /// this time limits the speed of the hosts. With zero, the hosts are infinitely fast.
    pub pause: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            network: Network::clean(Duration::from_micros(50)),
            medium: Medium::Ethernet,
            mtu: 1_500,
            capacity: 256,
            pause: Duration::ZERO,
        }
    }
}

/// A function that is called for every frame that a host sends, and returns the fate of the frame
/// in the network. `None` means a random fate.
type Filter = Box<dyn FnMut(Instant, Side, &[u8]) -> Option<Fate>>;

/// Two hosts and the wire between them.
pub struct Pair {
    /// The current virtual time.
    pub now: Instant,
    /// The wire between the hosts.
    pub wire: Wire<Side>,
    hosts: [Host<TestLink>; 2],
    /// The result of each host's most recent turn; `None` if its link was down.
    turns: [Option<Turn>; 2],
    pause: Duration,
    /// Earliest time at which each host may have its next turn.
    rested: [Instant; 2],
    filter: Filter,
}

impl Pair {
    /// Creates two hosts. `configure` is called for each of them, and can change its configuration.
    pub fn new(setup: &Setup, configure: impl Fn(Side, &mut StackConfig)) -> Self {
        let hosts = Side::BOTH.map(|side| {
            let mut config = side.config();
            configure(side, &mut config);
            let mut seed = [side as u8; 32];
            seed[..8].copy_from_slice(&setup.seed.to_le_bytes());
            let capabilities = Capabilities::new(setup.medium, setup.mtu);
            Host::new(Stack::new(config, seed), TestLink::new(capabilities, setup.capacity))
        });
        let wire = Wire::new(setup.network, setup.seed);
        // The clock does not start at zero, because zero is the value of a time that was never set.
        // A test must not mistake such a time for the current one.
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self {
            now,
            wire,
            hosts,
            turns: [None; 2],
            pause: setup.pause,
            rested: [now; 2],
            filter: Box::new(|_, _, _| None),
        }
    }

    /// Calls `observer` for every frame that a host sends, before the frame enters the network.
    pub fn observe(&mut self, mut observer: impl FnMut(Instant, Side, &[u8]) + 'static) {
        self.set_filter(move |at, side, frame| {
            observer(at, side, frame);
            None
        });
    }

    /// Calls `filter` for every frame that a host sends. A fate that `filter` returns replaces the
    /// random fate.
    pub fn set_filter(
        &mut self,
        filter: impl FnMut(Instant, Side, &[u8]) -> Option<Fate> + 'static,
    ) {
        self.filter = Box::new(filter);
    }

    /// Returns the host at this side.
    pub fn host(&mut self, side: Side) -> &mut Host<TestLink> {
        &mut self.hosts[side as usize]
    }

    /// Returns the stack of the host at this side.
    pub fn stack(&mut self, side: Side) -> &mut Stack {
        self.host(side).stack_mut()
    }

    /// Delivers a packet to a host at the current time. Returns the packets that the host sends at
    /// once. They do not enter the network.
    ///
    /// # Panics
    /// If an invariant of the host is violated, or its link fails.
    pub fn answers(&mut self, side: Side, packet: Vec<u8>) -> Vec<Vec<u8>> {
        let now = self.now;
        let host = self.host(side);
        host.link_mut().put(now, packet);
        for _ in 0..2 {
            host.turn(now).expect("a link that is up");
        }
        host.stack().check();
        std::iter::from_fn(|| host.link_mut().fetch()).collect()
    }

    /// Runs the hosts until `done` returns true, or until the time `limit` has passed. `done` may
    /// also make the calls of the applications. Returns whether `done` has returned true.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            self.turn();
            // `done` is called once more before time advances. Data that has just arrived may
            // satisfy its condition, and the applications that it runs may react to the data.
            if done(self) {
                return true;
            }
            if !self.move_on(end) {
                self.now = end;
                return done(self);
            }
        }
        true
    }

    /// Handles everything that is due at the current time.
    ///
    /// # Panics
    /// If an invariant of a host is violated, or a link that is up fails.
    pub fn turn(&mut self) {
        while let Some(mut packet) = self.wire.arrive(self.now) {
            if packet.ecn == Ecn::Ce {
                let at = self.place_of_packet();
                Ipv4Header::mark_congestion(&mut packet.bytes[at..]);
            }
            self.host(packet.to).link_mut().put(packet.at, packet.bytes);
        }
        for side in Side::BOTH {
            let now = self.now;
            if now < self.rested[side as usize] {
                continue;
            }
            self.rested[side as usize] = now + self.pause;
            let host = self.host(side);
            let turn = host.turn(now);
            host.stack().check();
            // If the link of a host is down, its turn returns an error, and so cannot request a
            // further turn. The host gets its next turn when another event of this pair occurs.
            self.turns[side as usize] = turn.ok();
            while let Some(frame) = self.host(side).link_mut().fetch() {
                let fate = (self.filter)(now, side, &frame);
                let ecn = self.ecn_of(&frame);
                self.wire.send(now, side.other(), frame, ecn, fate);
            }
        }
    }

    /// Returns the offset of the IP packet in a frame, in bytes.
    fn place_of_packet(&self) -> usize {
        self.hosts[0].stack().capabilities().medium.header_length()
    }

    /// Returns the ECN codepoint of the packet in a frame.
    fn ecn_of(&self, frame: &[u8]) -> Ecn {
        let packet = frame.get(self.place_of_packet()..).map(Ipv4Packet::parse);
        packet
            .and_then(Result::ok)
            .map_or(Ecn::NotEct, |packet| packet.header.type_of_service.ecn())
    }

    /// Advances to the next event of the pair: the arrival of a packet, or the next turn of a host.
    /// If it is later than `limit`, returns false and does not advance.
    pub fn move_on(&mut self, limit: Instant) -> bool {
        let next = Side::BOTH
            .map(|side| self.next_turn(side))
            .into_iter()
            .fold(self.wire.next(), Instant::min);
        if next > limit || next == Instant::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        true
    }

    fn next_turn(&self, side: Side) -> Instant {
        let host = &self.hosts[side as usize];
        let Some(turn) = &self.turns[side as usize] else { return Instant::NEVER };
        let again = turn.more
            || turn.blocked
            || host.link().has_arrived()
            || host.stack().wants_turn_since(turn);
        let wanted = if again { self.now } else { turn.next };
        wanted.max(self.rested[side as usize])
    }

    /// Runs both hosts until `span` has passed.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("now", &self.now)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}
