//! Classification of frames for queues: the flow hash, and ECN marking (RFC 3168 §5). The functions
//! accept frames with any contents.

use linerate_wire::{Ipv4Header, Ipv6Header};

/// IP protocol numbers of TCP and UDP, whose headers begin with the two ports.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Mask of the ECN field in the IPv4 type of service or the IPv6 traffic class. The field is zero
/// if the endpoints of the connection do not use ECN.
const ECN: u8 = 0b11;

/// The IP packet of a frame, with a complete header.
#[derive(Clone, Copy, Debug)]
enum Packet<'a> {
    V4(&'a [u8]),
    V6(&'a [u8]),
}

impl<'a> Packet<'a> {
    fn of(frame: &'a [u8]) -> Option<Self> {
        let packet = frame.get(14..)?;
        let is = |version, header| packet.len() >= header && packet[0] >> 4 == version;
        match frame[12..14] {
            [0x08, 0x00] if is(4, Ipv4Header::LENGTH) => Some(Self::V4(packet)),
            [0x86, 0xdd] if is(6, Ipv6Header::LENGTH) => Some(Self::V6(packet)),
            _ => None,
        }
    }

    /// Returns the ECN field.
    const fn ecn(self) -> u8 {
        match self {
            Self::V4(packet) => packet[1] & ECN,
            Self::V6(packet) => (packet[1] >> 4) & ECN,
        }
    }

    /// Returns the bytes of both addresses, the protocol number, and the length of the IP header.
    /// Extension headers of IPv6 are not included in the length.
    fn flow(self) -> (&'a [u8], u8, usize) {
        match self {
            Self::V4(packet) => (&packet[12..20], packet[9], usize::from(packet[0] & 15) * 4),
            Self::V6(packet) => (&packet[8..40], packet[6], Ipv6Header::LENGTH),
        }
    }

    const fn bytes(self) -> &'a [u8] {
        match self {
            Self::V4(packet) | Self::V6(packet) => packet,
        }
    }
}

/// Returns the flow hash of a frame. For an IP packet, it is a hash of the addresses, the protocol
/// and the ports. For any other frame, it is a hash of the Ethernet header.
pub(super) fn flow_of(frame: &[u8]) -> u64 {
    let Some(packet) = Packet::of(frame) else { return hash(frame.get(..14).unwrap_or(frame)) };
    let (addresses, protocol, header) = packet.flow();
    let ports = match protocol {
        TCP | UDP => packet.bytes().get(header..header + 4).unwrap_or(&[]),
        _ => &[],
    };
    hash(addresses).wrapping_mul(31) ^ hash(ports).wrapping_add(u64::from(protocol))
}

/// Hashes bytes by FNV-1a, and folds the upper bits into the lower ones. The hash needs no secret,
/// because no simulated sender tries to cause collisions.
fn hash(bytes: &[u8]) -> u64 {
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed ^ mixed >> 32
}

/// Returns whether the packet is ECN-capable: its codepoint is ECT or CE.
pub(super) fn is_markable(frame: &[u8]) -> bool {
    Packet::of(frame).is_some_and(|packet| packet.ecn() != 0)
}

/// Sets the codepoint CE if the packet is ECN-capable, and updates the IPv4 header checksum.
pub(super) fn mark(frame: &mut [u8]) {
    match Packet::of(frame) {
        Some(packet) if packet.ecn() == 0 => {}
        Some(Packet::V4(_)) => Ipv4Header::mark_congestion(&mut frame[14..]),
        Some(Packet::V6(_)) => Ipv6Header::mark_congestion(&mut frame[14..]),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a frame with an IPv4 header and a correct checksum.
    fn frame(ecn: u8, port: u8) -> Vec<u8> {
        let mut frame = vec![2; 14 + 40];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..34].copy_from_slice(&[
            0x45, ecn, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame[34..38].copy_from_slice(&[0, port, 0, 9]);
        frame
    }

    /// Creates a frame with an IPv6 header.
    fn ipv6_frame(ecn: u8, port: u8) -> Vec<u8> {
        let mut frame = vec![2; 14 + 60];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[14..22].copy_from_slice(&[0x60, ecn << 4, 0, 0, 0, 20, TCP, 64]);
        frame[54..58].copy_from_slice(&[0, port, 0, 9]);
        frame
    }

    fn sum(header: &[u8]) -> u16 {
        let sum: u32 =
            header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap()
    }

    #[test]
    fn marking_keeps_the_header_checksum_correct() {
        let mut marked = frame(0b10, 1);
        let before = sum(&marked[14..34]);
        mark(&mut marked);
        assert_eq!((marked[15], sum(&marked[14..34])), (0b11, before));
        let mut unmarked = frame(0, 1);
        mark(&mut unmarked);
        assert_eq!(unmarked, frame(0, 1));
    }

    #[test]
    fn ipv6_packets_are_marked_in_the_traffic_class() {
        let mut marked = ipv6_frame(0b10, 1);
        assert!(is_markable(&marked));
        mark(&mut marked);
        assert_eq!(marked, ipv6_frame(0b11, 1));
        let mut unmarked = ipv6_frame(0, 1);
        mark(&mut unmarked);
        assert_eq!(unmarked, ipv6_frame(0, 1));
    }

    #[test]
    fn flows_differ_by_port_and_any_bytes_have_a_flow() {
        for frame in [frame, ipv6_frame] {
            assert_eq!(flow_of(&frame(0, 1)), flow_of(&frame(2, 1)));
            assert_ne!(flow_of(&frame(0, 1)), flow_of(&frame(0, 2)));
            for length in 0..54 {
                let short = &frame(1, 1)[..length];
                flow_of(short);
                mark(&mut short.to_vec());
            }
        }
    }
}
