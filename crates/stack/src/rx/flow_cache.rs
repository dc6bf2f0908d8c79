//! The state of the flow cache: the headers of the last valid frame.
//!
//! A frame with the same link header, addresses and ports belongs to the same connection, and these
//! headers need not be checked again. Lengths, fragmentation and both checksums are checked for
//! each frame, before it has any effect. The parsers accept the same frames without the cache.

use crate::link::Medium;
use linerate_wire::EthernetHeader;

/// An Ethernet header without tags, as in a frame.
pub(crate) type EthernetBytes = [u8; EthernetHeader::LENGTH];

/// Headers of recent valid unicast frames. The connection is the last result of the flow table.
#[derive(Debug)]
pub(crate) struct FlowCache {
    pub(crate) is_enabled: bool,
    /// The Ethernet header of the last frame with an IPv4 packet.
    pub(crate) link_header: Option<EthernetBytes>,
    /// Source and destination address of the last packet from the link.
    pub(crate) hosts: Option<[u8; 8]>,
    /// Frames found in the cache. The counters of the host count each as a frame, a packet, a
    /// segment and a lookup.
    pub(crate) hits: u64,
    /// Hits that the lookup prefetch has made possible: frames of another flow than the previous
    /// one.
    pub(crate) prefetched: u64,
}

impl FlowCache {
    pub(crate) const fn new(is_enabled: bool) -> Self {
        Self { is_enabled, link_header: None, hosts: None, hits: 0, prefetched: 0 }
    }
}

/// The expected link header of a cached flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkHeader<'a> {
    /// The medium has no link header.
    None,
    /// An Ethernet header.
    Ethernet(&'a EthernetBytes),
}

impl<'a> LinkHeader<'a> {
    /// Returns the expected header; `None` if no frame has arrived before.
    #[inline(always)]
    pub(crate) const fn of(medium: Medium, known: Option<&'a EthernetBytes>) -> Option<Self> {
        match (medium, known) {
            (Medium::Ip, _) => Some(Self::None),
            (Medium::Ethernet, Some(known)) => Some(Self::Ethernet(known)),
            (Medium::Ethernet, None) => None,
        }
    }

    /// Returns the packet after the link header, if the frame has the expected one.
    #[inline(always)]
    pub(crate) fn strip(self, bytes: &[u8]) -> Option<&[u8]> {
        let Self::Ethernet(known) = self else { return Some(bytes) };
        let (header, packet): (&EthernetBytes, _) = bytes.split_first_chunk()?;
        // The comparison of slices compiles to two overlapping word comparisons.
        (known.as_slice() == header.as_slice()).then_some(packet)
    }
}
