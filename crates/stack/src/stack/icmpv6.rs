//! ICMPv6 messages: echo, errors received and sent (RFC 4443), and the messages of Neighbour
//! Discovery that resolve addresses (RFC 4861 §7).

use crate::ethernet::neighbor::NeighborRequest;
use crate::icmp::Report;
use crate::ip::Arrived;
use crate::link::arrival::is_possible_sender;
use crate::stack::Stack;
use core::net::{IpAddr, Ipv6Addr};
use linerate_wire::{
    EtherType, Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, IpHeader, Ipv6Header,
    Ipv6Quote, MacAddress, Malformed, NdMessage, Protocol, Unreachable, ipv6_multicast,
};

/// The offset of the next header field in an IPv6 header.
const NEXT_HEADER: u32 = 6;

impl Stack {
    pub(crate) fn handle_icmpv6(&mut self, arrived: &Arrived<'_>) {
        self.counted.icmp.in_messages += 1;
        let (IpAddr::V6(source), IpAddr::V6(destination)) =
            (arrived.source(), arrived.destination())
        else {
            return;
        };
        let header = Ipv6Header {
            traffic_class: arrived.type_of_service,
            hop_limit: arrived.ttl,
            ..Ipv6Header::new(source, destination, Protocol::ICMPV6)
        };
        let counted = &mut self.counted.icmp;
        let message = match Icmpv6Message::parse(&header, arrived.payload) {
            Ok(message) => message,
            Err(malformed) => {
                counted.in_errors += 1;
                counted.in_checksum_errors +=
                    u64::from(matches!(malformed, Malformed::Checksum { .. }));
                return;
            }
        };
        match message {
            Icmpv6Message::NeighborDiscovery(message) => {
                self.handle_neighbor_discovery(arrived, &header, &message);
            }
            // Only probes of Neighbour Discovery have no source.
            _ if source.is_unspecified() => counted.in_errors += 1,
            Icmpv6Message::EchoRequest(echo) => {
                counted.in_echos += 1;
                if !self.may_answer_echo(arrived) {
                    return;
                }
                let own = if arrived.is_broadcast {
                    self.interface.source_towards(source.into(), source.into())
                } else {
                    Some(destination.into())
                };
                let Some(IpAddr::V6(own)) = own else { return };
                let header = Ipv6Header::new(own, source, Protocol::ICMPV6);
                let kept = self.send_icmpv6(header, &Icmpv6Message::EchoReply(echo));
                self.counted.icmp.out_echo_replies += u64::from(kept);
            }
            Icmpv6Message::EchoReply(echo) => {
                counted.in_echo_replies += 1;
                self.handle_echo_reply(arrived, &echo);
            }
            Icmpv6Message::Error { error, quote } => {
                match error {
                    Icmpv6Error::Unreachable(_) | Icmpv6Error::PacketTooBig { .. } => {
                        counted.in_unreachables += 1;
                    }
                    Icmpv6Error::ParameterProblem { .. } => counted.in_parameter_problems += 1,
                    _ => counted.in_time_exceeded += 1,
                }
                let report = Report::of_ipv6(error, quote);
                self.handle_report(arrived.arrival.at, source.into(), &report);
            }
            Icmpv6Message::Other { .. } => {}
        }
    }

    /// Queues a message. Returns false if the queue is full.
    pub(crate) fn send_icmpv6(&mut self, header: Ipv6Header, message: &Icmpv6Message<'_>) -> bool {
        let emit = |bytes: &mut [u8]| {
            message.emit(&header, bytes);
        };
        let kept = self.send_packet(&IpHeader::V6(header), message.length(), emit);
        self.counted.icmp.out_messages += u64::from(kept);
        self.counted.icmp.out_errors += u64::from(!kept);
        kept
    }

    /// Sends an ICMPv6 error about a packet to this host alone.
    pub(super) fn answer_with_icmpv6_error(&mut self, arrived: &Arrived<'_>, reason: Unreachable) {
        let error = match reason {
            Unreachable::Protocol => Icmpv6Error::ParameterProblem {
                problem: Icmpv6Problem::NextHeader,
                pointer: last_next_header(arrived.bytes, arrived.protocol),
            },
            Unreachable::Port => Icmpv6Error::Unreachable(Icmpv6Unreachable::Port),
            Unreachable::Net | Unreachable::NetUnknown => {
                Icmpv6Error::Unreachable(Icmpv6Unreachable::NoRoute)
            }
            Unreachable::NetProhibited | Unreachable::HostProhibited | Unreachable::Prohibited => {
                Icmpv6Error::Unreachable(Icmpv6Unreachable::Prohibited)
            }
            _ => Icmpv6Error::Unreachable(Icmpv6Unreachable::Address),
        };
        let (Ok(quote), Some(IpHeader::V6(header))) =
            (Ipv6Quote::of(arrived.bytes), arrived.answer_header(Protocol::ICMPV6))
        else {
            return;
        };
        let kept = self.send_icmpv6(header, &Icmpv6Message::Error { error, quote });
        self.counted.icmp.out_unreachables += u64::from(kept);
    }

    /// Handles the messages that resolve addresses. Others are ignored.
    fn handle_neighbor_discovery(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Ipv6Header,
        message: &NdMessage<'_>,
    ) {
        self.neighbors.counters_mut().in_packets += 1;
        match *message {
            NdMessage::NeighborSolicitation { target, source_mac } => {
                if !self.interface.is_configured(target.into()) {
                    return;
                }
                if let Some(mac) = source_mac {
                    self.learn_neighbor(arrived, header.source, mac, true);
                }
                // Every shard receives the solicitation, so only the first one answers.
                if self.shard.is_first() {
                    self.advertise(header.source, target);
                }
            }
            NdMessage::NeighborAdvertisement { target, target_mac, is_override, .. } => {
                if self.interface.is_ours(target.into()) {
                    // Another host claims our address.
                    self.neighbors.counters_mut().conflicts +=
                        u64::from(target_mac.is_some_and(|mac| mac != self.interface.mac));
                    return;
                }
                // Without the override flag, a known MAC address remains (RFC 4861 §7.2.5).
                if let Some(mac) = target_mac
                    && (is_override || !self.neighbors.knows_other(target.into(), mac))
                {
                    self.learn_neighbor(arrived, target, mac, false);
                }
            }
            _ => {}
        }
        self.schedule_replies();
    }

    /// Records the MAC address of a neighbour, which must be in one of our networks.
    fn learn_neighbor(
        &mut self,
        arrived: &Arrived<'_>,
        address: Ipv6Addr,
        mac: MacAddress,
        is_request_for_us: bool,
    ) {
        let address = IpAddr::from(address);
        if self.interface.is_on_link(address)
            && self.interface.is_possible_source(address)
            && is_possible_sender(mac)
        {
            self.neighbors.learn(arrived.arrival.at, address, mac, is_request_for_us);
        }
    }

    /// Advertises our MAC address to the sender of a solicitation. A probe without a source is
    /// answered to all nodes (RFC 4861 §7.2.4).
    fn advertise(&mut self, source: Ipv6Addr, target: Ipv6Addr) {
        let is_solicited = !source.is_unspecified();
        let destination = if is_solicited { source } else { ipv6_multicast::ALL_NODES };
        let message = NdMessage::NeighborAdvertisement {
            is_router: false,
            is_solicited,
            is_override: true,
            target,
            target_mac: Some(self.interface.mac),
        };
        let header = neighbor_discovery_header(target, destination);
        let kept = self.send_icmpv6(header, &Icmpv6Message::NeighborDiscovery(message));
        self.neighbors.counters_mut().out_replies += u64::from(kept);
    }

    /// Writes a Neighbour Solicitation for `address` into a frame, and returns its length.
    pub(super) fn write_solicitation(
        &self,
        request: &NeighborRequest,
        address: Ipv6Addr,
        frame: &mut [u8],
    ) -> usize {
        let source = match self.interface.source_towards(address.into(), address.into()) {
            Some(IpAddr::V6(source)) => source,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        let group = ipv6_multicast::solicited_node(address);
        let (destination, mac) = match request.mac {
            Some(mac) => (address, mac),
            None => (group, MacAddress::of_ipv6_multicast(group)),
        };
        let message = Icmpv6Message::NeighborDiscovery(NdMessage::NeighborSolicitation {
            target: address,
            source_mac: Some(self.interface.mac).filter(|_| !source.is_unspecified()),
        });
        let header = neighbor_discovery_header(source, destination);
        let mut at = self.emit_ethernet(mac, EtherType::IPV6, frame);
        at += header.emit(message.length(), &mut frame[at..]);
        at + message.emit(&header, &mut frame[at..])
    }
}

/// Returns the header of a message of Neighbour Discovery.
fn neighbor_discovery_header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
    Ipv6Header {
        hop_limit: NdMessage::HOP_LIMIT,
        ..Ipv6Header::new(source, destination, Protocol::ICMPV6)
    }
}

/// Returns the offset of the field that names the unknown `protocol` in a valid packet.
fn last_next_header(packet: &[u8], protocol: Protocol) -> u32 {
    let byte = |at: u32| packet.get(at as usize).copied().unwrap_or_else(|| protocol.number());
    let (mut field, mut header) = (NEXT_HEADER, 40);
    while byte(field) != protocol.number() {
        (field, header) = (header, header + (u32::from(byte(header + 1)) + 1) * 8);
    }
    field
}
