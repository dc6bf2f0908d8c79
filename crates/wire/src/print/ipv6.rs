//! The line of text for an IPv6 packet.

use super::parts::{Carried, Piece};
use super::{SequenceBases, icmpv6, write_transport};
use crate::{Ipv6Packet, Protocol};
use core::fmt;

pub(super) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8], bases: SequenceBases) -> fmt::Result {
    f.write_str("IP6 ")?;
    let fixed = match Ipv6Packet::parse_fixed(bytes) {
        Ok(fixed) => fixed,
        Err(error) => return write!(f, "{error}"),
    };
    let header = fixed.header;
    let packet = match Ipv6Packet::parse(bytes) {
        Ok(packet) => packet,
        Err(error) => return write!(f, "{} > {}: {error}", header.source, header.destination),
    };
    write_extensions(f, bytes)?;
    let carried = Carried {
        source: header.source.into(),
        destination: header.destination.into(),
        protocol: packet.protocol,
        payload: packet.payload,
    };
    if let Some(fragment) = packet.fragment.filter(|fragment| !fragment.is_atomic()) {
        let (identification, offset) = (fragment.identification, fragment.offset);
        return Piece { identification, offset, more: fragment.more }.write(f, &carried);
    }
    match packet.protocol {
        Protocol::ICMPV6 => icmpv6::write(f, &header, &carried),
        _ => write_transport(f, &carried, bases),
    }
}

/// Writes the names of the extension headers, as tcpdump abbreviates them.
fn write_extensions(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for extension in Ipv6Packet::extensions(bytes).into_iter().flatten().map_while(Result::ok) {
        f.write_str(match extension.kind {
            Protocol::HOP_BY_HOP => "HBH ",
            Protocol::DESTINATION_OPTIONS => "DSTOPT ",
            Protocol::ROUTING => "RT ",
            _ => "frag ",
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use crate::{
        Ipv6Fragment, Ipv6Header, PacketLine, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, UdpHeader,
    };
    use core::net::Ipv6Addr;
    use std::string::{String, ToString};
    use std::vec;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    /// Returns the line for an IPv6 packet with the Next Header field `protocol`, and `payload`
    /// after the fixed header.
    fn line(protocol: Protocol, payload: &[u8]) -> String {
        let mut bytes = vec![0; Ipv6Header::LENGTH];
        Ipv6Header::new(A, B, protocol).emit(payload.len(), &mut bytes);
        bytes.extend_from_slice(payload);
        PacketLine(&bytes).to_string()
    }

    #[test]
    fn a_segment_prints_its_ends_numbers_and_a_wrong_checksum() {
        let mut segment = [0; 21];
        let header = TcpHeader {
            source_port: 19,
            destination_port: 9,
            seq: SeqNum::new(5),
            ack: SeqNum::new(7),
            flags: TcpFlags::ACK,
            window: 512,
            urgent: 0,
        };
        header.emit(0, &mut segment);
        let pseudo = Ipv6Header::new(A, B, Protocol::TCP).pseudo_header(Protocol::TCP, 21);
        let sum = Sum::of(&segment);
        TcpHeader::fill_checksum(&mut segment, pseudo, sum);
        let expected =
            "IP6 2001:db8::1.19 > 2001:db8::2.9: Flags [.], seq 5:6, ack 7, win 512, length 1";
        assert_eq!(line(Protocol::TCP, &segment), expected);
        segment[20] = 1;
        assert_eq!(line(Protocol::TCP, &segment), std::format!("{expected}, wrong checksum"));
        let behind_options =
            [&[Protocol::TCP.number(), 0, 1, 4, 0, 0, 0, 0], &segment[..]].concat();
        assert!(line(Protocol::HOP_BY_HOP, &behind_options).starts_with("IP6 HBH 2001:db8::1.19"));
    }

    #[test]
    fn a_datagram_without_a_checksum_is_wrong() {
        let mut datagram = [0; 9];
        UdpHeader { source_port: 53, destination_port: 54 }.emit(1, &mut datagram);
        let expected = "IP6 2001:db8::1.53 > 2001:db8::2.54: UDP, length 1, wrong checksum";
        assert_eq!(line(Protocol::UDP, &datagram), expected);
    }

    #[test]
    fn a_fragment_prints_its_byte_range() {
        let mut payload = [0; 16];
        let fragment = Ipv6Fragment { offset: 16, more: true, identification: 70_000 };
        fragment.emit(Protocol::UDP, &mut payload);
        assert_eq!(
            line(Protocol::FRAGMENT, &payload),
            "IP6 frag 2001:db8::1 > 2001:db8::2: UDP fragment, id 70000, bytes 16:24+"
        );
    }

    #[test]
    fn malformed_packets_print_the_error() {
        assert_eq!(
            PacketLine(&[0x60, 0, 0]).to_string(),
            "IP6 IPv6 header is cut short: 40 bytes needed, 3 there"
        );
        assert_eq!(
            line(Protocol::TCP, &[0; 4]),
            "IP6 2001:db8::1 > 2001:db8::2: TCP header is cut short: 20 bytes needed, 4 there"
        );
        assert_eq!(
            line(Protocol::new(89), &[0; 4]),
            "IP6 2001:db8::1 > 2001:db8::2: protocol 89, length 4"
        );
    }
}
