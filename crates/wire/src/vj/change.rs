//! The change mask of a compressed header, and the numbers that follow it (RFC 1144 §3.2.2). The
//! bits of the mask say which fields have changed since the previous packet.

/// C: the packet belongs to another connection than the previous packet on the line.
pub(super) const CONNECTION: u8 = 0x40;
/// I: the IP identification has not grown by one. The amount by which it has grown follows the
/// mask.
pub(super) const IDENTIFICATION: u8 = 0x20;
/// P: PSH is set.
pub(super) const PUSH: u8 = 0x10;
pub(super) const SEQUENCE: u8 = 0x08;
pub(super) const ACKNOWLEDGEMENT: u8 = 0x04;
pub(super) const WINDOW: u8 = 0x02;
pub(super) const URGENT: u8 = 0x01;
/// Mask of the bits S, A, W and U. Sequence number, window and urgent pointer hardly ever change
/// together. RFC 1144 therefore uses S+W+U and S+A+W+U as codes for the special cases below.
pub(super) const SPECIALS: u8 = SEQUENCE | ACKNOWLEDGEMENT | WINDOW | URGENT;
/// Special case: sequence and acknowledgement number have both grown by the data length of the
/// previous packet, as when a host echoes typed characters.
pub(super) const ECHOED: u8 = SEQUENCE | WINDOW | URGENT;
/// Special case: the sequence number has grown by the data length of the previous packet, as in a
/// transfer in one direction.
pub(super) const ONE_WAY: u8 = SPECIALS;

/// The maximum total length in bytes of the numbers after a change mask: urgent pointer, window,
/// acknowledgement number, sequence number and identification, of three bytes each.
const ROOM: usize = 15;

/// The numbers after a change mask, encoded in their order on the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    bytes: [u8; ROOM],
    length: usize,
}

impl Numbers {
    /// Appends a number. Numbers from 1 to 255 take one byte; others take three, of which the first
    /// is zero.
    pub(super) fn put(&mut self, number: u16) {
        let [high, low] = number.to_be_bytes();
        let bytes: &[u8] = if high == 0 && low != 0 { &[low] } else { &[0, high, low] };
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Removes a number from the front of `bytes`. Returns `None` if `bytes` ends within the number.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u16> {
    let (number, rest) = match **bytes {
        [0, high, low, ref rest @ ..] => (u16::from_be_bytes([high, low]), rest),
        [number, ref rest @ ..] if number != 0 => (u16::from(number), rest),
        _ => return None,
    };
    *bytes = rest;
    Some(number)
}
