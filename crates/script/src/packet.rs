//! Payloads of IP packets as bytes: segments and their options, datagrams, and ICMP messages.

use crate::ip_packet::{Ends, ParsedPacket, pseudo_header};
use crate::syntax::{LineMark, SegmentOption};
use linerate_wire::{IpHeader, Protocol, Sum, TcpFlags, TcpHeader, TcpOptions, UdpHeader};
use std::net::IpAddr;

/// A packet that the host sent, with its time.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// Time at which the host sent the packet, since the start of the script.
    pub(crate) at: linerate_units::Duration,
    pub(crate) bytes: Vec<u8>,
    /// The encoding of the packet on a serial line; `None` on any other link.
    pub(crate) line: Option<LineMark>,
}

/// Maximum number of packets from the host that wait for comparison with the script. Packets beyond
/// this number are dropped. Only a script that expects more packets than that could notice.
pub(crate) const MOST_CAPTURED: usize = 100_000;

/// TCP option kind of experiments (RFC 4727).
const EXPERIMENT: u8 = 254;
/// Experiment identifier of Fast Open in an experimental TCP option (RFC 6994).
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
                // The encoder has padded the option to a multiple of four bytes. This padding is
                // removed, because the script writes the padding that it wants as options of its
                // own.
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

/// Builds a segment with `payload` bytes of data.
pub(crate) fn tcp_segment(
    ends: Ends,
    header: &TcpHeader,
    options: &[SegmentOption],
    payload: usize,
) -> Vec<u8> {
    let options = options_to_bytes(options);
    let mut segment = vec![0; TcpHeader::LENGTH + options.len() + payload];
    header.emit(options.len(), &mut segment);
    segment[TcpHeader::LENGTH..TcpHeader::LENGTH + options.len()].copy_from_slice(&options);
    let sum = Sum::of(&segment);
    let pseudo = pseudo_header(ends, Protocol::TCP, segment.len());
    TcpHeader::fill_checksum(&mut segment, pseudo, sum);
    segment
}

/// Returns the data of datagrams and echo requests to the host: the bytes 0, 1, 2 … 255, repeated.
pub(crate) fn pattern(length: usize) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).cycle().take(length)
}

/// Builds a datagram with `length` bytes of data.
pub(crate) fn udp_datagram(
    ends: Ends,
    (source_port, destination_port): (u16, u16),
    length: usize,
) -> Vec<u8> {
    let mut datagram = vec![0; UdpHeader::LENGTH];
    UdpHeader { source_port, destination_port }.emit(length, &mut datagram);
    datagram.extend(pattern(length));
    let sum = Sum::of(&datagram);
    let pseudo = pseudo_header(ends, Protocol::UDP, datagram.len());
    UdpHeader::fill_checksum(&mut datagram, pseudo, sum);
    datagram
}

/// Builds an ICMP message from its type and code, its second 32-bit word `field`, and the bytes
/// after that word.
pub(crate) fn icmp_message(
    ends: Ends,
    (kind, code): (u8, u8),
    field: [u8; 4],
    rest: &[u8],
) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(field);
    message.extend(rest);
    let mut sum = Sum::of(&message);
    if ends.0.is_ipv6() {
        sum += pseudo_header(ends, Protocol::ICMPV6, message.len());
    }
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    message
}

/// Returns the part of a host's packet that an ICMP error quotes: an IP header, followed by
/// `quoted`, the first eight bytes of the payload. The IP header gives `length` as the length of
/// the whole payload.
pub(crate) fn quote(
    (host, peer): Ends,
    protocol: Protocol,
    quoted: [u8; 8],
    length: usize,
) -> Vec<u8> {
    let Some(header) = IpHeader::new(host, peer, protocol) else { return Vec::new() };
    let mut quote = vec![0; header.length()];
    header.emit(length, &mut quote);
    quote.extend(quoted);
    quote
}

/// Returns the protocol number of ICMP or ICMPv6, depending on the IP version of an address.
pub(crate) const fn icmp_protocol(address: IpAddr) -> Protocol {
    match address {
        IpAddr::V4(_) => Protocol::ICMP,
        IpAddr::V6(_) => Protocol::ICMPV6,
    }
}

/// Returns whether a script can expect this packet from the host. The packet must go from `local`
/// to `remote`, and be a TCP segment, a UDP datagram, or an ICMP error or echo. Other packets, such
/// as those of Neighbour Discovery, are ignored, because a host sends them on its own.
pub(crate) fn is_expectable(packet: &[u8], local: IpAddr, remote: IpAddr) -> bool {
    /// The largest ICMPv6 type that a script can expect. Neighbour Discovery and MLD have larger
    /// types.
    const ECHO_REPLY_V6: u8 = 129;
    let Ok(packet) = ParsedPacket::parse(packet) else { return false };
    let is_wanted = match packet.protocol {
        Protocol::TCP | Protocol::UDP | Protocol::ICMP => true,
        Protocol::ICMPV6 => {
            !packet.has_header()
                || packet.payload.first().is_some_and(|&kind| kind <= ECHO_REPLY_V6)
        }
        _ => false,
    };
    is_wanted && packet.ends == (local, remote)
}

/// Returns whether the acknowledgement number of a segment with these flags is valid (ACK is set).
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
