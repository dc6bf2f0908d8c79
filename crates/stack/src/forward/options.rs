//! Options of a forwarder, and the flows and events that its application handles.

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

/// The first packet of a flow to another host, for the application to decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The transport protocol.
    pub transport: Transport,
    /// The sender of the packet.
    pub source: SocketAddr,
    /// The destination of the packet, which will be the local address of the socket.
    pub destination: SocketAddr,
    /// The TCP options of the SYN; none for UDP.
    pub options: TcpOptions,
}

impl Opening {
    /// Describes the first packet of `flow` on `interface`, whose addresses get their zones.
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
    /// Accept the flow. A TCP connection appears in the accept queue of the forwarder, a UDP flow
    /// as [`ForwardEvent::Datagrams`].
    Accept,
    /// Decide later. The SYN is kept and reported as [`ForwardEvent::Deferred`], and its sender
    /// gets no answer until the application decides. A UDP flow is accepted.
    Defer,
    /// Reject the flow, and inform its sender.
    Reject(Rejection),
    /// Drop the packet without an answer.
    Drop,
}

/// The way in which the sender of a rejected flow is informed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A TCP reset, by which the sender sees "connection refused". For UDP, an ICMP "port
    /// unreachable".
    Reset,
    /// An ICMP error, unless the host's rate limit of errors is reached.
    Unreachable(Unreachable),
}

/// The host's reaction to echo requests for other hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EchoPolicy {
    /// No answer, as from a destination that does not exist.
    #[default]
    Drop,
    /// An echo reply in the name of the destination, which is not asked.
    Answer,
    /// An ICMP error that says that communication is prohibited.
    Reject,
}

/// The options of a forwarder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForwardOptions {
    /// Options of the listener: its queues, and the configuration of all connections.
    pub listen: ListenOptions,
    /// Time without a datagram after which a UDP flow ends. RFC 4787 REQ-5 requires at least two
    /// minutes.
    pub udp_idle: Duration,
    /// Time without a datagram after which a UDP flow to a port below 1,024 ends. RFC 4787 §4.3
    /// permits a shorter one for these.
    pub udp_idle_well_known: Duration,
    /// Maximum size of each queue of a UDP flow in bytes, see [`crate::UdpOptions`].
    pub udp_queue_bytes: usize,
    /// The reaction to echo requests for other hosts.
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
    /// A handshake that the application has deferred. It must be answered by
    /// [`crate::Stack::forward_accept`], [`crate::Stack::forward_reject`] or
    /// [`crate::Stack::forward_drop`].
    Deferred(DeferredHandle, Opening),
    /// A deferred handshake that needs no answer any more: its client has given up, or too many
    /// others were deferred. The handle is invalid from now on.
    Cancelled(DeferredHandle),
    /// A new UDP flow. Its socket is connected to the source of the flow, and its local address is
    /// the destination. The first datagram can be read.
    Datagrams(UdpHandle, Opening),
    /// A UDP flow that has ended, because it was idle or was evicted. Its socket is closed.
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
    /// Number of SYNs that the application has decided about.
    pub syns: u64,
    /// Number of deferred handshakes that were accepted.
    pub accepted: u64,
    /// Number of flows that were rejected.
    pub rejected: u64,
    /// Number of SYNs and datagrams that were dropped by a decision of the application.
    pub dropped: u64,
    /// Number of retransmitted SYNs of deferred handshakes.
    pub repeated: u64,
    /// Number of deferred handshakes that ended because the client gave up.
    pub cancelled: u64,
    /// Number of deferred handshakes that newer ones have replaced at the limit.
    pub recycled: u64,
    /// Number of UDP flows that have begun.
    pub udp_opened: u64,
    /// Number of UDP flows that have ended because they were idle.
    pub udp_expired: u64,
    /// Number of UDP flows that newer ones have replaced at the limit.
    pub udp_evicted: u64,
}
