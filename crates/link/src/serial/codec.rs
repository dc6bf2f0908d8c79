//! An encoder and a decoder for one direction of a serial line: SLIP (RFC 1055), optionally with
//! header compression (RFC 1144). They convert between packets and bytes, and use no device and no
//! clock.

use super::LARGEST_MTU;
use linerate_wire::{SlipDecoder, VjCompressor, VjDecompressor, VjError};

/// Limit on the number of bytes by which decompression lengthens a packet. The longest IP and TCP
/// headers have 60 bytes each, and eight bytes are reserve.
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

    /// Compresses the headers of `packet` in place, and returns the bytes to send between the ENDs
    /// of SLIP ([`linerate_wire::slip_bytes`]).
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

/// The outcome of a received byte that ends a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum LineInput<'a> {
    /// A valid packet has been received.
    Packet {
        /// The packet with its uncompressed headers.
        packet: &'a [u8],
        /// The length of the packet on the line in bytes, without framing.
        line_length: usize,
        /// The first byte of the packet on the line, which specifies the packet type.
        kind: u8,
    },
    /// A damaged packet was dropped: invalid escapes, impossible lengths or headers, unknown types.
    Damaged,
    /// A compressed packet was dropped after an error on the line. It does not name its connection,
    /// so it belongs to that of the packet before it, which the error may have destroyed (RFC 1144
    /// §4.1).
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

    /// Takes the next byte of the line. Returns `None` if it does not end a packet.
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

/// Does a packet with this first byte belong to IPv4 or IPv6?
const fn is_ip(first: u8) -> bool {
    matches!(first >> 4, 4 | 6)
}
