//! An encoder and a decoder for one direction of a serial line: SLIP (RFC 1055), optionally with
//! header compression (RFC 1144). They convert between packets and bytes, and use no device and no
//! clock.

use super::LARGEST_MTU;
use linerate_wire::{SlipDecoder, VjCompressor, VjDecompressor, VjError};

/// The number of bytes by which a packet buffer exceeds the largest packet on the line.
/// Decompression lengthens a packet by at most its IP and TCP headers, with at most 60 bytes each;
/// eight bytes are reserve.
const HEADERS: usize = 128;

/// An encoder for the packets that are sent on a serial line.
#[derive(Debug)]
pub struct LineEncoder {
    compressor: Option<Box<VjCompressor>>,
}

impl LineEncoder {
    /// Creates an encoder, with header compression or without.
    #[must_use]
    pub fn new(header_compression: bool) -> Self {
        Self { compressor: header_compression.then(Box::default) }
    }

    /// Compresses the headers of `packet` in place. Returns the bytes to be sent, before SLIP
    /// frames and escapes them ([`linerate_wire::slip_bytes`]).
    pub fn compress<'a>(&mut self, packet: &'a mut [u8]) -> &'a mut [u8] {
        match &mut self.compressor {
            Some(compressor) => compressor.compress(packet),
            None => packet,
        }
    }
}

/// A decoder for the bytes that are received from a serial line.
#[derive(Debug)]
pub struct LineDecoder {
    decoder: SlipDecoder<Box<[u8]>>,
    decompressor: Option<Box<VjDecompressor>>,
    /// The buffer for a packet whose headers have been decompressed.
    packet: Box<[u8]>,
}

/// The outcome of a received byte that is the end of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum LineInput<'a> {
    /// A valid packet has been received.
    Packet {
        /// The packet with its uncompressed headers.
        packet: &'a [u8],
        /// The length that the packet had on the line, in bytes: with compressed headers, but
        /// without SLIP's framing and escapes.
        line_length: usize,
        /// The first byte that the packet had on the line, which specifies the packet type.
        kind: u8,
    },
    /// A packet was dropped because it was damaged: invalid escapes, an impossible length, invalid
    /// headers or an unknown type.
    Damaged,
    /// A compressed packet was dropped after an error on the line. The packet does not contain its
    /// connection number, so it belongs to the connection of the packet before it. The error may
    /// have destroyed that packet (RFC 1144 §4.1).
    Tossed,
}

impl LineDecoder {
    /// Creates a decoder, with header compression or without.
    #[must_use]
    pub fn new(header_compression: bool) -> Self {
        Self {
            decoder: SlipDecoder::new(vec![0; LARGEST_MTU].into()),
            decompressor: header_compression.then(Box::default),
            packet: vec![0; LARGEST_MTU + HEADERS].into(),
        }
    }

    /// Decodes the next byte of the line. Returns the outcome if this byte ends a packet, otherwise
    /// `None`.
    pub fn take(&mut self, byte: u8) -> Option<LineInput<'_>> {
        let before = self.decoder.discarded();
        let Some(line) = self.decoder.take(byte) else {
            if self.decoder.discarded() == before {
                return None;
            }
            self.decompressor.iter_mut().for_each(|decompressor| decompressor.note_error());
            return Some(LineInput::Damaged);
        };
        let (line_length, kind) = (line.len(), line[0]);
        let length = match &mut self.decompressor {
            Some(decompressor) => match decompressor.expand(line, &mut self.packet) {
                Ok(length) => length,
                Err(VjError::UnknownConnection) => return Some(LineInput::Tossed),
                Err(_) => return Some(LineInput::Damaged),
            },
            None if is_ip(kind) => {
                self.packet[..line_length].copy_from_slice(line);
                line_length
            }
            None => return Some(LineInput::Damaged),
        };
        Some(LineInput::Packet { packet: &self.packet[..length], line_length, kind })
    }
}

/// Is this the first byte of an IPv4 or IPv6 packet?
const fn is_ip(first: u8) -> bool {
    matches!(first >> 4, 4 | 6)
}
