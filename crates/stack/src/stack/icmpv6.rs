//! ICMPv6 messages: echo, and errors received and sent (RFC 4443).

use crate::icmp::Report;
use crate::ip::Arrived;
use crate::stack::Stack;
use core::net::IpAddr;
use linerate_wire::{
    Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, IpHeader, Ipv6Header, Ipv6Quote,
    Malformed, Protocol, Unreachable,
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
            Icmpv6Message::Other { .. } => self.handle_mld(arrived),
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
