//! The IPv4 state of a host: routes, interface, path MTUs, identification.

pub(crate) mod identification;
pub(crate) mod interface;
pub(crate) mod path_mtu;
pub(crate) mod route;

use crate::link::arrival::Arrival;
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_tcp::Path;
use linerate_wire::{Ipv4Header, Segment};

/// The size of the largest packet from this host to itself: the maximum of the length field.
pub(crate) const LOCAL_MTU: usize = 65_535;

/// A received packet for this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) arrival: Arrival<'a>,
    pub(crate) header: Ipv4Header,
    pub(crate) payload: &'a [u8],
    /// The whole packet, for quotes in ICMP errors.
    pub(crate) bytes: &'a [u8],
    /// Was it sent to a broadcast address? No ICMP error may answer it (RFC 1122 §3.2.2).
    pub(crate) is_broadcast: bool,
}

impl Arrived<'_> {
    /// Returns the local and the remote end of the connection that a segment belongs to.
    pub(crate) fn ends(&self, segment: &Segment<'_>) -> (SocketAddrV4, SocketAddrV4) {
        let local = SocketAddrV4::new(self.header.destination, segment.destination_port);
        (local, SocketAddrV4::new(self.header.source, segment.source_port))
    }
}

/// The path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathInfo {
    /// The local address to send from.
    pub(crate) source: Ipv4Addr,
    /// The size of the largest packet in bytes, as far as it is known.
    pub(crate) mtu: usize,
    /// The size of the largest packet that the link and the route allow, in bytes.
    pub(crate) link_mtu: usize,
    /// Is `mtu` an estimate that a search may raise?
    pub(crate) is_estimated: bool,
    /// The largest window that a connection offers.
    pub(crate) window_clamp: Option<u32>,
}

/// The result of a route lookup, as cached by the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRoute {
    pub(crate) destination: Ipv4Addr,
    /// The generation of the routing table at the lookup.
    pub(crate) routes: u64,
    /// The neighbour to which packets are sent.
    pub(crate) next_hop: Ipv4Addr,
    /// The local address to send from.
    pub(crate) source: Option<Ipv4Addr>,
    /// The MTU of the route, if it has its own.
    /// The largest window that connections over the route offer.
    pub(crate) mtu: Option<usize>,
    pub(crate) window_clamp: Option<u32>,
}

impl PathInfo {
    /// Creates a path whose MTU is known.
    pub(crate) const fn unlimited(source: Ipv4Addr, mtu: usize) -> Self {
        Self { source, mtu, link_mtu: mtu, is_estimated: false, window_clamp: None }
    }

    /// Returns the parameters of the path for a connection.
    pub(crate) const fn tcp_path(&self) -> Path {
        Path {
            mtu_payload: self.mtu.saturating_sub(Ipv4Header::LENGTH),
            is_estimated: self.is_estimated,
            window_clamp: self.window_clamp,
            ..Path::ipv4(self.link_mtu)
        }
    }
}
