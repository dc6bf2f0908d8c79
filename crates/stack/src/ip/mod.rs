//! The state of IPv4: packets that have arrived, routes, the interface, path MTUs, identification.

pub(crate) mod identification;
pub(crate) mod interface;
pub(crate) mod path_mtu;
pub(crate) mod route;

use crate::link::arrival::Arrival;
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_tcp::Path;
use linerate_wire::{Ipv4Header, Segment};

/// Bytes of the largest packet from this host to itself: what the header can express.
pub(crate) const LOCAL_MTU: usize = 65_535;

/// A packet that is for us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) arrival: Arrival<'a>,
    pub(crate) header: Ipv4Header,
    pub(crate) payload: &'a [u8],
    /// The packet as it came, to be quoted.
    pub(crate) bytes: &'a [u8],
    /// Is it for other hosts too? Then nobody answers it with an error (RFC 1122 §3.2.2).
    pub(crate) to_everyone: bool,
}

impl Arrived<'_> {
    /// Our end and the peer's of the conversation that a segment belongs to.
    pub(crate) fn ends(&self, segment: &Segment<'_>) -> (SocketAddrV4, SocketAddrV4) {
        let local = SocketAddrV4::new(self.header.destination, segment.destination_port);
        (local, SocketAddrV4::new(self.header.source, segment.source_port))
    }
}

/// How packets get to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The address of ours to speak from.
    pub(crate) source: Ipv4Addr,
    /// Bytes of the largest packet, as far as is known.
    pub(crate) mtu: usize,
    /// Bytes of the largest packet that the link takes, and the route allows.
    pub(crate) link_mtu: usize,
    /// May more than `mtu` pass, for all that is known?
    pub(crate) is_estimated: bool,
    /// The largest window that a connection offers.
    pub(crate) window_clamp: Option<u32>,
}

/// What the routes say of a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) destination: Ipv4Addr,
    /// The generation of routes that say so.
    pub(crate) routes: u64,
    /// Whose station packets are sent to.
    pub(crate) next_hop: Ipv4Addr,
    /// The address of ours to speak from.
    pub(crate) source: Option<Ipv4Addr>,
    /// What the route carries, and the window that connections offer on it.
    pub(crate) mtu: Option<usize>,
    pub(crate) window_clamp: Option<u32>,
}

impl Way {
    /// A way of which everything is known.
    pub(crate) const fn unlimited(source: Ipv4Addr, mtu: usize) -> Self {
        Self { source, mtu, link_mtu: mtu, is_estimated: false, window_clamp: None }
    }

    /// The same for a connection.
    pub(crate) const fn path(&self) -> Path {
        Path {
            mtu_payload: self.mtu.saturating_sub(Ipv4Header::LENGTH),
            is_estimated: self.is_estimated,
            window_clamp: self.window_clamp,
            ..Path::ipv4(self.link_mtu)
        }
    }
}
