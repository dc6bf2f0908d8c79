//! Builds packets from the segments of a script, and parses TCP options.

use crate::syntax::{IpMarks, Marks, SegmentOption};
use linerate_wire::{
    Ipv4Header, Ipv4Packet, Protocol, Sum, TcpFlags, TcpHeader, TcpOptions, TypeOfService,
};
use std::net::Ipv4Addr;

/// A packet that the host sent, with its time.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// Time since the start of the script.
    pub(crate) at: linerate_units::Duration,
    pub(crate) bytes: Vec<u8>,
}

/// Maximum number of segments of the host that wait until the script expects them; further ones are
/// dropped. A script with so many unexpected segments has failed long before.
pub(crate) const MOST_CAPTURED: usize = 100_000;

/// TCP option kind of experiments (RFC 4727), and the experiment identifier of Fast Open (RFC
/// 6994).
const EXPERIMENT: u8 = 254;
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// Encodes options as bytes, padded to a multiple of four.
pub(crate) fn options_to_bytes(options: &[SegmentOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        let length = u8::try_from(option.length()).unwrap_or(u8::MAX);
        match option {
            SegmentOption::End => bytes.push(0),
            SegmentOption::Nop => bytes.push(1),
            SegmentOption::Mss(mss) => {
                bytes.extend([2, length]);
                bytes.extend(mss.to_be_bytes());
            }
            SegmentOption::WindowScale(shift) => bytes.extend([3, length, *shift]),
            SegmentOption::SackPermitted => bytes.extend([4, length]),
            SegmentOption::Sack(blocks) => {
                bytes.extend([5, length]);
                for (left, right) in blocks {
                    bytes.extend(left.to_be_bytes());
                    bytes.extend(right.to_be_bytes());
                }
            }
            SegmentOption::Timestamps { value, echo } => {
                bytes.extend([8, length]);
                bytes.extend(value.to_be_bytes());
                bytes.extend(echo.to_be_bytes());
            }
            SegmentOption::FastOpen(data) => {
                bytes.extend([34, length]);
                bytes.extend(data);
            }
            SegmentOption::FastOpenExperiment(data) => {
                bytes.extend([EXPERIMENT, length]);
                bytes.extend(FAST_OPEN_EXPERIMENT);
                bytes.extend(data);
            }
            SegmentOption::Ecn(counts) => {
                let mut field = [0; 12];
                let padded =
                    TcpOptions { ecn: Some(*counts), ..TcpOptions::default() }.emit(&mut field);
                // Without the padding of the encoder, because the script writes padding itself.
                bytes.extend_from_slice(&field[padded - option.length()..padded]);
            }
            SegmentOption::Other(kind, data) => {
                bytes.extend([*kind, length]);
                bytes.extend(data);
            }
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Parses options. An option with an invalid length ends the list.
pub(crate) fn options_of_bytes(mut field: &[u8]) -> Vec<SegmentOption> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = field {
        match kind {
            0 => break,
            1 => {
                options.push(SegmentOption::Nop);
                field = rest;
            }
            _ => {
                let length = rest.first().map_or(0, |&length| usize::from(length));
                let Some((option, after)) = field.split_at_checked(length) else { break };
                let [_, _, data @ ..] = option else { break };
                options.push(option_of_bytes(*kind, data));
                field = after;
            }
        }
    }
    options
}

fn option_of_bytes(kind: u8, data: &[u8]) -> SegmentOption {
    let word = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    match (kind, data.len()) {
        (2, 2) => SegmentOption::Mss(u16::from_be_bytes([data[0], data[1]])),
        (3, 1) => SegmentOption::WindowScale(data[0]),
        (4, 0) => SegmentOption::SackPermitted,
        (5, length) if length.is_multiple_of(8) => SegmentOption::Sack(
            (0..length / 8).map(|block| (word(block * 8), word(block * 8 + 4))).collect(),
        ),
        (8, 8) => SegmentOption::Timestamps { value: word(0), echo: word(4) },
        (34, _) => SegmentOption::FastOpen(data.to_vec()),
        (EXPERIMENT, _) if data.starts_with(&FAST_OPEN_EXPERIMENT) => {
            SegmentOption::FastOpenExperiment(data[FAST_OPEN_EXPERIMENT.len()..].to_vec())
        }
        (172 | 174, 0 | 3 | 6 | 9) => {
            let length = u8::try_from(data.len() + 2).unwrap_or(u8::MAX);
            let counts = TcpOptions::parse(&[&[kind, length], data].concat()).ecn;
            counts.map_or_else(|| SegmentOption::Other(kind, data.to_vec()), SegmentOption::Ecn)
        }
        _ => SegmentOption::Other(kind, data.to_vec()),
    }
}

/// Builds an IPv4 packet with a TCP segment.
pub(crate) fn tcp_packet(
    (source, destination): (Ipv4Addr, Ipv4Addr),
    ip: IpMarks,
    header: &TcpHeader,
    options: &[SegmentOption],
    payload: usize,
) -> Vec<u8> {
    let options = options_to_bytes(options);
    let length = TcpHeader::LENGTH + options.len() + payload;
    let ip = marked(Ipv4Header::new(source, destination, Protocol::TCP), ip);
    let mut packet = vec![0; Ipv4Header::LENGTH + length];
    ip.emit(length, &mut packet);
    let segment = &mut packet[Ipv4Header::LENGTH..];
    header.emit(options.len(), segment);
    segment[TcpHeader::LENGTH..TcpHeader::LENGTH + options.len()].copy_from_slice(&options);
    let sum = Sum::of(segment);
    TcpHeader::fill_checksum(segment, ip.pseudo_header(length), sum);
    packet
}

/// Builds an IPv4 packet with an ICMP error, which quotes the first eight bytes of a segment.
pub(crate) fn icmp_packet(
    (router, host, peer): (Ipv4Addr, Ipv4Addr, Ipv4Addr),
    ip: IpMarks,
    (kind, code): (u8, u8),
    mtu: u16,
    (quoted, quoted_length): ([u8; 8], usize),
) -> Vec<u8> {
    let inner = Ipv4Header::new(host, peer, Protocol::TCP);
    let mut icmp = vec![kind, code, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    let mut quote = [0; Ipv4Header::LENGTH];
    inner.emit(quoted_length, &mut quote);
    icmp.extend(quote);
    icmp.extend(quoted);
    let sum = Sum::of(&icmp).finish().to_be_bytes();
    icmp[2..4].copy_from_slice(&sum);
    let ip = marked(Ipv4Header::new(router, host, Protocol::ICMP), ip);
    let mut packet = vec![0; Ipv4Header::LENGTH];
    ip.emit(icmp.len(), &mut packet);
    packet.extend(icmp);
    packet
}

fn marked(mut header: Ipv4Header, ip: IpMarks) -> Ipv4Header {
    match ip.marks {
        Marks::Any | Marks::Capable => {}
        Marks::Ecn(ecn) => header.type_of_service = header.type_of_service.with_ecn(ecn),
        Marks::Byte(byte) => header.type_of_service = TypeOfService::from_byte(byte),
    }
    header.ttl = ip.ttl.unwrap_or(header.ttl);
    header
}

/// Returns whether a packet is a TCP segment from `local` to `remote`.
pub(crate) fn is_segment(packet: &[u8], local: Ipv4Addr, remote: Ipv4Addr) -> bool {
    Ipv4Packet::parse(packet).is_ok_and(|packet| {
        let header = packet.header;
        header.protocol == Protocol::TCP && header.source == local && header.destination == remote
    })
}

/// Returns whether the acknowledgement number of a segment with these flags is valid.
pub(crate) fn acknowledges(flags: TcpFlags) -> bool {
    flags.contains(TcpFlags::ACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_a_round_trip() {
        let options = [
            SegmentOption::Mss(1_460),
            SegmentOption::SackPermitted,
            SegmentOption::Timestamps { value: 7, echo: 9 },
            SegmentOption::Nop,
            SegmentOption::WindowScale(7),
            SegmentOption::FastOpen(vec![1, 2, 3, 4]),
            SegmentOption::FastOpenExperiment(vec![5, 6]),
        ];
        let bytes = options_to_bytes(&options);
        assert!(bytes.len().is_multiple_of(4));
        assert_eq!(options_of_bytes(&bytes), options);
        assert_eq!(options_of_bytes(&[5, 99, 1]), []);
        assert_eq!(options_of_bytes(&[99, 3, 1]), [SegmentOption::Other(99, vec![1])]);
    }
}
