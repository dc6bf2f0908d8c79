//! What a host is told once, when it is made: who it is, and how much it may hold.

use crate::ethernet::neighbor::NeighborLimits;
use crate::ip::route::Route;
use crate::steering::Shard;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::ops::RangeInclusive;
use linerate_wire::{Ipv4Cidr, MacAddress};

/// Everything that a host is configured with.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The address of its interface. A link that carries bare IP packets does not use it.
    pub mac: MacAddress,
    /// Its addresses, each with the network that it is on. Every network gets a direct route.
    pub addresses: Vec<Ipv4Cidr>,
    /// Routes beyond the networks of its addresses; one to the same destinations takes the place of
    /// the direct route, for a clamp or an MTU.
    pub routes: Vec<Route>,
    /// Ports for conversations whose application does not ask for one (RFC 6335: 49152 to 65535;
    /// a wider range is harder to guess).
    pub ephemeral_ports: RangeInclusive<u16>,
    /// Answer echo requests to all hosts of a network (RFC 1122 §3.2.2.6 leaves it to the host). Off,
    /// this host cannot be used to amplify a flood.
    pub answer_broadcast_echo: bool,
    /// Take a frame with the header of the frame before straight to the same connection? Off, every frame is
    /// judged from its first byte on, which does the same.
    pub frame_prediction: bool,
    /// Count packets with segments up in IPv4's identification, as 4.3BSD did? Off, it is zero, because nobody may make
    /// fragments of them (RFC 6864 §4.1). On, compression of headers on a serial line says nothing of it where it would
    /// say three bytes that it stays (RFC 1144 §3.2.2), but whoever hears the host can count how much it sends to others,
    /// and each segment of a burst is chosen by itself.
    pub count_packets: bool,
    /// The rules of TCP connections that do not get their own.
    pub tcp: linerate_tcp::Config,
    /// How much the host may hold, and how often it may answer.
    pub limits: Limits,
    /// Which shard of the host this is, if several stacks with one seed share its link.
    pub shard: Shard,
}

impl StackConfig {
    /// A host with this address, all else as usual.
    #[must_use]
    pub fn new(mac: MacAddress, address: Ipv4Cidr) -> Self {
        Self {
            mac,
            addresses: Vec::from([address]),
            routes: Vec::new(),
            ephemeral_ports: 32_768..=60_999,
            answer_broadcast_echo: false,
            frame_prediction: true,
            count_packets: false,
            tcp: linerate_tcp::Config::modern(),
            limits: Limits::default(),
            shard: Shard::ONLY,
        }
    }
}

/// The limits of a host. Every queue has one, so that nothing a peer sends makes it grow without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sockets, with connections that no application holds any more.
    pub sockets: usize,
    /// Connections in TIME-WAIT; of more, the oldest ends early.
    pub time_wait: usize,
    /// Connections that no application holds any more and that have not ended; one that would be one
    /// more is reset.
    pub orphans: usize,
    /// Bytes of memory that the buffers of all connections hold together, 8 KiB at least. One that has moved
    /// nothing yet gets a seventeenth of it at most, one that has gets a half. When it runs short, buffers
    /// lose what nothing lies in, stop growing, and lose what lies beyond holes; writers wait for their turn.
    pub buffer_bytes: usize,
    /// Neighbours, and what waits for them.
    pub neighbors: NeighborLimits,
    /// Destinations whose path MTU is remembered.
    pub path_mtus: usize,
    /// Servers whose Fast Open cookie is remembered, and ports of servers that have refused it.
    pub fast_open_servers: usize,
    /// Bytes of replies (ARP, ICMP, resets) that wait for the link, and of datagrams of closed sockets.
    pub reply_bytes: usize,
    /// Bytes of packets from this host to itself that wait to be received.
    pub local_bytes: usize,
    /// ICMP errors a second (RFC 1812 §4.3.2.8), and how many more after a quiet time.
    pub icmp_errors: (u32, u32),
    /// Resets for connections that do not exist a second, and how many more after a quiet time.
    pub resets: (u32, u32),
    /// Challenge acknowledgements (RFC 5961) a second, of all connections together; the number of each
    /// second is drawn from around this one. Each connection has its own limit besides
    /// ([`linerate_tcp::Config::challenge_interval`]).
    pub challenges: u32,
    /// Echo replies and errors about echo requests that wait for the application.
    pub echo_events: usize,
}

impl Limits {
    /// What each of `shards` may have, so that together they have what one host has; at least one of
    /// everything.
    #[must_use]
    pub fn among(self, shards: NonZeroU16) -> Self {
        let count = usize::from(shards.get());
        let part = |whole: usize| whole.div_ceil(count);
        let rate = |(steady, burst): (u32, u32)| {
            let shards = u32::from(shards.get());
            (steady.div_ceil(shards), burst.div_ceil(shards))
        };
        Self {
            sockets: part(self.sockets),
            time_wait: part(self.time_wait),
            orphans: part(self.orphans),
            buffer_bytes: part(self.buffer_bytes),
            icmp_errors: rate(self.icmp_errors),
            resets: rate(self.resets),
            challenges: self.challenges.div_ceil(u32::from(shards.get())),
            // What is about the link, and not about connections, each of them needs whole.
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sockets: 65_536,
            time_wait: 16_384,
            orphans: 16_384,
            buffer_bytes: 256 << 20,
            neighbors: NeighborLimits::default(),
            path_mtus: 1_024,
            fast_open_servers: 1_024,
            reply_bytes: 256 << 10,
            local_bytes: 1 << 20,
            icmp_errors: (1_000, 50),
            resets: (1_000, 200),
            challenges: 1_000,
            echo_events: 64,
        }
    }
}
