//! Formatting of packets as lines of text, in the style of tcpdump: one line for each packet.
//!
//! Sequence numbers are absolute, or relative to [`SequenceBases`]. The line of a malformed packet
//! contains its valid headers and the error. Wrong checksums are marked.

mod icmp;
mod icmpv6;
mod ipv6;
mod parts;
mod tcp;

use crate::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, Ipv4Packet, Protocol, SeqNum, UdpDatagram,
    VlanTags,
};
use core::fmt;
use parts::{Carried, Piece, write_verdict};

/// A formatter that prints an Ethernet frame as one line.
#[derive(Clone, Copy, Debug)]
pub struct FrameLine<'a>(
    /// The frame, without its check sequence.
    pub &'a [u8],
);

impl<'a> FrameLine<'a> {
    /// Returns a line whose sequence numbers are relative to `bases`.
    #[must_use]
    pub const fn relative_to(self, bases: SequenceBases) -> RelativeLine<'a> {
        RelativeLine { bytes: self.0, is_frame: true, bases }
    }
}

impl fmt::Display for FrameLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_frame(f, self.0, SequenceBases::default())
    }
}

/// The numbers that are subtracted from printed sequence numbers. If they are the sequence numbers
/// of the two SYNs, the first byte of data is printed as number 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceBases {
    /// The number that is subtracted from sequence numbers.
    pub seq: SeqNum,
    /// The number that is subtracted from acknowledgement numbers and SACK blocks.
    pub ack: SeqNum,
}

/// The line of text for a packet, with relative sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct RelativeLine<'a> {
    bytes: &'a [u8],
    is_frame: bool,
    bases: SequenceBases,
}

impl fmt::Display for RelativeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = if self.is_frame { write_frame } else { write_packet };
        write(f, self.bytes, self.bases)
    }
}

fn write_frame(f: &mut fmt::Formatter<'_>, bytes: &[u8], bases: SequenceBases) -> fmt::Result {
    let EthernetFrame { header, payload } = match EthernetFrame::parse(bytes) {
        Ok(frame) => frame,
        Err(error) => return write!(f, "{error}"),
    };
    write_tags(f, header.tags)?;
    match header.ether_type {
        EtherType::IPV4 | EtherType::IPV6 => write_packet(f, payload, bases),
        EtherType::ARP => write_arp(f, payload),
        ether_type => {
            let kind = if ether_type.is_length() { "802.3 length" } else { "type" };
            let (source, destination) = (header.source, header.destination);
            write!(f, "{source} > {destination}: {kind} {ether_type}, length {}", payload.len())
        }
    }
}

/// A formatter that prints an IP packet of either version as one line.
#[derive(Clone, Copy, Debug)]
pub struct PacketLine<'a>(
    /// The packet, possibly with padding after it.
    pub &'a [u8],
);

impl<'a> PacketLine<'a> {
    /// Returns a line whose sequence numbers are relative to `bases`.
    #[must_use]
    pub const fn relative_to(self, bases: SequenceBases) -> RelativeLine<'a> {
        RelativeLine { bytes: self.0, is_frame: false, bases }
    }
}

impl fmt::Display for PacketLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_packet(f, self.0, SequenceBases::default())
    }
}

fn write_packet(f: &mut fmt::Formatter<'_>, bytes: &[u8], bases: SequenceBases) -> fmt::Result {
    if bytes.first().is_some_and(|first| first >> 4 == 6) {
        ipv6::write(f, bytes, bases)
    } else {
        write_ipv4(f, bytes, bases)
    }
}

fn write_ipv4(f: &mut fmt::Formatter<'_>, bytes: &[u8], bases: SequenceBases) -> fmt::Result {
    let packet = match Ipv4Packet::parse(bytes) {
        Ok(packet) => packet,
        Err(error) => return write!(f, "IP {error}"),
    };
    let header = &packet.header;
    f.write_str("IP ")?;
    let carried = Carried {
        source: header.source.into(),
        destination: header.destination.into(),
        protocol: header.protocol,
        payload: packet.payload,
    };
    if header.is_fragment() {
        let (identification, offset) = (header.identification.into(), header.fragment_offset);
        return Piece { identification, offset, more: header.more_fragments }.write(f, &carried);
    }
    match header.protocol {
        Protocol::ICMP => icmp::write(f, &carried),
        _ => write_transport(f, &carried, bases),
    }
}

/// Writes the text for the payload of an IP packet of either version, preceded by the packet's
/// addresses.
fn write_transport(
    f: &mut fmt::Formatter<'_>,
    carried: &Carried<'_>,
    bases: SequenceBases,
) -> fmt::Result {
    match carried.protocol {
        Protocol::TCP => tcp::write(f, carried, bases),
        Protocol::UDP => write_udp(f, carried),
        protocol => {
            carried.write_hosts(f)?;
            write!(f, "{protocol}, length {}", carried.payload.len())
        }
    }
}

fn write_tags(f: &mut fmt::Formatter<'_>, tags: VlanTags) -> fmt::Result {
    for tag in tags.iter() {
        write!(f, "vlan {}, p {}, ", tag.id(), tag.priority())?;
    }
    Ok(())
}

fn write_arp(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    match ArpPacket::parse(bytes) {
        Ok(ArpPacket { operation: ArpOperation::Request, sender_ip, target_ip, .. }) => {
            write!(f, "ARP who-has {target_ip} tell {sender_ip}")
        }
        Ok(ArpPacket { operation: ArpOperation::Reply, sender_ip, sender_mac, .. }) => {
            write!(f, "ARP {sender_ip} is-at {sender_mac}")
        }
        Err(error) => write!(f, "{error}"),
    }
}

fn write_udp(f: &mut fmt::Formatter<'_>, carried: &Carried<'_>) -> fmt::Result {
    let datagram = match UdpDatagram::parse(carried.payload) {
        Ok(datagram) => datagram,
        Err(error) => {
            carried.write_hosts(f)?;
            return write!(f, "{error}");
        }
    };
    carried.write_ends(f, datagram.header.source_port, datagram.header.destination_port)?;
    write!(f, "UDP, length {}", datagram.payload.len())?;
    // Only IPv4 allows UDP datagrams without a checksum (RFC 8200 §8.1). In IPv6, a datagram
    // without a checksum is printed as one with a wrong checksum.
    let may_be_missing = carried.source.is_ipv4();
    let is_missing = datagram.has_no_checksum() && !may_be_missing;
    let pseudo = carried.pseudo_header(datagram.length());
    write_verdict(f, !is_missing && datagram.verify_checksum(pseudo).is_ok())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{
        Echo, EthernetHeader, IcmpError, IcmpMessage, Ipv4Header, MacAddress, Quote, TcpHeader,
        Unreachable, VlanTag,
    };
    use core::net::Ipv4Addr;
    use std::string::{String, ToString};

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

    /// Returns the line for a frame with this `EtherType`, these tags and this payload.
    fn frame(ether_type: EtherType, tags: VlanTags, payload: &[u8]) -> String {
        let mut bytes = [0; 128];
        let header =
            EthernetHeader { destination: MacAddress::BROADCAST, source: MAC, tags, ether_type };
        let at = header.emit(&mut bytes);
        bytes[at..at + payload.len()].copy_from_slice(payload);
        FrameLine(&bytes[..at + payload.len()]).to_string()
    }

    /// Returns the line for a packet with this header and payload.
    fn packet(header: &Ipv4Header, payload: &[u8]) -> String {
        let mut bytes = [0; 128];
        let at = header.emit(payload.len(), &mut bytes);
        bytes[at..at + payload.len()].copy_from_slice(payload);
        PacketLine(&bytes[..at + payload.len()]).to_string()
    }

    #[test]
    fn arp_requests_and_replies_are_printed() {
        let request = ArpPacket::request(MAC, A, B);
        let mut bytes = [0; 28];
        request.emit(&mut bytes);
        assert_eq!(
            frame(EtherType::ARP, VlanTags::NONE, &bytes),
            "ARP who-has 192.0.2.2 tell 192.0.2.1"
        );
        request.reply(MAC).emit(&mut bytes);
        let tags = VlanTags::one(VlanTag::new(3, 12).unwrap());
        assert_eq!(
            frame(EtherType::ARP, tags, &bytes),
            "vlan 12, p 3, ARP 192.0.2.2 is-at 02:00:00:00:00:01"
        );
    }

    #[test]
    fn other_payloads_print_addresses_type_and_length() {
        let ends = "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff:";
        let line = frame(EtherType::new(0x88b5), VlanTags::NONE, &[0; 40]);
        assert_eq!(line, std::format!("{ends} type 0x88b5, length 40"));
        let line = frame(EtherType::new(3), VlanTags::NONE, &[0; 46]);
        assert_eq!(line, std::format!("{ends} 802.3 length 0x0003, length 46"));
        let line = packet(&Ipv4Header::new(A, B, Protocol::new(89)), &[0; 4]);
        assert_eq!(line, "IP 192.0.2.1 > 192.0.2.2: protocol 89, length 4");
    }

    #[test]
    fn a_datagram_prints_ports_and_a_wrong_checksum() {
        let header = Ipv4Header::new(A, B, Protocol::UDP);
        let (right, wrong) = ([0, 53, 0, 54, 0, 9, 0, 0, 7], [0, 53, 0, 54, 0, 9, 1, 2, 7]);
        assert_eq!(packet(&header, &right), "IP 192.0.2.1.53 > 192.0.2.2.54: UDP, length 1");
        assert_eq!(
            packet(&header, &wrong),
            "IP 192.0.2.1.53 > 192.0.2.2.54: UDP, length 1, wrong checksum"
        );
    }

    #[test]
    fn a_fragment_prints_its_byte_range() {
        let header = Ipv4Header {
            dont_fragment: false,
            more_fragments: true,
            fragment_offset: 16,
            identification: 5,
            ..Ipv4Header::new(A, B, Protocol::UDP)
        };
        let line = "IP 192.0.2.1 > 192.0.2.2: UDP fragment, id 5, bytes 16:24+";
        assert_eq!(packet(&header, &[0; 8]), line);
    }

    #[test]
    fn icmp_messages_print_their_contents() {
        let header = Ipv4Header::new(A, B, Protocol::ICMP);
        let mut bytes = [0; 128];
        let length = IcmpMessage::EchoRequest(Echo { identifier: 5, sequence: 6, data: &[0; 4] })
            .emit(&mut bytes);
        let line = "IP 192.0.2.1 > 192.0.2.2: ICMP echo request, id 5, seq 6, length 12";
        assert_eq!(packet(&header, &bytes[..length]), line);

        let mut quoted = [0; 40];
        Ipv4Header::new(B, A, Protocol::TCP).emit(20, &mut quoted);
        TcpHeader { source_port: 9, destination_port: 19, ..TcpHeader::default() }
            .emit(0, &mut quoted[20..]);
        let (error, quote) =
            (IcmpError::Unreachable(Unreachable::Port), Quote::of(&quoted).unwrap());
        let length = IcmpMessage::Error { error, quote }.emit(&mut bytes);
        let line = "IP 192.0.2.1 > 192.0.2.2: ICMP port unreachable, \
                    for TCP 192.0.2.2.9 > 192.0.2.1.19 seq 0, length 48";
        assert_eq!(packet(&header, &bytes[..length]), line);
    }

    #[test]
    fn malformed_packets_print_the_error() {
        assert_eq!(
            FrameLine(&[1; 5]).to_string(),
            "Ethernet header is cut short: 14 bytes needed, 5 there"
        );
        let line = packet(&Ipv4Header::new(A, B, Protocol::TCP), &[0; 4]);
        assert_eq!(
            line,
            "IP 192.0.2.1 > 192.0.2.2: TCP header is cut short: 20 bytes needed, 4 there"
        );
    }
}
