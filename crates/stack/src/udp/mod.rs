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
    /// Limit of the receive queue in bytes; datagrams beyond it are dropped. A datagram counts 64
    /// bytes beside its data.
    pub receive_bytes: usize,
    /// Limit of the send queue in bytes; datagrams beyond it are refused. A datagram counts 92
    /// bytes beside its data. An empty datagram always fits into an empty queue. A datagram that
    /// exceeds the limit alone is too long.
    pub send_bytes: usize,
    /// May the socket send to broadcast addresses?
    pub broadcast: bool,
    /// The TTL or hop limit of datagrams to single hosts and broadcast addresses.
    pub hops: u8,
    /// The type of service or traffic class of datagrams: DSCP and ECN.
    pub type_of_service: TypeOfService,
    /// The TTL or hop limit of datagrams to multicast groups. Those with zero do not leave the
    /// host.
    pub multicast_hops: u8,
    /// Do sockets of this host receive the datagrams of this socket to groups that they have
    /// joined?
    pub multicast_loop: bool,
    /// May datagrams be sent in fragments?
    pub fragmentation: Fragmentation,
    /// Whether a socket at `::` excludes IPv4 (`IPV6_V6ONLY`). If not, it exchanges datagrams over
    /// both IP versions, and shows IPv4 addresses in IPv6 form (RFC 3493 §3.7). The option has no
    /// effect on a socket at an IPv4 address.
    pub only_v6: bool,
}

/// The use of fragmentation for the datagrams of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fragmentation {
    /// A datagram that exceeds the path MTU is sent in fragments. Other datagrams of IPv4 have DF
    /// set, so that routers report a smaller path MTU. Like Linux's `IP_PMTUDISC_WANT`.
    #[default]
    AsNeeded,
    /// A datagram that exceeds the path MTU is refused by [`Error::MessageTooLong`], with the
    /// largest size that fits. A report of a smaller path MTU is the error of the next call. Like
    /// Linux's `IP_PMTUDISC_DO`.
    Never,
    /// Datagrams of IPv4 have no DF, so that routers fragment those that exceed the MTU of their
    /// next link, and report none of them. A datagram that exceeds the path MTU, as far as it is
    /// known, is sent in fragments. Datagrams of IPv6, which routers never fragment, are sent as
    /// with [`Fragmentation::AsNeeded`]. Like Linux's `IP_PMTUDISC_DONT`.
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

/// Datagrams of one sender that were received together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedSegments {
    /// The bytes of all datagrams together.
    pub length: usize,
    /// The bytes of each datagram, except for the last, which may be shorter. A single datagram can
    /// be empty.
    pub segment: usize,
    /// The sender.
    pub from: SocketAddr,
}

/// A UDP socket of this host.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    pub(crate) binding: Binding,
    /// The peer's address and port as they are in packets.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) broadcast: bool,
    pub(crate) hops: u8,
    pub(crate) type_of_service: TypeOfService,
    pub(crate) multicast_hops: u8,
    pub(crate) multicast_loop: bool,
    pub(crate) fragmentation: Fragmentation,
    /// Received datagrams, each with the address and port of its sender as they are in packets.
    pub(crate) received: PacketQueue<SocketAddr>,
    /// Packets ready to be sent.
    pub(crate) to_send: PacketQueue<()>,
    /// The way on which the first of them leaves.
    pub(crate) egress: Egress,
    /// The number of the interface over which datagrams to groups leave, if one was chosen.
    pub(crate) multicast_interface: Option<u32>,
    /// Was a datagram refused because the send queue was full, without a writable event since then?
    pub(crate) wants_writable: bool,
    /// An error reported by the network, for the next call of the application.
    pub(crate) error: Option<Error>,
    /// The state of the flow, if a forwarder has created the socket.
    pub(crate) forwarded: Option<UdpFlow>,
}

/// The list that contains a forwarded flow, see [`crate::forward::UdpFlows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UdpFlowList {
    Fresh,
    Unanswered,
    Answered,
}

/// A forwarded UDP flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpFlow {
    /// The flow ends after this time without a datagram.
    pub(crate) idle: Duration,
    /// The time of the last datagram.
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

    /// Is it bound to an address that receives the datagrams to `group` and `port`?
    pub(crate) fn is_bound_for(&self, group: SocketAddr) -> bool {
        let local = self.binding.local();
        local.port() == group.port() && (local.ip().is_unspecified() || local.ip() == group.ip())
    }

    /// Does it exchange datagrams with `remote`? A connected socket does so with its peer only.
    pub(crate) fn accepts(&self, remote: SocketAddr) -> bool {
        self.peer.is_none_or(|peer| peer == remote)
    }
}

/// Returns the data in the largest datagram of a packet of `mtu` bytes to `destination`.
pub(crate) const fn data_limit(mtu: usize, destination: IpAddr) -> usize {
    mtu.saturating_sub(headers(destination))
}

/// Returns the maximum number of data bytes in a datagram to `destination`, fragmented or not. The
/// length fields of UDP and IP have sixteen bits.
pub(crate) const fn largest_datagram(destination: IpAddr) -> usize {
    let headers = match destination {
        IpAddr::V4(_) => headers(destination),
        IpAddr::V6(_) => UdpHeader::LENGTH,
    };
    u16::MAX as usize - headers
}

/// Returns the bytes of the IP and UDP headers before data to `destination`.
const fn headers(destination: IpAddr) -> usize {
    header_length(destination) + UdpHeader::LENGTH
}
