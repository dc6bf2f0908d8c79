//! The forwarding decision of a router (RFC 1812). The router answers ARP and ICMP echo requests
//! for its own addresses, and forwards other packets with a decremented TTL or reports an ICMP
//! error.
//!
//! Routes and the MAC addresses of neighbours are known from the start, so it needs no routing
//! protocol and sends no ARP requests. It does not fragment: a packet larger than the next MTU is
//! dropped even without DF, and its sender gets an ICMP error (RFC 1191).

use super::{Decision, Reason};
use crate::frame::{Frame, FrameId, Frames};
use crate::mac::mac_address;
use linerate_stack::Medium as Framing;
use linerate_wire::{
    ArpOperation, ArpPacket, Echo, EtherType, EthernetFrame, EthernetHeader, IcmpError,
    IcmpMessage, Ipv4Header, Ipv4Packet, MacAddress, Protocol, Quote, TimeExceeded, Unreachable,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Length of a network prefix in bits, if a simulation has several networks.
pub(crate) const NETWORK_BITS: u8 = 16;

/// An interface of a router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    /// Number of the MAC address of the interface.
    pub(crate) mac: usize,
    pub(crate) address: Ipv4Addr,
    pub(crate) framing: Framing,
    /// Largest IP packet that the interface can send, in bytes.
    pub(crate) mtu: usize,
}

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkRoute {
    /// Number of the outgoing NIC.
    pub(crate) nic: u16,
    /// Next router, or `None` if the destination is directly reachable.
    pub(crate) gateway: Option<Ipv4Addr>,
}

/// The addresses, routes and neighbours of a router, by which it forwards packets.
#[derive(Debug)]
pub(crate) struct Router {
    interfaces: Vec<Interface>,
    /// Routes by destination network number.
    routes: BTreeMap<u32, NetworkRoute>,
    /// Number of the MAC address that each IP address has.
    neighbours: Arc<BTreeMap<Ipv4Addr, usize>>,
}

impl Router {
    /// Creates a router with an interface for each NIC.
    pub(crate) fn new(
        interfaces: Vec<Interface>,
        routes: BTreeMap<u32, NetworkRoute>,
        neighbours: Arc<BTreeMap<Ipv4Addr, usize>>,
    ) -> Self {
        Self { interfaces, routes, neighbours }
    }

    /// Decides what to do with a frame that arrived on NIC `nic`.
    pub(super) fn decide(&self, nic: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let interface = &self.interfaces[usize::from(nic)];
        if interface.framing == Framing::Ip {
            return self.decide_packet(nic, id, frames);
        }
        match EthernetFrame::parse(frames[id].bytes()) {
            Ok(frame) if frame.header.ether_type == EtherType::IPV4 => {
                self.decide_packet(nic, id, frames)
            }
            Ok(frame) if frame.header.ether_type == EtherType::ARP => {
                match ArpPacket::parse(frame.payload) {
                    Ok(request) => self.answer_arp(nic, &request, frames),
                    Err(_) => Decision::Drop(Reason::Ignored),
                }
            }
            Ok(_) | Err(_) => Decision::Drop(Reason::Ignored),
        }
    }

    /// Answers an ARP request for the interface's address.
    fn answer_arp(&self, nic: u16, request: &ArpPacket, frames: &mut Frames) -> Decision {
        let interface = &self.interfaces[usize::from(nic)];
        if request.operation != ArpOperation::Request || request.target_ip != interface.address {
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

    /// Decides what to do with an IP packet that arrived on NIC `nic`.
    fn decide_packet(&self, nic: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let start = self.interfaces[usize::from(nic)].framing.header_length();
        let bytes = frames[id].bytes().get(start..).unwrap_or(&[]);
        let Ok(packet) = Ipv4Packet::parse(bytes) else { return Decision::Drop(Reason::Ignored) };
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let Ipv4Header { destination, ttl, .. } = packet.header;
        if self.interfaces.iter().any(|interface| interface.address == destination) {
            return self.answer_echo(id, &packet.header, start, frames);
        }
        if destination.is_broadcast() || destination.is_multicast() {
            return Decision::Drop(Reason::Ignored);
        }
        if ttl <= 1 {
            let error = IcmpError::TimeExceeded(TimeExceeded::Transit);
            return self.report_error(nic, id, start, error, Reason::Expired, frames);
        }
        let Some(route) = self.routes.get(&network_of(destination)) else {
            let error = IcmpError::Unreachable(Unreachable::Net);
            return self.report_error(nic, id, start, error, Reason::Unreachable, frames);
        };
        let out = &self.interfaces[usize::from(route.nic)];
        if length > out.mtu {
            let next_hop_mtu = u16::try_from(out.mtu).unwrap_or(u16::MAX);
            let error = IcmpError::FragmentationNeeded { next_hop_mtu };
            return self.report_error(nic, id, start, error, Reason::TooLong, frames);
        }
        let Some(&next) = self.neighbours.get(&route.gateway.unwrap_or(destination)) else {
            let error = IcmpError::Unreachable(Unreachable::Host);
            return self.report_error(nic, id, start, error, Reason::Unreachable, frames);
        };
        let frame = self.prepare_for_next_hop(*route, next, id, start, length, frames);
        Decision::Forward { nic: route.nic, frame }
    }

    /// Prepares a packet for the next hop: decrements its TTL and writes the new link header. Takes
    /// a new frame only if the two media have different headers.
    fn prepare_for_next_hop(
        &self,
        route: NetworkRoute,
        next: usize,
        id: FrameId,
        start: usize,
        length: usize,
        frames: &mut Frames,
    ) -> FrameId {
        let out = &self.interfaces[usize::from(route.nic)];
        let new_start = out.framing.header_length();
        let target = if new_start == start {
            id
        } else {
            let (target, packet) =
                (frames.take(), frames[id].bytes()[start..start + length].to_vec());
            frames[target].room()[new_start..new_start + length].copy_from_slice(&packet);
            frames[target].set_length(new_start + length);
            frames.release(id);
            target
        };
        let bytes = frames[target].written();
        decrement_ttl(&mut bytes[new_start..]);
        if out.framing == Framing::Ethernet {
            header_to(next, out.mac).emit(bytes);
        }
        target
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
        self.icmp_frame(header.destination, header.source, &reply, frames).map_or(
            Decision::Drop(Reason::Unreachable),
            |(nic, frame)| Decision::Answer { nic, frame, instead: Reason::Local },
        )
    }

    /// Reports an ICMP error to the sender of a packet. Silent if the packet is an ICMP error
    /// itself or a fragment other than the first (RFC 1812 §4.3.2.7).
    fn report_error(
        &self,
        nic: u16,
        id: FrameId,
        start: usize,
        error: IcmpError,
        reason: Reason,
        frames: &mut Frames,
    ) -> Decision {
        let bytes = frames[id].bytes()[start..].to_vec();
        let said = Ipv4Packet::parse(&bytes).ok().zip(Quote::of(&bytes).ok()).and_then(
            |(packet, quote)| {
                let is_error = packet.header.protocol == Protocol::ICMP
                    && !matches!(
                        IcmpMessage::parse(packet.payload),
                        Ok(IcmpMessage::EchoRequest(_))
                    );
                if is_error || packet.header.fragment_offset > 0 {
                    return None;
                }
                let from = self.interfaces[usize::from(nic)].address;
                self.icmp_frame(
                    from,
                    packet.header.source,
                    &IcmpMessage::Error { error, quote },
                    frames,
                )
            },
        );
        said.map_or(Decision::Drop(reason), |(nic, frame)| Decision::Answer {
            nic,
            frame,
            instead: reason,
        })
    }

    /// Builds a frame with an ICMP message. Returns it with its outgoing NIC, or `None` if there is
    /// no route to `to`.
    fn icmp_frame(
        &self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        message: &IcmpMessage<'_>,
        frames: &mut Frames,
    ) -> Option<(u16, FrameId)> {
        let route = self.routes.get(&network_of(to))?;
        let next = *self.neighbours.get(&route.gateway.unwrap_or(to))?;
        let out = &self.interfaces[usize::from(route.nic)];
        let (start, length) = (out.framing.header_length(), Ipv4Header::LENGTH + message.length());
        let id = frames.take();
        if length > out.mtu || start + length > frames[id].room().len() {
            frames.release(id);
            return None;
        }
        let frame: &mut Frame = &mut frames[id];
        let room = frame.room();
        if out.framing == Framing::Ethernet {
            header_to(next, out.mac).emit(room);
        }
        let packet = &mut room[start..];
        let header = Ipv4Header::new(from, to, Protocol::ICMP);
        let behind = header.emit(message.length(), packet);
        message.emit(&mut packet[behind..]);
        frame.set_length(start + length);
        Some((route.nic, id))
    }
}

/// Returns the number of the network that contains an address.
pub(crate) const fn network_of(address: Ipv4Addr) -> u32 {
    address.to_bits() >> (32 - NETWORK_BITS)
}

fn header_to(next: usize, from: usize) -> EthernetHeader {
    EthernetHeader {
        destination: MacAddress::new(mac_address(next)),
        source: MacAddress::new(mac_address(from)),
        ether_type: EtherType::IPV4,
        ..EthernetHeader::default()
    }
}

/// Decrements the TTL and updates the header checksum incrementally (RFC 1624).
fn decrement_ttl(packet: &mut [u8]) {
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
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

    /// Creates a router between an Ethernet (towards MAC address 0) and a serial line (towards MAC
    /// address 1) with an MTU of 576 bytes.
    fn router() -> Router {
        let interface = |mac, address, framing, mtu| Interface { mac, address, framing, mtu };
        let interfaces = vec![
            interface(2, HERE, Framing::Ethernet, 1_500),
            interface(3, Ipv4Addr::new(10, 1, 0, 4), Framing::Ip, 576),
        ];
        let routes = [0, 1].map(|nic| {
            (
                network_of(Ipv4Addr::new(10, nic, 0, 0)),
                NetworkRoute { nic: nic.into(), gateway: None },
            )
        });
        let neighbours = [(HOST, 0), (FAR, 1)].into_iter().collect();
        Router::new(interfaces, routes.into_iter().collect(), Arc::new(neighbours))
    }

    /// Creates a frame from MAC address 0 that contains an IP packet of this length.
    fn frame(frames: &mut Frames, to: Ipv4Addr, ttl: u8, length: usize) -> FrameId {
        let id = frames.take();
        let room = frames[id].room();
        header_to(2, 0).emit(room);
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
