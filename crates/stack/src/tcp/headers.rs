//! The header template of a connection: link, IP and ports, completed for each segment by its
//! length and checksums.

use super::UNRESOLVED;
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
/// Offset of the end of the ports.
const LENGTH: usize = TCP + 4;
/// Offset of the end of a TCP header without options.
const FIXED: usize = TCP + TcpHeader::LENGTH;

/// Length of a SYN packet, which is nearly always the first.
#[allow(clippy::cast_possible_truncation, reason = "it is a short one")]
const SYN_PACKET: u16 = (Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::SYN_LENGTH) as u16;

/// The ECN bits of the type of service.
const ECN: u8 = Ecn::Ce as u8;
const CHECKSUM: usize = TCP + TcpHeader::CHECKSUM_OFFSET;

/// The header template of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Ethernet header, IP header and ports of the last packet. The next packet has the same,
    /// unless its length or its codepoint differs.
    bytes: [u8; LENGTH],
    /// Length and codepoint of the last packet.
    last: (u16, Ecn),
    /// Sum of the IP header in `bytes`, without length, codepoint and checksum.
    ip_sum: Sum,
    /// Sum of the ports and of a pseudo-header with zero length.
    tcp_sum: Sum,
    /// Sum of the ports and of the pseudo-header with the last packet's length.
    segment_sum: Sum,
}

impl Headers {
    /// Creates the headers from `local` to `peer`, without MAC addresses.
    pub(crate) fn new(local: SocketAddrV4, peer: SocketAddrV4) -> Self {
        Self::between(*local.ip(), *peer.ip()).with_ports(local.port(), peer.port())
    }

    /// Creates the headers between two hosts, without ports.
    fn between(local: Ipv4Addr, peer: Ipv4Addr) -> Self {
        let mut bytes = [0; LENGTH];
        Ipv4Header::new(local, peer, Protocol::TCP).emit(0, &mut bytes[IP..]);
        let tcp_sum = checksum::pseudo_header_v4(local, peer, Protocol::TCP, 0);
        let last = (0, Ecn::NotEct);
        let mut headers =
            Self { bytes, last, ip_sum: Sum::default(), tcp_sum, segment_sum: tcp_sum };
        headers.recompute_ip_sum();
        headers.refit((SYN_PACKET, Ecn::NotEct));
        headers
    }

    /// Adds ports to headers without ports.
    pub(crate) fn with_ports(mut self, local: u16, peer: u16) -> Self {
        self.bytes[TCP..TCP + 2].copy_from_slice(&local.to_be_bytes());
        self.bytes[TCP + 2..].copy_from_slice(&peer.to_be_bytes());
        self.tcp_sum = self.tcp_sum.add_u16(local).add_u16(peer);
        self.segment_sum = self.segment_sum.add_u16(local).add_u16(peer);
        self
    }

    /// Recomputes the sum of the IP header after a change, and invalidates the last length.
    fn recompute_ip_sum(&mut self) {
        let ip = &mut self.bytes[IP..TCP];
        ip[1] &= !ECN;
        ip[2..4].fill(0);
        ip[10..12].fill(0);
        self.ip_sum = Sum::of(ip);
        self.last = (0, Ecn::NotEct);
    }

    /// Sets the MAC addresses.
    pub(crate) fn set_mac_addresses(&mut self, source: MacAddress, destination: MacAddress) {
        let ether_type = EtherType::IPV4;
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type }
            .emit(&mut self.bytes);
    }

    /// Sets the type of service. The ECN bits remain those of the connection.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: TypeOfService) {
        self.bytes[IP + 1] = type_of_service.byte();
        self.recompute_ip_sum();
    }

    /// Sets the time to live.
    pub(crate) fn set_ttl(&mut self, ttl: NonZeroU8) {
        self.bytes[IP + 8] = ttl.get();
        self.recompute_ip_sum();
    }

    /// Returns the type of service and the time to live, for [`Headers::set_service`].
    pub(crate) const fn service(&self) -> [u8; 2] {
        [self.bytes[IP + 1] & !ECN, self.bytes[IP + 8]]
    }

    /// Sets the type of service and the time to live.
    pub(crate) fn set_service(&mut self, [type_of_service, ttl]: [u8; 2]) {
        (self.bytes[IP + 1], self.bytes[IP + 8]) = (type_of_service, ttl);
        self.recompute_ip_sum();
    }

    /// Completes a frame in which a segment was written after room for the headers. The link header
    /// has `medium` bytes: that of Ethernet, or zero. Returns the length of the frame.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[inline(always)]
    pub(crate) fn complete(&mut self, medium: usize, sent: &Transmit, frame: &mut [u8]) -> usize {
        self.fit(sent);
        self.write(medium, sent.length, (self.segment_sum + sent.sum).finish(), frame)
    }

    /// Completes a frame like [`Headers::complete`], for a link that completes the checksum. The
    /// checksum field contains the sum of the pseudo-header. Zero-copy data is not in the frame and
    /// not counted in its length.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn complete_with_partial_checksum(
        &mut self,
        medium: usize,
        sent: &Transmit,
        frame: &mut [u8],
    ) -> TxFrame {
        self.fit(sent);
        let &[a, b, c, d] = self.ports();
        // Subtracts the ports by adding their complement.
        let (source, destination) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let pseudo = self.segment_sum.add_u16(!source).add_u16(!destination);
        let zero_copy = sent.zero_copy.map_or(0, |data| data.length());
        let length = self.write(medium, sent.length, !pseudo.finish(), frame) - zero_copy;
        let start = (medium + Ipv4Header::LENGTH) as u16;
        let offset = TcpHeader::CHECKSUM_OFFSET as u16;
        let checksum = TxChecksum::Partial(PartialChecksum { start, offset });
        TxFrame { length, checksum, segment: sent.cut }
    }

    const fn ports(&self) -> &[u8; 4] {
        self.bytes.last_chunk().expect("the ports are the last four bytes")
    }

    /// Returns the sum of a segment of `length` bytes, whose TCP header after the ports is
    /// `header`.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn sum_of(&self, length: usize, header: &[u8]) -> Sum {
        (self.tcp_sum + Sum::of(header)).add_u16(length as u16)
    }

    /// Adapts the headers to the length and codepoint of a segment.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    #[inline(always)]
    fn fit(&mut self, sent: &Transmit) {
        let next = ((Ipv4Header::LENGTH + sent.length) as u16, sent.ecn);
        if self.last != next {
            self.refit(next);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a header has twenty bytes")]
    #[inline(never)]
    fn refit(&mut self, next: (u16, Ecn)) {
        self.last = next;
        let (total, ecn) = (next.0, next.1 as u8);
        self.segment_sum = self.tcp_sum.add_u16(total - Ipv4Header::LENGTH as u16);
        let ip_checksum = self.ip_sum.add_u16(total).add_u16(u16::from(ecn)).finish();
        let ip = &mut self.bytes[IP..TCP];
        ip[1] = ip[1] & !ECN | ecn;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[10..12].copy_from_slice(&ip_checksum.to_be_bytes());
    }

    /// Writes the headers before a segment of `length` bytes, with this TCP checksum.
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

    /// Writes the headers where the link header is `before` bytes shorter.
    #[cold]
    fn write_to_other_medium(&self, before: usize, checksum: [u8; 2], frame: &mut [u8]) {
        frame[..LENGTH - before].copy_from_slice(&self.bytes[before..]);
        frame[CHECKSUM - before..CHECKSUM - before + 2].copy_from_slice(&checksum);
    }
}

/// The headers between the two hosts of the last opened connection. The next connection is likely
/// to be between the same hosts, on a client and on a server.
#[derive(Debug)]
pub(crate) struct HostHeaders {
    hosts: [Ipv4Addr; 2],
    headers: Headers,
    /// The generation of routes and neighbours at which `headers` got its MAC address, or
    /// [`UNRESOLVED`].
    next_hop_generation: u64,
}

impl HostHeaders {
    /// Creates the headers from `local` to `peer`, without MAC addresses.
    #[cold]
    pub(crate) fn new(local: Ipv4Addr, peer: Ipv4Addr) -> Self {
        Self {
            hosts: [local, peer],
            headers: Headers::between(local, peer),
            next_hop_generation: UNRESOLVED,
        }
    }

    /// Are the headers those between these two hosts?
    pub(crate) fn are_between(&self, local: SocketAddrV4, peer: SocketAddrV4) -> bool {
        self.hosts == [*local.ip(), *peer.ip()]
    }

    /// Returns the headers of a connection, and the generation of their MAC address.
    pub(crate) fn with_ports(&self, local: u16, peer: u16) -> (Headers, u64) {
        (self.headers.with_ports(local, peer), self.next_hop_generation)
    }

    /// Sets the MAC addresses, which were resolved in `next_hop_generation`.
    pub(crate) fn set_mac_addresses(
        &mut self,
        source: MacAddress,
        destination: MacAddress,
        next_hop_generation: u64,
    ) {
        self.headers.set_mac_addresses(source, destination);
        self.next_hop_generation = next_hop_generation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_tcp::Kind;
    use linerate_wire::{EthernetFrame, Ipv4Packet, Segment};

    #[test]
    fn a_completed_frame_has_valid_addresses_and_checksums() {
        let local = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 40_001);
        let peer = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 2), 80);
        let macs = (MacAddress::new([2, 0, 0, 0, 0, 1]), MacAddress::new([2, 0, 0, 0, 0, 2]));
        let mut headers = Headers::new(local, peer);
        headers.set_mac_addresses(macs.0, macs.1);
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
                zero_copy: None,
                kind: Kind::Ordinary,
                is_predicted: false,
            };
            let length = headers.complete(medium, &sent, &mut frame);
            assert_eq!(length, medium + 47);
            if medium > 0 {
                let header = EthernetFrame::parse(&frame).unwrap().header;
                assert_eq!((header.source, header.destination), macs);
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
