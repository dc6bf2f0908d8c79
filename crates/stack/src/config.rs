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

/// The configuration of a host and of the host's first interface.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The MAC address of the first interface. Links that carry IP packets without a link header
    /// ignore it.
    pub mac: MacAddress,
    /// The addresses of the first interface, each with its network. The host adds a direct route to
    /// each network.
    pub addresses: Vec<IpCidr>,
    /// Routes in addition to the direct routes of `addresses`. A route to the network of an address
    /// replaces the direct route to this network, for example to set a window clamp or an MTU.
    pub routes: Vec<Route>,
    /// The range of ephemeral ports. RFC 6335 §6 reserves 49152 to 65535, but ports from a wider
    /// range are harder to guess.
    pub ephemeral_ports: RangeInclusive<u16>,
    /// Whether the host answers echo requests to broadcast addresses, which RFC 1122 §3.2.2.6
    /// permits. False by default: otherwise an attacker could make all hosts of a network answer
    /// one request, and direct the answers at a victim.
    pub answer_broadcast_echo: bool,
    /// Whether the host uses the flow cache. This cache delivers a frame directly to its
    /// connection, if the headers of the frame match those of the previous frame. It saves
    /// processing time, and does not change the host's behaviour.
    pub frame_prediction: bool,
    /// Whether the IPv4 identification of TCP packets is a counter, as in 4.3BSD. If false, the
    /// field is zero, which is permitted because these packets have the flag DF (RFC 6864 §4.1).
    /// With header compression on serial lines, a packet takes three bytes less if its
    /// identification is one more than that of the previous packet (RFC 1144 §3.2.2). But the
    /// counter reveals to every receiver how many packets the host sends to other hosts. With the
    /// counter, the host cannot send segments in batches either, because all segments of a batch
    /// have equal identifications.
    pub count_packets: bool,
    /// The number of probes for a duplicate that the host sends before it uses an IPv6 address
    /// (DupAddrDetectTransmits, RFC 4862 §5.1). If the number is not zero, the host also probes and
    /// announces IPv4 addresses (RFC 5227). If it is zero, the host uses its addresses at once.
    ///
    /// [`StackConfig::new`] sets this number to zero, for links whose hosts are all known: links in
    /// memory or in a simulation, to one virtual machine, or in a private network namespace. On a
    /// network with unknown hosts the number should be one, which [`StackConfig::shared_network`]
    /// sets. On links without a link header nothing is probed, because they have only one peer.
    pub dad_transmits: u8,
    /// The options for taking addresses, routes and parameters from the routers on the link (RFC
    /// 4861 §6.3, RFC 4862). With `None`, the default, the host ignores router advertisements and
    /// redirects, because any host on the link could forge them.
    pub ipv6_autoconfiguration: Option<Autoconfiguration>,
    /// The options of the DHCP client, which gets an address for the host; `None` disables the
    /// client. A host of several shards ignores this field and runs no DHCP client.
    pub dhcp: Option<DhcpConfig>,
    /// The default configuration of TCP connections.
    pub tcp: linerate_tcp::Config,
    /// The limits of the host.
    pub limits: Limits,
    /// The position of this stack among the shards of a host. A host of several shards consists of
    /// several stacks with equal seeds, which share a link and divide the connections among them.
    pub shard: Shard,
}

impl StackConfig {
    /// Creates the configuration of a host with one address, and default values for everything
    /// else.
    #[must_use]
    pub fn new(mac: MacAddress, address: IpCidr) -> Self {
        Self { addresses: Vec::from([address]), ..Self::unconfigured(mac) }
    }

    /// Enables the DHCP client.
    #[must_use]
    pub fn dhcp(self, config: DhcpConfig) -> Self {
        Self { dhcp: Some(config), ..self }
    }

    /// Creates the configuration of a host without an address, for a host that gets its address
    /// later.
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
    /// Adapts the configuration to a network with unknown hosts. The host then probes each address
    /// for duplicates before it uses the address. This takes one or two seconds for IPv6, and four
    /// to seven seconds for IPv4.
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

/// The configuration of an interface that is added to a host after its first interface
/// ([`Stack::add_interface`]).
///
/// [`Stack::add_interface`]: crate::Stack::add_interface
#[derive(Clone, Debug)]
pub struct InterfaceConfig {
    /// The MAC address of the interface; see [`StackConfig::mac`].
    pub mac: MacAddress,
    /// The addresses of the interface; see [`StackConfig::addresses`].
    pub addresses: Vec<IpCidr>,
    /// The number of probes for a duplicate address; see [`StackConfig::dad_transmits`].
    pub dad_transmits: u8,
    /// The options of IPv6 autoconfiguration; see [`StackConfig::ipv6_autoconfiguration`].
    pub ipv6_autoconfiguration: Option<Autoconfiguration>,
    /// The options of the DHCP client; see [`StackConfig::dhcp`].
    pub dhcp: Option<DhcpConfig>,
}

impl InterfaceConfig {
    /// Creates the configuration of an interface with one address, and default values for
    /// everything else.
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

/// The limits of a host. Each queue has a limit, so that no peer can make the queue grow without
/// bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of sockets, including orphaned connections, which the application has closed.
    pub sockets: usize,
    /// Maximum number of connections in TIME-WAIT. Beyond this limit, the connection that has been
    /// in TIME-WAIT longest leaves this state early.
    pub time_wait: usize,
    /// Maximum number of orphaned connections: connections that the application has closed, but
    /// that still exchange segments. At this limit, a connection that the application closes is
    /// reset.
    pub orphans: usize,
    /// Buffer memory of all connections together, in bytes; at least 8 KiB. A connection may at
    /// first hold a sixteenth of the memory that is still free. Once it has transferred as many
    /// bytes as it holds, it may hold as much as is still free. A single connection can thus hold
    /// at first a seventeenth, and later half, of all memory. When memory runs short, buffers
    /// release unused memory, stop growing, and drop out-of-order data, and applications have to
    /// wait before they can write.
    pub buffer_bytes: usize,
    /// Maximum number of interfaces of the host.
    pub interfaces: usize,
    /// Maximum number of addresses of each interface, in any state.
    pub addresses: usize,
    /// Maximum number of default routers known from router advertisements. At the limit, a new
    /// router replaces a router of lower preference; if there is none, the new router is ignored.
    /// RFC 4861 §6.3.4 requires at least two.
    pub routers: usize,
    /// Maximum number of on-link prefixes from router advertisements. It also limits the number of
    /// addresses with stable identifiers that the host forms from advertised prefixes. Prefixes
    /// beyond the limit are ignored.
    pub prefixes: usize,
    /// Maximum number of stored redirects. At the limit, a new redirect replaces the oldest.
    pub redirects: usize,
    /// The limits of the neighbour cache (ARP and Neighbour Discovery).
    pub neighbors: NeighborLimits,
    /// Maximum number of multicast groups that sockets have joined. At the limit, joining another
    /// group fails.
    pub groups: usize,
    /// Maximum number of sources in the filter of a multicast group, for all sockets together.
    pub group_sources: usize,
    /// Maximum number of destinations in the path-MTU cache.
    pub path_mtus: usize,
    /// The limits of the reassembly of fragmented datagrams.
    pub reassembly: ReassemblyLimits,
    /// Maximum number of servers in the cache of Fast Open cookies. A second cache, for server
    /// ports at which Fast Open failed, has an equal limit. Both caches evict the least recently
    /// used entry.
    pub fast_open_servers: usize,
    /// Maximum size of the reply queue of an interface, in bytes. The queue holds ARP, ICMP and
    /// reset packets, and the unsent datagrams of closed sockets.
    pub reply_bytes: usize,
    /// Maximum size of the queue of packets that this host sends to itself, in bytes. A host of
    /// several shards has another queue of this maximum size. It holds segments that were
    /// reassembled from IP fragments and belong to other shards.
    pub local_bytes: usize,
    /// Rate limit of sent ICMP errors (RFC 1812 §4.3.2.8).
    pub icmp_errors: RateLimit,
    /// Rate limit of resets that answer segments of unknown connections.
    pub resets: RateLimit,
    /// Mean limit of challenge ACKs per second, for all connections together (RFC 5961 §7). The
    /// actual limit of each second is drawn at random around this number. Each connection also has
    /// a limit of its own ([`linerate_tcp::Config::challenge_interval`]).
    pub challenges: u32,
    /// Maximum number of queued events about this host's echo requests: replies and errors.
    pub echo_events: usize,
    /// Maximum number of deferred handshakes of forwarders. Beyond this limit, a new deferred
    /// handshake replaces the oldest.
    pub deferred: usize,
    /// Maximum number of UDP flows of forwarders. Beyond this limit, a new flow replaces the flow
    /// that has been idle longest among those on which the application has sent no datagram. If the
    /// application has sent on all flows, it replaces the flow that has been idle longest.
    pub udp_flows: usize,
}

impl Limits {
    /// Returns the limits of one shard of a host that has `shards` shards. The limits of
    /// connections, of buffer memory and of packet rates are divided by `shards`, rounded up. All
    /// other limits, such as the number of neighbours, are not divided.
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
            // Each shard gets all other limits undivided. Most of them depend on the link, for
            // example on the number of neighbours, and not on the number of connections.
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
