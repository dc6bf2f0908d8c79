//! The IP state of a host: routes, interface, path MTUs, identification.

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

/// The size of the largest packet from this host to itself: the maximum of the length field.
pub(crate) const LOCAL_MTU: usize = 65_535;

/// A received packet for this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) arrival: Arrival<'a>,
    /// The source and the destination.
    pub(crate) hosts: Hosts,
    /// The protocol of `payload`: after extension headers, once they were examined.
    pub(crate) protocol: Protocol,
    pub(crate) type_of_service: TypeOfService,
    /// The TTL or hop limit.
    pub(crate) ttl: u8,
    pub(crate) payload: &'a [u8],
    /// The whole packet, for quotes in ICMP errors.
    pub(crate) bytes: &'a [u8],
    /// Was it sent to a broadcast or multicast address? No ICMP error may answer it (RFC 1122
    /// §3.2.2, RFC 4443 §2.4 e).
    pub(crate) is_broadcast: bool,
}

impl<'a> Arrived<'a> {
    /// Parses a packet of either IP version. Returns the packet, and true if it is a fragment, or
    /// has options or extension headers. The payload is then only the part in this packet, and in
    /// IPv6 still begins with the extension headers.
    pub(crate) fn parse(arrival: Arrival<'a>, bytes: &'a [u8]) -> Option<(Self, bool)> {
        if is_ipv6(bytes) {
            Self::parse_ipv6(arrival, bytes)
        } else {
            Self::parse_ipv4(arrival, bytes)
        }
    }

    /// Parses a packet of IPv4.
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

    /// Parses a packet of IPv6.
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

    /// Returns the flow that a segment belongs to.
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

    /// Returns the sum over the pseudo-header of the payload, or of its first `length` bytes.
    #[inline(always)]
    pub(crate) fn pseudo_header(&self, length: usize) -> Sum {
        pseudo_header(&self.hosts, self.protocol, length)
    }

    /// Returns the header of the packet, without options and extension headers.
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

    /// Returns the header of an answer to the sender, from the address that the packet was sent to.
    pub(crate) fn answer_header(&self, protocol: Protocol) -> Option<IpHeader> {
        IpHeader::new(self.destination(), self.source(), protocol)
    }
}

/// Returns the sum over the pseudo-header between two hosts, which is equal in both directions.
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

/// Returns the length of an IP header without options and extension headers, in bytes.
pub(crate) const fn header_length(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => Ipv4Header::LENGTH,
        IpAddr::V6(_) => Ipv6Header::LENGTH,
    }
}

/// The path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathInfo {
    /// The local address to send from.
    pub(crate) source: IpAddr,
    /// The size of the largest packet in bytes, as far as it is known.
    pub(crate) mtu: usize,
    /// The size of the largest packet that the link and the route allow, in bytes.
    pub(crate) link_mtu: usize,
    /// Is `mtu` an estimate that a search may raise?
    pub(crate) is_estimated: bool,
    /// The windows of connections, where the route determines them.
    pub(crate) windows: RouteWindows,
    /// The destination, relative to this host.
    pub(crate) audience: Audience,
}

/// The result of a route lookup, as cached by the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute {
    pub(crate) destination: IpAddr,
    /// The generation of the routing table at the lookup.
    pub(crate) routes: u64,
    /// The neighbour to which packets are sent.
    pub(crate) next_hop: IpAddr,
    /// The local address to send from.
    pub(crate) source: Option<IpAddr>,
    /// The MTU of the route, if it has its own.
    pub(crate) mtu: Option<usize>,
    /// The windows of connections, where the route determines them.
    pub(crate) windows: RouteWindows,
}

impl PathInfo {
    /// Creates a path whose MTU is known.
    pub(crate) const fn unlimited(source: IpAddr, mtu: usize, audience: Audience) -> Self {
        let windows =
            RouteWindows { clamp: None, initial_window: None, initial_receive_window: None };
        Self { source, mtu, link_mtu: mtu, is_estimated: false, windows, audience }
    }

    /// Returns the bytes of the largest payload of an IP packet.
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

/// Does the packet have the version number of IPv6?
pub(crate) fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}
