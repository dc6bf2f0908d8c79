//! IP fragmentation: reassembly of received fragments, and sending of packets in fragments, for
//! IPv4 and IPv6. Also handles received IPv4 options and IPv6 extension headers.

use crate::demux::flow::Hosts;
use crate::event::ReportedError;
use crate::ip::Arrived;
use crate::ip::fragmentation::NextFragment;
use crate::ip::is_ipv6;
use crate::ip::reassembly::{DatagramKey, Fragment, FragmentHeader, Insertion};
use crate::link::TxFrame;
use crate::link::arrival::Arrival;
use crate::services::Service;
use crate::stack::Stack;
use crate::stack::transmit::{destination_of, ether_type_of, source_of};
use crate::steering::Shard;
use crate::tx::TransmitOutcome;
use linerate_units::Instant;
use linerate_wire::{
    IcmpError, Icmpv6Error, Ipv4Options, Ipv4Packet, Ipv6Content, Ipv6Header, Ipv6Packet,
    Ipv6Piece, Ipv6Refusal, MacAddress, NdMessage, Protocol, TimeExceeded, Unreachable,
};

/// # Received fragments, options and extension headers
impl Stack {
    /// Handles a packet to this host that is a fragment, or that has IPv4 options or IPv6 extension
    /// headers.
    #[cold]
    #[inline(never)]
    pub(crate) fn handle_extended(&mut self, arrived: &Arrived<'_>) {
        match arrived.hosts {
            Hosts::V4(_) => self.handle_extended_ipv4(arrived),
            Hosts::V6(_) => self.handle_extended_ipv6(arrived),
        }
    }

    fn handle_extended_ipv4(&mut self, arrived: &Arrived<'_>) {
        let Ok(packet) = Ipv4Packet::parse(arrived.bytes) else { return };
        let mut options = Ipv4Options::of(packet.options);
        while let Some(option) = options.next() {
            let error = match option {
                Ok(option) if !option.directs_to_others() => continue,
                // The source route of the packet contains addresses that it has not visited yet. It
                // would have to be forwarded to them, which this host does not do. A completed
                // source route has no effect: replies do not take the reversed route, because a
                // source route can circumvent filters (RFC 7126 §4.3).
                Ok(_) => IcmpError::Unreachable(Unreachable::SourceRouteFailed),
                Err(_) => IcmpError::ParameterProblem {
                    pointer: u8::try_from(options.at()).unwrap_or(u8::MAX),
                },
            };
            self.counted.ip.in_header_errors += 1;
            if packet.header.fragment_offset == 0 && !arrived.is_broadcast {
                self.report_problem(&arrived.hosts, arrived.bytes, ReportedError::V4(error));
            }
            return;
        }
        let header = packet.header;
        if !header.is_fragment() {
            return self.deliver(arrived);
        }
        self.counted.ip.reassembly_required += 1;
        let headers = arrived.bytes.len() - packet.payload.len();
        let offset = usize::from(header.fragment_offset);
        // A fragment that contains only part of the transport header, or overlaps it, is dropped
        // (RFC 1858, RFC 3128). A filter that inspects single fragments cannot see the ports and
        // flags that the reassembled segment would have.
        let is_tiny = match offset {
            0 => !header.protocol.has_whole_header(packet.payload),
            8 => header.protocol == Protocol::TCP,
            _ => false,
        };
        if is_tiny || packet.payload.is_empty() {
            self.counted.ip.reassembly_failures += 1;
            return;
        }
        let fragment = Fragment {
            key: DatagramKey {
                hosts: arrived.hosts,
                identification: header.identification.into(),
                protocol: header.protocol,
            },
            offset,
            more: header.more_fragments,
            ecn: header.type_of_service.ecn(),
            headers: &arrived.bytes[..headers],
            header: None,
            payload: packet.payload,
            is_broadcast: arrived.is_broadcast,
        };
        self.reassemble(arrived.arrival, &fragment);
    }

    fn handle_extended_ipv6(&mut self, arrived: &Arrived<'_>) {
        match Ipv6Packet::examine(arrived.bytes) {
            Ok(Ipv6Content::Whole(packet)) => {
                let arrived =
                    Arrived { protocol: packet.protocol, payload: packet.payload, ..*arrived };
                self.deliver_extended(&arrived, packet.fragment.is_some());
            }
            Ok(Ipv6Content::Fragment(piece)) => self.handle_ipv6_piece(arrived, &piece),
            Err(Ipv6Refusal::Report { problem, pointer, is_for_groups }) => {
                self.counted.ip.in_header_errors += 1;
                if !arrived.is_broadcast || is_for_groups {
                    let error = Icmpv6Error::ParameterProblem { problem, pointer };
                    self.report_problem(&arrived.hosts, arrived.bytes, ReportedError::V6(error));
                }
            }
            Err(Ipv6Refusal::Silent | Ipv6Refusal::Malformed(_)) => {
                self.counted.ip.in_header_errors += 1;
            }
        }
    }

    /// Delivers a packet whose IPv6 extension headers were examined, or which was reassembled.
    /// `was_fragmented` says whether the packet had a fragment header.
    fn deliver_extended(&mut self, arrived: &Arrived<'_>, was_fragmented: bool) {
        if arrived.source().is_unspecified() && arrived.protocol != Protocol::ICMPV6 {
            self.counted.ip.in_header_errors += 1;
            return;
        }
        // Fragmented Neighbour Discovery messages are dropped, because devices that monitor these
        // messages cannot inspect fragments (RFC 6980 §5).
        let is_discovery = arrived.protocol == Protocol::ICMPV6
            && arrived.payload.first().is_some_and(|&kind| NdMessage::is_kind(kind));
        if was_fragmented && is_discovery {
            self.counted.icmp.in_messages += 1;
            self.counted.icmp.in_errors += 1;
            return;
        }
        if was_fragmented && arrived.protocol == Protocol::TCP && self.shard != Shard::ONLY {
            return self.deliver_to_shard(arrived);
        }
        self.deliver(arrived);
    }

    fn handle_ipv6_piece(&mut self, arrived: &Arrived<'_>, piece: &Ipv6Piece<'_>) {
        self.counted.ip.reassembly_required += 1;
        let headers = piece.at + linerate_wire::Ipv6Fragment::LENGTH;
        let fragment = Fragment {
            key: DatagramKey {
                hosts: arrived.hosts,
                identification: piece.fragment.identification,
                protocol: Protocol::new(0),
            },
            offset: piece.fragment.offset.into(),
            more: piece.fragment.more,
            ecn: arrived.type_of_service.ecn(),
            headers: &arrived.bytes[..headers],
            header: Some(FragmentHeader {
                at: piece.at,
                named_at: piece.named_at,
                next: piece.next,
            }),
            payload: piece.payload,
            is_broadcast: arrived.is_broadcast,
        };
        self.reassemble(arrived.arrival, &fragment);
    }

    /// Adds a fragment to its datagram, and delivers the datagram if all fragments have arrived.
    fn reassemble(&mut self, arrival: Arrival<'_>, fragment: &Fragment<'_>) {
        let mut evicted = 0;
        let inserted = self.reassembly.insert(self.now, fragment, || evicted += 1);
        self.deadlines.set(Service::Reassembly, self.reassembly.poll_timeout());
        let counted = &mut self.counted.ip;
        counted.reassembly_failures += evicted;
        counted.reassembly_evictions += evicted;
        match inserted {
            Insertion::Incomplete => {}
            Insertion::Complete(packet) => {
                counted.reassembly_ok += 1;
                self.deliver_reassembled(arrival, fragment.is_broadcast, &packet);
            }
            Insertion::AtLimit => {
                counted.reassembly_failures += 1;
                counted.reassembly_evictions += 1;
            }
            Insertion::Overlap => {
                counted.reassembly_failures += 1;
                counted.reassembly_overlaps += 1;
            }
            Insertion::Discarded => counted.in_discards += 1,
            Insertion::Invalid => counted.reassembly_failures += 1,
        }
    }

    fn deliver_reassembled(&mut self, arrival: Arrival<'_>, is_broadcast: bool, packet: &[u8]) {
        self.flush_coalesced();
        let arrival = Arrival { is_verified: false, segment_size: None, memory: None, ..arrival };
        let Some((arrived, is_extended)) = Arrived::parse(arrival, packet) else {
            self.counted.ip.in_header_errors += 1;
            return;
        };
        let arrived = Arrived { is_broadcast, ..arrived };
        if is_ipv6(packet) && is_extended {
            match Ipv6Packet::examine(packet) {
                Ok(Ipv6Content::Whole(whole)) if whole.fragment.is_none() => {
                    let (protocol, payload) = (whole.protocol, whole.payload);
                    self.deliver_extended(&Arrived { protocol, payload, ..arrived }, true);
                }
                // The extension headers of the reassembled packet are valid, but contain another
                // fragment header. The packet is dropped, because fragments within fragments are
                // not supported.
                Ok(_) => self.counted.ip.in_header_errors += 1,
                Err(_) => self.handle_extended_ipv6(&arrived),
            }
        } else {
            self.deliver_extended(&arrived, true);
        }
        self.flush_coalesced();
    }

    /// Discards the oldest incomplete datagram after its reassembly timeout. If its first fragment
    /// has arrived, the source gets an ICMP Time Exceeded message (RFC 792, RFC 8200 §4.5).
    pub(crate) fn handle_reassembly_timeout(&mut self, now: Instant) {
        if let Some(expired) = self.reassembly.expire(now) {
            let lost = u64::from(expired.is_incomplete);
            self.counted.ip.reassembly_failures += lost;
            self.counted.ip.reassembly_timeouts += lost;
            if let Some((hosts, first)) = expired.first {
                let error = match hosts {
                    Hosts::V4(_) => {
                        ReportedError::V4(IcmpError::TimeExceeded(TimeExceeded::Reassembly))
                    }
                    Hosts::V6(_) => ReportedError::V6(Icmpv6Error::ReassemblyTimeExceeded),
                };
                self.report_problem(&hosts, &first, error);
                self.schedule_replies();
            }
        }
        self.deadlines.set(Service::Reassembly, self.reassembly.poll_timeout());
    }
}

/// # Sent fragments
impl Stack {
    /// Must the length of the packet be compared with the MTU of its path before the packet is
    /// sent? Only three kinds of packets may need fragments: those longer than the MTU of the
    /// interface, IPv4 packets without the DF flag, and IPv6 packets longer than the minimum MTU.
    /// IPv6 has no DF flag, so the source may fragment every IPv6 packet.
    #[inline]
    pub(crate) fn may_need_fragments(&self, packet: &[u8]) -> bool {
        packet.len() > self.interface.capabilities.mtu
            || if is_ipv6(packet) {
                packet.len() > Ipv6Header::MIN_MTU
            } else {
                packet.get(6).is_some_and(|flags| flags & DF == 0)
            }
    }

    /// Begins to send a packet in fragments, and writes the first fragment into `frame`. Returns
    /// `None` if the packet must be sent unfragmented, because it has the DF flag or is an IPv6
    /// packet that fits the path MTU.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_fragments(
        &mut self,
        mac: MacAddress,
        packet: &[u8],
        frame: &mut [u8],
    ) -> Option<TransmitOutcome> {
        let (source, destination) = (source_of(packet)?, destination_of(packet)?);
        let link_mtu = self.interface.capabilities.mtu;
        let path = self.datagram_path_to(self.now, destination);
        let mtu = path.map_or(link_mtu, |path| path.mtu.min(link_mtu));
        if is_ipv6(packet) {
            if packet.len() <= mtu {
                return None;
            }
        } else if packet[6] & DF != 0 {
            // This packet has the DF flag although it exceeds the path MTU, because the path MTU
            // has decreased since the packet was queued. It is sent unfragmented, so that a router
            // drops it and reports the path MTU to this host.
            return None;
        }
        let identification = self.fragment_ids.next(source, destination);
        self.interface.fragmenter.begin(packet, mac, mtu, identification);
        let outcome = self.transmit_fragment(frame);
        self.schedule_replies();
        Some(outcome)
    }

    /// Writes into `frame` the next fragment of the packet that is being sent in fragments.
    #[cold]
    #[inline(never)]
    pub(crate) fn transmit_fragment(&mut self, frame: &mut [u8]) -> TransmitOutcome {
        let version = ether_type_of(self.interface.fragmenter.packet());
        let is_first = self.interface.fragmenter.is_at_start();
        let at = self.emit_ethernet(self.interface.fragmenter.mac(), version, frame);
        let next = match frame.get_mut(at..) {
            Some(room) => self.interface.fragmenter.write_next(room),
            None => NextFragment::Failed,
        };
        let counted = &mut self.counted.ip;
        let (length, is_last) = match next {
            NextFragment::Written(length) => (length, false),
            NextFragment::Last(length) => (length, true),
            NextFragment::Failed => {
                counted.fragmentation_failures += 1;
                counted.out_discards += 1;
                return TransmitOutcome::QueuedOrDropped;
            }
        };
        // A short packet can fit into its first fragment. It was then sent whole, and does not
        // count as fragmented.
        let is_fragment = !(is_first && is_last);
        counted.fragments_created += u64::from(is_fragment);
        counted.fragmented += u64::from(is_fragment && is_last);
        TransmitOutcome::Frame(TxFrame::whole(at + length))
    }
}

/// The bit of the DF (Don't Fragment) flag in the seventh byte of an IPv4 header.
const DF: u8 = 0x40;
