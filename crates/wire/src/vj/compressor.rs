//! The header compressor for the packets sent on a serial line (RFC 1144 §3.2.3).

use super::change::{
    ACKNOWLEDGEMENT, CONNECTION, ECHOED, IDENTIFICATION, Numbers, ONE_WAY, PUSH, SEQUENCE,
    SPECIALS, URGENT, WINDOW,
};
use super::saved::{Saved, Shape};
use super::{COMPRESSED, UNCOMPRESSED, VJ_SLOTS};
use crate::{Protocol, TcpFlags};

/// A header compressor. For each of the most recently used connections, it stores the headers of
/// the previous packet. The next headers of the connection are encoded as differences from them.
#[derive(Clone, Debug, Default)]
pub struct VjCompressor {
    slots: [Option<Slot>; VJ_SLOTS],
    /// The slot of the connection to which the previous compressible packet belonged.
    last: Option<u8>,
    /// The number of compressible packets so far. When a slot is used, it stores this number. The
    /// slot with the smallest number is thus the least recently used one.
    packets: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    saved: Saved,
    used: u64,
}

/// The headers of a packet, encoded as differences from the previous headers of its connection.
struct Difference {
    mask: u8,
    numbers: Numbers,
}

impl VjCompressor {
    /// Creates a compressor that has not stored any headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses the headers of the IPv4 packet in place. Returns the bytes to send, which are not
    /// more than `packet` has. Only TCP segments of established connections are compressed; other
    /// packets are returned unchanged.
    pub fn compress<'a>(&mut self, packet: &'a mut [u8]) -> &'a mut [u8] {
        let Some(shape) = compressible(packet) else { return packet };
        self.packets += 1;
        let saved = Saved::new(packet, shape);
        let number = self.slot_of(&saved);
        let slot = usize::from(number);
        let before = self.slots[slot].replace(Slot { saved, used: self.packets });
        let known = before.filter(|before| is_same_connection(before.saved.as_slice(), packet));
        let difference = known.and_then(|known| difference(&known.saved, packet, shape));
        let is_another = self.last.replace(number) != Some(number);
        match difference {
            Some(difference) => {
                write_difference(packet, shape, &difference, is_another.then_some(number))
            }
            None => {
                packet[0] |= UNCOMPRESSED;
                packet[9] = number;
                packet
            }
        }
    }

    /// Returns the slot of the connection to which `saved` belongs. If this connection has no slot,
    /// returns the slot that was used least recently.
    fn slot_of(&self, saved: &Saved) -> u8 {
        let knows = |slot: &&Option<Slot>| {
            slot.as_ref()
                .is_some_and(|slot| is_same_connection(slot.saved.as_slice(), saved.as_slice()))
        };
        let position = self.slots.iter().position(|slot| knows(&slot)).or_else(|| {
            (0..VJ_SLOTS).min_by_key(|&slot| self.slots[slot].as_ref().map_or(0, |slot| slot.used))
        });
        position.and_then(|position| u8::try_from(position).ok()).unwrap_or(0)
    }
}

/// Returns the lengths of the headers if the packet can be compressed: if it is an unfragmented TCP
/// segment with ACK, and without SYN, FIN and RST.
fn compressible(packet: &[u8]) -> Option<Shape> {
    let shape = Shape::of(packet, Protocol::TCP.number())?;
    let flags = u16::from(packet[shape.ip + 13]);
    let compared = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK;
    (flags & compared.bits() == TcpFlags::ACK.bits()).then_some(shape)
}

/// Do both packets have the same addresses and ports?
fn is_same_connection(one: &[u8], other: &[u8]) -> bool {
    let ports = |packet: &[u8]| {
        let ip = usize::from(packet[0] & 0x0f) * 4;
        [packet[ip], packet[ip + 1], packet[ip + 2], packet[ip + 3]]
    };
    one[12..20] == other[12..20] && ports(one) == ports(other)
}

/// Encodes the differences from the headers `before` to those of `packet`. Returns `None` if they
/// cannot be encoded.
fn difference(before: &Saved, packet: &[u8], shape: Shape) -> Option<Difference> {
    let now = Saved::new(packet, shape);
    if !changes_as_expected(before, &now) {
        return None;
    }
    let (mut mask, mut numbers) = (0, Numbers::default());
    if now.has_flag(TcpFlags::URG) {
        mask |= URGENT;
        numbers.put(now.tcp_half(18));
    } else if now.tcp_half(18) != before.tcp_half(18) {
        return None;
    }
    let window = now.tcp_half(14).wrapping_sub(before.tcp_half(14));
    let acknowledged = u16::try_from(now.tcp_word(8).wrapping_sub(before.tcp_word(8))).ok()?;
    let sequence = u16::try_from(now.tcp_word(4).wrapping_sub(before.tcp_word(4))).ok()?;
    for (change, bit) in [(window, WINDOW), (acknowledged, ACKNOWLEDGEMENT), (sequence, SEQUENCE)] {
        if change != 0 {
            mask |= bit;
            numbers.put(change);
        }
    }
    let data = before.data();
    if mask & SPECIALS == ECHOED || mask & SPECIALS == ONE_WAY {
        return None;
    }
    // RFC 1144 encodes two frequent changes as special cases: echoed terminal traffic, and data in
    // one direction. This compressor does not use them if the previous packet had URG.
    // Decompressors derived from the RFC's sample code would then leave URG set.
    let was_urgent = before.has_flag(TcpFlags::URG);
    if mask == SEQUENCE && sequence == data && !was_urgent {
        (mask, numbers) = (ONE_WAY, Numbers::default());
    } else if mask == SEQUENCE | ACKNOWLEDGEMENT
        && sequence == data
        && acknowledged == data
        && !was_urgent
    {
        (mask, numbers) = (ECHOED, Numbers::default());
    } else if mask == 0 && (data > 0 || now.data() == 0) {
        // At most the identification and PSH have changed. This is a retransmission, a duplicate
        // ACK or a keep-alive, so the peer may have missed a packet. The headers are therefore sent
        // uncompressed.
        return None;
    }
    let identification = now.ip_half(4).wrapping_sub(before.ip_half(4));
    if identification != 1 {
        mask |= IDENTIFICATION;
        numbers.put(identification);
    }
    mask |= if now.has_flag(TcpFlags::PSH) { PUSH } else { 0 };
    Some(Difference { mask, numbers })
}

/// Are the fields unchanged for which RFC 1144 has no encoding of a change? These are the version,
/// the header lengths, the type of service, DF, the TTL, options, and the flags except PSH and URG.
fn changes_as_expected(before: &Saved, now: &Saved) -> bool {
    let (one, other) = (before.as_slice(), now.as_slice());
    let ip = now.shape().ip;
    let flags = |saved: &Saved| saved.tcp_half(12) & !(TcpFlags::PSH | TcpFlags::URG).bits();
    before.shape() == now.shape()
        && one[..2] == other[..2]
        && one[6..9] == other[6..9]
        && one[20..ip] == other[20..ip]
        && flags(before) == flags(now)
        && one[ip + 20..] == other[ip + 20..]
}

/// Writes `difference` immediately before the data, over the last bytes of the packet's headers.
/// Returns the compressed packet.
fn write_difference<'a>(
    packet: &'a mut [u8],
    shape: Shape,
    difference: &Difference,
    connection: Option<u8>,
) -> &'a mut [u8] {
    let checksum = [packet[shape.ip + 16], packet[shape.ip + 17]];
    let numbers = difference.numbers.as_slice();
    let length = 1 + usize::from(connection.is_some()) + checksum.len() + numbers.len();
    let start = shape.headers - length;
    let line = &mut packet[start..];
    let bit = if connection.is_some() { CONNECTION } else { 0 };
    let head =
        core::iter::once(COMPRESSED | difference.mask | bit).chain(connection).chain(checksum);
    for (place, byte) in line.iter_mut().zip(head.chain(numbers.iter().copied())) {
        *place = byte;
    }
    line
}
