//! What a router makes of a frame (RFC 1812): it answers for its own addresses, and a packet for somebody else goes on
//! towards him with a hop less to live, or its sender hears why not.
//!
//! It knows its routes and its neighbours' stations from the beginning, as one does that has been running for long:
//! no routing protocol is spoken, and nothing is asked by ARP. It does not cut packets into fragments: a packet that is
//! too long for the next network is dropped, whether it may be cut or not, and its sender is told (RFC 1191).

use super::{Decision, Reason};
use crate::frame::{Frame, FrameId, Frames};
use crate::station::station;
use linerate_stack::Medium as Framing;
use linerate_wire::{
    ArpOperation, ArpPacket, Echo, EtherType, EthernetFrame, EthernetHeader, IcmpError,
    IcmpMessage, Ipv4Header, Ipv4Packet, MacAddress, Protocol, Quote, TimeExceeded, Unreachable,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The networks that a world consists of differ in the first two bytes of their addresses.
pub(crate) const NETWORK_BITS: u8 = 16;

/// A card of the router, as its software sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    /// The number of its station.
    pub(crate) station: usize,
    pub(crate) address: Ipv4Addr,
    pub(crate) framing: Framing,
    /// Largest IP packet.
    pub(crate) mtu: usize,
}

/// How to get to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// By this card …
    pub(crate) card: u16,
    /// … to this router, or to the destination itself.
    pub(crate) gateway: Option<Ipv4Addr>,
}

/// The addresses, routes and neighbours of a router.
#[derive(Debug)]
pub(crate) struct Router {
    interfaces: Vec<Interface>,
    /// By the first two bytes of the destination.
    ways: BTreeMap<u32, Way>,
    /// The stations of all addresses that there are.
    neighbours: Arc<BTreeMap<Ipv4Addr, usize>>,
}

impl Router {
    /// A router with these interfaces, a card each.
    pub(crate) fn new(
        interfaces: Vec<Interface>,
        ways: BTreeMap<u32, Way>,
        neighbours: Arc<BTreeMap<Ipv4Addr, usize>>,
    ) -> Self {
        Self { interfaces, ways, neighbours }
    }

    /// Where a frame goes that came in by `card`.
    pub(super) fn decide(&self, card: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let interface = &self.interfaces[usize::from(card)];
        if interface.framing == Framing::Ip {
            return self.judge_packet(card, id, frames);
        }
        match EthernetFrame::parse(frames[id].bytes()) {
            Ok(frame) if frame.header.ether_type == EtherType::IPV4 => {
                self.judge_packet(card, id, frames)
            }
            Ok(frame) if frame.header.ether_type == EtherType::ARP => {
                match ArpPacket::parse(frame.payload) {
                    Ok(question) => self.answer_question(card, &question, frames),
                    Err(_) => Decision::Drop(Reason::Ignored),
                }
            }
            Ok(_) | Err(_) => Decision::Drop(Reason::Ignored),
        }
    }

    /// Somebody asks for a station, which may be ours.
    fn answer_question(&self, card: u16, question: &ArpPacket, frames: &mut Frames) -> Decision {
        let interface = &self.interfaces[usize::from(card)];
        if question.operation != ArpOperation::Request || question.target_ip != interface.address {
            return Decision::Drop(Reason::Ignored);
        }
        let answer = question.reply(MacAddress::new(station(interface.station)));
        let header = EthernetHeader {
            destination: question.sender_mac,
            source: MacAddress::new(station(interface.station)),
            ether_type: EtherType::ARP,
            ..EthernetHeader::default()
        };
        let frame = frames.take();
        let room = frames[frame].room();
        let start = header.emit(room);
        let length = start + answer.emit(&mut room[start..]);
        frames[frame].set_length(length);
        Decision::Answer { card, frame, instead: Reason::OurOwn }
    }

    /// A packet: is it for us, and if not, where does it go?
    fn judge_packet(&self, card: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let start = self.interfaces[usize::from(card)].framing.header_length();
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
            return self.complain(card, id, start, error, Reason::Expired, frames);
        }
        let Some(way) = self.ways.get(&network_of(destination)) else {
            let error = IcmpError::Unreachable(Unreachable::Net);
            return self.complain(card, id, start, error, Reason::Unreachable, frames);
        };
        let out = &self.interfaces[usize::from(way.card)];
        if length > out.mtu {
            let next_hop_mtu = u16::try_from(out.mtu).unwrap_or(u16::MAX);
            let error = IcmpError::FragmentationNeeded { next_hop_mtu };
            return self.complain(card, id, start, error, Reason::TooLong, frames);
        }
        let Some(&next) = self.neighbours.get(&way.gateway.unwrap_or(destination)) else {
            let error = IcmpError::Unreachable(Unreachable::Host);
            return self.complain(card, id, start, error, Reason::Unreachable, frames);
        };
        let frame = self.make_ready(*way, next, id, start, length, frames);
        Decision::Forward { card: way.card, frame }
    }

    /// The packet with a hop less, in a frame for the next hop: the same frame if the media frame alike.
    fn make_ready(
        &self,
        way: Way,
        next: usize,
        id: FrameId,
        start: usize,
        length: usize,
        frames: &mut Frames,
    ) -> FrameId {
        let out = &self.interfaces[usize::from(way.card)];
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
        take_a_hop(&mut bytes[new_start..]);
        if out.framing == Framing::Ethernet {
            header_to(next, out.station).emit(bytes);
        }
        target
    }

    /// A packet to one of our own addresses: an echo request is answered, by the way to its sender.
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
            return Decision::Drop(Reason::OurOwn);
        };
        let answer = IcmpMessage::EchoReply(Echo { identifier, sequence, data });
        self.say(header.destination, header.source, &answer, frames).map_or(
            Decision::Drop(Reason::Unreachable),
            |(card, frame)| Decision::Answer { card, frame, instead: Reason::OurOwn },
        )
    }

    /// Tells the sender of a packet why it does not go on, unless it is itself such a word, or a fragment that is not
    /// the first (RFC 1812 §4.3.2.7).
    fn complain(
        &self,
        card: u16,
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
                let from = self.interfaces[usize::from(card)].address;
                self.say(from, packet.header.source, &IcmpMessage::Error { error, quote }, frames)
            },
        );
        said.map_or(Decision::Drop(reason), |(card, frame)| Decision::Answer {
            card,
            frame,
            instead: reason,
        })
    }

    /// A message of our own, in a frame, and the card by which it leaves; none if there is no way to `to`.
    fn say(
        &self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        message: &IcmpMessage<'_>,
        frames: &mut Frames,
    ) -> Option<(u16, FrameId)> {
        let way = self.ways.get(&network_of(to))?;
        let next = *self.neighbours.get(&way.gateway.unwrap_or(to))?;
        let out = &self.interfaces[usize::from(way.card)];
        let (start, length) = (out.framing.header_length(), Ipv4Header::LENGTH + message.length());
        let id = frames.take();
        if length > out.mtu || start + length > frames[id].room().len() {
            frames.release(id);
            return None;
        }
        let frame: &mut Frame = &mut frames[id];
        let room = frame.room();
        if out.framing == Framing::Ethernet {
            header_to(next, out.station).emit(room);
        }
        let packet = &mut room[start..];
        let header = Ipv4Header::new(from, to, Protocol::ICMP);
        let behind = header.emit(message.length(), packet);
        message.emit(&mut packet[behind..]);
        frame.set_length(start + length);
        Some((way.card, id))
    }
}

/// The network that an address is in.
pub(crate) const fn network_of(address: Ipv4Addr) -> u32 {
    address.to_bits() >> (32 - NETWORK_BITS)
}

fn header_to(next: usize, from: usize) -> EthernetHeader {
    EthernetHeader {
        destination: MacAddress::new(station(next)),
        source: MacAddress::new(station(from)),
        ether_type: EtherType::IPV4,
        ..EthernetHeader::default()
    }
}

/// A hop less to live; the header's checksum is mended (RFC 1624).
fn take_a_hop(packet: &mut [u8]) {
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

    /// A router between an Ethernet, where station 0 is, and a serial line of 576 bytes to station 1.
    fn router() -> Router {
        let interface =
            |station, address, framing, mtu| Interface { station, address, framing, mtu };
        let interfaces = vec![
            interface(2, HERE, Framing::Ethernet, 1_500),
            interface(3, Ipv4Addr::new(10, 1, 0, 4), Framing::Ip, 576),
        ];
        let ways = [0, 1].map(|card| {
            (network_of(Ipv4Addr::new(10, card, 0, 0)), Way { card: card.into(), gateway: None })
        });
        let neighbours = [(HOST, 0), (FAR, 1)].into_iter().collect();
        Router::new(interfaces, ways.into_iter().collect(), Arc::new(neighbours))
    }

    /// A frame from station 0 with a packet of so many bytes.
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
    fn a_packet_for_another_network_goes_on_with_a_hop_less_and_a_right_checksum() {
        let (decision, bytes) = decide(FAR, 64, 100);
        assert!(matches!(decision, Decision::Forward { card: 1, .. }));
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!((packet.header.ttl, packet.header.destination, bytes.len()), (63, FAR, 100));
    }

    #[test]
    fn who_sent_a_packet_that_cannot_go_on_hears_why() {
        let told = |to, ttl, length| {
            let (decision, bytes) = decide(to, ttl, length);
            let Decision::Answer { card: 0, instead, .. } = decision else {
                panic!("{decision:?}")
            };
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
        let nobody = Ipv4Addr::new(10, 1, 0, 9);
        assert_eq!(
            told(nobody, 9, 100),
            (Reason::Unreachable, IcmpError::Unreachable(Unreachable::Host))
        );
    }

    #[test]
    fn a_question_for_its_own_address_is_answered_and_another_is_not() {
        let mut frames = Frames::new(1_514);
        let mut ask = |target| {
            let question = ArpPacket::request(MacAddress::new(station(0)), HOST, target);
            router().answer_question(0, &question, &mut frames)
        };
        assert!(matches!(ask(HERE), Decision::Answer { card: 0, instead: Reason::OurOwn, .. }));
        assert_eq!(ask(FAR), Decision::Drop(Reason::Ignored));
    }

    #[test]
    fn anything_at_all_may_come() {
        let mut frames = Frames::new(1_514);
        for length in 0..80 {
            let id = frame(&mut frames, FAR, 9, 100);
            frames[id].set_length(length);
            router().decide(0, id, &mut frames);
        }
    }
}
