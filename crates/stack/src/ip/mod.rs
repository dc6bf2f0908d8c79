//! The IP state of a host: interfaces and their addresses, routes, path MTUs, fragmentation and
//! reassembly.

pub(crate) mod address;
pub(crate) mod addresses;
pub(crate) mod autoconfiguration;
pub(crate) mod detection;
pub(crate) mod discovery;
pub(crate) mod egress;
pub(crate) mod fragment_ids;
pub(crate) mod fragmentation;
pub(crate) mod group_filter;
pub(crate) mod groups;
pub(crate) mod identification;
pub(crate) mod interface;
pub(crate) mod ipv4_link_local;
pub(crate) mod path_mtu;
pub(crate) mod reassembly;
pub(crate) mod redirects;
pub(crate) mod route;
pub(crate) mod routers;
pub(crate) mod selection;
pub(crate) mod zone;

use crate::demux::flow::{Flow, Hosts};
use crate::ip::interface::Audience;
use crate::ip::route::RouteWindows;
use crate::link::arrival::Arrival;
use core::net::IpAddr;
use linerate_tcp::Path;
use linerate_wire::{
    IpHeader, Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet, Protocol, Segment, Sum,
    TypeOfService, checksum,
};

/// The size in bytes of the largest packet from this host to itself, which is the maximum of the IP
/// length field.
pub(crate) const LOCAL_MTU: usize = 65_535;

/// A received packet for this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) arrival: Arrival<'a>,
    /// The source (remote) and destination (local) addresses.
    pub(crate) hosts: Hosts,
    /// The protocol of `payload`. For IPv6, this is an extension header until the extension headers
    /// were processed.
    pub(crate) protocol: Protocol,
    pub(crate) type_of_service: TypeOfService,
    /// The TTL or hop limit.
    pub(crate) ttl: u8,
    pub(crate) payload: &'a [u8],
    /// The whole packet, which ICMP errors quote.
    pub(crate) bytes: &'a [u8],
    /// Whether the packet was sent to a broadcast or multicast address. The host must not send an
    /// ICMP error about such a packet (RFC 1122 §3.2.2, RFC 4443 §2.4 e).
    pub(crate) is_broadcast: bool,
}

impl<'a> Arrived<'a> {
    /// Parses a packet of either IP version. Returns the packet, and whether the caller must
    /// process its headers further before it can deliver the payload. This is the case for a
    /// fragment, whose payload is only a part, and for a packet with IPv4 options or IPv6 extension
    /// headers. An IPv6 payload then still begins with the extension headers. Returns `None` if the
    /// packet is invalid.
    pub(crate) fn parse(arrival: Arrival<'a>, bytes: &'a [u8]) -> Option<(Self, bool)> {
        if is_ipv6(bytes) {
            Self::parse_ipv6(arrival, bytes)
        } else {
            Self::parse_ipv4(arrival, bytes)
        }
    }

    /// Parses an IPv4 packet. The result is that of [`Arrived::parse`].
    #[inline]
    pub(crate) fn parse_ipv4(arrival: Arrival<'a>, bytes: &'a [u8]) -> Option<(Self, bool)> {
        let Ipv4Packet { header, options, payload } = Ipv4Packet::parse(bytes).ok()?;
        let arrived = Self {
            arrival,
            hosts: Hosts::V4(header.addresses()),
            protocol: header.protocol,
            type_of_service: header.type_of_service,
            ttl: header.ttl,
            payload,
            bytes,
            is_broadcast: false,
        };
        Some((arrived, header.is_fragment() || !options.is_empty()))
    }

    /// Parses an IPv6 packet. The result is that of [`Arrived::parse`].
    pub(crate) fn parse_ipv6(arrival: Arrival<'a>, bytes: &'a [u8]) -> Option<(Self, bool)> {
        let packet = Ipv6Packet::parse_fixed(bytes).ok()?;
        let header = packet.header;
        let mut hosts = [0; 32];
        hosts[..16].copy_from_slice(&header.source.octets());
        hosts[16..].copy_from_slice(&header.destination.octets());
        let arrived = Self {
            arrival,
            hosts: Hosts::V6(hosts),
            protocol: packet.protocol,
            type_of_service: header.traffic_class,
            ttl: header.hop_limit,
            payload: packet.payload,
            bytes,
            is_broadcast: false,
        };
        Some((arrived, packet.protocol.is_ipv6_extension()))
    }

    /// Returns the flow of `segment`, which is the payload of this packet.
    #[inline(always)]
    pub(crate) const fn flow(&self, segment: &Segment<'_>) -> Flow {
        Flow::between(self.hosts, segment.destination_port, segment.source_port)
    }

    /// Returns the address of the sender.
    pub(crate) fn source(&self) -> IpAddr {
        self.hosts.remote()
    }

    /// Returns the address that the packet was sent to.
    pub(crate) fn destination(&self) -> IpAddr {
        self.hosts.local()
    }

    /// Returns the contribution of the pseudo-header to the checksum, before folding, for a payload
    /// of `length` bytes.
    #[inline(always)]
    pub(crate) fn pseudo_header(&self, length: usize) -> Sum {
        pseudo_header(&self.hosts, self.protocol, length)
    }

    /// Returns the IP header of the packet, without options and extension headers.
    pub(crate) fn header(&self) -> Option<IpHeader> {
        let mut header = IpHeader::new(self.source(), self.destination(), self.protocol);
        match &mut header {
            Some(IpHeader::V4(header)) => {
                (header.type_of_service, header.ttl) = (self.type_of_service, self.ttl);
            }
            Some(IpHeader::V6(header)) => {
                (header.traffic_class, header.hop_limit) = (self.type_of_service, self.ttl);
            }
            None => {}
        }
        header
    }

    /// Returns the IP header of an answer: from the destination address of this packet to its
    /// sender.
    pub(crate) fn answer_header(&self, protocol: Protocol) -> Option<IpHeader> {
        IpHeader::new(self.destination(), self.source(), protocol)
    }
}

/// Returns the contribution of the pseudo-header to the checksum, before folding, for a payload of
/// `length` bytes between two hosts. A sum does not depend on the order of the two addresses, so
/// the result is valid for both directions.
#[inline(always)]
pub(crate) fn pseudo_header(hosts: &Hosts, protocol: Protocol, length: usize) -> Sum {
    match hosts {
        Hosts::V4(_) => {
            let (IpAddr::V4(one), IpAddr::V4(other)) = (hosts.local(), hosts.remote()) else {
                return Sum::default();
            };
            checksum::pseudo_header_v4(one, other, protocol, length)
        }
        Hosts::V6(_) => {
            let (IpAddr::V6(one), IpAddr::V6(other)) = (hosts.local(), hosts.remote()) else {
                return Sum::default();
            };
            checksum::pseudo_header_v6(one, other, protocol, length)
        }
    }
}

/// Returns the length in bytes of the IP header without options or extension headers, for the IP
/// version of `address`.
pub(crate) const fn header_length(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => Ipv4Header::LENGTH,
        IpAddr::V6(_) => Ipv6Header::LENGTH,
    }
}

/// The properties of the path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathInfo {
    /// The local address to send from.
    pub(crate) source: IpAddr,
    /// The path MTU: the size in bytes of the largest packet that passes the path, as far as it is
    /// known.
    pub(crate) mtu: usize,
    /// The size in bytes of the largest packet that the link and the route permit.
    pub(crate) link_mtu: usize,
    /// Whether `mtu` is an estimate, so that larger packets may pass, and a search can raise it.
    pub(crate) is_estimated: bool,
    /// The window parameters that the route sets for its connections.
    pub(crate) windows: RouteWindows,
    /// The kind of the destination address, as seen from this host.
    pub(crate) audience: Audience,
}

/// The cached result of the most recent route lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute {
    pub(crate) destination: IpAddr,
    /// The generation of the routing table at the lookup. The cached result is invalid once the
    /// table has another generation.
    pub(crate) routes: u64,
    /// The neighbour to which packets are sent.
    pub(crate) next_hop: IpAddr,
    /// The local address to send from.
    pub(crate) source: Option<IpAddr>,
    /// The MTU of the route in bytes, if the route has an MTU of its own.
    pub(crate) mtu: Option<usize>,
    /// The window parameters that the route sets for its connections.
    pub(crate) windows: RouteWindows,
}

impl PathInfo {
    /// Creates a path with a known MTU, whose route sets no window parameters.
    pub(crate) const fn unlimited(source: IpAddr, mtu: usize, audience: Audience) -> Self {
        let windows =
            RouteWindows { clamp: None, initial_window: None, initial_receive_window: None };
        Self { source, mtu, link_mtu: mtu, is_estimated: false, windows, audience }
    }

    /// Returns the size in bytes of the largest IP payload that fits into the path MTU.
    pub(crate) const fn mtu_payload(&self) -> usize {
        self.mtu.saturating_sub(header_length(self.source))
    }

    /// Returns the parameters of the path for a connection.
    pub(crate) const fn tcp_path(&self) -> Path {
        Path {
            mtu_payload: self.mtu_payload(),
            is_estimated: self.is_estimated,
            window_clamp: self.windows.clamp,
            initial_window: self.windows.initial_window,
            initial_receive_window: self.windows.initial_receive_window,
            ..match self.source {
                IpAddr::V4(_) => Path::ipv4(self.link_mtu),
                IpAddr::V6(_) => Path::ipv6(self.link_mtu),
            }
        }
    }
}

/// Does the packet have the IP version number 6?
pub(crate) fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}
