//! The configuration of a gateway.

use linerate_stack::EchoPolicy;
use linerate_tcp::{BufferSize, Config, KeepAlive};
use linerate_units::Duration;
use linerate_wire::{IpCidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Default addresses of a gateway. The IPv6 prefix is a unique local one (RFC 4193). Its global ID
/// is zero instead of random: the prefix is used on one link only, so it cannot conflict with
/// another network.
const DEFAULT_ADDRESSES: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2)), 24),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)), 64),
];

/// The configuration of a gateway.
///
/// ```
/// use linerate_gateway::GatewayConfig;
///
/// // Clients of either IP version may reach everything except this private network.
/// let config = GatewayConfig {
///     addresses: vec!["10.9.0.1/24".parse()?, "fd09::1/64".parse()?],
///     denied: vec!["192.168.0.0/16".parse()?],
///     flows: 10_000,
///     ..GatewayConfig::default()
/// };
/// assert!(!config.host_loopback, "nor the services of this machine");
/// # Ok::<(), linerate_wire::ParseIpCidrError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Addresses of the gateway on its link, with the prefix length of the clients' network. Flows
    /// of an IP version without an address are not relayed.
    pub addresses: Vec<IpCidr>,
    /// MAC address of the gateway, on a link with Ethernet frames.
    pub mac: MacAddress,
    /// The DNS server that the gateway offers to its clients; `None` if it offers no DNS server.
    pub dns: Option<DnsRelay>,
    /// Are flows to the gateway's own addresses relayed to the loopback address of this machine?
    /// Otherwise they are rejected.
    pub host_loopback: bool,
    /// Prefixes to which no flow may be relayed.
    pub denied: Vec<IpCidr>,
    /// The reaction to ICMP echo requests that clients send to other hosts.
    pub echo: EchoPolicy,
    /// Maximum number of flows. At the maximum, the first packet of a new flow is dropped, so a TCP
    /// client repeats its SYN. The process's limit of open files may lower the maximum.
    pub flows: usize,
    /// Maximum number of UDP flows. UDP flows also count towards the limit `flows`, and take at
    /// most half of it, even if `udp_flows` is larger.
    pub udp_flows: usize,
    /// Maximum memory for the buffers of all connections to clients, in bytes.
    pub buffer_bytes: usize,
    /// Configuration of TCP towards the clients.
    pub tcp: Config,
    /// Maximum time for which connections may continue after a request to stop. Then they are
    /// reset.
    pub drain: Duration,
}

/// A DNS server for clients, which relays their queries over UDP and TCP to a resolver.
///
/// ```
/// use linerate_gateway::{DnsRelay, GatewayConfig};
///
/// let relay = DnsRelay {
///     addresses: vec!["10.0.2.3".parse()?, "fd00::3".parse()?],
///     resolver: "127.0.0.53:53".parse()?,
/// };
/// let config = GatewayConfig { dns: Some(relay), ..GatewayConfig::default() };
/// # assert!(config.dns.is_some());
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsRelay {
    /// Addresses at which clients send their queries, of either IP version.
    pub addresses: Vec<IpAddr>,
    /// Address of the resolver that answers the queries. Its IP version may differ from that of
    /// `addresses`.
    pub resolver: SocketAddr,
}

impl Default for GatewayConfig {
    /// Returns the configuration of a gateway at 10.0.2.2/24 and fd00::2/64, without a DNS server.
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
                // Nagle's algorithm is off. The client or the server may already delay small
                // segments by this algorithm, and the gateway would delay their data a second time.
                no_delay: true,
                // Keep-alive removes the flow of a client that has disappeared.
                keep_alive: Some(KeepAlive::default()),
                // A larger send buffer would only exceed the processor's cache. With a receive
                // buffer of at most 1 MiB, eight simultaneous uploads took half as much processor
                // time again. A buffer takes memory only for the data in it, and all buffers
                // together at most `buffer_bytes`.
                send_buffer: BufferSize::Tuned { initial: 16 << 10, most: 1 << 20 },
                receive_buffer: BufferSize::Tuned { initial: 256 << 10, most: 4 << 20 },
                ..Config::modern()
            },
            drain: Duration::from_secs(10),
        }
    }
}
