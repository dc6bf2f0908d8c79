//! What stands in front of every segment of a connection: built once, completed by its lengths and
//! checksums.

use crate::link::{PartialChecksum, TxChecksum, TxFrame};
use core::net::SocketAddrV4;
use core::num::NonZeroU8;
use linerate_tcp::Transmit;
use linerate_wire::{
    Ecn, EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, Sum, TcpHeader, TypeOfService,
    VlanTags, checksum,
};

const IP: usize = EthernetHeader::LENGTH;
const LENGTH: usize = IP + Ipv4Header::LENGTH;

/// The headers of one direction of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Ethernet and IP, with total length and checksum zero.
    bytes: [u8; LENGTH],
    /// Over the IP header in `bytes`.
    ip_sum: Sum,
    ports: [u8; 4],
    /// Over the ports and a pseudo-header that says zero bytes.
    tcp_sum: Sum,
}

impl Headers {
    /// The headers of what goes from `local` to `peer`, to no station yet.
    pub(crate) fn new(local: SocketAddrV4, peer: SocketAddrV4) -> Self {
        let mut bytes = [0; LENGTH];
        Ipv4Header::new(*local.ip(), *peer.ip(), Protocol::TCP).emit(0, &mut bytes[IP..]);
        bytes[IP + 2..IP + 4].fill(0);
        bytes[IP + 10..IP + 12].fill(0);
        let ([a, b], [c, d]) = (local.port().to_be_bytes(), peer.port().to_be_bytes());
        let pseudo = checksum::pseudo_header_v4(*local.ip(), *peer.ip(), Protocol::TCP, 0);
        Self {
            bytes,
            ip_sum: Sum::of(&bytes[IP..]),
            ports: [a, b, c, d],
            tcp_sum: pseudo.add_u16(local.port()).add_u16(peer.port()),
        }
    }

    /// Names the stations on the link.
    pub(crate) fn set_stations(&mut self, source: MacAddress, destination: MacAddress) {
        let ether_type = EtherType::IPV4;
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type }.emit(&mut self.bytes);
    }

    /// Says how routers are to treat the packets. The two bits of congestion are the connection's.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: TypeOfService) {
        self.bytes[IP + 1] = type_of_service.with_ecn(Ecn::NotEct).byte();
        self.ip_sum = Sum::of(&self.bytes[IP..]);
    }

    /// Says how many routers the packets may pass.
    pub(crate) fn set_ttl(&mut self, ttl: NonZeroU8) {
        self.bytes[IP + 8] = ttl.get();
        self.ip_sum = Sum::of(&self.bytes[IP..]);
    }

    /// How routers are to treat the packets, and how many they may pass, to be kept for
    /// [`Headers::set_service`].
    pub(crate) const fn service(&self) -> [u8; 2] {
        [self.bytes[IP + 1], self.bytes[IP + 8]]
    }

    /// Says both of it again.
    pub(crate) fn set_service(&mut self, [type_of_service, ttl]: [u8; 2]) {
        (self.bytes[IP + 1], self.bytes[IP + 8]) = (type_of_service, ttl);
        self.ip_sum = Sum::of(&self.bytes[IP..]);
    }

    /// Completes a frame in which a segment has been written behind the room for the headers, of
    /// which the medium takes `medium` bytes: all of Ethernet's or none. Returns the frame's length.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    #[inline(always)]
    pub(crate) fn complete(&self, medium: usize, sent: &Transmit, frame: &mut [u8]) -> usize {
        let tcp_sum = (self.tcp_sum + sent.sum).add_u16(sent.length as u16);
        self.write(medium, sent, tcp_sum.finish(), frame)
    }

    /// The same for a link that completes the checksum: its field holds the sum over the pseudo-header. Data that
    /// are to be gathered are not in the frame, and not in its length.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn complete_but_for_checksum(
        &self,
        medium: usize,
        sent: &Transmit,
        frame: &mut [u8],
    ) -> TxFrame {
        let [a, b, c, d] = self.ports;
        // Taken off again, by adding the complement.
        let (source, destination) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let pseudo = self.tcp_sum.add_u16(!source).add_u16(!destination).add_u16(sent.length as u16);
        let elsewhere = sent.lent.map_or(0, |data| data.length());
        let length = self.write(medium, sent, !pseudo.finish(), frame) - elsewhere;
        let start = (medium + Ipv4Header::LENGTH) as u16;
        let offset = TcpHeader::CHECKSUM_OFFSET as u16;
        let checksum = TxChecksum::Partial(PartialChecksum { start, offset });
        TxFrame { length, checksum, segment: sent.cut }
    }

    /// The sum of a segment of `length` bytes whose header is `header` behind the ports.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(super) fn sum_of(&self, length: usize, header: &[u8]) -> Sum {
        (self.tcp_sum + Sum::of(header)).add_u16(length as u16)
    }

    /// Writes everything that is not the connection's, with this checksum of TCP.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    #[inline(always)]
    fn write(&self, medium: usize, sent: &Transmit, tcp_checksum: u16, frame: &mut [u8]) -> usize {
        let total = Ipv4Header::LENGTH + sent.length;
        let ecn = sent.ecn as u8;
        let ip_checksum = self.ip_sum.add_u16(total as u16).add_u16(u16::from(ecn)).finish();
        let tcp = medium + Ipv4Header::LENGTH;
        let frame = &mut frame[..medium + total];
        match frame.first_chunk_mut() {
            Some(headers) if medium == IP => *headers = self.bytes,
            _ => frame[..tcp].copy_from_slice(&self.bytes[IP - medium..]),
        }
        frame[medium + 1] |= ecn;
        frame[medium + 2..medium + 4].copy_from_slice(&(total as u16).to_be_bytes());
        frame[medium + 10..medium + 12].copy_from_slice(&ip_checksum.to_be_bytes());
        frame[tcp..tcp + 4].copy_from_slice(&self.ports);
        let at = tcp + TcpHeader::CHECKSUM_OFFSET;
        frame[at..at + 2].copy_from_slice(&tcp_checksum.to_be_bytes());
        frame.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use linerate_wire::{EthernetFrame, Ipv4Packet, Segment};

    #[test]
    fn a_completed_frame_says_who_speaks_and_that_it_is_whole() {
        let local = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 40_001);
        let peer = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 2), 80);
        let stations = (MacAddress::new([2, 0, 0, 0, 0, 1]), MacAddress::new([2, 0, 0, 0, 0, 2]));
        let mut headers = Headers::new(local, peer);
        headers.set_stations(stations.0, stations.1);
        for medium in [0, EthernetHeader::LENGTH] {
            let mut frame = [0xa5; 100];
            let segment = &mut frame[medium + 20..medium + 47];
            TcpHeader::default().emit(0, segment);
            let sent = Transmit {
                length: 27,
                sum: Sum::of(segment),
                ecn: Ecn::Ect0,
                header: 20,
                cut: None,
                lent: None,
            };
            let length = headers.complete(medium, &sent, &mut frame);
            assert_eq!(length, medium + 47);
            if medium > 0 {
                let header = EthernetFrame::parse(&frame).unwrap().header;
                assert_eq!((header.source, header.destination), stations);
                assert_eq!(header.ether_type, EtherType::IPV4);
            }
            let packet = Ipv4Packet::parse(&frame[medium..length]).unwrap();
            assert_eq!((packet.header.source, packet.header.destination), (*local.ip(), *peer.ip()));
            assert_eq!(packet.header.type_of_service.ecn(), Ecn::Ect0);
            assert!((packet.header.pseudo_header(27) + Sum::of(packet.payload)).is_valid());
            let segment = Segment::parse(packet.payload).unwrap();
            assert_eq!((segment.source_port, segment.destination_port), (40_001, 80));
        }
    }
}
