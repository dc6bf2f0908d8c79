//! Relative sequence numbers. Numbers are printed relative to a base for each direction of each
//! connection, normally its initial sequence number.

use linerate_link::capture_file::{LinkType, Packet};
use linerate_wire::{
    EtherType, EthernetFrame, Ipv4Packet, Ipv6Packet, Protocol, Segment, SeqNum, SequenceBases,
    TcpFlags,
};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of directions whose bases are stored, to bound the memory. Segments of further
/// directions are printed with absolute numbers.
const MAX_DIRECTIONS: usize = 1 << 18;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Direction {
    from: SocketAddr,
    to: SocketAddr,
}

/// The base of each direction: the sequence number of its SYN, or of the first captured segment if
/// the SYN was not captured.
#[derive(Debug, Default)]
pub(super) struct SequenceNumbers(HashMap<Direction, SeqNum>);

impl SequenceNumbers {
    /// Returns the bases of a packet: the numbers to subtract from its sequence number and from its
    /// acknowledgement number. Bases are chosen as in tcpdump: the base of a direction is the
    /// sequence number of its SYN or of its first captured segment. A number that is itself taken
    /// as a base is printed unchanged.
    pub(super) fn bases(&mut self, packet: &Packet<'_>) -> SequenceBases {
        let bytes = match packet.link_type {
            LinkType::Ethernet => match EthernetFrame::parse(packet.bytes) {
                Ok(EthernetFrame { header, payload })
                    if [EtherType::IPV4, EtherType::IPV6].contains(&header.ether_type) =>
                {
                    payload
                }
                _ => return SequenceBases::default(),
            },
            LinkType::Ip => packet.bytes,
            LinkType::Other(_) => return SequenceBases::default(),
        };
        self.of_packet(bytes).unwrap_or_default()
    }

    fn of_packet(&mut self, bytes: &[u8]) -> Option<SequenceBases> {
        let (source, destination, segment) = segment(bytes)?;
        let segment = Segment::parse(segment).ok()?;
        let from = SocketAddr::new(source, segment.source_port);
        let to = SocketAddr::new(destination, segment.destination_port);
        let flags = segment.flags();
        if flags.contains(TcpFlags::SYN) {
            self.remember(Direction { from, to }, segment.seq);
            return None;
        }
        let seq = self.base(Direction { from, to }, segment.seq);
        let has_ack = flags.contains(TcpFlags::ACK);
        // If the SYN of the other direction was not captured, that direction may have no base yet.
        // This acknowledgement number is then assumed to acknowledge the SYN. A SYN occupies one
        // sequence number, so the base is one less.
        let ack = if has_ack {
            self.base(Direction { from: to, to: from }, segment.ack - 1)
        } else {
            None
        };
        Some(SequenceBases { seq: seq.unwrap_or_default(), ack: ack.unwrap_or_default() })
    }

    /// Returns the base of a direction. If the direction has no base yet, stores `first` as its
    /// base and returns `None`.
    fn base(&mut self, direction: Direction, first: SeqNum) -> Option<SeqNum> {
        let known = self.0.get(&direction).copied();
        if known.is_none() {
            self.remember(direction, first);
        }
        known
    }

    fn remember(&mut self, direction: Direction, seq: SeqNum) {
        if self.0.len() < MAX_DIRECTIONS || self.0.contains_key(&direction) {
            self.0.insert(direction, seq);
        }
    }
}

/// Returns the source address, the destination address and the TCP segment of an IP packet. Returns
/// `None` if the packet carries no TCP segment, or only a fragment of one.
fn segment(bytes: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    if bytes.first()? >> 4 == 6 {
        let packet = Ipv6Packet::parse(bytes).ok()?;
        let is_fragment = packet.fragment.is_some_and(|fragment| !fragment.is_atomic());
        let (header, payload) = (packet.header, packet.payload);
        let is_segment = packet.protocol == Protocol::TCP && !is_fragment;
        return is_segment.then_some((header.source.into(), header.destination.into(), payload));
    }
    let Ipv4Packet { header, payload, .. } = Ipv4Packet::parse(bytes).ok()?;
    let is_segment = header.protocol == Protocol::TCP && !header.is_fragment();
    is_segment.then_some((header.source.into(), header.destination.into(), payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::{IpHeader, TcpHeader};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
    const A_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    const B_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));

    fn packet(from: IpAddr, to: IpAddr, seq: u32, ack: u32, flags: TcpFlags) -> Vec<u8> {
        let header = IpHeader::new(from, to, Protocol::TCP).unwrap();
        let mut bytes = vec![0; header.length() + TcpHeader::LENGTH];
        let at = header.emit(TcpHeader::LENGTH, &mut bytes);
        let is_first = [A, A_IPV6].contains(&from);
        let (source_port, destination_port) = if is_first { (5, 80) } else { (80, 5) };
        let (seq, ack) = (SeqNum::new(seq), SeqNum::new(ack));
        TcpHeader { source_port, destination_port, seq, ack, flags, ..TcpHeader::default() }
            .emit(0, &mut bytes[at..]);
        bytes
    }

    fn bases(numbers: &mut SequenceNumbers, bytes: &[u8]) -> [u32; 2] {
        let bases = numbers.of_packet(bytes).unwrap_or_default();
        [bases.seq - SeqNum::default(), bases.ack - SeqNum::default()]
    }

    #[test]
    fn numbers_are_relative_to_the_syn_of_their_direction() {
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        let mut numbers = SequenceNumbers::default();
        for (a, b) in [(A, B), (A_IPV6, B_IPV6)] {
            assert_eq!(bases(&mut numbers, &packet(a, b, 700, 0, syn)), [0, 0]);
            assert_eq!(bases(&mut numbers, &packet(b, a, 9, 701, syn | ack)), [0, 0]);
            assert_eq!(bases(&mut numbers, &packet(a, b, 701, 10, ack)), [700, 9]);
            assert_eq!(bases(&mut numbers, &packet(b, a, 10, 701, ack)), [9, 700]);
            assert_eq!(bases(&mut numbers, &packet(a, b, 55, 0, syn)), [0, 0], "a reused port");
            assert_eq!(bases(&mut numbers, &packet(a, b, 56, 10, ack)), [55, 9]);
        }
    }

    #[test]
    fn the_first_numbers_without_a_syn_are_absolute() {
        let ack = TcpFlags::ACK;
        let mut numbers = SequenceNumbers::default();
        assert_eq!(bases(&mut numbers, &packet(A, B, 701, 10, ack)), [0, 0]);
        assert_eq!(bases(&mut numbers, &packet(A, B, 801, 20, ack)), [701, 9]);
        assert_eq!(bases(&mut numbers, &packet(B, A, 20, 901, ack)), [9, 701]);
        assert_eq!(bases(&mut numbers, &[1, 2, 3]), [0, 0], "not a packet");
    }
}
