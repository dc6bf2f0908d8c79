//! The end of a line that knows what was left out (RFC 1144 §3.2.4).

use super::change::{
    ACKNOWLEDGEMENT, CONNECTION, ECHOED, IDENTIFICATION, ONE_WAY, PUSH, SEQUENCE, SPECIALS, URGENT,
    WINDOW, take_number,
};
use super::saved::{Saved, Shape};
use super::{COMPRESSED, UNCOMPRESSED, VJ_SLOTS};
use crate::{Protocol, TcpFlags};
use thiserror::Error;

/// Keeps the headers of the connections that have been heard last.
#[derive(Clone, Debug, Default)]
pub struct VjDecompressor {
    slots: [Option<Saved>; VJ_SLOTS],
    /// The slot of the last packet; none where one may have been missed since that had another.
    last: Option<u8>,
}

/// Why nothing comes of what the line brought. The line, or its other end, is at fault; TCP sends again
/// what is missing, and that is sent whole (RFC 1144 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VjTrouble {
    /// It names no connection, and the last one is not known: after an error (§4.1), or at the beginning.
    #[error("a compressed packet names no connection, and the one before it is not known")]
    UnknownConnection,
    /// It names a connection that was never sent whole, or a slot that this end does not have.
    #[error("slot {0} holds no header")]
    EmptySlot(u8),
    /// It ends in its header, or has none that a TCP segment could have.
    #[error("the packet is no TCP segment, or cut short")]
    Malformed,
    /// There is no room for the whole packet.
    #[error("{needed} bytes are needed for the packet")]
    NoRoom {
        /// Bytes of the whole packet.
        needed: usize,
    },
}

impl VjDecompressor {
    /// One that knows of no connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The line has damaged something: packets that name no connection cannot be told apart until one does.
    pub const fn note_error(&mut self) {
        self.last = None;
    }

    /// Writes the packet for which `line` stands into `packet`: how many bytes.
    ///
    /// # Errors
    /// [`VjTrouble`] if there is none.
    pub fn expand(&mut self, line: &[u8], packet: &mut [u8]) -> Result<usize, VjTrouble> {
        let outcome = match *line {
            [first, ref rest @ ..] if first & COMPRESSED != 0 => {
                self.expand_difference(first & !COMPRESSED, rest, packet)
            }
            [first, ..] if first & 0xf0 == UNCOMPRESSED => self.restore(line, packet),
            _ => copy([line, &[]], packet),
        };
        if outcome.is_err() {
            self.note_error();
        }
        outcome
    }

    /// A whole packet, whose header is kept where its protocol field says.
    fn restore(&mut self, line: &[u8], packet: &mut [u8]) -> Result<usize, VjTrouble> {
        let length = copy([line, &[]], packet)?;
        let packet = &mut packet[..length];
        let number = *packet.get(9).ok_or(VjTrouble::Malformed)?;
        packet[0] = packet[0] & 0x0f | 0x40;
        packet[9] = Protocol::TCP.number();
        let shape = Shape::of(packet, Protocol::TCP.number()).ok_or(VjTrouble::Malformed)?;
        let slot = self.slots.get_mut(usize::from(number)).ok_or(VjTrouble::EmptySlot(number))?;
        *slot = Some(Saved::new(packet, shape));
        self.last = Some(number);
        Ok(length)
    }

    fn expand_difference(
        &mut self,
        mask: u8,
        mut rest: &[u8],
        packet: &mut [u8],
    ) -> Result<usize, VjTrouble> {
        if mask & CONNECTION != 0 {
            self.last = Some(rest.split_off_first().copied().ok_or(VjTrouble::Malformed)?);
        }
        let number = self.last.ok_or(VjTrouble::UnknownConnection)?;
        let slot = self.slots.get_mut(usize::from(number)).and_then(Option::as_mut);
        let saved = slot.ok_or(VjTrouble::EmptySlot(number))?;
        apply(saved, mask, &mut rest).ok_or(VjTrouble::Malformed)?;
        if !saved.set_data(rest.len()) {
            return Err(VjTrouble::Malformed);
        }
        copy([saved.as_slice(), rest], packet)
    }
}

/// Makes of the saved header that of the next packet; `None` if what says how is cut short.
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

/// Writes both parts, one behind the other.
fn copy(parts: [&[u8]; 2], packet: &mut [u8]) -> Result<usize, VjTrouble> {
    let needed = parts[0].len() + parts[1].len();
    let room = packet.get_mut(..needed).ok_or(VjTrouble::NoRoom { needed })?;
    let (head, tail) = room.split_at_mut(parts[0].len());
    head.copy_from_slice(parts[0]);
    tail.copy_from_slice(parts[1]);
    Ok(needed)
}
