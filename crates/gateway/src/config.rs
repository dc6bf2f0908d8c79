//! The configuration of a gateway.

use linerate_stack::EchoPolicy;
use linerate_tcp::{BufferSize, Config, KeepAlive};
use linerate_units::Duration;
use linerate_wire::{IpCidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses of a gateway by default. The prefix of the second is one of RFC 4193, but not a
/// random one: its network has one link.
const DEFAULT_ADDRESSES: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2)), 24),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)), 64),
];

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The addresses of the gateway on its link, with the prefix lengths of their networks. Flows
    /// of an IP version without an address are not relayed.
    pub addresses: Vec<IpCidr>,
    /// The MAC address of the gateway, on links with Ethernet frames.
    pub mac: MacAddress,
    /// The name server of clients.
    pub dns: Option<DnsRelay>,
    /// Do flows to the gateway's own addresses reach the loopback interface of this machine?
    /// Otherwise they are rejected.
    pub host_loopback: bool,
    /// Prefixes to which no flow is relayed.
    pub denied: Vec<IpCidr>,
    /// The answer to echo requests.
    pub echo: EchoPolicy,
    /// Limit of flows; beyond it, new ones wait or are dropped. The limit of open files lowers it.
    pub flows: usize,
    /// Limit of UDP flows among them.
    pub udp_flows: usize,
    /// Limit of the memory of all connections' buffers in bytes.
    pub buffer_bytes: usize,
    /// The configuration of TCP towards clients.
    pub tcp: Config,
    /// The time that connections have to end after a request to stop.
    pub drain: Duration,
}

/// The name server of clients, whose queries are relayed over UDP and TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsRelay {
    /// The addresses at which clients see the name server, of either IP version.
    pub addresses: Vec<IpAddr>,
    /// The resolver that answers. It may have another IP version.
    pub resolver: SocketAddr,
}

impl Default for GatewayConfig {
    /// Returns the configuration of a gateway at 10.0.2.2/24 and fd00::2/64, without name server.
    fn default() -> Self {
        Self {
            addresses: DEFAULT_ADDRESSES
                .iter()
                .filter_map(|&(address, length)| IpCidr::new(address, length))
                .collect(),
            mac: MacAddress::new([0x02, 0, 0, 0, 2, 2]),
            dns: None,
            host_loopback: false,
            denied: Vec::new(),
            echo: EchoPolicy::Drop,
            flows: 65_536,
            udp_flows: 4_096,
            buffer_bytes: 256 << 20,
            tcp: Config {
                // The sender of relayed data has waited already, so a further wait saves nothing.
                no_delay: true,
                // A client that has vanished must not keep its flow for ever.
                keep_alive: Some(KeepAlive::default()),
                // Clients are near, so larger buffers would only leave the processor's cache.
                send_buffer: BufferSize::Tuned { initial: 16 << 10, most: 1 << 20 },
                receive_buffer: BufferSize::Tuned { initial: 256 << 10, most: 1 << 20 },
                ..Config::modern()
            },
            drain: Duration::from_secs(10),
        }
    }
}
