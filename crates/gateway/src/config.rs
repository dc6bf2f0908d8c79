//! The configuration of a gateway.

use linerate_stack::EchoPolicy;
use linerate_tcp::{BufferSize, Config, KeepAlive};
use linerate_units::Duration;
use linerate_wire::{IpCidr, Ipv4Cidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The address of the gateway on its link, with the prefix length of the network.
    pub address: Ipv4Cidr,
    /// The MAC address of the gateway, on links with Ethernet frames.
    pub mac: MacAddress,
    /// The name server of clients, and the resolver to which its queries are relayed.
    pub dns: Option<(IpAddr, SocketAddr)>,
    /// Do flows to the gateway's own address reach the loopback interface of this machine?
    /// Otherwise they are rejected.
    pub host_loopback: bool,
    /// Networks to which no flow is relayed.
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

impl Default for GatewayConfig {
    /// Returns the configuration of a gateway at 10.0.2.2/24, without name server.
    fn default() -> Self {
        Self {
            address: Ipv4Cidr::new(Ipv4Addr::new(10, 0, 2, 2), 24)
                .unwrap_or(Ipv4Cidr::single(Ipv4Addr::new(10, 0, 2, 2))),
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
