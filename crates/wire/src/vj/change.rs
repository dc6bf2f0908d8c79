//! What has changed since the packet before: the mask, and the numbers that follow it (RFC 1144 §3.2.2).

/// The connection is another than that of the packet before.
pub(super) const CONNECTION: u8 = 0x40;
/// The identification has grown by something else than one.
pub(super) const IDENTIFICATION: u8 = 0x20;
/// PSH is set.
pub(super) const PUSH: u8 = 0x10;
pub(super) const SEQUENCE: u8 = 0x08;
pub(super) const ACKNOWLEDGEMENT: u8 = 0x04;
pub(super) const WINDOW: u8 = 0x02;
pub(super) const URGENT: u8 = 0x01;
/// The four of them that say by an unlikely combination what is usual.
pub(super) const SPECIALS: u8 = SEQUENCE | ACKNOWLEDGEMENT | WINDOW | URGENT;
/// Sequence number and acknowledgement have grown by the last packet's data: a typed character's echo.
pub(super) const ECHOED: u8 = SEQUENCE | WINDOW | URGENT;
/// The sequence number has grown by the last packet's data: a transfer in one direction.
pub(super) const ONE_WAY: u8 = SPECIALS;

/// Bytes of all numbers that there can be: five of three each.
const ROOM: usize = 15;

/// Numbers in the order in which they are said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    bytes: [u8; ROOM],
    length: usize,
}

impl Numbers {
    /// One byte for 1 to 255, else three, of which the first is zero.
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

/// Takes one number off the front of `bytes`; none if they end in it.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u16> {
    let (number, rest) = match **bytes {
        [0, high, low, ref rest @ ..] => (u16::from_be_bytes([high, low]), rest),
        [number, ref rest @ ..] if number != 0 => (u16::from(number), rest),
        _ => return None,
    };
    *bytes = rest;
    Some(number)
}
