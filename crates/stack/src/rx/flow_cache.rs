//! The flow cache: the headers of the most recent valid frame, by which the host recognises the
//! next frame of the same flow.
//!
//! If the link header, addresses and ports of a frame equal the cached ones, the connection is
//! known. So the host need not check these headers again. It checks lengths, fragmentation and the
//! IP and TCP checksums of each frame before the frame has any effect. With or without the cache,
//! the host accepts the same frames.

use crate::demux::Flow;
use crate::demux::flow::Hosts;
use crate::link::Medium;
use crate::rx::coalesce::{NextAcks, NextData};
use linerate_wire::{EthernetHeader, IpVersion, NextAck, NextPacket, V4, V6};

/// An Ethernet header without VLAN tags, as it is in a frame.
pub(crate) type EthernetBytes = [u8; EthernetHeader::LENGTH];

/// The flow cache: headers of recent valid unicast frames. It does not contain the connection of
/// these frames, which the host finds in the one-entry cache of the flow table.
#[derive(Debug)]
pub(crate) struct FlowCache {
    pub(crate) is_enabled: bool,
    /// The Ethernet header of the most recent unicast frame with an IPv4 packet.
    pub(crate) link_header: Option<EthernetBytes>,
    /// The Ethernet header of the most recent unicast frame with an IPv6 packet.
    pub(crate) ipv6_link_header: Option<EthernetBytes>,
    /// Source and destination address of the most recent valid IPv4 packet; always `None` if the
    /// cache is disabled.
    pub(crate) ipv4: Option<[u8; 8]>,
    /// Source and destination address of the most recent valid IPv6 packet; always `None` if the
    /// cache is disabled.
    pub(crate) ipv6: Option<[u8; 32]>,
    /// Number of frames that were handled by the flow cache. When the host's counters are read,
    /// this number is added to the counters of frames, packets, segments and lookups.
    pub(crate) hits: u64,
    /// Number of frames that were handled by the flow cache only because lookup prefetch had put
    /// their flow into the one-entry cache. Without prefetch, the one-entry cache would have
    /// contained another flow: that of the previous frame.
    pub(crate) prefetched: u64,
}

impl FlowCache {
    pub(crate) const fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            link_header: None,
            ipv6_link_header: None,
            ipv4: None,
            ipv6: None,
            hits: 0,
            prefetched: 0,
        }
    }

    /// Returns whether the most recent valid packet of the IP version of `hosts` was between these
    /// hosts.
    #[inline(always)]
    pub(crate) fn knows(&self, hosts: &Hosts) -> bool {
        match hosts {
            Hosts::V4(hosts) => self.ipv4.as_ref() == Some(hosts),
            Hosts::V6(hosts) => self.ipv6.as_ref() == Some(hosts),
        }
    }

    /// Discards the cached addresses, because an address of this host may have been removed.
    pub(crate) const fn forget_hosts(&mut self) {
        self.ipv4 = None;
        self.ipv6 = None;
    }

    /// Stores the addresses of a valid packet, if the cache is enabled.
    pub(crate) const fn learn(&mut self, hosts: &Hosts) {
        match hosts {
            Hosts::V4(hosts) if self.is_enabled => self.ipv4 = Some(*hosts),
            Hosts::V6(hosts) if self.is_enabled => self.ipv6 = Some(*hosts),
            Hosts::V4(_) | Hosts::V6(_) => {}
        }
    }
}

/// The IP version of cached headers. The compiler generates separate code for each version.
pub(crate) trait Version: IpVersion {
    /// Returns the addresses of the most recent valid packet of this IP version.
    fn known(cache: &FlowCache) -> &Option<Self::Addresses>;
    /// Returns the Ethernet header of the most recent unicast frame with a packet of this IP
    /// version.
    fn link_header(cache: &FlowCache) -> Option<&EthernetBytes>;
    /// Returns the pair of hosts with these addresses.
    fn hosts(addresses: Self::Addresses) -> Hosts;
    /// Returns the flow of a packet with these addresses and ports.
    fn flow(ends: &Self::Ends) -> Flow;
    /// Returns `next`, the predicted headers of the next segment of a GRO run, as the variant of
    /// [`NextData`] for this IP version.
    fn next_data(next: NextPacket<Self>) -> NextData;
    /// Returns the predicted headers of the next segment of a GRO run, or `None` if the run is of
    /// the other IP version.
    fn of_data(next: &mut NextData) -> Option<&mut NextPacket<Self>>;
    /// Returns `next`, the headers of the latest acknowledgement of an ACK batch, as the variant of
    /// [`NextAcks`] for this IP version.
    fn next_acks(next: NextAck<Self>) -> NextAcks;
    /// Returns the headers of the latest acknowledgement of an ACK batch, or `None` if the batch is
    /// of the other IP version.
    fn of_acks(next: &mut NextAcks) -> Option<&mut NextAck<Self>>;
}

macro_rules! versions {
    ($($version:ident: $hosts:ident, $link_header:ident, $flow:path;)*) => {$(
        impl Version for $version {
            #[inline(always)]
            fn known(cache: &FlowCache) -> &Option<Self::Addresses> {
                &cache.$hosts
            }

            #[inline(always)]
            fn link_header(cache: &FlowCache) -> Option<&EthernetBytes> {
                cache.$link_header.as_ref()
            }

            #[inline(always)]
            fn hosts(addresses: Self::Addresses) -> Hosts {
                Hosts::$version(addresses)
            }

            #[inline(always)]
            fn flow(ends: &Self::Ends) -> Flow {
                $flow(ends)
            }

            #[inline(always)]
            fn next_data(next: NextPacket<Self>) -> NextData {
                NextData::$version(next)
            }

            #[inline(always)]
            fn of_data(next: &mut NextData) -> Option<&mut NextPacket<Self>> {
                match next {
                    NextData::$version(next) => Some(next),
                    _ => None,
                }
            }

            #[inline(always)]
            fn next_acks(next: NextAck<Self>) -> NextAcks {
                NextAcks::$version(next)
            }

            #[inline(always)]
            fn of_acks(next: &mut NextAcks) -> Option<&mut NextAck<Self>> {
                match next {
                    NextAcks::$version(next) => Some(next),
                    _ => None,
                }
            }
        }
    )*};
}

versions! {
    V4: ipv4, link_header, Flow::of_packet;
    V6: ipv6, ipv6_link_header, Flow::of_ipv6_packet;
}

/// The expected link header of a frame of the cached flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkHeader<'a> {
    /// No link header: frames begin with the IP header.
    None,
    /// This Ethernet header.
    Ethernet(&'a EthernetBytes),
}

impl<'a> LinkHeader<'a> {
    /// Returns the link header that a frame on `medium` must have; `None` if it must be an Ethernet
    /// header and none is cached.
    #[inline(always)]
    pub(crate) const fn of(medium: Medium, known: Option<&'a EthernetBytes>) -> Option<Self> {
        match (medium, known) {
            (Medium::Ip, _) => Some(Self::None),
            (Medium::Ethernet, Some(known)) => Some(Self::Ethernet(known)),
            (Medium::Ethernet, None) => None,
        }
    }

    /// Returns the packet behind the link header, or `None` if the frame does not have the expected
    /// link header.
    #[inline(always)]
    pub(crate) fn strip(self, bytes: &[u8]) -> Option<&[u8]> {
        let Self::Ethernet(known) = self else { return Some(bytes) };
        let (header, packet): (&EthernetBytes, _) = bytes.split_first_chunk()?;
        // The headers are compared as slices. This compiles to two comparisons of overlapping
        // words, which is faster than a comparison of bytes.
        (known.as_slice() == header.as_slice()).then_some(packet)
    }
}
