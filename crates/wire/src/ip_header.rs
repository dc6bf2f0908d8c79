//! A header of either IP version, for code that handles both.

use crate::{Ipv4Header, Ipv6Header, Protocol, Sum, TypeOfService};
use core::net::IpAddr;

/// The header of an IP packet, without options and extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader {
    /// A header of IPv4.
    V4(Ipv4Header),
    /// A header of IPv6.
    V6(Ipv6Header),
}

impl IpHeader {
    /// Creates the header of an unfragmented packet with the default TTL or hop limit. Returns
    /// `None` if the addresses are of different IP versions.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr, protocol: Protocol) -> Option<Self> {
        Some(match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Self::V4(Ipv4Header::new(source, destination, protocol))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Self::V6(Ipv6Header::new(source, destination, protocol))
            }
            _ => return None,
        })
    }

    /// Returns the length of the header in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::V4(_) => Ipv4Header::LENGTH,
            Self::V6(_) => Ipv6Header::LENGTH,
        }
    }

    /// Returns the destination address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header) => IpAddr::V4(header.destination),
            Self::V6(header) => IpAddr::V6(header.destination),
        }
    }

    /// Sets the TTL or hop limit to `hops`.
    pub const fn set_hops(&mut self, hops: u8) {
        match self {
            Self::V4(header) => header.ttl = hops,
            Self::V6(header) => header.hop_limit = hops,
        }
    }

    /// Sets the type of service or traffic class.
    pub const fn set_type_of_service(&mut self, type_of_service: TypeOfService) {
        match self {
            Self::V4(header) => header.type_of_service = type_of_service,
            Self::V6(header) => header.traffic_class = type_of_service,
        }
    }

    /// Returns the ones'-complement sum over the pseudo-header, for a payload of `length` bytes.
    #[must_use]
    pub fn pseudo_header(&self, length: usize) -> Sum {
        match self {
            Self::V4(header) => header.pseudo_header(length),
            Self::V6(header) => header.pseudo_header(header.next_header, length),
        }
    }

    /// Writes the header to the start of `bytes`, and returns its length. The packet has
    /// `payload_length` bytes after the header.
    ///
    /// # Panics
    /// If `bytes` is shorter than the header, or the payload is too long for a packet.
    pub fn emit(&self, payload_length: usize, bytes: &mut [u8]) -> usize {
        match self {
            Self::V4(header) => header.emit(payload_length, bytes),
            Self::V6(header) => header.emit(payload_length, bytes),
        }
    }
}
