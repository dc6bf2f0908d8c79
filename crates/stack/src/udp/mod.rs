//! UDP sockets: their options and their queues.

use crate::collections::packet_queue::PacketQueue;
use crate::demux::{Binding, Flow};
use crate::error::Error;
use crate::ip::egress::Egress;
use crate::ip::header_length;
use core::net::{IpAddr, SocketAddr};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ipv4Header, TypeOfService, UdpHeader};

/// The options of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Maximum size of the receive queue in bytes. Datagrams that do not fit are dropped. Each
    /// datagram counts as its data plus 64 bytes.
    pub receive_bytes: usize,
    /// Maximum size of the send queue in bytes. Datagrams that do not fit are refused. Each
    /// datagram counts as its data plus 92 bytes over IPv4, and plus 112 bytes over IPv6. An empty
    /// datagram always fits into an empty queue. A datagram that would not fit even into an empty
    /// queue is refused with [`Error::MessageTooLong`].
    pub send_bytes: usize,
    /// Whether the socket may send to broadcast addresses.
    pub broadcast: bool,
    /// The TTL or hop limit of datagrams to unicast and broadcast addresses.
    pub hops: u8,
    /// The type of service or traffic class of datagrams: DSCP and ECN.
    pub type_of_service: TypeOfService,
    /// The TTL or hop limit of datagrams to multicast groups. With zero, these datagrams do not
    /// leave the host.
    pub multicast_hops: u8,
    /// Whether datagrams of this socket to a multicast group are also delivered to sockets of this
    /// host that have joined the group.
    pub multicast_loop: bool,
    /// The use of fragmentation for the datagrams of the socket.
    pub fragmentation: Fragmentation,
    /// Whether a socket at `::` excludes IPv4 (`IPV6_V6ONLY`). If false, the socket exchanges
    /// datagrams over both IP versions, and shows IPv4 addresses to the application as IPv4-mapped
    /// IPv6 addresses (RFC 3493 §3.7). The option has no effect on a socket at an IPv4 address.
    pub only_v6: bool,
}

/// The use of fragmentation for the datagrams of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fragmentation {
    /// A datagram that exceeds the path MTU is sent in fragments. All other IPv4 datagrams have DF
    /// set, so that routers report a smaller path MTU. This is `IP_PMTUDISC_WANT` of Linux.
    #[default]
    AsNeeded,
    /// A datagram that exceeds the path MTU is refused with [`Error::MessageTooLong`], which
    /// contains the largest size that fits. If a router reports a smaller path MTU, the next call
    /// on the socket returns this error. This is `IP_PMTUDISC_DO` of Linux.
    Never,
    /// IPv4 datagrams do not have DF set. A router whose next link has a smaller MTU thus fragments
    /// the datagram, and sends no error. The host itself fragments a datagram that exceeds the
    /// known path MTU. Routers never fragment IPv6 datagrams, so these are sent as with
    /// [`Fragmentation::AsNeeded`]. This is `IP_PMTUDISC_DONT` of Linux.
    ByRouters,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            receive_bytes: 208 << 10,
            send_bytes: 208 << 10,
            broadcast: false,
            hops: Ipv4Header::DEFAULT_TTL,
            type_of_service: TypeOfService::default(),
            multicast_hops: 1,
            multicast_loop: true,
            fragmentation: Fragmentation::AsNeeded,
            only_v6: false,
        }
    }
}

/// The description of several consecutive datagrams from one sender, which a single call has
/// received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedSegments {
    /// The number of data bytes in all datagrams together.
    pub length: usize,
    /// The number of data bytes in each datagram, except the final datagram, which may be shorter.
    /// Zero if the only received datagram is empty.
    pub segment: usize,
    /// The address and port of the sender.
    pub from: SocketAddr,
}

/// A UDP socket of this host.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    pub(crate) binding: Binding,
    /// The address and port of the peer; `None` if the socket is not connected. An IPv4 address is
    /// stored as such, not as an IPv4-mapped IPv6 address.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) broadcast: bool,
    pub(crate) hops: u8,
    pub(crate) type_of_service: TypeOfService,
    pub(crate) multicast_hops: u8,
    pub(crate) multicast_loop: bool,
    pub(crate) fragmentation: Fragmentation,
    /// The receive queue: datagrams, each with the address and port of its sender. An IPv4 address
    /// is stored as such, not as an IPv4-mapped IPv6 address.
    pub(crate) received: PacketQueue<SocketAddr>,
    /// The send queue: complete IP packets.
    pub(crate) to_send: PacketQueue<()>,
    /// The egress of the first packet in the send queue: an interface, or this host itself.
    pub(crate) egress: Egress,
    /// The number of the interface over which datagrams to multicast groups leave; `None` if the
    /// application has chosen no interface.
    pub(crate) multicast_interface: Option<u32>,
    /// Whether the application waits for room in the send queue: a datagram did not fit, and
    /// [`UdpEvent::Writable`](crate::UdpEvent::Writable) was not reported since.
    pub(crate) wants_writable: bool,
    /// An error about a sent datagram, which the next call of the application returns. The cause is
    /// a received ICMP error, or a next hop that did not answer address resolution.
    pub(crate) error: Option<Error>,
    /// The state of the forwarded flow, if a forwarder has created the socket.
    pub(crate) forwarded: Option<UdpFlow>,
}

/// The list of [`crate::forward::UdpFlows`] that contains a forwarded flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UdpFlowList {
    Fresh,
    Unanswered,
    Answered,
}

/// The state of a forwarded UDP flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpFlow {
    /// The time without a datagram after which the flow ends.
    pub(crate) idle: Duration,
    /// The time of the most recent datagram of the flow.
    pub(crate) last: Instant,
    pub(crate) list: UdpFlowList,
}

impl UdpSocket {
    pub(crate) const fn new(binding: Binding, options: &UdpOptions) -> Self {
        Self {
            binding,
            peer: None,
            broadcast: options.broadcast,
            hops: options.hops,
            type_of_service: options.type_of_service,
            multicast_hops: options.multicast_hops,
            multicast_loop: options.multicast_loop,
            fragmentation: options.fragmentation,
            received: PacketQueue::new(options.receive_bytes),
            to_send: PacketQueue::with_room_for(headers(binding.local().ip()), options.send_bytes),
            egress: Egress::FIRST,
            multicast_interface: None,
            wants_writable: false,
            error: None,
            forwarded: None,
        }
    }

    /// Returns the keys by which received datagrams find the socket in the table of UDP sockets.
    pub(crate) fn flows(&self) -> impl Iterator<Item = Flow> + use<> {
        let forwarded = self.forwarded.and(self.peer);
        let forwarded = forwarded.map(|peer| Flow::new(self.binding.local(), peer));
        let bound = forwarded.is_none().then(|| self.binding.flows());
        forwarded.into_iter().chain(bound.into_iter().flatten())
    }

    /// Is the socket bound to an address that receives datagrams to the multicast address and port
    /// `group`?
    pub(crate) fn is_bound_for(&self, group: SocketAddr) -> bool {
        let local = self.binding.local();
        local.port() == group.port() && (local.ip().is_unspecified() || local.ip() == group.ip())
    }

    /// Does the socket accept datagrams from `remote`? A connected socket accepts only datagrams of
    /// its peer.
    pub(crate) fn accepts(&self, remote: SocketAddr) -> bool {
        self.peer.is_none_or(|peer| peer == remote)
    }
}

/// Returns the maximum number of data bytes in a datagram to `destination` whose packet has at most
/// `mtu` bytes.
pub(crate) const fn data_limit(mtu: usize, destination: IpAddr) -> usize {
    mtu.saturating_sub(headers(destination))
}

/// Returns the maximum number of data bytes in a datagram to `destination`, fragmented or not. The
/// 16-bit length fields of UDP and IP set this limit.
pub(crate) const fn largest_datagram(destination: IpAddr) -> usize {
    let headers = match destination {
        IpAddr::V4(_) => headers(destination),
        IpAddr::V6(_) => UdpHeader::LENGTH,
    };
    u16::MAX as usize - headers
}

/// Returns the length of the IP and UDP headers of a datagram to `destination`, in bytes.
const fn headers(destination: IpAddr) -> usize {
    header_length(destination) + UdpHeader::LENGTH
}
