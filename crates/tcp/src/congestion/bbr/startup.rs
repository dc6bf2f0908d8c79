//! The Startup and Drain phases of BBR (draft-ietf-ccwg-bbr §5.3.1, §5.3.2). Startup doubles the
//! sending rate until the delivery rate stops growing or too much is lost. Drain then empties the
//! queue that Startup has built.

use super::{Bbr, Phase, Step, bounds};
use crate::compact::pack::packed;
use linerate_units::Rate;

/// The path counts as full after this number of rounds in which the delivery rate has not grown.
const FULL_ROUNDS: u32 = 3;
/// The delivery rate counts as growing if it is at least this percentage of its baseline
/// (`full_bw`).
const GROWTH: u32 = 125;
/// `StartupFullLossCnt`: the path counts as full if at least this number of ranges is lost in a
/// round.
const LOST_RANGES: u32 = 6;
/// Drain ends when it has lasted longer than this number of rounds, even if the queue is not empty.
const DRAIN_ROUNDS: u64 = 3;

/// The detection of a full path. While BBR sends faster than the path delivers, the path is full
/// when the delivery rate stops growing (draft-ietf-ccwg-bbr §5.3.1.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FullPipe {
    /// `full_bw`: the delivery rate with which the rate of each round is compared.
    baseline: Rate,
    /// `full_bw_count`: the number of rounds since the delivery rate most recently grew.
    rounds: u32,
    /// `full_bw_now`: whether the path was detected as full since the most recent
    /// [reset](Self::reset).
    pub(super) now: bool,
    /// `full_bw_reached`: whether the path was ever detected as full.
    pub(super) reached: bool,
}

packed!(FullPipe { baseline, rounds, now, reached });

impl FullPipe {
    /// `ResetFullBW`: restarts the detection, with `baseline` as the rate to compare with.
    pub(super) const fn reset(&mut self, baseline: Rate) {
        *self = Self { baseline, rounds: 0, now: false, reached: self.reached };
    }

    /// `CheckFullBWReached`: processes the delivery rate of a round that was not
    /// application-limited.
    fn take(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate >= self.baseline.percent(GROWTH) {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr {
    pub(super) fn check_full_pipe(&mut self, step: &Step<'_>) {
        if self.rounds.started && step.sample.is_some() && !step.application_limited {
            self.full_pipe.take(step.rate);
        }
    }

    /// `CheckStartupDone`: begins Drain when the path is full.
    pub(super) fn check_startup_done(&mut self, step: &Step<'_>) {
        self.check_startup_loss(step);
        if self.phase == Phase::Startup && self.full_pipe.reached {
            self.phase = Phase::Drain;
            self.drain_began = self.rounds.count;
        }
    }

    /// `CheckStartupHighLoss`: ends Startup after a whole round of recovery with too many losses.
    /// They are too many if more than 2 % of the data in flight and at least [`LOST_RANGES`] ranges
    /// were lost (draft-ietf-ccwg-bbr §5.3.1.3).
    fn check_startup_loss(&mut self, step: &Step<'_>) {
        if !self.latest.round_started {
            return;
        }
        let lost_ranges = core::mem::take(&mut self.latest.lost_ranges);
        let too_much = step
            .sample
            .is_some_and(|sample| bounds::is_too_much(sample.lost, sample.in_flight_at_send));
        let in_startup = self.phase == Phase::Startup && !self.full_pipe.reached;
        if in_startup && self.recovering && lost_ranges >= LOST_RANGES && too_much {
            self.undo.phase = Some(Phase::Startup);
            self.full_pipe.reached = true;
            self.bounds.longterm = Some(self.bdp(100).max(self.latest.inflight));
        }
    }

    /// `CheckDrainDone`: begins the first probing cycle when the queue is empty, or Drain has
    /// lasted longer than [`DRAIN_ROUNDS`].
    pub(super) fn check_drain_done(&mut self, step: &Step<'_>) {
        let drained = step.ack.in_flight <= self.inflight(self.model_bandwidth(), 100);
        let is_overdue = self.rounds.count > self.drain_began + DRAIN_ROUNDS;
        if self.phase == Phase::Drain && (drained || is_overdue) {
            self.start_down();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let rate = Rate::from_bits_per_second;
        for bits in [100, 200, 400, 410, 420, 499] {
            pipe.take(rate(bits));
        }
        assert!(pipe.now && pipe.reached);
        pipe.reset(rate(499));
        pipe.take(rate(800));
        assert!(!pipe.now && pipe.reached, "it was full once");
    }
}
