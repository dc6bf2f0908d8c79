//! The options of a forwarder, and the flows and events that its application sees.

use crate::handle::{DeferredHandle, UdpHandle};
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

/// The first packet of a flow to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The transport protocol.
    pub transport: Transport,
    /// The sender of the packet.
    pub source: SocketAddr,
    /// The destination of the packet, which becomes the local address of the socket.
    pub destination: SocketAddr,
    /// The options of the SYN; none for UDP.
    pub options: TcpOptions,
}

/// The decision about a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accept the flow. A TCP connection appears in the accept queue of the forwarder, a UDP flow
    /// as [`ForwardEvent::Datagrams`].
    Accept,
    /// Decide later. The SYN is kept as a record, and reported as [`ForwardEvent::Deferred`]. Its
    /// sender gets no answer until then. A UDP flow is accepted.
    Defer,
    /// Reject the flow, and tell its sender.
    Reject(Rejection),
    /// Drop the packet without an answer.
    Drop,
}

/// The answer to a rejected flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A reset, by which the sender sees "connection refused"; "port unreachable" for UDP.
    Reset,
    /// An ICMP error, within the rate limit of the host's errors.
    Unreachable(Unreachable),
}

/// The answer to echo requests for other hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EchoPolicy {
    /// No answer, as if the destination was silent.
    #[default]
    Drop,
    /// An echo reply in the name of the destination, without asking the destination.
    Answer,
    /// An ICMP error: communication is prohibited.
    Reject,
}

/// The options of a forwarder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForwardOptions {
    /// The queues of connections that are accepted at once, and the configuration of all.
    pub listen: ListenOptions,
    /// A UDP flow ends after this time without a datagram. RFC 4787 REQ-5 requires two minutes.
    pub udp_idle: Duration,
    /// A UDP flow to a port below 1,024 ends after this time, which RFC 4787 §4.3 allows to be
    /// shorter.
    pub udp_idle_well_known: Duration,
    /// Limit of each queue of a UDP flow in bytes, see [`crate::UdpOptions`].
    pub udp_queue_bytes: usize,
    /// The answer to echo requests.
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

/// An event of the forwarders of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardEvent {
    /// The hook has deferred this handshake. Answer it by [`crate::Stack::forward_accept`],
    /// [`crate::Stack::forward_reject`] or [`crate::Stack::forward_drop`].
    Deferred(DeferredHandle, Opening),
    /// The handshake needs no answer: its client has given up, or too many others were deferred.
    /// The handle is invalid.
    Cancelled(DeferredHandle),
    /// A UDP flow has begun. The socket is connected to its source, its local address is the
    /// destination, and the first datagram can be received.
    Datagrams(UdpHandle, Opening),
    /// A UDP flow was idle, or was evicted. Its handle is closed.
    Expired(UdpHandle),
}

/// The counters and the state of a host's forwarders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForwardStatistics {
    /// Current deferred handshakes.
    pub deferred: usize,
    /// Current UDP flows.
    pub udp_flows: usize,
    /// SYNs for which the hook was asked.
    pub syns: u64,
    /// Deferred handshakes that were accepted.
    pub accepted: u64,
    /// Flows that were rejected.
    pub rejected: u64,
    /// SYNs and datagrams that the hook or the application had dropped.
    pub dropped: u64,
    /// Repeated SYNs of deferred handshakes.
    pub repeated: u64,
    /// Deferred handshakes that ended because the client gave up.
    pub cancelled: u64,
    /// Deferred handshakes that a newer one replaced at the limit.
    pub recycled: u64,
    /// UDP flows.
    pub udp_opened: u64,
    /// UDP flows that ended because they were idle.
    pub udp_expired: u64,
    /// UDP flows that a newer one replaced at the limit.
    pub udp_evicted: u64,
}
