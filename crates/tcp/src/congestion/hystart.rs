//! HyStart++: ends the initial slow start when round-trip times increase, before a loss occurs (RFC
//! 9406).

use super::Acknowledged;
use crate::compact::pack::{Pack, Packer, Unpacker, packed};
use linerate_units::Duration;
use linerate_wire::SeqNum;

// The values that RFC 9406 §4.3 recommends.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// L: the maximum growth of the window for one ACK, in segments. It limits only senders that do not
/// pace.
const L: u32 = 8;

/// The minimum round-trip time of a round in which no round-trip time was measured. RFC 9406 uses
/// infinity.
const UNKNOWN: Duration = Duration::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Conservative slow start: the round-trip time has increased, and the window grows more slowly
    /// than in slow start. `baseline` is the round-trip time at the start of this phase, and
    /// `rounds` is the number of rounds that the phase has lasted.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
}

/// The state of HyStart++, with the measurements of the current round and the previous round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HyStart {
    phase: Phase,
    /// windowEnd: the round ends when this sequence number is acknowledged. `None` before the first
    /// round.
    window_end: Option<SeqNum>,
    last_round_min: Duration,
    current_round_min: Duration,
    samples: u32,
    /// Whether the sender paces the segments that one acknowledgement permits to send.
    paced: bool,
}

impl Pack for Phase {
    fn pack(&self, into: &mut Packer<'_>) {
        let conservative = match *self {
            Self::SlowStart => None,
            Self::Conservative { baseline, rounds } => Some((baseline, rounds)),
        };
        conservative.pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Option::unpack(from)
            .map_or(Self::SlowStart, |(baseline, rounds)| Self::Conservative { baseline, rounds })
    }
}

packed!(HyStart { phase, window_end, last_round_min, current_round_min, samples, paced });

impl HyStart {
    pub(super) const fn new(paced: bool) -> Self {
        Self {
            phase: Phase::SlowStart,
            window_end: None,
            last_round_min: UNKNOWN,
            current_round_min: UNKNOWN,
            samples: 0,
            paced,
        }
    }

    /// Returns the number of bytes by which the window grows for `ack`, with segments of `mss`
    /// bytes (RFC 9406 §4.2).
    pub(super) fn growth(&self, ack: &Acknowledged, mss: u32) -> u32 {
        let counted = if self.paced { ack.bytes } else { ack.bytes_within(L * mss) };
        match self.phase {
            Phase::SlowStart => counted,
            Phase::Conservative { .. } => counted / CSS_GROWTH_DIVISOR,
        }
    }

    /// Processes the round-trip time that an acknowledgement has measured. Returns whether slow
    /// start has ended.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, ack: &Acknowledged) -> bool {
        if let Some(round_trip) = ack.round_trip {
            self.current_round_min = self.current_round_min.min(round_trip);
            self.samples = self.samples.saturating_add(ack.count);
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge_round_trips();
        }
        let window_end = *self.window_end.get_or_insert(ack.sent);
        !ack.number.before(window_end) && self.end_round(ack.sent)
    }

    fn judge_round_trips(&mut self) {
        match self.phase {
            Phase::SlowStart if self.has_delay_grown() => {
                self.phase = Phase::Conservative { baseline: self.current_round_min, rounds: 0 };
            }
            Phase::Conservative { baseline, .. } if self.current_round_min < baseline => {
                self.phase = Phase::SlowStart;
            }
            Phase::SlowStart | Phase::Conservative { .. } => {}
        }
    }

    fn has_delay_grown(&self) -> bool {
        let threshold =
            (self.last_round_min / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
        self.last_round_min != UNKNOWN && self.current_round_min >= self.last_round_min + threshold
    }

    /// Ends a round. Called when all data that was sent before the round began is acknowledged.
    /// Returns whether slow start has ended.
    fn end_round(&mut self, sent: SeqNum) -> bool {
        self.window_end = Some(sent);
        self.last_round_min = self.current_round_min;
        self.current_round_min = UNKNOWN;
        self.samples = 0;
        match &mut self.phase {
            Phase::SlowStart => false,
            Phase::Conservative { rounds, .. } => {
                *rounds += 1;
                *rounds >= CSS_ROUNDS
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Instant;

    const MSS: u32 = 1_000;

    fn growth(hystart: &HyStart, bytes: u32, count: u32) -> u32 {
        hystart.growth(&acknowledged(bytes, count), MSS)
    }

    fn acknowledged(bytes: u32, count: u32) -> Acknowledged {
        Acknowledged {
            bytes,
            count,
            number: SeqNum::new(0),
            sent: SeqNum::new(0),
            now: Instant::ZERO,
            smoothed: None,
            round_trip: None,
            lost: 0,
            in_flight: 0,
            sample: None,
        }
    }

    /// Acknowledges ten segments with round-trip times of `millis` ms, and returns whether slow
    /// start has ended. When the first round begins, twenty segments are in flight, so it ends with
    /// the second call. Each later call ends a round of ten segments.
    fn round(hystart: &mut HyStart, number: &mut u32, millis: u64) -> bool {
        let sent = SeqNum::new(*number + 20 * MSS);
        (0..10).fold(false, |over, _| {
            *number += MSS;
            let ack = Acknowledged {
                number: SeqNum::new(*number),
                sent,
                round_trip: Some(Duration::from_millis(millis)),
                ..acknowledged(MSS, 1)
            };
            hystart.on_acknowledged(&ack) || over
        })
    }

    #[test]
    fn slow_start_doubles_even_with_delayed_acknowledgements() {
        let hystart = HyStart::new(false);
        assert_eq!(growth(&hystart, 2 * MSS, 1), 2 * MSS);
        assert_eq!(growth(&hystart, 20 * MSS, 1), 8 * MSS);
        assert_eq!(growth(&hystart, 20 * MSS, 2), 16 * MSS);
    }

    #[test]
    fn paced_slow_start_doubles_however_much_an_acknowledgement_covers() {
        let hystart = HyStart::new(true);
        assert_eq!(growth(&hystart, 20 * MSS, 1), 20 * MSS);
    }

    #[test]
    fn slow_start_continues_while_round_trips_are_steady() {
        let (mut hystart, mut number) = (HyStart::new(false), 0);
        for _ in 0..100 {
            assert!(!round(&mut hystart, &mut number, 50));
        }
        assert_eq!(hystart.phase, Phase::SlowStart);
    }

    #[test]
    fn longer_round_trips_slow_the_growth_and_end_it_after_five_rounds() {
        let (mut hystart, mut number) = (HyStart::new(false), 0);
        round(&mut hystart, &mut number, 50);
        round(&mut hystart, &mut number, 50);
        let rounds = (1..).find(|_| round(&mut hystart, &mut number, 57)).unwrap_or(0);
        assert_eq!(rounds, 5);
        assert_eq!(growth(&hystart, 4 * MSS, 1), MSS);
    }

    #[test]
    fn a_growth_below_the_threshold_is_noise() {
        let (mut hystart, mut number) = (HyStart::new(false), 0);
        for millis in [10, 13, 13, 16, 12] {
            round(&mut hystart, &mut number, millis);
        }
        assert_eq!(hystart.phase, Phase::SlowStart);
    }

    #[test]
    fn shorter_round_trips_resume_slow_start() {
        let (mut hystart, mut number) = (HyStart::new(false), 0);
        for millis in [50, 50, 70] {
            round(&mut hystart, &mut number, millis);
        }
        assert!(matches!(hystart.phase, Phase::Conservative { .. }));
        round(&mut hystart, &mut number, 60);
        assert_eq!(hystart.phase, Phase::SlowStart);
    }
}
