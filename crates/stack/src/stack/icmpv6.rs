//! ICMPv6 messages: echo requests and replies, received errors and sent errors (RFC 4443).

use crate::icmp::Report;
use crate::ip::Arrived;
use crate::stack::Stack;
use core::net::IpAddr;
use linerate_wire::{
    Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, IpHeader, Ipv6Header, Ipv6Packet,
    Malformed, Protocol, Unreachable,
};

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
            Icmpv6Message::Other { .. } => self.handle_mld(arrived),
            // Neighbour Discovery and MLD messages may have the unspecified address as source (RFC
            // 3590), and were handled by the branches above. All other messages with this source
            // are invalid.
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
                self.note_answered_echo(source.into(), &echo);
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
        }
    }

    /// Queues an ICMPv6 message. Returns false if the queue is full.
    pub(crate) fn send_icmpv6(&mut self, header: Ipv6Header, message: &Icmpv6Message<'_>) -> bool {
        let emit = |bytes: &mut [u8]| {
            message.emit(&header, bytes);
        };
        let kept = self.send_packet(&IpHeader::V6(header), message.length(), emit);
        self.counted.icmp.out_messages += u64::from(kept);
        self.counted.icmp.out_errors += u64::from(!kept);
        kept
    }
}

/// Returns the ICMPv6 error to send for a packet that cannot be delivered. `reason` is the reason,
/// given as an ICMP code of IPv4.
pub(super) fn icmpv6_error(arrived: &Arrived<'_>, reason: Unreachable) -> Icmpv6Error {
    let reason = match reason {
        Unreachable::Protocol => {
            return Icmpv6Error::ParameterProblem {
                problem: Icmpv6Problem::NextHeader,
                pointer: last_next_header(arrived.bytes),
            };
        }
        Unreachable::Port => Icmpv6Unreachable::Port,
        Unreachable::Net | Unreachable::NetUnknown => Icmpv6Unreachable::NoRoute,
        Unreachable::NetProhibited | Unreachable::HostProhibited | Unreachable::Prohibited => {
            Icmpv6Unreachable::Prohibited
        }
        _ => Icmpv6Unreachable::Address,
    };
    Icmpv6Error::Unreachable(reason)
}

/// Returns the offset of the last Next Header field in a valid IPv6 packet, which gives the
/// protocol of the payload.
fn last_next_header(packet: &[u8]) -> u32 {
    let Ok(mut headers) = Ipv6Packet::extensions(packet) else { return 0 };
    headers.by_ref().for_each(drop);
    u32::try_from(headers.named_at()).unwrap_or(u32::MAX)
}
