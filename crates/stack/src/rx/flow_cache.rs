//! The flow cache: a frame with the link header, addresses and ports of the frame before is for the same
//! connection.
//!
//! What was checked of these headers for one frame holds for the next, so they are compared and not judged
//! again, and lead straight to the connection. What differs from frame to frame is checked as ever: lengths,
//! fragmentation, both checksums. Nothing is changed before a frame is known to be good. Any frame can also
//! take the way of exceptions, through the parsers; tests give every frame to a twin that knows no other.

use crate::link::Medium;
use linerate_wire::EthernetHeader;

/// An Ethernet header without tags, as in a frame.
pub(crate) type EthernetBytes = [u8; EthernetHeader::LENGTH];

/// Headers of recent frames for this host alone that were found good. The connection is the one that the
/// table of flows has found last.
#[derive(Debug)]
pub(crate) struct FlowCache {
    pub(crate) is_enabled: bool,
    /// The Ethernet header of the last frame with an IPv4 packet.
    pub(crate) link_header: Option<EthernetBytes>,
    /// Source and destination address of the last packet from the link.
    pub(crate) hosts: Option<[u8; 8]>,
    /// Frames found in the cache. The host's counters count each of them as a frame, a packet, a segment and
    /// a lookup.
    pub(crate) hits: u64,
    /// Hits that only the lookup prefetch has made possible: frames of another flow than the one before.
    pub(crate) prefetched: u64,
}

impl FlowCache {
    pub(crate) const fn new(is_enabled: bool) -> Self {
        Self { is_enabled, link_header: None, hosts: None, hits: 0, prefetched: 0 }
    }
}

/// The link header that frames of the cached flow begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkHeader<'a> {
    /// The medium has none.
    None,
    /// This one.
    Ethernet(&'a EthernetBytes),
}

impl<'a> LinkHeader<'a> {
    /// Returns `None` if no frame has come before.
    #[inline(always)]
    pub(crate) const fn of(medium: Medium, known: Option<&'a EthernetBytes>) -> Option<Self> {
        match (medium, known) {
            (Medium::Ip, _) => Some(Self::None),
            (Medium::Ethernet, Some(known)) => Some(Self::Ethernet(known)),
            (Medium::Ethernet, None) => None,
        }
    }

    /// Returns the packet behind the header, if the frame begins with that.
    #[inline(always)]
    pub(crate) fn strip(self, bytes: &[u8]) -> Option<&[u8]> {
        let Self::Ethernet(known) = self else { return Some(bytes) };
        let (header, packet): (&EthernetBytes, _) = bytes.split_first_chunk()?;
        // Slices are compared in two words that overlap.
        (known.as_slice() == header.as_slice()).then_some(packet)
    }
}
