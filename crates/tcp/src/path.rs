//! What a host knows of the way to a peer.

use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::send::path_mtu::PathMtu;
use linerate_wire::TcpHeader;

/// The smallest MSS taken from a peer: with less, a segment would be all header, and a hostile peer
/// could make us work at will.
pub(crate) const SMALLEST_PEER_MSS: u32 = 48;

/// Bytes of the IP headers, without options and extensions.
pub(crate) const IPV4_HEADER: u8 = 20;
const IPV6_HEADER: u8 = 40;

/// What the host knows of the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Bytes of TCP header and data that fit one packet: the MTU less the IP header.
    pub mtu_payload: usize,
    /// The same of the first link, or of what its route allows: more is never tried.
    pub link_payload: usize,
    /// Was `mtu_payload` found by trying, and nobody knows yet whether more would pass? Then it may be tried
    /// at once.
    pub is_estimated: bool,
    /// Bytes of the IP header: 20, or 40 of IPv6.
    pub ip_header: u8,
    /// The largest window to offer on this route.
    pub window_clamp: Option<u32>,
    /// The largest MSS to announce on this route, and to send.
    pub mss_clamp: Option<u16>,
}

packed!(Path { mtu_payload, link_payload, is_estimated, ip_header, window_clamp, mss_clamp });

impl Path {
    /// A path over IPv4 that takes what its first link does, for all that is known.
    #[must_use]
    pub const fn ipv4(mtu: usize) -> Self {
        Self::with_header(mtu, IPV4_HEADER)
    }

    /// The same over IPv6.
    #[must_use]
    pub const fn ipv6(mtu: usize) -> Self {
        Self::with_header(mtu, IPV6_HEADER)
    }

    const fn with_header(mtu: usize, ip_header: u8) -> Self {
        let payload = mtu.saturating_sub(ip_header as usize);
        Self {
            mtu_payload: payload,
            link_payload: payload,
            is_estimated: false,
            ip_header,
            window_clamp: None,
            mss_clamp: None,
        }
    }

    /// What a search begins with.
    pub(crate) fn search(self) -> PathMtu {
        let packet = |payload: usize| saturated(payload.saturating_add(self.ip_header.into()));
        PathMtu::new(packet(self.mtu_payload), packet(self.link_payload.max(self.mtu_payload)))
    }

    /// The MSS to announce (RFC 6691: options are not taken off).
    pub(crate) fn mss(self) -> u32 {
        let most = u32::from(self.mss_clamp.unwrap_or(u16::MAX)).max(SMALLEST_PEER_MSS);
        saturated(self.mtu_payload.saturating_sub(TcpHeader::LENGTH)).clamp(SMALLEST_PEER_MSS, most)
    }
}
