//! The options of a forwarder, and the types by which a forwarder and its application exchange
//! flows, decisions and events.

use crate::demux::Flow;
use crate::handle::{DeferredHandle, UdpHandle};
use crate::ip::zone::with_zone;
use crate::tcp::listen::ListenOptions;
use core::net::SocketAddr;
use linerate_units::Duration;
use linerate_wire::{TcpOptions, Unreachable};

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The first packet of a flow to another host. The application decides whether to accept the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The transport protocol.
    pub transport: Transport,
    /// The sender of the packet.
    pub source: SocketAddr,
    /// The destination of the packet, which will be the local address of the socket.
    pub destination: SocketAddr,
    /// The TCP options of the SYN. Empty for UDP.
    pub options: TcpOptions,
}

impl Opening {
    /// Creates the description of the first packet of `flow`, which arrived on `interface`.
    /// Link-local addresses get this interface as their zone.
    pub(crate) fn new(
        transport: Transport,
        flow: &Flow,
        interface: u16,
        options: TcpOptions,
    ) -> Self {
        let [source, destination] =
            [flow.remote(), flow.local()].map(|end| with_zone(end, interface));
        Self { transport, source, destination, options }
    }
}

/// The decision of the application about a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accept the flow. A TCP connection is put into the accept queue of the forwarder when its
    /// handshake has completed. A UDP flow is reported as [`ForwardEvent::Datagrams`].
    Accept,
    /// Decide later. The host stores the SYN, reports it as [`ForwardEvent::Deferred`], and does
    /// not answer until the application decides. A UDP flow cannot be deferred, and is accepted.
    Defer,
    /// Reject the flow, and inform its sender.
    Reject(Rejection),
    /// Drop the first packet of the flow without an answer.
    Drop,
}

/// The way in which the sender of a rejected flow is informed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Send a TCP reset, which the sender's application sees as "connection refused". For UDP, send
    /// an ICMP "port unreachable".
    Reset,
    /// Send this ICMP error, unless the host's rate limit of ICMP errors is reached.
    Unreachable(Unreachable),
}

/// The host's reaction to echo requests to the destinations of a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EchoPolicy {
    /// Send no answer, as if the destination did not exist.
    #[default]
    Drop,
    /// Send an echo reply from the address of the destination, without contacting the destination.
    Answer,
    /// Send the ICMP error "communication administratively prohibited".
    Reject,
}

/// The options of a forwarder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForwardOptions {
    /// Options of the forwarder's listener: the limits of its queues, and the configuration of its
    /// connections.
    pub listen: ListenOptions,
    /// Time without a datagram after which a UDP flow ends. RFC 4787 REQ-5 requires at least two
    /// minutes.
    pub udp_idle: Duration,
    /// Time without a datagram after which a UDP flow to a port below 1,024 ends. RFC 4787 §4.3
    /// permits a shorter time for these ports.
    pub udp_idle_well_known: Duration,
    /// Maximum size in bytes of each UDP flow's receive queue, and of its send queue. Datagrams
    /// count as described in [`crate::UdpOptions`].
    pub udp_queue_bytes: usize,
    /// The host's reaction to echo requests to the destinations of the forwarder.
    pub echo: EchoPolicy,
}

impl Default for ForwardOptions {
    fn default() -> Self {
        Self {
            listen: ListenOptions::default(),
            udp_idle: Duration::from_secs(120),
            udp_idle_well_known: Duration::from_secs(30),
            udp_queue_bytes: 68 << 10,
            echo: EchoPolicy::default(),
        }
    }
}

/// An event of a host's forwarders, for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardEvent {
    /// A handshake that the application has deferred by [`Verdict::Defer`]. The application must
    /// call [`crate::Stack::forward_accept`], [`crate::Stack::forward_reject`] or
    /// [`crate::Stack::forward_drop`] later.
    Deferred(DeferredHandle, Opening),
    /// A deferred handshake about which the application need not decide any more. The client has
    /// given up, or a newer deferred handshake has replaced it at the limit. The handle is invalid
    /// from now on.
    Cancelled(DeferredHandle),
    /// A new UDP flow. Its socket is connected to the source of the flow, and the local address of
    /// the socket is the destination of the flow. The first datagram can be read from the socket.
    Datagrams(UdpHandle, Opening),
    /// A UDP flow that has ended because it was idle or was evicted. The host has closed its
    /// socket.
    Expired(UdpHandle),
}

/// The counters and the state of a host's forwarders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForwardStatistics {
    /// Present number of deferred handshakes.
    pub deferred: usize,
    /// Present number of UDP flows.
    pub udp_flows: usize,
    /// Number of SYNs about which the application was asked for a decision.
    pub syns: u64,
    /// Number of deferred handshakes that were accepted.
    pub accepted: u64,
    /// Number of flows that were rejected.
    pub rejected: u64,
    /// Number of SYNs and datagrams that were dropped: by decision of the application, because no
    /// socket could be created, or because a port of the datagram was zero.
    pub dropped: u64,
    /// Number of SYNs that the clients of deferred handshakes have retransmitted.
    pub repeated: u64,
    /// Number of deferred handshakes that ended because the client gave up.
    pub cancelled: u64,
    /// Number of deferred handshakes that newer deferred handshakes have replaced at the limit.
    pub recycled: u64,
    /// Number of UDP flows that have begun.
    pub udp_opened: u64,
    /// Number of UDP flows that have ended because they were idle.
    pub udp_expired: u64,
    /// Number of UDP flows that newer UDP flows have replaced at the limit.
    pub udp_evicted: u64,
}
