//! The header template of a connection: link header, IP header and ports. Each frame is a copy of
//! the template, with the length and the checksums of its segment filled in.

use super::UNRESOLVED;
use crate::demux::flow::{Flow, Hosts};
use crate::ip::pseudo_header;
use crate::link::{PartialChecksum, TxChecksum, TxFrame};
use core::num::NonZeroU8;
use linerate_tcp::Transmit;
use linerate_wire::{
    Ecn, EtherType, EthernetHeader, IpHeader, Ipv4Header, Ipv6Header, MacAddress, Protocol, Sum,
    TcpHeader, TcpOptions, TypeOfService, VlanTags,
};

/// Offset of the IP header in a frame with an Ethernet header.
const IP: usize = EthernetHeader::LENGTH;
/// Length of both ports in bytes.
const PORTS: usize = 4;
/// Length of the longest template in bytes, which is the IPv6 template.
const LONGEST: usize = IP + Ipv6Header::LENGTH + PORTS;

/// Length of a SYN in bytes. The length fields of a new template are those of a SYN. They need no
/// change for the first segment, which is nearly always a SYN.
#[allow(clippy::cast_possible_truncation, reason = "it is a short one")]
const SYN: u16 = (TcpHeader::LENGTH + TcpOptions::SYN_LENGTH) as u16;

/// Mask of the ECN bits in the type of service.
const ECN: u8 = Ecn::Ce as u8;

/// The header template for the packets that this host sends on a connection. The three sums are
/// contributions to checksums, before folding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Ethernet header, IP header and ports of the most recent packet; the bytes behind them are
    /// unused. The next packet can differ from them only in the length, the ECN codepoint and the
    /// IPv4 header checksum.
    bytes: [u8; LONGEST],
    version: Version,
    /// Length of the most recent segment in bytes, and the ECN codepoint of its packet.
    last: (u16, Ecn),
    /// Sum of the IPv4 header in `bytes`, with length, ECN codepoint and checksum field taken as
    /// zero.
    ip_sum: Sum,
    /// Sum of the ports and of a pseudo-header whose length is zero.
    tcp_sum: Sum,
    /// Sum of the ports and of the pseudo-header of the most recent segment.
    segment_sum: Sum,
}

/// The IP version of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

impl Headers {
    /// Creates the template for packets of `flow` from the local to the remote host, without MAC
    /// addresses.
    pub(crate) fn new(flow: &Flow) -> Self {
        let mut headers = Self::between(&flow.hosts);
        headers.set_ports(flow);
        headers
    }

    /// Creates the template for packets from the local to the remote host, without ports.
    fn between(hosts: &Hosts) -> Self {
        let mut bytes = [0; LONGEST];
        if let Some(header) = IpHeader::new(hosts.local(), hosts.remote(), Protocol::TCP) {
            header.emit(0, &mut bytes[IP..]);
        }
        let version = match hosts {
            Hosts::V4(_) => Version::V4,
            Hosts::V6(_) => Version::V6,
        };
        let tcp_sum = pseudo_header(hosts, Protocol::TCP, 0);
        let last = (0, Ecn::NotEct);
        let mut headers =
            Self { bytes, version, last, ip_sum: Sum::default(), tcp_sum, segment_sum: tcp_sum };
        headers.recompute_ip_sum();
        headers.refit((SYN, Ecn::NotEct));
        headers
    }

    /// Returns the length of the IP header in bytes.
    #[inline(always)]
    pub(crate) const fn ip_length(&self) -> usize {
        match self.version {
            Version::V4 => Ipv4Header::LENGTH,
            Version::V6 => Ipv6Header::LENGTH,
        }
    }

    /// Returns the flow to which the template belongs.
    pub(crate) fn flow(&self) -> Flow {
        // A flow has the order of a received packet, with the remote address and port first.
        // Rotating a word by half of its bits exchanges source and destination.
        let hosts = match self.version {
            Version::V4 => {
                let addresses = self.bytes[IP + 12..].first_chunk().copied().unwrap_or_default();
                Hosts::V4(u64::from_ne_bytes(addresses).rotate_left(32).to_ne_bytes())
            }
            Version::V6 => {
                let mut hosts = [0; 32];
                let (to, from) = hosts.split_at_mut(16);
                from.copy_from_slice(&self.bytes[IP + 8..IP + 24]);
                to.copy_from_slice(&self.bytes[IP + 24..IP + 40]);
                Hosts::V6(hosts)
            }
        };
        Flow { hosts, ports: u32::from_ne_bytes(self.ports()).rotate_left(16).to_ne_bytes() }
    }

    /// Adds the ports of `flow` to headers without ports.
    #[inline(always)]
    fn set_ports(&mut self, flow: &Flow) {
        let tcp = IP + self.ip_length();
        let ports = u32::from_ne_bytes(flow.ports).rotate_left(16).to_ne_bytes();
        self.bytes[tcp..tcp + PORTS].copy_from_slice(&ports);
        let (local, peer) = (flow.local_port(), flow.remote_port());
        self.tcp_sum = self.tcp_sum.add_u16(local).add_u16(peer);
        self.segment_sum = self.segment_sum.add_u16(local).add_u16(peer);
    }

    /// Recomputes the sum of the IPv4 header after a change of the header. This sum excludes the
    /// fields that depend on the segment, so these fields are set to zero. `fit` sets them again
    /// for the next segment.
    fn recompute_ip_sum(&mut self) {
        self.last = (0, Ecn::NotEct);
        let ip = &mut self.bytes[IP..];
        match self.version {
            Version::V4 => {
                let ip = &mut ip[..Ipv4Header::LENGTH];
                ip[1] &= !ECN;
                ip[2..4].fill(0);
                ip[10..12].fill(0);
                self.ip_sum = Sum::of(ip);
            }
            Version::V6 => {
                ip[1] &= !(ECN << 4);
                ip[4..6].fill(0);
            }
        }
    }

    /// Sets the MAC addresses.
    pub(crate) fn set_mac_addresses(&mut self, source: MacAddress, destination: MacAddress) {
        let ether_type = match self.version {
            Version::V4 => EtherType::IPV4,
            Version::V6 => EtherType::IPV6,
        };
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type }
            .emit(&mut self.bytes);
    }

    /// Sets the DSCP bits of the type of service. The connection sets the ECN bits for each
    /// segment.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: TypeOfService) {
        let [_, time_to_live] = self.service();
        self.set_service([type_of_service.byte(), time_to_live]);
    }

    /// Sets the TTL or the hop limit.
    pub(crate) fn set_ttl(&mut self, ttl: NonZeroU8) {
        let [type_of_service, _] = self.service();
        self.set_service([type_of_service, ttl.get()]);
    }

    /// Returns the type of service without its ECN bits, and the TTL or hop limit, for
    /// [`Headers::set_service`].
    pub(crate) const fn service(&self) -> [u8; 2] {
        let type_of_service = match self.version {
            Version::V4 => self.bytes[IP + 1],
            Version::V6 => self.bytes[IP] << 4 | self.bytes[IP + 1] >> 4,
        };
        [type_of_service & !ECN, self.bytes[self.time_to_live()]]
    }

    /// Sets the type of service, without ECN bits, and the TTL or hop limit.
    pub(crate) fn set_service(&mut self, [type_of_service, time_to_live]: [u8; 2]) {
        self.bytes[self.time_to_live()] = time_to_live;
        match self.version {
            Version::V4 => self.bytes[IP + 1] = type_of_service,
            Version::V6 => {
                self.bytes[IP] = 6 << 4 | type_of_service >> 4;
                self.bytes[IP + 1] = type_of_service << 4 | self.bytes[IP + 1] & 0xf;
            }
        }
        self.recompute_ip_sum();
    }

    /// Returns the offset of the TTL or of the hop limit.
    const fn time_to_live(&self) -> usize {
        match self.version {
            Version::V4 => IP + 8,
            Version::V6 => IP + 7,
        }
    }

    /// Writes the headers and the TCP checksum of a frame that already contains the segment `sent`,
    /// behind room for the headers. The link header has `medium` bytes: the length of an Ethernet
    /// header, or zero. Returns the length of the frame in bytes.
    ///
    /// # Panics
    /// If the segment is not in the frame.
    #[inline(always)]
    pub(crate) fn complete(&mut self, medium: usize, sent: &Transmit, frame: &mut [u8]) -> usize {
        self.fit(sent);
        self.write(medium, sent.length, (self.segment_sum + sent.sum).finish(), frame)
    }

    /// Completes a frame like [`Headers::complete`], but leaves the TCP checksum to the link: the
    /// checksum field gets only the sum of the pseudo-header. The returned length excludes
    /// zero-copy data, which are not in `frame`.
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
        let [a, b, c, d] = self.ports();
        // To a partial sum of the pseudo-header, the link adds the sum of the segment, which
        // includes the ports. But `segment_sum` already contains the ports. So the ports are
        // subtracted from it, by adding their complements.
        let (source, destination) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let pseudo = self.segment_sum.add_u16(!source).add_u16(!destination);
        let zero_copy = sent.zero_copy.map_or(0, |data| data.length());
        let length = self.write(medium, sent.length, !pseudo.finish(), frame) - zero_copy;
        let start = (medium + self.ip_length()) as u16;
        let offset = TcpHeader::CHECKSUM_OFFSET as u16;
        let checksum = TxChecksum::Partial(PartialChecksum { start, offset });
        TxFrame { length, checksum, segment: sent.cut }
    }

    fn ports(&self) -> [u8; PORTS] {
        let tcp = IP + self.ip_length();
        self.bytes[tcp..].first_chunk().copied().unwrap_or_default()
    }

    /// Returns the sum of the pseudo-header and the TCP header of a segment of `length` bytes.
    /// `header` is the TCP header without the ports.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub(crate) fn sum_of(&self, length: usize, header: &[u8]) -> Sum {
        (self.tcp_sum + Sum::of(header)).add_u16(length as u16)
    }

    /// Sets the length and the ECN codepoint of the segment `sent` in the template.
    #[allow(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    #[inline(always)]
    fn fit(&mut self, sent: &Transmit) {
        let next = (sent.length as u16, sent.ecn);
        if self.last != next {
            self.refit(next);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a header has twenty bytes")]
    #[inline(never)]
    fn refit(&mut self, next: (u16, Ecn)) {
        self.last = next;
        let (length, ecn) = (next.0, next.1 as u8);
        self.segment_sum = self.tcp_sum.add_u16(length);
        let ip = &mut self.bytes[IP..];
        match self.version {
            Version::V4 => {
                let total = length.wrapping_add(Ipv4Header::LENGTH as u16);
                let ip_checksum = self.ip_sum.add_u16(total).add_u16(u16::from(ecn)).finish();
                ip[1] = ip[1] & !ECN | ecn;
                ip[2..4].copy_from_slice(&total.to_be_bytes());
                ip[10..12].copy_from_slice(&ip_checksum.to_be_bytes());
            }
            Version::V6 => {
                ip[1] = ip[1] & !(ECN << 4) | ecn << 4;
                ip[4..6].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Writes the headers in front of a segment of `length` bytes, and `tcp_checksum` into its
    /// checksum field. Returns the length of the frame in bytes.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        medium: usize,
        length: usize,
        tcp_checksum: u16,
        frame: &mut [u8],
    ) -> usize {
        // Each IP version has a branch of its own, which copies a constant number of bytes. Such a
        // copy compiles to a few move instructions.
        match self.version {
            Version::V4 => {
                self.write_version::<{ Ipv4Header::LENGTH }>(medium, length, tcp_checksum, frame)
            }
            Version::V6 => {
                self.write_version::<{ Ipv6Header::LENGTH }>(medium, length, tcp_checksum, frame)
            }
        }
    }

    #[inline(always)]
    fn write_version<const IP_LENGTH: usize>(
        &self,
        medium: usize,
        length: usize,
        tcp_checksum: u16,
        frame: &mut [u8],
    ) -> usize {
        let total = medium + IP_LENGTH + length;
        let frame = &mut frame[..total];
        let checksum = tcp_checksum.to_be_bytes();
        let headers = frame.get_mut(..IP + IP_LENGTH + TcpHeader::LENGTH);
        match headers {
            Some(headers) if medium == IP => {
                let template = IP + IP_LENGTH + PORTS;
                let place = IP + IP_LENGTH + TcpHeader::CHECKSUM_OFFSET;
                headers[..template].copy_from_slice(&self.bytes[..template]);
                headers[place..place + 2].copy_from_slice(&checksum);
            }
            _ => self.write_to_other_medium(IP - medium, IP_LENGTH, checksum, frame),
        }
        total
    }

    /// Writes the headers for a link whose link header is `before` bytes shorter than an Ethernet
    /// header.
    #[cold]
    fn write_to_other_medium(
        &self,
        before: usize,
        ip_length: usize,
        checksum: [u8; 2],
        frame: &mut [u8],
    ) {
        let template = IP + ip_length + PORTS;
        frame[..template - before].copy_from_slice(&self.bytes[before..template]);
        let place = IP + ip_length + TcpHeader::CHECKSUM_OFFSET - before;
        frame[place..place + 2].copy_from_slice(&checksum);
    }
}

/// The header template, without ports, and the timestamp offset of the most recently opened
/// connection. The next connection reuses both if it is between these two hosts, which is frequent
/// on clients and on servers.
#[derive(Debug)]
pub(crate) struct HostHeaders {
    hosts: Hosts,
    headers: Headers,
    /// Offset of the timestamp clock of connections between these hosts (RFC 7323 §5.4).
    timestamp_offset: u32,
    /// Generation of routes and neighbours at which the MAC addresses in `headers` were resolved,
    /// or [`UNRESOLVED`].
    next_hop_generation: u64,
}

impl HostHeaders {
    /// Creates the template for packets from the local to the remote host, without MAC addresses.
    #[cold]
    pub(crate) fn new(hosts: Hosts, timestamp_offset: u32) -> Self {
        let headers = Headers::between(&hosts);
        Self { hosts, headers, timestamp_offset, next_hop_generation: UNRESOLVED }
    }

    /// Returns whether the template is for packets between these two hosts.
    pub(crate) fn are_between(&self, hosts: &Hosts) -> bool {
        self.hosts == *hosts
    }

    /// Returns a copy of the template whose MAC addresses count as unresolved.
    pub(crate) fn unresolved(&self) -> Self {
        Self { next_hop_generation: UNRESOLVED, ..*self }
    }

    /// Returns the offset of the timestamp clock of connections between the two hosts.
    pub(crate) const fn timestamp_offset(&self) -> u32 {
        self.timestamp_offset
    }

    /// Writes the template for a connection with this flow into `headers`. Returns the generation
    /// of routes and neighbours at which the MAC addresses were resolved, or [`UNRESOLVED`].
    #[inline(always)]
    pub(crate) fn write_for(&self, flow: &Flow, headers: &mut Headers) -> u64 {
        *headers = self.headers;
        headers.set_ports(flow);
        self.next_hop_generation
    }

    /// Sets the MAC addresses, which were resolved at the generation `next_hop_generation`.
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
    use core::net::SocketAddr;
    use linerate_tcp::Kind;
    use linerate_wire::{EthernetFrame, Ipv4Packet, Ipv6Packet, Segment};

    fn sent(segment: &mut [u8]) -> Transmit {
        TcpHeader::default().emit(0, segment);
        Transmit {
            length: segment.len(),
            sum: Sum::of(segment),
            ecn: Ecn::Ect0,
            header: 20,
            cut: None,
            zero_copy: None,
            kind: Kind::Ordinary,
            is_predicted: false,
        }
    }

    fn complete(local: &str, peer: &str, check: impl Fn(&[u8], SocketAddr, SocketAddr)) {
        let (local, peer): (SocketAddr, SocketAddr) =
            (local.parse().unwrap(), peer.parse().unwrap());
        let macs = (MacAddress::new([2, 0, 0, 0, 0, 1]), MacAddress::new([2, 0, 0, 0, 0, 2]));
        let flow = Flow::new(local, peer);
        let mut headers = Headers::new(&flow);
        assert_eq!(headers.flow(), flow);
        headers.set_mac_addresses(macs.0, macs.1);
        headers.set_service([0xb8, 9]);
        assert_eq!(headers.service(), [0xb8, 9]);
        for medium in [0, EthernetHeader::LENGTH] {
            let mut frame = [0xa5; 120];
            let at = medium + headers.ip_length();
            let sent = sent(&mut frame[at..at + 27]);
            let length = headers.complete(medium, &sent, &mut frame);
            assert_eq!(length, at + 27);
            if medium > 0 {
                let header = EthernetFrame::parse(&frame).unwrap().header;
                assert_eq!((header.source, header.destination), macs);
                let is_ipv6 = header.ether_type == EtherType::IPV6;
                assert_eq!(is_ipv6, local.is_ipv6(), "{}", header.ether_type);
            }
            check(&frame[medium..length], local, peer);
        }
    }

    fn check_segment(bytes: &[u8], pseudo: Sum) {
        assert!((pseudo + Sum::of(bytes)).is_valid());
        let segment = Segment::parse(bytes).unwrap();
        assert_eq!((segment.source_port, segment.destination_port), (40_001, 80));
    }

    #[test]
    fn a_completed_frame_has_valid_addresses_and_checksums() {
        complete("192.0.2.1:40001", "198.51.100.2:80", |bytes, local, peer| {
            let packet = Ipv4Packet::parse(bytes).unwrap();
            let header = packet.header;
            assert_eq!(local.ip(), header.source);
            assert_eq!(peer.ip(), header.destination);
            assert_eq!((header.type_of_service.byte(), header.ttl), (0xb8 | Ecn::Ect0 as u8, 9));
            check_segment(packet.payload, header.pseudo_header(27));
        });
    }

    #[test]
    fn a_completed_ipv6_frame_has_valid_addresses_and_checksums() {
        complete("[2001:db8::1]:40001", "[2001:db8:1::2]:80", |bytes, local, peer| {
            let packet = Ipv6Packet::parse(bytes).unwrap();
            let header = packet.header;
            assert_eq!(local.ip(), header.source);
            assert_eq!(peer.ip(), header.destination);
            assert_eq!(
                (header.traffic_class.byte(), header.hop_limit),
                (0xb8 | Ecn::Ect0 as u8, 9)
            );
            check_segment(packet.payload, header.pseudo_header(Protocol::TCP, 27));
        });
    }
}
