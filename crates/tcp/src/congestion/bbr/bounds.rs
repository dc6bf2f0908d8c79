//! The bounds that losses set in BBR's model. A probe for bandwidth that caused too much loss sets
//! the long-term bound. Losses outside a probe set the short-term bounds, from the present model
//! and the recent deliveries (draft-ietf-ccwg-bbr §5.5.10, §5.5.11).

use super::{Bbr, Phase, Step};
use crate::compact::pack::packed;
use crate::congestion::Lost;
use linerate_units::Rate;

/// `LossThresh`: the loss that BBR tolerates, in thousandths of the data in flight.
const LOSS_THRESHOLD: u64 = 20;
/// `Beta`: the factor, in per cent, by which the short-term bounds are multiplied after a round
/// with losses.
pub(super) const BETA: u32 = 70;
/// `Headroom`: the part of the long-term bound that is left to other flows, in per cent.
const HEADROOM: u32 = 15;

/// The deliveries and losses in the current round trip.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Latest {
    /// `bw_latest`: the highest delivery rate of the round.
    bandwidth: Rate,
    /// `inflight_latest`: the amount of data delivered in the interval of a rate sample, in bytes;
    /// the largest of the samples in this round.
    pub(super) inflight: u32,
    /// `is_loss_in_round`: whether any loss was detected in the round.
    loss: bool,
    /// The number of ranges that were found lost in the round.
    pub(super) lost_ranges: u32,
    /// `loss_round_delivered`: the value of `C.delivered` that ends the round. When a segment is
    /// sent, `C.delivered` is recorded. The round ends with the first acknowledgement of a segment
    /// whose record has at least this value.
    round_end: u64,
    /// `loss_round_start`: whether the acknowledgement that is being processed begins a round.
    pub(super) round_started: bool,
}

packed!(Latest { bandwidth, inflight, loss, lost_ranges, round_end, round_started });

/// The bounds that losses set in the model. `None` means no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// `bw_shortterm`: the bound of the bandwidth that recent losses have set.
    pub(super) bandwidth: Option<Rate>,
    /// `inflight_shortterm`: the bound of the data in flight that recent losses have set, in bytes.
    pub(super) inflight: Option<u32>,
    /// `inflight_longterm`: the bound of the data in flight that probes have found, in bytes.
    pub(super) longterm: Option<u32>,
}

packed!(Bounds { bandwidth, inflight, longterm });

/// The state of the model before the most recent losses. It is restored if these losses prove
/// spurious.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Undo {
    /// Whether losses are being repaired. During that time, the state from before the first of
    /// these losses is kept.
    pub(super) is_kept: bool,
    /// `undo_state`: Startup or ProbeBW_UP, if the losses have ended this phase. Otherwise `None`.
    pub(super) phase: Option<Phase>,
    bounds: Bounds,
}

packed!(Undo { is_kept, phase, bounds });

impl Bbr {
    /// `UpdateLatestDeliverySignals`: updates the largest delivery rate and the largest delivered
    /// amount of the round, and detects the end of the round. Called before any other processing of
    /// the acknowledgement.
    pub(super) fn note_latest(&mut self, step: &Step<'_>) {
        self.latest.round_started = false;
        let Some(sample) = step.sample else { return };
        self.latest.bandwidth = self.latest.bandwidth.max(step.rate);
        self.latest.inflight = self.latest.inflight.max(step.delivered());
        if sample.prior_delivered >= self.latest.round_end {
            self.latest.round_end = sample.delivered;
            self.latest.round_started = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`: begins a new round if one has ended. The largest delivery
    /// rate and the largest delivered amount then have the values of this acknowledgement. Called
    /// after all other processing of the acknowledgement.
    pub(super) fn advance_latest(&mut self, step: &Step<'_>) {
        if self.latest.round_started {
            (self.latest.bandwidth, self.latest.inflight) = (step.rate, step.delivered());
        }
    }

    /// `ResetCongestionSignals`: resets the record of losses, and the largest delivery rate and
    /// amount of the round.
    pub(super) fn reset_latest(&mut self) {
        self.latest.loss = false;
        (self.latest.bandwidth, self.latest.inflight) = (Rate::default(), 0);
    }

    /// `AdaptLowerBoundsFromCongestion`: reduces the short-term bounds by 30 % after a round trip
    /// with a loss. They do not fall below the largest delivery rate and the largest delivered
    /// amount of that round trip. Does nothing in phases that probe for bandwidth.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if !self.latest.round_started {
            return;
        }
        if self.latest.loss && !self.is_probing_bandwidth() {
            let bandwidth = self.bounds.bandwidth.unwrap_or_else(|| self.bandwidth.best());
            let inflight = self.bounds.inflight.unwrap_or_else(|| self.window.cwnd());
            self.bounds.bandwidth = Some(bandwidth.percent(BETA).max(self.latest.bandwidth));
            self.bounds.inflight = Some(share(inflight, BETA).max(self.latest.inflight));
        }
        self.latest.loss = false;
    }

    /// `ResetShortTermModel`: removes both short-term bounds.
    pub(super) const fn forget_short_term(&mut self) {
        (self.bounds.bandwidth, self.bounds.inflight) = (None, None);
    }

    /// `NoteLoss`: records a loss or a congestion mark. Before it reports a loss, the caller saves
    /// the state, so that the response can be undone. The response to a mark is never undone, so no
    /// state is saved before it.
    pub(super) fn note_loss(&mut self) {
        if !self.latest.loss {
            self.latest.round_end = self.delivered;
        }
        self.latest.loss = true;
    }

    /// `HandleLostPacket`: ends a bandwidth probe if too much data was lost since the lost segment
    /// was sent.
    pub(super) fn judge_lost(&mut self, lost: &Lost) {
        self.save_for_undo();
        self.note_loss();
        self.latest.lost_ranges += 1;
        if self.probe.is_sample && is_too_much(lost.since_sent, lost.in_flight_at_send) {
            let inflight = inflight_at_loss(lost);
            self.on_inflight_too_high(inflight, lost.application_limited);
        }
    }

    /// `HandleInflightTooHigh`: ends a bandwidth probe after too much loss or a congestion mark,
    /// and sets the long-term bound. If the sender was application-limited, the bound is unchanged.
    /// Called at most once per probe.
    pub(super) fn on_inflight_too_high(
        &mut self,
        in_flight_at_send: u32,
        application_limited: bool,
    ) {
        self.probe.too_high = true;
        self.probe.is_sample = false;
        if !application_limited {
            let least = share(self.target_inflight(), BETA);
            self.bounds.longterm = Some(in_flight_at_send.max(least));
        }
        if self.phase == Phase::Up {
            self.undo.phase = Some(Phase::Up);
            self.start_down();
        }
    }

    /// `InflightWithHeadroom`: returns the long-term bound, in bytes, less [`HEADROOM`], which is
    /// left to other flows.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let Some(longterm) = self.bounds.longterm else { return u32::MAX };
        let headroom = share(longterm, HEADROOM).max(self.window.mss());
        longterm.saturating_sub(headroom).max(self.least_window())
    }

    /// `BoundCwndForModel`: returns the largest amount of data in flight that the present phase
    /// allows, in bytes.
    pub(super) fn volume_cap(&self) -> u32 {
        let longterm = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.bounds.longterm.unwrap_or(u32::MAX),
            Phase::ProbeRtt | Phase::Cruise => self.inflight_with_headroom(),
            Phase::Startup | Phase::Drain => u32::MAX,
        };
        longterm.min(self.bounds.inflight.unwrap_or(u32::MAX)).max(self.least_window())
    }

    /// `SaveStateUponLoss`: saves the state before the first of several losses. The bounds are
    /// reduced before the next loss is reported. Later calls therefore keep the saved state;
    /// otherwise they would save the reduced bounds.
    pub(super) fn save_for_undo(&mut self) {
        self.save_window();
        if !self.undo.is_kept {
            self.undo = Undo { is_kept: true, phase: None, bounds: self.bounds };
        }
    }

    /// Records that the losses are repaired. The saved state is kept until the next loss, because a
    /// duplicate may still show that the losses were spurious.
    pub(super) const fn close_undo(&mut self) {
        self.undo.is_kept = false;
    }

    /// `HandleSpuriousLossDetection`: restores the bounds and the phase from before the losses.
    pub(super) fn undo_losses(&mut self) {
        self.restore_window();
        self.latest.loss = false;
        self.full_pipe.reset(Rate::default());
        self.close_undo();
        let (phase, before) = (self.undo.phase.take(), self.undo.bounds);
        // Each bound becomes the looser of its present and its saved value, which is the larger
        // one. `None` means no bound. So if one of the two values is `None`, the result is `None`.
        self.bounds.bandwidth = self.bounds.bandwidth.zip(before.bandwidth).map(|(a, b)| a.max(b));
        self.bounds.inflight = self.bounds.inflight.zip(before.inflight).map(|(a, b)| a.max(b));
        self.bounds.longterm = self.bounds.longterm.zip(before.longterm).map(|(a, b)| a.max(b));
        match phase {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_pipe.reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if self.phase != Phase::Up && self.phase != Phase::ProbeRtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

/// `IsInflightTooHigh`: whether `lost` exceeds the tolerated part of `in_flight`, both in bytes.
pub(super) fn is_too_much(lost: u64, in_flight: u32) -> bool {
    lost * 1_000 > u64::from(in_flight) * LOSS_THRESHOLD
}

/// `InflightAtLoss`: returns the amount of data in flight, in bytes, at which the loss reached the
/// threshold. It includes the part of the lost segment up to that point. If the loss had exceeded
/// the threshold before this segment, it includes no part of it.
fn inflight_at_loss(lost: &Lost) -> u32 {
    let before = u64::from(lost.in_flight_at_send.saturating_sub(lost.bytes));
    let lost_before = lost.since_sent.saturating_sub(u64::from(lost.bytes));
    let allowed = (before * LOSS_THRESHOLD).saturating_sub(lost_before * 1_000);
    u32::try_from(before + allowed / (1_000 - LOSS_THRESHOLD)).unwrap_or(u32::MAX)
}

/// Returns `percent` % of `amount`.
pub(super) fn share(amount: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(amount) * u64::from(percent) / 100).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
