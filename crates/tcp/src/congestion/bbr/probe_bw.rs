//! The ProbeBW phases of BBR, its steady state (draft-ietf-ccwg-bbr §5.3.3). Every few seconds, BBR
//! sends faster than the path delivers, to find more bandwidth. Then it sends slower, to drain the
//! queue. In between it sends at the delivery rate.

use super::{Bbr, Phase, Step, bounds};
use crate::compact::pack::{packed, packed_enum};
use linerate_units::{Duration, Instant, Rate};

/// The minimum of the time from the start of a cycle to its probe. A random part of up to one
/// second is added to it.
const WAIT: Duration = Duration::from_secs(2);
/// The maximum number of rounds between probes. If the target for the data in flight has fewer
/// segments than that, the limit is their number. A window of Reno grows by one segment per round,
/// so a Reno flow would take about as many rounds from one loss to the next.
const RENO_ROUNDS: u64 = 63;
/// The maximum of `doublings`, so that the growth of the long-term bound does not overflow.
const MOST_DOUBLINGS: u32 = 30;

/// The part of the probing cycle in which the data that is acknowledged now was sent (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    None,
    Refilling,
    Starting,
    Probing,
    Stopping,
}

packed_enum!(Feedback { None, Refilling, Starting, Probing, Stopping });

/// The state of the probing cycle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probe {
    feedback: Feedback,
    /// `is_bw_probe_sample`: whether the data that is acknowledged now was sent by a probe.
    pub(super) is_sample: bool,
    /// `cycle_stamp`: the start time of the probing cycle.
    began: Instant,
    /// `bw_probe_wait`: the time, from the start of the cycle, after which a probe is due. The
    /// number of rounds may make it due earlier.
    wait: Duration,
    /// `rounds_since_probe_up`: the number of rounds since the most recent probe, plus a random
    /// number, zero or one.
    pub(super) rounds: u64,
    /// `bw_probe_up_rounds`: how often the growth of the long-term bound was doubled in this probe.
    doublings: u32,
    /// `bw_probe_up_acked`: the number of bytes acknowledged since the long-term bound was most
    /// recently raised.
    acked: u64,
    /// `probe_up_acked_per_inc`: the number of acknowledged bytes after which the long-term bound
    /// grows by one segment.
    acked_per_step: u64,
    /// `prev_probe_too_high`: whether the most recent probe lost too much data.
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`: whether the most recent probe ended because the data in flight
    /// reached the long-term bound. This ends a probe only if the probe before it lost too much
    /// data.
    precautionary: bool,
}

packed!(Probe {
    feedback,
    is_sample,
    began,
    wait,
    rounds,
    doublings,
    acked,
    acked_per_step,
    too_high,
    precautionary
});

impl Probe {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            feedback: Feedback::None,
            is_sample: false,
            began: now,
            wait: Duration::ZERO,
            rounds: 0,
            doublings: 0,
            acked: 0,
            acked_per_step: u64::MAX,
            too_high: false,
            precautionary: false,
        }
    }

    /// Stops using acknowledgements as feedback about a probe for bandwidth. Called when ProbeRTT
    /// begins: it drains the queue, so later acknowledgements show nothing about the probe.
    pub(super) const fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

impl Bbr {
    /// `IsProbingBW`: whether the phase probes for bandwidth.
    pub(super) const fn is_probing_bandwidth(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up)
    }

    /// `StartProbeBW_DOWN`: begins a cycle by sending slower than the path delivers.
    pub(super) fn start_down(&mut self) {
        self.reset_latest();
        self.probe.acked_per_step = u64::MAX;
        self.pick_wait();
        self.probe.began = self.now;
        self.probe.feedback = Feedback::Stopping;
        self.rounds.begin(self.delivered);
        self.phase = Phase::Down;
    }

    /// `PickProbeWait`: draws a random time until the next probe.
    fn pick_wait(&mut self) {
        self.probe.rounds = self.random.below(2);
        self.probe.wait = WAIT + Duration::from_nanos(self.random.below(1_000_000_000));
    }

    /// `StartProbeBW_REFILL`: begins REFILL, in which the path is filled before the probe.
    pub(super) fn start_refill(&mut self) {
        self.forget_short_term();
        (self.probe.doublings, self.probe.acked) = (0, 0);
        self.probe.precautionary = false;
        self.probe.feedback = Feedback::Refilling;
        self.rounds.begin(self.delivered);
        self.phase = Phase::Refill;
    }

    /// `StartProbeBW_UP`: begins the phase that sends faster than the path delivers.
    fn start_up(&mut self, step: &Step<'_>) {
        self.probe.feedback = Feedback::Starting;
        self.rounds.begin(self.delivered);
        self.full_pipe.reset(step.rate);
        self.phase = Phase::Up;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`: begins the next phase of the cycle when it is due.
    pub(super) fn update_cycle(&mut self, step: &Step<'_>) {
        if !self.full_pipe.reached || self.adapt_long_term(step) {
            return;
        }
        let phase = self.phase;
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe() => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(step) => self.phase = Phase::Cruise,
            Phase::Refill if self.rounds.started => {
                self.probe.is_sample = true;
                self.start_up(step);
            }
            Phase::Up if self.is_time_to_go_down(step) => {
                self.probe.too_high = false;
                self.start_down();
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`: whether a probe is due. It is due after a random time in the cycle. It is
    /// due earlier after a number of rounds: the number of segments in the target for the data in
    /// flight, at most [`RENO_ROUNDS`] (draft-ietf-ccwg-bbr §5.3.3.8).
    fn is_time_to_probe(&self) -> bool {
        let reno = u64::from(self.target_inflight() / self.window.mss().max(1)).min(RENO_ROUNDS);
        self.now > self.probe.began + self.probe.wait || self.probe.rounds >= reno
    }

    fn is_time_to_cruise(&self, step: &Step<'_>) -> bool {
        let in_flight = step.ack.in_flight;
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.bandwidth.best(), 100)
    }

    /// `IsTimeToGoDown`: whether the probe must end. It ends when it has filled the path. If the
    /// probe before it lost too much data, this probe already ends when the data in flight reaches
    /// the long-term bound.
    fn is_time_to_go_down(&mut self, step: &Step<'_>) -> bool {
        let longterm = self.bounds.longterm.unwrap_or(u32::MAX);
        if self.probe.too_high && step.ack.in_flight >= longterm {
            self.probe.precautionary = true;
            return true;
        }
        if self.window_limited && self.window.cwnd() >= longterm {
            // The long-term bound limits the congestion window, so the delivery rate cannot show
            // whether the path is full. The detection of a full path therefore starts again.
            self.full_pipe.reset(step.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// `AdaptLongTermModel`: processes the feedback of a probe, and raises the long-term bound
    /// unless too much data was lost. Returns whether it has begun another phase.
    fn adapt_long_term(&mut self, step: &Step<'_>) -> bool {
        if self.probe.feedback == Feedback::Starting && self.rounds.started {
            self.probe.feedback = Feedback::Probing;
        }
        if self.probe.feedback == Feedback::Stopping && self.rounds.started {
            self.probe.is_sample = false;
            self.probe.feedback = Feedback::None;
            let in_cycle = self.phase.is_probe_bandwidth();
            if in_cycle && !step.application_limited {
                self.bandwidth.advance();
            }
            if in_cycle && self.probe.precautionary && !self.probe.too_high {
                self.start_refill();
                return true;
            }
        }
        let (Some(longterm), Some(sample)) = (self.bounds.longterm, step.sample) else {
            return false;
        };
        if bounds::is_too_much(sample.lost, sample.in_flight_at_send) {
            return false;
        }
        self.bounds.longterm = Some(longterm.max(sample.in_flight_at_send));
        if self.phase == Phase::Up {
            self.probe_longterm(step);
        }
        false
    }

    /// `ProbeInflightLongtermUpward`: counts acknowledged bytes, and raises the long-term bound by
    /// the growth that they permit. Does nothing while the congestion window is below that bound,
    /// or is not fully used.
    fn probe_longterm(&mut self, step: &Step<'_>) {
        let Some(longterm) = self.bounds.longterm else { return };
        if !self.window_limited || self.window.cwnd() < longterm {
            return;
        }
        self.probe.acked += u64::from(step.ack.bytes);
        let steps = self.probe.acked / self.probe.acked_per_step;
        self.probe.acked -= steps * self.probe.acked_per_step;
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.bounds.longterm =
            Some(longterm.saturating_add(steps.saturating_mul(self.window.mss())));
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// `RaiseInflightLongtermSlope`: doubles the growth of the long-term bound per round. The
    /// growth is one segment in the first round of a probe, two in the second, then four, and so
    /// on.
    fn raise_slope(&mut self) {
        let growth = 1_u32 << self.probe.doublings;
        self.probe.doublings = (self.probe.doublings + 1).min(MOST_DOUBLINGS);
        self.probe.acked_per_step = u64::from((self.window.cwnd() / growth).max(self.window.mss()));
    }

    /// `TargetInflight`: returns the bandwidth-delay product in bytes, or the congestion window if
    /// congestion has reduced it below that product.
    pub(super) fn target_inflight(&self) -> u32 {
        self.bdp(100).min(self.window.cwnd())
    }

    /// `BBR.bw` (`BoundBWForModel`): returns the bandwidth estimate, limited by the short-term
    /// bound.
    pub(super) fn model_bandwidth(&self) -> Rate {
        let best = self.bandwidth.best();
        self.bounds.bandwidth.map_or(best, |bound| bound.min(best))
    }
}
