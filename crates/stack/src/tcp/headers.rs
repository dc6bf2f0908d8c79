//! What stands in front of every segment of a connection: built once, completed by its lengths and
//! checksums.

use super::NOWHERE;
use crate::link::{PartialChecksum, TxChecksum, TxFrame};
use core::net::{Ipv4Addr, SocketAddrV4};
use core::num::NonZeroU8;
use linerate_tcp::Transmit;
use linerate_wire::{
    Ecn, EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, Sum, TcpHeader, TcpOptions,
    TypeOfService, VlanTags, checksum,
};

const IP: usize = EthernetHeader::LENGTH;
const TCP: usize = IP + Ipv4Header::LENGTH;
/// As far as the ports.
const LENGTH: usize = TCP + 4;
/// As far as the header of TCP has no options.
const FIXED: usize = TCP + TcpHeader::LENGTH;

/// Bytes of the packet that nearly always comes first.
#[allow(clippy::cast_possible_truncation, reason = "it is a short one")]
const SYN_PACKET: u16 = (Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::SYN_LENGTH) as u16;

/// The two bits of the type of service that tell of congestion.
const ECN: u8 = Ecn::Ce as u8;
const CHECKSUM: usize = TCP + TcpHeader::CHECKSUM_OFFSET;

/// The headers of one direction of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Ethernet, IP and ports, of the last packet: the next has the same, unless it is of another length, or
    /// bears another mark.
    bytes: [u8; LENGTH],
    /// How long it was, and its codepoint.
    last: (u16, Ecn),
    /// Over the IP header in `bytes`, without length, codepoint and checksum.
    ip_sum: Sum,
    /// Over the ports and a pseudo-header that says zero bytes.
    tcp_sum: Sum,
    /// The same for the length of the last packet.
    segment_sum: Sum,
}

impl Headers {
    /// The headers of what goes from `local` to `peer`, to no station yet.
    pub(crate) fn new(local: SocketAddrV4, peer: SocketAddrV4) -> Self {
        Self::between(*local.ip(), *peer.ip()).with_ports(local.port(), peer.port())
    }

    /// The headers of all conversations between two hosts, with no ports yet.
    fn between(local: Ipv4Addr, peer: Ipv4Addr) -> Self {
        let mut bytes = [0; LENGTH];
        Ipv4Header::new(local, peer, Protocol::TCP).emit(0, &mut bytes[IP..]);
        let tcp_sum = checksum::pseudo_header_v4(local, peer, Protocol::TCP, 0);
        let last = (0, Ecn::NotEct);
        let mut headers =
            Self { bytes, last, ip_sum: Sum::default(), tcp_sum, segment_sum: tcp_sum };
        headers.sum_anew();
        headers.fit_anew((SYN_PACKET, Ecn::NotEct));
        headers
    }

    /// The same with these ports, where there were none.
    pub(crate) fn with_ports(mut self, local: u16, peer: u16) -> Self {
        self.bytes[TCP..TCP + 2].copy_from_slice(&local.to_be_bytes());
        self.bytes[TCP + 2..].copy_from_slice(&peer.to_be_bytes());
        self.tcp_sum = self.tcp_sum.add_u16(local).add_u16(peer);
        self.segment_sum = self.segment_sum.add_u16(local).add_u16(peer);
        self
    }

    /// The next packet is of no length that is known.
    fn sum_anew(&mut self) {
        let ip = &mut self.bytes[IP..TCP];
        ip[1] &= !ECN;
        ip[2..4].fill(0);
        ip[10..12].fill(0);
        self.ip_sum = Sum::of(ip);
        self.last = (0, Ecn::NotEct);
    }

    /// Names the stations on the link.
    pub(crate) fn set_stations(&mut self, source: MacAddress, destination: MacAddress) {
        let ether_type = EtherType::IPV4;
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type }
            .emit(&mut self.bytes);
    }

    /// Says how routers are to treat the packets. The two bits of congestion are the connection's.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: TypeOfService) {
        self.bytes[IP + 1] = type_of_service.byte();
        self.sum_anew();
    }

    /// Says how many routers the packets may pass.
    pub(crate) fn set_ttl(&mut self, ttl: NonZeroU8) {
        self.bytes[IP + 8] = ttl.get();
        self.sum_anew();
    }

    /// How routers are to treat the packets, and how many they may pass, to be kept for
    /// [`Headers::set_service`].
    pub(crate) const fn service(&self) -> [u8; 2] {
        [self.bytes[IP + 1] & !ECN, self.bytes[IP + 8]]
    }

    /// Says both of it again.
    pub(crate) fn set_service(&mut self, [type_of_service, ttl]: [u8; 2]) {
        (self.bytes[IP + 1], self.bytes[IP + 8]) = (type_of_service, ttl);
        self.sum_anew();
    }

    /// Completes a frame in which a segment has been written behind the room for the headers, of
    /// which the medium takes `medium` bytes: all of Ethernet's or none. Returns the frame's length.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[inline(always)]
    pub(crate) fn complete(&mut self, medium: usize, sent: &Transmit, frame: &mut [u8]) -> usize {
        self.fit(sent);
        self.write(medium, sent.length, (self.segment_sum + sent.sum).finish(), frame)
    }

    /// The same for a link that completes the checksum: its field holds the sum over the pseudo-header. Data that
    /// are to be gathered are not in the frame, and not in its length.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn complete_but_for_checksum(
        &mut self,
        medium: usize,
        sent: &Transmit,
        frame: &mut [u8],
    ) -> TxFrame {
        self.fit(sent);
        let &[a, b, c, d] = self.ports();
        // Taken off again, by adding the complement.
        let (source, destination) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let pseudo = self.segment_sum.add_u16(!source).add_u16(!destination);
        let elsewhere = sent.lent.map_or(0, |data| data.length());
        let length = self.write(medium, sent.length, !pseudo.finish(), frame) - elsewhere;
        let start = (medium + Ipv4Header::LENGTH) as u16;
        let offset = TcpHeader::CHECKSUM_OFFSET as u16;
        let checksum = TxChecksum::Partial(PartialChecksum { start, offset });
        TxFrame { length, checksum, segment: sent.cut }
    }

    const fn ports(&self) -> &[u8; 4] {
        self.bytes.last_chunk().expect("they are the last four bytes")
    }

    /// The sum of a segment of `length` bytes whose header is `header` behind the ports.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn sum_of(&self, length: usize, header: &[u8]) -> Sum {
        (self.tcp_sum + Sum::of(header)).add_u16(length as u16)
    }

    /// Makes the headers those of the segment that is `sent`.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    #[inline(always)]
    fn fit(&mut self, sent: &Transmit) {
        let next = ((Ipv4Header::LENGTH + sent.length) as u16, sent.ecn);
        if self.last != next {
            self.fit_anew(next);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a header has twenty bytes")]
    #[inline(never)]
    fn fit_anew(&mut self, next: (u16, Ecn)) {
        self.last = next;
        let (total, ecn) = (next.0, next.1 as u8);
        self.segment_sum = self.tcp_sum.add_u16(total - Ipv4Header::LENGTH as u16);
        let ip_checksum = self.ip_sum.add_u16(total).add_u16(u16::from(ecn)).finish();
        let ip = &mut self.bytes[IP..TCP];
        ip[1] = ip[1] & !ECN | ecn;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[10..12].copy_from_slice(&ip_checksum.to_be_bytes());
    }

    /// Writes everything that is not the connection's in front of a segment of `length` bytes, with this
    /// checksum of TCP.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        medium: usize,
        length: usize,
        tcp_checksum: u16,
        frame: &mut [u8],
    ) -> usize {
        let total = medium + Ipv4Header::LENGTH + length;
        let frame = &mut frame[..total];
        let checksum = tcp_checksum.to_be_bytes();
        let headers: Option<&mut [u8; FIXED]> = frame.first_chunk_mut();
        match headers {
            Some(headers) if medium == IP => {
                headers[..LENGTH].copy_from_slice(&self.bytes);
                headers[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum);
            }
            _ => self.write_to_other_medium(IP - medium, checksum, frame),
        }
        total
    }

    /// The same where what stands before the IP header is `before` bytes shorter.
    #[cold]
    fn write_to_other_medium(&self, before: usize, checksum: [u8; 2], frame: &mut [u8]) {
        frame[..LENGTH - before].copy_from_slice(&self.bytes[before..]);
        frame[CHECKSUM - before..CHECKSUM - before + 2].copy_from_slice(&checksum);
    }
}

/// The headers of the two hosts between which a connection was opened last: the next is likely to be opened between
/// the same, by who connects as by who is connected to.
#[derive(Debug)]
pub(crate) struct HostHeaders {
    hosts: [Ipv4Addr; 2],
    headers: Headers,
    /// The generation of routes and neighbours for which the station in `headers` is right, or [`NOWHERE`].
    hop: u64,
}

impl HostHeaders {
    /// The headers of what goes from `local` to `peer`, to no station yet.
    #[cold]
    pub(crate) fn new(local: Ipv4Addr, peer: Ipv4Addr) -> Self {
        Self { hosts: [local, peer], headers: Headers::between(local, peer), hop: NOWHERE }
    }

    /// Are they those of a conversation between these two?
    pub(crate) fn are_between(&self, local: SocketAddrV4, peer: SocketAddrV4) -> bool {
        self.hosts == [*local.ip(), *peer.ip()]
    }

    /// The headers of such a conversation, and the generation for which their station is right.
    pub(crate) fn with_ports(&self, local: u16, peer: u16) -> (Headers, u64) {
        (self.headers.with_ports(local, peer), self.hop)
    }

    /// In the generation `hop` packets go from `source` to `destination` on the link.
    pub(crate) fn set_stations(&mut self, source: MacAddress, destination: MacAddress, hop: u64) {
        self.headers.set_stations(source, destination);
        self.hop = hop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_tcp::Kind;
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
                kind: Kind::Ordinary,
            };
            let length = headers.complete(medium, &sent, &mut frame);
            assert_eq!(length, medium + 47);
            if medium > 0 {
                let header = EthernetFrame::parse(&frame).unwrap().header;
                assert_eq!((header.source, header.destination), stations);
                assert_eq!(header.ether_type, EtherType::IPV4);
            }
            let packet = Ipv4Packet::parse(&frame[medium..length]).unwrap();
            assert_eq!(
                (packet.header.source, packet.header.destination),
                (*local.ip(), *peer.ip())
            );
            assert_eq!(packet.header.type_of_service.ecn(), Ecn::Ect0);
            assert!((packet.header.pseudo_header(27) + Sum::of(packet.payload)).is_valid());
            let segment = Segment::parse(packet.payload).unwrap();
            assert_eq!((segment.source_port, segment.destination_port), (40_001, 80));
        }
    }
}
