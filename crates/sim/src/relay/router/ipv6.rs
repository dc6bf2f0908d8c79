//! IPv6 in a router: neighbour solicitations, echoes, and ICMPv6 errors (RFC 4443, RFC 4861).

use super::{Decision, Problem, Reason, Router, Transit, answer};
use crate::frame::{FrameId, Frames};
use crate::mac::mac_address;
use linerate_wire::{
    Echo, EtherType, EthernetFrame, EthernetHeader, Icmpv6Error, Icmpv6Message, Icmpv6Unreachable,
    Ipv6Header, Ipv6Packet, Ipv6Quote, MacAddress, NdMessage, Protocol,
};
use std::net::{IpAddr, Ipv6Addr};

/// Offset of the hop limit in a packet.
const HOP_LIMIT: usize = 7;

impl Router {
    /// Decides what to do with a packet that arrived on NIC `nic`.
    pub(super) fn decide_ipv6(&self, nic: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let start = self.interfaces[usize::from(nic)].framing.header_length();
        let bytes = frames[id].bytes().get(start..).unwrap_or(&[]);
        let Ok(packet) = Ipv6Packet::parse_fixed(bytes) else {
            return Decision::Drop(Reason::Ignored);
        };
        let Ipv6Header { source, destination, hop_limit, .. } = packet.header;
        if destination.is_multicast() || self.is_own(destination.into()) {
            return self.answer_message(nic, id, start, frames);
        }
        // Packets with a link-local address are not forwarded to another link (RFC 4291 §2.5.6).
        if source.is_unicast_link_local() || destination.is_unicast_link_local() {
            return Decision::Drop(Reason::Ignored);
        }
        let length = Ipv6Header::LENGTH + packet.payload.len();
        let packet = Transit { destination: destination.into(), hops: hop_limit, start, length };
        let forwarded = self.forward(id, &packet, frames);
        forwarded.unwrap_or_else(|problem| self.report_ipv6_error(nic, id, start, problem, frames))
    }

    /// Handles a packet for the router itself, or to a multicast group. It answers neighbour
    /// solicitations and echo requests for the router's addresses, and drops all other packets.
    fn answer_message(&self, nic: u16, id: FrameId, start: usize, frames: &mut Frames) -> Decision {
        let bytes = frames[id].bytes().to_vec();
        let Ok(packet) = Ipv6Packet::parse(&bytes[start..]) else {
            return Decision::Drop(Reason::Ignored);
        };
        let Ipv6Header { source, destination, .. } = packet.header;
        let message = (packet.protocol == Protocol::ICMPV6 && packet.fragment.is_none())
            .then(|| Icmpv6Message::parse(&packet.header, packet.payload));
        match message {
            Some(Ok(Icmpv6Message::NeighborDiscovery(NdMessage::NeighborSolicitation {
                target,
                ..
            }))) => self.answer_solicitation(nic, &bytes, source, target, frames),
            Some(Ok(Icmpv6Message::EchoRequest(Echo { identifier, sequence, data })))
                if !destination.is_multicast() =>
            {
                let reply = Icmpv6Message::EchoReply(Echo { identifier, sequence, data });
                answer(self.icmpv6_frame(destination, source, &reply, frames), Reason::Local)
            }
            _ if destination.is_multicast() => Decision::Drop(Reason::Ignored),
            _ => Decision::Drop(Reason::Local),
        }
    }

    /// Answers a neighbour solicitation for the interface's address. `frame` contains the
    /// solicitation.
    fn answer_solicitation(
        &self,
        nic: u16,
        frame: &[u8],
        asker: Ipv6Addr,
        target: Ipv6Addr,
        frames: &mut Frames,
    ) -> Decision {
        let interface = &self.interfaces[usize::from(nic)];
        let Ok(request) = EthernetFrame::parse(frame) else {
            return Decision::Drop(Reason::Ignored);
        };
        // A solicitation for another address is ignored. So is one from the unspecified address, by
        // which a host checks that its address is unused. It needs no answer, because no host of a
        // scenario has an address of the router.
        if IpAddr::from(target) != interface.address || asker.is_unspecified() {
            return Decision::Drop(Reason::Ignored);
        }
        let own = MacAddress::new(mac_address(interface.mac));
        let link = EthernetHeader {
            destination: request.header.source,
            source: own,
            ether_type: EtherType::IPV6,
            ..EthernetHeader::default()
        };
        let message = Icmpv6Message::NeighborDiscovery(NdMessage::NeighborAdvertisement {
            is_router: true,
            is_solicited: true,
            is_override: true,
            target,
            target_mac: Some(own),
        });
        let header = NdMessage::header(target, asker);
        let id = frames.take();
        let room = frames[id].room();
        let start = link.emit(room);
        let at = start + header.emit(message.length(), &mut room[start..]);
        let length = at + message.emit(&header, &mut room[at..]);
        frames[id].set_length(length);
        Decision::Answer { nic, frame: id, instead: Reason::Local }
    }

    /// Reports an ICMPv6 error to the sender of a packet. No error is reported about an ICMPv6
    /// error, a packet whose source address is not that of a single host, or a fragment other than
    /// the first (RFC 4443 §2.4 e).
    fn report_ipv6_error(
        &self,
        nic: u16,
        id: FrameId,
        start: usize,
        problem: Problem,
        frames: &mut Frames,
    ) -> Decision {
        let bytes = frames[id].bytes()[start..].to_vec();
        let report = Ipv6Packet::parse(&bytes).ok().zip(Ipv6Quote::of(&bytes).ok()).and_then(
            |(packet, quote)| {
                let source = packet.header.source;
                let is_error = packet.protocol == Protocol::ICMPV6
                    && packet.payload.first().is_none_or(|&kind| kind < FIRST_INFORMATIONAL);
                let is_later = packet.fragment.is_some_and(|fragment| fragment.offset > 0);
                let IpAddr::V6(from) = self.interfaces[usize::from(nic)].address else {
                    return None;
                };
                if is_error || is_later || source.is_unspecified() || source.is_multicast() {
                    return None;
                }
                let message = Icmpv6Message::Error { error: error_of(problem), quote };
                self.icmpv6_frame(from, source, &message, frames)
            },
        );
        answer(report, problem.reason())
    }

    /// Builds a frame with an ICMPv6 message. Returns the outgoing NIC and the frame, or `None` if
    /// there is no route to `to`.
    fn icmpv6_frame(
        &self,
        from: Ipv6Addr,
        to: Ipv6Addr,
        message: &Icmpv6Message<'_>,
        frames: &mut Frames,
    ) -> Option<(u16, FrameId)> {
        let header = Ipv6Header::new(from, to, Protocol::ICMPV6);
        self.frame_to(to.into(), Ipv6Header::LENGTH + message.length(), frames, |packet| {
            let behind = header.emit(message.length(), packet);
            message.emit(&header, &mut packet[behind..]);
        })
    }
}

/// The smallest type of an ICMPv6 message that is not an error (RFC 4443 §2.1).
const FIRST_INFORMATIONAL: u8 = 128;

fn error_of(problem: Problem) -> Icmpv6Error {
    match problem {
        Problem::Expired => Icmpv6Error::HopLimitExceeded,
        Problem::NoRoute => Icmpv6Error::Unreachable(Icmpv6Unreachable::NoRoute),
        Problem::NoHost => Icmpv6Error::Unreachable(Icmpv6Unreachable::Address),
        Problem::TooLong { mtu } => {
            Icmpv6Error::PacketTooBig { mtu: u32::try_from(mtu).unwrap_or(u32::MAX) }
        }
    }
}

/// Decrements the hop limit. The header has no checksum.
pub(super) const fn decrement_hop_limit(packet: &mut [u8]) {
    packet[HOP_LIMIT] -= 1;
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use linerate_wire::ipv6_multicast::solicited_node;

    const HERE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3);
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const FAR: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2);

    /// Creates a router between an Ethernet (towards MAC address 0) and a serial line (towards MAC
    /// address 1) with an MTU of 1,280 bytes.
    fn router() -> Router {
        let beyond = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 4);
        let interface = |mac, address: Ipv6Addr, framing, mtu| Interface {
            mac,
            address: address.into(),
            framing,
            mtu,
        };
        let interfaces = vec![
            interface(2, HERE, Framing::Ethernet, 1_500),
            interface(3, beyond, Framing::Ip, 1_280),
        ];
        let routes = [(HERE, 0), (beyond, 1)].map(|(address, nic)| {
            (network_of(address.into()), NetworkRoute { nic, gateway: None })
        });
        let neighbours = [(HOST.into(), 0), (FAR.into(), 1)].into_iter().collect();
        Router::new(interfaces, routes.into_iter().collect(), Arc::new(neighbours))
    }

    /// Creates a frame from MAC address 0 with a packet of this header and payload.
    fn frame(frames: &mut Frames, header: &Ipv6Header, payload: &[u8]) -> FrameId {
        let id = frames.take();
        let room = frames[id].room();
        header_to(2, 0, header.destination.into()).emit(room);
        header.emit(payload.len(), &mut room[EthernetHeader::LENGTH..]);
        let at = EthernetHeader::LENGTH + Ipv6Header::LENGTH;
        room[at..at + payload.len()].copy_from_slice(payload);
        frames[id].set_length(at + payload.len());
        id
    }

    fn decide(header: &Ipv6Header, payload: &[u8]) -> (Decision, Vec<u8>) {
        let mut frames = Frames::new(1_514);
        let id = frame(&mut frames, header, payload);
        let decision = router().decide(0, id, &mut frames);
        let (Decision::Forward { frame, .. } | Decision::Answer { frame, .. }) = decision else {
            return (decision, Vec::new());
        };
        (decision, frames[frame].bytes().to_vec())
    }

    fn to(destination: Ipv6Addr, hop_limit: u8) -> Ipv6Header {
        Ipv6Header { hop_limit, ..Ipv6Header::new(HOST, destination, Protocol::TCP) }
    }

    #[test]
    fn a_forwarded_packet_has_a_decremented_hop_limit() {
        let (decision, bytes) = decide(&to(FAR, 64), &[7; 60]);
        assert!(matches!(decision, Decision::Forward { nic: 1, .. }));
        let packet = Ipv6Packet::parse(&bytes).unwrap();
        assert_eq!((packet.header, packet.payload), (to(FAR, 63), &[7; 60][..]));
    }

    #[test]
    fn the_sender_of_an_undeliverable_packet_gets_an_icmpv6_error() {
        let told = |header: &Ipv6Header, length: usize| {
            let (decision, bytes) = decide(header, &vec![0; length - Ipv6Header::LENGTH]);
            let Decision::Answer { nic: 0, instead, .. } = decision else { panic!("{decision:?}") };
            let packet = Ipv6Packet::parse(&bytes[EthernetHeader::LENGTH..]).unwrap();
            assert_eq!((packet.header.source, packet.header.destination), (HERE, HOST));
            let message = Icmpv6Message::parse(&packet.header, packet.payload);
            let Ok(Icmpv6Message::Error { error, .. }) = message else { panic!("{message:?}") };
            (instead, error)
        };
        assert_eq!(told(&to(FAR, 1), 100), (Reason::Expired, Icmpv6Error::HopLimitExceeded));
        let too_big = Icmpv6Error::PacketTooBig { mtu: 1_280 };
        assert_eq!(told(&to(FAR, 9), 1_281), (Reason::TooLong, too_big));
        let unreachable = |reason| (Reason::Unreachable, Icmpv6Error::Unreachable(reason));
        let nowhere = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, 1);
        assert_eq!(told(&to(nowhere, 9), 100), unreachable(Icmpv6Unreachable::NoRoute));
        let absent = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 9);
        assert_eq!(told(&to(absent, 9), 100), unreachable(Icmpv6Unreachable::Address));
    }

    #[test]
    fn packets_of_link_local_scope_are_not_forwarded() {
        let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
        assert_eq!(decide(&to(local, 9), &[]).0, Decision::Drop(Reason::Ignored));
        let from = Ipv6Header { source: local, ..to(FAR, 9) };
        assert_eq!(decide(&from, &[]).0, Decision::Drop(Reason::Ignored));
    }

    #[test]
    fn only_solicitations_of_its_own_address_are_answered() {
        let ask = |target| {
            let header = NdMessage::header(HOST, solicited_node(target));
            let asker = Some(MacAddress::new(mac_address(0)));
            let message = Icmpv6Message::NeighborDiscovery(NdMessage::NeighborSolicitation {
                target,
                source_mac: asker,
            });
            let mut payload = [0; 32];
            message.emit(&header, &mut payload);
            decide(&header, &payload)
        };
        let (decision, bytes) = ask(HERE);
        assert!(matches!(decision, Decision::Answer { nic: 0, instead: Reason::Local, .. }));
        let packet = Ipv6Packet::parse(&bytes[EthernetHeader::LENGTH..]).unwrap();
        let Ok(Icmpv6Message::NeighborDiscovery(NdMessage::NeighborAdvertisement {
            target,
            target_mac,
            is_solicited: true,
            ..
        })) = Icmpv6Message::parse(&packet.header, packet.payload)
        else {
            panic!("{packet:?}")
        };
        assert_eq!((target, target_mac), (HERE, Some(MacAddress::new(mac_address(2)))));
        assert_eq!(ask(FAR).0, Decision::Drop(Reason::Ignored));
    }

    #[test]
    fn echo_requests_to_the_router_are_answered() {
        let header = Ipv6Header { next_header: Protocol::ICMPV6, ..to(HERE, 64) };
        let echo = Echo { identifier: 7, sequence: 1, data: b"data" };
        let mut payload = [0; 12];
        Icmpv6Message::EchoRequest(echo).emit(&header, &mut payload);
        let (decision, bytes) = decide(&header, &payload);
        assert!(matches!(decision, Decision::Answer { nic: 0, instead: Reason::Local, .. }));
        let packet = Ipv6Packet::parse(&bytes[EthernetHeader::LENGTH..]).unwrap();
        let message = Icmpv6Message::parse(&packet.header, packet.payload);
        assert_eq!(message, Ok(Icmpv6Message::EchoReply(echo)));
    }

    #[test]
    fn malformed_frames_never_panic() {
        let mut frames = Frames::new(1_514);
        for length in 0..120 {
            let id = frame(&mut frames, &to(FAR, 9), &[0; 60]);
            frames[id].set_length(length.min(114));
            router().decide(0, id, &mut frames);
            let id = frame(&mut frames, &to(HERE, 9), &[0; 60]);
            frames[id].set_length(length.min(114));
            router().decide(0, id, &mut frames);
        }
    }
}
