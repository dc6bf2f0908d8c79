//! Fuzz target: arbitrary bytes arrive on a serial line. They pass the decoder of frames (RFC 1055)
//! and the decompressor of headers (RFC 1144).

use linerate_wire::{Ipv4Packet, SlipDecoder, VjCompressor, VjDecompressor, slip_bytes};

/// Length of the longest packet on the serial line, in bytes.
const LONGEST: usize = 400;
/// Maximum number of bytes by which decompression lengthens a packet.
const HEADERS: usize = 128;
/// Position of the checksum in an IPv4 header. Packets are compared without this field: 0x0000 and
/// 0xffff both represent zero, so the checksum may arrive in the other form.
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// Decodes `bytes` as the bytes that arrive on a serial line. Each packet that results is
/// compressed and sent over a second line, and must arrive there unchanged.
///
/// # Panics
/// If an invariant is violated.
pub fn bytes_into_a_serial_line(bytes: &[u8]) {
    let mut decoder = SlipDecoder::new([0; LONGEST]);
    let mut decompressor = VjDecompressor::new();
    let mut second = SecondLine::new();
    let mut packet = [0; LONGEST + HEADERS];
    let mut discarded = 0;
    for &byte in bytes {
        let Some(line) = decoder.take(byte) else {
            if decoder.discarded() > discarded {
                discarded = decoder.discarded();
                decompressor.note_error();
            }
            continue;
        };
        assert!(!line.is_empty() && line.len() <= LONGEST);
        let is_compressed = line[0] >= 0x70;
        if let Ok(length) = decompressor.expand(line, &mut packet) {
            let packet = &packet[..length];
            if is_compressed {
                let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                assert_eq!((packet[0] >> 4, packet[9], total), (4, 6, length));
            } else {
                assert!(matches!(packet[0] >> 4, 4 | 6));
            }
            second.carry(packet);
        }
    }
}

/// A serial line without transmission errors, over which decoded packets are sent once more.
struct SecondLine {
    compressor: VjCompressor,
    decoder: SlipDecoder<[u8; LONGEST + HEADERS]>,
    decompressor: VjDecompressor,
}

impl SecondLine {
    fn new() -> Self {
        Self {
            compressor: VjCompressor::new(),
            decoder: SlipDecoder::new([0; LONGEST + HEADERS]),
            decompressor: VjDecompressor::new(),
        }
    }

    /// Sends a packet over the line and checks that it arrives unchanged. Ignores a packet with a
    /// wrong IPv4 header checksum, because no host sends such a packet.
    fn carry(&mut self, packet: &[u8]) {
        if packet[0] >> 4 == 4 && Ipv4Packet::parse(packet).is_err() {
            return;
        }
        let mut compressed = packet.to_vec();
        let line = self.compressor.compress(&mut compressed);
        assert!(line.len() <= packet.len());
        let mut out = [0; LONGEST + HEADERS];
        let mut arrived = None;
        for byte in slip_bytes(line) {
            if let Some(line) = self.decoder.take(byte) {
                let length = self.decompressor.expand(line, &mut out).expect("no damage");
                arrived = Some(length);
            }
        }
        let length = arrived.expect("the packet ends");
        let without_checksum = |packet: &[u8]| {
            let mut packet = packet.to_vec();
            packet.iter_mut().take(CHECKSUM.end).skip(CHECKSUM.start).for_each(|byte| *byte = 0);
            packet
        };
        assert_eq!(without_checksum(&out[..length]), without_checksum(packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::replay;
    use std::path::Path;

    #[test]
    fn the_corpus_violates_no_invariant() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus/bytes_into_a_serial_line");
        assert!(replay(&corpus, bytes_into_a_serial_line) > 0);
    }
}
