//! IPv4 in a router: ARP, echoes, and ICMP errors (RFC 792, RFC 1812).

use super::{Decision, Problem, Reason, Router, Transit, answer};
use crate::frame::{FrameId, Frames};
use crate::mac::mac_address;
use linerate_wire::{
    ArpOperation, ArpPacket, Echo, EtherType, EthernetHeader, IcmpError, IcmpMessage, Ipv4Header,
    Ipv4Packet, MacAddress, Protocol, Quote, TimeExceeded, Unreachable,
};
use std::net::{IpAddr, Ipv4Addr};

impl Router {
    /// Answers an ARP request for the interface's address.
    pub(super) fn answer_arp(
        &self,
        nic: u16,
        request: &ArpPacket,
        frames: &mut Frames,
    ) -> Decision {
        let interface = &self.interfaces[usize::from(nic)];
        let is_ours = IpAddr::from(request.target_ip) == interface.address;
        if request.operation != ArpOperation::Request || !is_ours {
            return Decision::Drop(Reason::Ignored);
        }
        let reply = request.reply(MacAddress::new(mac_address(interface.mac)));
        let header = EthernetHeader {
            destination: request.sender_mac,
            source: MacAddress::new(mac_address(interface.mac)),
            ether_type: EtherType::ARP,
            ..EthernetHeader::default()
        };
        let frame = frames.take();
        let room = frames[frame].room();
        let start = header.emit(room);
        let length = start + reply.emit(&mut room[start..]);
        frames[frame].set_length(length);
        Decision::Answer { nic, frame, instead: Reason::Local }
    }

    /// Decides what to do with a packet that arrived on NIC `nic`.
    pub(super) fn decide_ipv4(&self, nic: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let start = self.interfaces[usize::from(nic)].framing.header_length();
        let bytes = frames[id].bytes().get(start..).unwrap_or(&[]);
        let Ok(packet) = Ipv4Packet::parse(bytes) else { return Decision::Drop(Reason::Ignored) };
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let Ipv4Header { destination, ttl, .. } = packet.header;
        if self.is_own(destination.into()) {
            return self.answer_echo(id, &packet.header, start, frames);
        }
        if destination.is_broadcast() || destination.is_multicast() {
            return Decision::Drop(Reason::Ignored);
        }
        let packet = Transit { destination: destination.into(), hops: ttl, start, length };
        let forwarded = self.forward(id, &packet, frames);
        forwarded.unwrap_or_else(|problem| self.report_error(nic, id, start, problem, frames))
    }

    /// Answers an ICMP echo request to one of the router's addresses.
    fn answer_echo(
        &self,
        id: FrameId,
        header: &Ipv4Header,
        start: usize,
        frames: &mut Frames,
    ) -> Decision {
        let bytes = frames[id].bytes().to_vec();
        let message = Ipv4Packet::parse(&bytes[start..])
            .ok()
            .map(|packet| IcmpMessage::parse(packet.payload));
        let Some(Ok(IcmpMessage::EchoRequest(Echo { identifier, sequence, data }))) = message
        else {
            return Decision::Drop(Reason::Local);
        };
        let reply = IcmpMessage::EchoReply(Echo { identifier, sequence, data });
        let reply = self.icmp_frame(header.destination, header.source, &reply, frames);
        reply.map_or(Decision::Drop(Reason::Unreachable), |(nic, frame)| Decision::Answer {
            nic,
            frame,
            instead: Reason::Local,
        })
    }

    /// Reports an ICMP error to the sender of a packet. No error is reported about an ICMP error,
    /// nor about a fragment other than the first (RFC 1812 §4.3.2.7).
    fn report_error(
        &self,
        nic: u16,
        id: FrameId,
        start: usize,
        problem: Problem,
        frames: &mut Frames,
    ) -> Decision {
        let bytes = frames[id].bytes()[start..].to_vec();
        let report = Ipv4Packet::parse(&bytes).ok().zip(Quote::of(&bytes).ok()).and_then(
            |(packet, quote)| {
                let is_error = packet.header.protocol == Protocol::ICMP
                    && !matches!(
                        IcmpMessage::parse(packet.payload),
                        Ok(IcmpMessage::EchoRequest(_))
                    );
                let IpAddr::V4(from) = self.interfaces[usize::from(nic)].address else {
                    return None;
                };
                if is_error || packet.header.fragment_offset > 0 {
                    return None;
                }
                let message = IcmpMessage::Error { error: error_of(problem), quote };
                self.icmp_frame(from, packet.header.source, &message, frames)
            },
        );
        answer(report, problem.reason())
    }

    /// Builds a frame with an ICMP message. Returns the outgoing NIC and the frame, or `None` if
    /// there is no route to `to`.
    fn icmp_frame(
        &self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        message: &IcmpMessage<'_>,
        frames: &mut Frames,
    ) -> Option<(u16, FrameId)> {
        let header = Ipv4Header::new(from, to, Protocol::ICMP);
        self.frame_to(to.into(), Ipv4Header::LENGTH + message.length(), frames, |packet| {
            let behind = header.emit(message.length(), packet);
            message.emit(&mut packet[behind..]);
        })
    }
}

fn error_of(problem: Problem) -> IcmpError {
    match problem {
        Problem::Expired => IcmpError::TimeExceeded(TimeExceeded::Transit),
        Problem::NoRoute => IcmpError::Unreachable(Unreachable::Net),
        Problem::NoHost => IcmpError::Unreachable(Unreachable::Host),
        Problem::TooLong { mtu } => {
            let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            IcmpError::FragmentationNeeded { next_hop_mtu }
        }
    }
}

/// Decrements the TTL and updates the header checksum incrementally (RFC 1624).
pub(super) fn decrement_ttl(packet: &mut [u8]) {
    let before = u16::from_be_bytes([packet[8], packet[9]]);
    packet[8] -= 1;
    let after = u16::from_be_bytes([packet[8], packet[9]]);
    let sum = u32::from(!u16::from_be_bytes([packet[10], packet[11]]))
        + u32::from(!before)
        + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap_or(0);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use linerate_stack::Medium as Framing;
    use std::sync::Arc;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

    /// Creates a router between an Ethernet (towards MAC address 0) and a serial line (towards MAC
    /// address 1) with an MTU of 576 bytes.
    fn router() -> Router {
        let interface = |mac, address, framing, mtu| Interface { mac, address, framing, mtu };
        let interfaces = vec![
            interface(2, HERE.into(), Framing::Ethernet, 1_500),
            interface(3, Ipv4Addr::new(10, 1, 0, 4).into(), Framing::Ip, 576),
        ];
        let routes = [0, 1].map(|nic| {
            (
                network_of(Ipv4Addr::new(10, nic, 0, 0).into()),
                NetworkRoute { nic: nic.into(), gateway: None },
            )
        });
        let neighbours = [(HOST.into(), 0), (FAR.into(), 1)].into_iter().collect();
        Router::new(interfaces, routes.into_iter().collect(), Arc::new(neighbours))
    }

    /// Creates a frame from MAC address 0 that contains an IP packet of this length.
    fn frame(frames: &mut Frames, to: Ipv4Addr, ttl: u8, length: usize) -> FrameId {
        let id = frames.take();
        let room = frames[id].room();
        header_to(2, 0, to.into()).emit(room);
        let header = Ipv4Header { ttl, ..Ipv4Header::new(HOST, to, Protocol::TCP) };
        header.emit(length - Ipv4Header::LENGTH, &mut room[EthernetHeader::LENGTH..]);
        frames[id].set_length(EthernetHeader::LENGTH + length);
        id
    }

    fn decide(to: Ipv4Addr, ttl: u8, length: usize) -> (Decision, Vec<u8>) {
        let mut frames = Frames::new(1_514);
        let id = frame(&mut frames, to, ttl, length);
        let decision = router().decide(0, id, &mut frames);
        let (Decision::Forward { frame, .. } | Decision::Answer { frame, .. }) = decision else {
            return (decision, Vec::new());
        };
        (decision, frames[frame].bytes().to_vec())
    }

    #[test]
    fn a_forwarded_packet_has_a_decremented_ttl_and_a_correct_checksum() {
        let (decision, bytes) = decide(FAR, 64, 100);
        assert!(matches!(decision, Decision::Forward { nic: 1, .. }));
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!((packet.header.ttl, packet.header.destination, bytes.len()), (63, FAR, 100));
    }

    #[test]
    fn the_sender_of_an_undeliverable_packet_gets_an_icmp_error() {
        let told = |to, ttl, length| {
            let (decision, bytes) = decide(to, ttl, length);
            let Decision::Answer { nic: 0, instead, .. } = decision else { panic!("{decision:?}") };
            let packet = Ipv4Packet::parse(&bytes[EthernetHeader::LENGTH..]).unwrap();
            assert_eq!((packet.header.source, packet.header.destination), (HERE, HOST));
            let Ok(IcmpMessage::Error { error, .. }) = IcmpMessage::parse(packet.payload) else {
                panic!()
            };
            (instead, error)
        };
        let expired = IcmpError::TimeExceeded(TimeExceeded::Transit);
        assert_eq!(told(FAR, 1, 100), (Reason::Expired, expired));
        let needed = IcmpError::FragmentationNeeded { next_hop_mtu: 576 };
        assert_eq!(told(FAR, 9, 577), (Reason::TooLong, needed));
        let nowhere = Ipv4Addr::new(10, 7, 0, 1);
        assert_eq!(
            told(nowhere, 9, 100),
            (Reason::Unreachable, IcmpError::Unreachable(Unreachable::Net))
        );
        let absent = Ipv4Addr::new(10, 1, 0, 9);
        assert_eq!(
            told(absent, 9, 100),
            (Reason::Unreachable, IcmpError::Unreachable(Unreachable::Host))
        );
    }

    #[test]
    fn only_arp_requests_for_its_own_address_are_answered() {
        let mut frames = Frames::new(1_514);
        let mut ask = |target| {
            let request = ArpPacket::request(MacAddress::new(mac_address(0)), HOST, target);
            router().answer_arp(0, &request, &mut frames)
        };
        assert!(matches!(ask(HERE), Decision::Answer { nic: 0, instead: Reason::Local, .. }));
        assert_eq!(ask(FAR), Decision::Drop(Reason::Ignored));
    }

    #[test]
    fn malformed_frames_never_panic() {
        let mut frames = Frames::new(1_514);
        for length in 0..80 {
            let id = frame(&mut frames, FAR, 9, 100);
            frames[id].set_length(length);
            router().decide(0, id, &mut frames);
        }
    }
}
