//! Classification of frames for queues: the flow hash, and ECN marking (RFC 3168 §5). Frames with
//! any contents are accepted.

use linerate_wire::Ipv4Header;

/// IP protocol numbers whose headers begin with the two ports.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Mask of the ECN field in the traffic class, and at once the codepoint CE.
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// Returns the IPv4 packet in a frame, or `None` if its header is incomplete.
fn packet(frame: &[u8]) -> Option<&[u8]> {
    let is_ipv4 = frame.get(12..14) == Some(&[0x08, 0x00]);
    frame.get(14..).filter(|packet| is_ipv4 && packet.len() >= 20 && packet[0] >> 4 == 4)
}

/// Returns a flow hash: of addresses, protocol and ports for IPv4, of the Ethernet header for other
/// frames.
pub(super) fn flow_of(frame: &[u8]) -> u64 {
    let Some(packet) = packet(frame) else { return hash(frame.get(..14).unwrap_or(frame)) };
    let header = usize::from(packet[0] & 15) * 4;
    let ports = match packet[9] {
        TCP | UDP => packet.get(header..header + 4).unwrap_or(&[]),
        _ => &[],
    };
    hash(&packet[12..20]).wrapping_mul(31) ^ hash(ports).wrapping_add(u64::from(packet[9]))
}

/// Hashes bytes by FNV-1a, and folds the upper bits into the lower ones. Simulated senders do not
/// provoke collisions, so the hash has no secret.
fn hash(bytes: &[u8]) -> u64 {
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed ^ mixed >> 32
}

/// Returns whether the packet is ECN-capable: its codepoint is ECT or CE.
pub(super) fn is_markable(frame: &[u8]) -> bool {
    packet(frame).is_some_and(|packet| packet[1] & CONGESTION_EXPERIENCED != 0)
}

/// Sets the codepoint CE if the packet is ECN-capable, and updates its header checksum.
pub(super) fn mark(frame: &mut [u8]) {
    if is_markable(frame) {
        Ipv4Header::mark_congestion(&mut frame[14..]);
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
    fn flows_differ_by_port_and_any_bytes_have_a_flow() {
        assert_eq!(flow_of(&frame(0, 1)), flow_of(&frame(2, 1)));
        assert_ne!(flow_of(&frame(0, 1)), flow_of(&frame(0, 2)));
        for length in 0..54 {
            let short = &frame(1, 1)[..length];
            flow_of(short);
            mark(&mut short.to_vec());
        }
    }
}
