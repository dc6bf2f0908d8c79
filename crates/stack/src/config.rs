//! The configuration of a host, and its limits.

use crate::collections::token_bucket::RateLimit;
use crate::dhcp::DhcpConfig;
use crate::ethernet::neighbor::NeighborLimits;
use crate::ip::autoconfiguration::Autoconfiguration;
use crate::ip::reassembly::ReassemblyLimits;
use crate::ip::route::Route;
use crate::steering::Shard;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::ops::RangeInclusive;
use linerate_wire::{IpCidr, MacAddress};

/// The configuration of a host, and of its first interface.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The MAC address of the first interface. Links that carry IP packets without a link header
    /// ignore it.
    pub mac: MacAddress,
    /// The addresses of the first interface, with their networks. Each network gets a direct route.
    pub addresses: Vec<IpCidr>,
    /// Further routes. A route to the network of an address replaces its direct route, for example
    /// to set a window clamp or an MTU.
    pub routes: Vec<Route>,
    /// The range of ephemeral ports (RFC 6335: 49152 to 65535; a wider range is harder to guess).
    pub ephemeral_ports: RangeInclusive<u16>,
    /// Answer broadcast echo requests? RFC 1122 §3.2.2.6 leaves this to the host. Disabled by
    /// default, so that the host cannot be used to amplify a flood.
    pub answer_broadcast_echo: bool,
    /// Enable the flow cache, which delivers a frame with the same headers as the previous one
    /// directly to its connection? The cache does not change the host's behaviour.
    pub frame_prediction: bool,
    /// Count packets with TCP segments in the IPv4 identification, as 4.3BSD did? Otherwise the
    /// field is zero, because these packets cannot be fragmented (RFC 6864 §4.1). Counting saves
    /// three bytes a packet with header compression on serial lines (RFC 1144 §3.2.2), but reveals
    /// to any observer how many packets the host sends to others, and prevents batches of segments.
    pub count_packets: bool,
    /// The number of probes for a duplicate of an IPv6 address before it is used
    /// (DupAddrDetectTransmits of RFC 4862 §5.1). With any other number than zero, IPv4 addresses
    /// are probed and announced as well (RFC 5227). Zero uses addresses at once.
    ///
    /// [`StackConfig::new`] sets zero, for links whose hosts are all known: in memory, in
    /// simulations, to one virtual machine, or in a namespace of the program's own. On a network
    /// with other hosts it should be one; [`StackConfig::shared_network`] sets that. Links without
    /// a link header have no other hosts, so nothing is probed there.
    pub dad_transmits: u8,
    /// Take addresses, routes and parameters from the routers of the link (RFC 4861 §6.3,
    /// RFC 4862)? By default, router advertisements and redirects are ignored, because any host of
    /// the link can send them.
    pub ipv6_autoconfiguration: Option<Autoconfiguration>,
    /// The DHCP client, which gets an address for the host. A host of several shards has none.
    pub dhcp: Option<DhcpConfig>,
    /// The default configuration of TCP connections.
    pub tcp: linerate_tcp::Config,
    /// The limits of the host.
    pub limits: Limits,
    /// The number of this stack among the shards of a host: stacks with the same seed that share a
    /// link.
    pub shard: Shard,
}

impl StackConfig {
    /// Creates the configuration of a host with one address, and defaults otherwise.
    #[must_use]
    pub fn new(mac: MacAddress, address: IpCidr) -> Self {
        Self { addresses: Vec::from([address]), ..Self::unconfigured(mac) }
    }

    /// Enables the DHCP client.
    #[must_use]
    pub fn dhcp(self, config: DhcpConfig) -> Self {
        Self { dhcp: Some(config), ..self }
    }

    /// Creates the configuration of a host without an address, for one that gets its address later.
    #[must_use]
    pub fn unconfigured(mac: MacAddress) -> Self {
        Self {
            mac,
            addresses: Vec::new(),
            routes: Vec::new(),
            ephemeral_ports: 32_768..=60_999,
            answer_broadcast_echo: false,
            frame_prediction: true,
            count_packets: false,
            dad_transmits: 0,
            ipv6_autoconfiguration: None,
            dhcp: None,
            tcp: linerate_tcp::Config::modern(),
            limits: Limits::default(),
            shard: Shard::ONLY,
        }
    }
}

impl StackConfig {
    /// Makes this the configuration of a host on a network with hosts that are not known: an
    /// address is probed for duplicates before it is used, which takes one or two seconds for IPv6,
    /// and four to seven for IPv4.
    #[must_use]
    pub fn shared_network(self) -> Self {
        Self { dad_transmits: 1, ..self }
    }

    /// Returns the configuration of the first interface.
    pub(crate) fn first_interface(&self) -> InterfaceConfig {
        InterfaceConfig {
            mac: self.mac,
            addresses: self.addresses.clone(),
            dad_transmits: self.dad_transmits,
            ipv6_autoconfiguration: self.ipv6_autoconfiguration,
            dhcp: self.dhcp.clone().filter(|_| self.shard == Shard::ONLY),
        }
    }
}

/// The configuration of a further interface of a host ([`Stack::add_interface`]).
///
/// [`Stack::add_interface`]: crate::Stack::add_interface
#[derive(Clone, Debug)]
pub struct InterfaceConfig {
    /// See [`StackConfig::mac`].
    pub mac: MacAddress,
    /// See [`StackConfig::addresses`].
    pub addresses: Vec<IpCidr>,
    /// See [`StackConfig::dad_transmits`].
    pub dad_transmits: u8,
    /// See [`StackConfig::ipv6_autoconfiguration`].
    pub ipv6_autoconfiguration: Option<Autoconfiguration>,
    /// See [`StackConfig::dhcp`].
    pub dhcp: Option<DhcpConfig>,
}

impl InterfaceConfig {
    /// Creates the configuration of an interface with one address, and defaults otherwise.
    #[must_use]
    pub fn new(mac: MacAddress, address: IpCidr) -> Self {
        Self { addresses: Vec::from([address]), ..Self::unconfigured(mac) }
    }

    /// Creates the configuration of an interface without an address.
    #[must_use]
    pub const fn unconfigured(mac: MacAddress) -> Self {
        Self {
            mac,
            addresses: Vec::new(),
            dad_transmits: 0,
            ipv6_autoconfiguration: None,
            dhcp: None,
        }
    }
}

/// The limits of a host. Each queue has one, so that no peer can make it grow without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sockets, including orphaned connections.
    pub sockets: usize,
    /// Maximum number of connections in TIME-WAIT. Beyond this limit, the oldest ends early.
    pub time_wait: usize,
    /// Maximum number of orphans: connections that the application has closed and that have not
    /// ended. Beyond this limit, a connection is reset when it is closed.
    pub orphans: usize,
    /// Bytes of buffer memory of all connections together, at least 8 KiB. A connection that has
    /// transferred nothing may hold a seventeenth of the budget, and any other connection a half.
    /// When memory runs short, buffers release unused memory, stop growing, and drop out-of-order
    /// data, and writers have to wait.
    pub buffer_bytes: usize,
    /// Interfaces of the host.
    pub interfaces: usize,
    /// Addresses of each interface, in every state.
    pub addresses: usize,
    /// Default routers that have advertised themselves. At the limit, a new router replaces a
    /// router of lower preference, or is ignored. RFC 4861 §6.3.4 requires at least two.
    pub routers: usize,
    /// Prefixes of the link that routers have advertised, and addresses with stable identifiers
    /// from them. Further ones are ignored.
    pub prefixes: usize,
    /// Redirects of routers. At the limit, a new redirect replaces the oldest.
    pub redirects: usize,
    /// The limits of the ARP cache.
    pub neighbors: NeighborLimits,
    /// Multicast groups that sockets have joined. At the limit, joining another group fails.
    pub groups: usize,
    /// Sources in the filter of a multicast group, for all sockets together.
    pub group_sources: usize,
    /// Destinations in the path-MTU cache.
    pub path_mtus: usize,
    /// The limits of reassembly.
    pub reassembly: ReassemblyLimits,
    /// Servers in the cache of Fast Open cookies. A second cache with the same limit holds the
    /// server ports that have refused Fast Open. Both evict the least recently used entry.
    pub fast_open_servers: usize,
    /// Bytes of queued replies (ARP, ICMP, resets), and of datagrams of closed sockets.
    pub reply_bytes: usize,
    /// Bytes of queued packets from this host to itself. A host of several shards has a further
    /// queue of this limit, for segments that arrived in fragments and belong to other shards.
    pub local_bytes: usize,
    /// ICMP errors (RFC 1812 §4.3.2.8).
    pub icmp_errors: RateLimit,
    /// Resets for unknown connections.
    pub resets: RateLimit,
    /// Challenge ACKs (RFC 5961) per second, for all connections together. The limit of each second
    /// is drawn at random around this number. Each connection has an additional limit
    /// ([`linerate_tcp::Config::challenge_interval`]).
    pub challenges: u32,
    /// Maximum number of queued events about echo requests: replies and errors.
    pub echo_events: usize,
    /// Maximum number of deferred handshakes of forwarders. Beyond this limit, a new one replaces
    /// the oldest.
    pub deferred: usize,
    /// Maximum number of UDP flows of forwarders. Beyond this limit, a new one replaces the oldest
    /// without an answer.
    pub udp_flows: usize,
}

impl Limits {
    /// Divides the limits among `shards` shards. Each gets at least one of everything.
    #[must_use]
    pub fn among(self, shards: NonZeroU16) -> Self {
        let count = usize::from(shards.get());
        let part = |whole: usize| whole.div_ceil(count);
        let rate = |limit: RateLimit| {
            let shards = u32::from(shards.get());
            RateLimit {
                per_second: limit.per_second.div_ceil(shards),
                burst: limit.burst.div_ceil(shards),
            }
        };
        Self {
            sockets: part(self.sockets),
            time_wait: part(self.time_wait),
            orphans: part(self.orphans),
            buffer_bytes: part(self.buffer_bytes),
            icmp_errors: rate(self.icmp_errors),
            resets: rate(self.resets),
            challenges: self.challenges.div_ceil(u32::from(shards.get())),
            // Limits that depend on the link, not on connections, apply to each shard in full.
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
            interfaces: 64,
            addresses: 64,
            routers: 8,
            prefixes: 16,
            redirects: 64,
            neighbors: NeighborLimits::default(),
            groups: 256,
            group_sources: 64,
            path_mtus: 1_024,
            reassembly: ReassemblyLimits::default(),
            fast_open_servers: 1_024,
            reply_bytes: 256 << 10,
            local_bytes: 1 << 20,
            icmp_errors: RateLimit { per_second: 1_000, burst: 50 },
            resets: RateLimit { per_second: 1_000, burst: 200 },
            challenges: 1_000,
            echo_events: 64,
            deferred: 16_384,
            udp_flows: 4_096,
        }
    }
}
