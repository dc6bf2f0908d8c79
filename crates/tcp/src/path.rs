//! The host's knowledge about the path to a peer.

use crate::compact::pack::packed;
use crate::opening::{DEFAULT_PEER_MSS, DEFAULT_PEER_MSS_IPV6};
use crate::receive::saturated;
use crate::send::path_mtu::PathMtu;
use core::num::NonZeroU32;
use linerate_wire::TcpHeader;

/// The smallest MSS that is accepted from a peer, in bytes. With a smaller MSS, segments would
/// consist mostly of headers. A hostile peer could announce one to multiply our work.
pub(crate) const SMALLEST_PEER_MSS: u32 = 48;

/// The length in bytes of an IPv4 header without options.
pub(crate) const IPV4_HEADER: u8 = 20;
const IPV6_HEADER: u8 = 40;

/// The host's knowledge of the path to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The number of bytes of TCP header and data that fit a packet of the path MTU.
    pub mtu_payload: usize,
    /// The number of bytes of TCP header and data in the largest packet that the first link and the
    /// route permit. Probes of the path MTU never exceed this size.
    pub link_payload: usize,
    /// Whether `mtu_payload` was found by probes and larger packets were not tested. If so, larger
    /// packets may be tested at once, without the wait between two searches.
    pub is_estimated: bool,
    /// The length of the IP header in bytes: 20 for IPv4, 40 for IPv6.
    pub ip_header: u8,
    /// The largest window that this route allows us to offer, in bytes. `None` means no limit.
    pub window_clamp: Option<u32>,
    /// The largest MSS that this route allows us to announce and to send, in bytes. `None` means no
    /// limit.
    pub mss_clamp: Option<u16>,
    /// The initial congestion window on this route, in segments. `None` selects
    /// [`crate::Config::initial_window`].
    pub initial_window: Option<NonZeroU32>,
    /// The initial receive window on this route, in segments of the announced MSS. It replaces the
    /// initial size of a tuned [`crate::Config::receive_buffer`]. `None` keeps that size.
    pub initial_receive_window: Option<NonZeroU32>,
}

packed!(Path {
    mtu_payload,
    link_payload,
    is_estimated,
    ip_header,
    window_clamp,
    mss_clamp,
    initial_window,
    initial_receive_window
});

impl Path {
    /// Creates the path of an IPv4 connection with the MTU of the first link, in bytes.
    #[must_use]
    pub const fn ipv4(mtu: usize) -> Self {
        Self::with_header(mtu, IPV4_HEADER)
    }

    /// Creates the path of an IPv6 connection with the MTU of the first link, in bytes.
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
            initial_window: None,
            initial_receive_window: None,
        }
    }

    /// Returns the assumed MSS of a peer that announces none.
    pub(crate) const fn default_peer_mss(&self) -> u16 {
        if self.ip_header > IPV4_HEADER { DEFAULT_PEER_MSS_IPV6 } else { DEFAULT_PEER_MSS }
    }

    /// Returns the initial state of the PLPMTUD search (RFC 8899 §5.2).
    pub(crate) fn search(self) -> PathMtu {
        let packet = |payload: usize| saturated(payload.saturating_add(self.ip_header.into()));
        PathMtu::new(packet(self.mtu_payload), packet(self.link_payload.max(self.mtu_payload)))
    }

    /// Returns the MSS to announce, in bytes. The length of IP and TCP options is not subtracted
    /// (RFC 6691).
    pub(crate) fn mss(self) -> u32 {
        let most = u32::from(self.mss_clamp.unwrap_or(u16::MAX)).max(SMALLEST_PEER_MSS);
        saturated(self.mtu_payload.saturating_sub(TcpHeader::LENGTH)).clamp(SMALLEST_PEER_MSS, most)
    }
}
