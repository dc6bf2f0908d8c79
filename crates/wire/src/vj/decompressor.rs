//! The header decompressor for the packets received from a serial line (RFC 1144 §3.2.4).

use super::change::{
    ACKNOWLEDGEMENT, CONNECTION, ECHOED, IDENTIFICATION, ONE_WAY, PUSH, SEQUENCE, SPECIALS, URGENT,
    WINDOW, take_number,
};
use super::saved::{Saved, Shape};
use super::{COMPRESSED, IPV4, IPV6, UNCOMPRESSED, VJ_SLOTS};
use crate::{Protocol, Sum, TcpFlags};
use thiserror::Error;

/// A header decompressor. Its slots correspond to those of the compressor. Each stores the headers
/// of the previous packet of one connection.
#[derive(Clone, Debug, Default)]
pub struct VjDecompressor {
    slots: [Option<Saved>; VJ_SLOTS],
    /// The slot of the previous packet, to which a packet without a slot number refers. `None`
    /// after an error, because a lost packet may have named another slot.
    last: Option<u8>,
}

/// The reason why received bytes do not form a packet. The serial line or the peer is at fault. TCP
/// then retransmits the lost data. Retransmissions have uncompressed headers, so they also correct
/// the stored headers (RFC 1144 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VjError {
    /// The packet does not name its connection, so it belongs to the connection of the previous
    /// packet. That connection is unknown: there was no packet yet, or an error may have destroyed
    /// a packet (RFC 1144 §4.1).
    #[error("a compressed packet names no connection, and the one before it is not known")]
    UnknownConnection,
    /// The packet names a slot that holds no header or does not exist.
    #[error("slot {0} holds no header")]
    EmptySlot(u8),
    /// The packet has an unknown type or ends within its header. Or its header is damaged, or is
    /// not the header of a TCP segment.
    #[error("the packet is of an unknown type, damaged, or cut short")]
    Malformed,
    /// The output buffer is too short for the decompressed packet.
    #[error("{needed} bytes are needed for the packet")]
    NoRoom {
        /// The length of the decompressed packet in bytes.
        needed: usize,
    },
}

impl VjDecompressor {
    /// Creates a decompressor that has not stored any headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the serial line has lost or damaged bytes. Until a packet names its connection,
    /// packets that do not name it are rejected.
    pub const fn note_error(&mut self) {
        self.last = None;
    }

    /// Decompresses the packet in `line` to `packet`, and returns the length of the decompressed
    /// packet in bytes.
    ///
    /// # Errors
    /// [`VjError`] if `line` does not contain a valid packet.
    pub fn expand(&mut self, line: &[u8], packet: &mut [u8]) -> Result<usize, VjError> {
        let outcome = match *line {
            [first, ref rest @ ..] if first & COMPRESSED != 0 => {
                self.expand_difference(first & !COMPRESSED, rest, packet)
            }
            [first, ..] => match first & 0xf0 {
                UNCOMPRESSED => self.restore(line, packet),
                IPV4 | IPV6 => copy([line, &[]], packet),
                _ => Err(VjError::Malformed),
            },
            [] => Err(VjError::Malformed),
        };
        if outcome.is_err() {
            self.note_error();
        }
        outcome
    }

    /// Restores a packet with uncompressed headers, and stores the headers in the packet's slot. On
    /// the line, the type of the packet is in its first byte, and the slot number is in its
    /// protocol field.
    fn restore(&mut self, line: &[u8], packet: &mut [u8]) -> Result<usize, VjError> {
        let length = copy([line, &[]], packet)?;
        let packet = &mut packet[..length];
        let number = *packet.get(9).ok_or(VjError::Malformed)?;
        packet[0] = packet[0] & 0x0f | 0x40;
        packet[9] = Protocol::TCP.number();
        let shape = Shape::of(packet, Protocol::TCP.number()).ok_or(VjError::Malformed)?;
        // Checks by the IP checksum that the serial line has not damaged the header. Packets with
        // compressed headers cannot be checked in this way, because they do not contain the IP
        // checksum: the decompressor computes it (RFC 1144, note 49).
        if Sum::of(&packet[..shape.ip]).finish() != 0 {
            return Err(VjError::Malformed);
        }
        let slot = self.slots.get_mut(usize::from(number)).ok_or(VjError::EmptySlot(number))?;
        *slot = Some(Saved::new(packet, shape));
        self.last = Some(number);
        Ok(length)
    }

    fn expand_difference(
        &mut self,
        mask: u8,
        mut rest: &[u8],
        packet: &mut [u8],
    ) -> Result<usize, VjError> {
        if mask & CONNECTION != 0 {
            self.last = Some(rest.split_off_first().copied().ok_or(VjError::Malformed)?);
        }
        let number = self.last.ok_or(VjError::UnknownConnection)?;
        let slot = self.slots.get_mut(usize::from(number)).and_then(Option::as_mut);
        let saved = slot.ok_or(VjError::EmptySlot(number))?;
        apply(saved, mask, &mut rest).ok_or(VjError::Malformed)?;
        if !saved.set_data(rest.len()) {
            return Err(VjError::Malformed);
        }
        copy([saved.as_slice(), rest], packet)
    }
}

/// Changes the saved headers by the differences at the front of `line`. Returns `None` if `line`
/// ends too early.
fn apply(saved: &mut Saved, mask: u8, line: &mut &[u8]) -> Option<()> {
    let checksum = u16::from_be_bytes([*line.split_off_first()?, *line.split_off_first()?]);
    let data = saved.data();
    saved.set_tcp_half(16, checksum);
    saved.set_flag(TcpFlags::PSH, mask & PUSH != 0);
    let is_special = matches!(mask & SPECIALS, ONE_WAY | ECHOED);
    saved.set_flag(TcpFlags::URG, mask & URGENT != 0 && !is_special);
    match mask & SPECIALS {
        ONE_WAY => saved.add_to_tcp_word(4, data),
        ECHOED => {
            saved.add_to_tcp_word(8, data);
            saved.add_to_tcp_word(4, data);
        }
        _ => apply_one_by_one(saved, mask, line)?,
    }
    let identification = if mask & IDENTIFICATION != 0 { take_number(line)? } else { 1 };
    saved.set_ip_half(4, saved.ip_half(4).wrapping_add(identification));
    Some(())
}

fn apply_one_by_one(saved: &mut Saved, mask: u8, line: &mut &[u8]) -> Option<()> {
    if mask & URGENT != 0 {
        saved.set_tcp_half(18, take_number(line)?);
    }
    if mask & WINDOW != 0 {
        saved.set_tcp_half(14, saved.tcp_half(14).wrapping_add(take_number(line)?));
    }
    if mask & ACKNOWLEDGEMENT != 0 {
        saved.add_to_tcp_word(8, take_number(line)?);
    }
    if mask & SEQUENCE != 0 {
        saved.add_to_tcp_word(4, take_number(line)?);
    }
    Some(())
}

/// Copies the two slices in `parts` to `packet`, one after the other, and returns their total
/// length in bytes.
fn copy(parts: [&[u8]; 2], packet: &mut [u8]) -> Result<usize, VjError> {
    let needed = parts[0].len() + parts[1].len();
    let room = packet.get_mut(..needed).ok_or(VjError::NoRoom { needed })?;
    let (head, tail) = room.split_at_mut(parts[0].len());
    head.copy_from_slice(parts[0]);
    tail.copy_from_slice(parts[1]);
    Ok(needed)
}
