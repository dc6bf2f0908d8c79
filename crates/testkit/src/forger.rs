//! An off-path attacker that forges segments. Their sequence numbers may be in the window, but
//! their acknowledgement numbers are never acceptable (RFC 5961 §5).

use linerate_wire::{
    Ecn, SackBlock, Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions, Timestamps, UserTimeout,
};
use oorandom::Rand64;

/// Difference between a forged acknowledgement number and a genuine one. It is larger than any
/// window and smaller than half the sequence space, so the forged number is never acceptable.
const NONSENSE: u32 = 3 << 29;

/// A source of forged segments.
#[derive(Debug)]
pub(crate) struct Forger {
    /// Average number of forged segments for every thousand genuine segments.
    share: u32,
    random: Rand64,
}

impl Forger {
    pub(crate) fn new(share: u32, seed: u64) -> Self {
        Self { share, random: Rand64::new(u128::from(seed) << 8 | 0xf0) }
    }

    /// Returns a forged segment to deliver before `genuine`, and the ECN codepoint of its packet.
    /// The connection must refuse the forged segment. Returns `None` if the random numbers choose
    /// no forgery, or if `genuine` has no ACK flag.
    pub(crate) fn forge(&mut self, genuine: &Segment<'_>) -> Option<(Vec<u8>, Ecn)> {
        let is_time = self.below(1_000) < self.share;
        if !is_time || !genuine.flags().contains(TcpFlags::ACK) {
            return None;
        }
        let others = TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ECE | TcpFlags::CWR;
        let flags = TcpFlags::from_bits_retain(self.half()) & others;
        let length = self.below(2) * self.below(1_400);
        let header = TcpHeader {
            seq: genuine.seq - self.below(length + 2),
            ack: genuine.ack + NONSENSE,
            flags: TcpFlags::ACK | flags,
            window: self.half(),
            ..TcpHeader::default()
        };
        let options = self.options(genuine.timestamps(), genuine.ack);
        let mut bytes = vec![0; TcpHeader::MAX_LENGTH];
        let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
        header.emit(options_length, &mut bytes);
        bytes.truncate(TcpHeader::LENGTH + options_length);
        bytes.resize(bytes.len() + length as usize, 0xee);
        let codepoints = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        Some((bytes, codepoints[self.below(4) as usize]))
    }

    /// Draws the TCP options of a forged segment. A timestamp is later than the genuine one. At
    /// random, a user timeout and a SACK block above the genuine acknowledgement number are added.
    fn options(&mut self, genuine: Option<Timestamps>, ack: SeqNum) -> TcpOptions {
        let ahead = 1 + self.below(2_000_000_000);
        let timestamps = genuine.map(|genuine| Timestamps {
            value: genuine.value.wrapping_add(ahead),
            echo: genuine.echo.wrapping_add(self.below(3)),
        });
        let user_timeout = (self.below(2) == 0).then_some(UserTimeout { minutes: false, count: 1 });
        let mut options = TcpOptions { timestamps, user_timeout, ..TcpOptions::default() };
        if self.below(2) == 0 {
            let left = ack + self.below(10_000);
            options.sack.push(SackBlock { left, right: left + 1 + self.below(10_000) });
        }
        options
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.random.rand_range(0..u64::from(end))).unwrap_or(0)
    }

    fn half(&mut self) -> u16 {
        u16::try_from(self.below(1 << 16)).unwrap_or(0)
    }
}
