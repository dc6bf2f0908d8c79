//! BBR: congestion control by a model of the path (draft-ietf-ccwg-bbr-06). Instead of filling the
//! path until it loses packets, BBR measures the bandwidth and the round-trip time. From these it
//! derives the sending rate and the amount of data in flight.
//!
//! Comments give the names of the draft in backticks. Gains are in whole per cent, and rates in
//! whole bits per second. The draft requires a response to congestion marks, but does not define
//! it. Outside a probe, a mark is treated like a loss. During a probe, it is treated like too much
//! loss.

mod bounds;
mod filters;
mod probe_bw;
mod probe_rtt;
mod random;
mod rounds;
mod startup;

use super::{Acknowledged, Controller, FastRecovery, Lost, RateSample, Window};
use crate::compact::pack::{packed, packed_enum};
use alloc::boxed::Box;
use bounds::{Bounds, Latest, Undo, share};
use filters::{Aggregation, MaxBandwidth, ShortestRoundTrip};
use linerate_units::{Bytes, Duration, Instant, Rate};
use probe_bw::Probe;
use probe_rtt::Pause;
use random::Random;
use rounds::Rounds;
use startup::FullPipe;

/// The pacing rate in per cent of the bandwidth estimate: 100 − `PacingMarginPercent`.
const MARGIN: u32 = 99;
/// `StartupPacingGain` in per cent: 4·ln 2.
const STARTUP_GAIN: u32 = 277;
/// `MinPipeCwnd`: the minimum congestion window in segments.
const LEAST_SEGMENTS: u32 = 4;
/// `ExtraAckedFilterLen`: the length of the ACK aggregation filter in rounds.
const CLUMP_MEMORY: u64 = 10;
/// The round-trip time that is assumed before the first measurement.
const ASSUMED_ROUND_TRIP: Duration = Duration::from_millis(1);
/// The maximum of `send_quantum`, the number of bytes that a paced sender sends back to back.
const LARGEST_QUANTUM: u32 = 64 << 10;

/// The phase of BBR's state machine (`BBR.state`, draft-ietf-ccwg-bbr §5.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Startup: doubles the sending rate in every round trip.
    Startup,
    /// Drain: drains the queue that Startup has built.
    Drain,
    /// ProbeBW_DOWN: sends slower than the path delivers, so that the queue of the preceding phase
    /// drains.
    Down,
    /// ProbeBW_CRUISE: sends as fast as the path delivers.
    Cruise,
    /// ProbeBW_REFILL: sends as fast as the path delivers, so that the path is full when the probe
    /// begins.
    Refill,
    /// ProbeBW_UP: sends faster than the path delivers, to find more bandwidth.
    Up,
    /// ProbeRTT: halves the data in flight, to measure the minimum round-trip time.
    ProbeRtt,
}

packed_enum!(Phase { Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt });

impl Phase {
    const fn is_probe_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `pacing_gain`: returns the sending rate in per cent of the bandwidth estimate.
    const fn pacing_gain(self) -> u32 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => 50,
            Self::Down => 90,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 100,
            Self::Up => 125,
        }
    }

    /// `cwnd_gain`: returns the congestion window in per cent of the bandwidth-delay product.
    const fn window_gain(self) -> u32 {
        match self {
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => 200,
            Self::Up => 225,
            Self::ProbeRtt => 50,
        }
    }
}

/// An acknowledgement with its sample of the delivery rate.
#[derive(Debug)]
struct Step<'a> {
    ack: &'a Acknowledged,
    sample: Option<RateSample>,
    /// `RS.delivery_rate`; zero if there is no sample.
    rate: Rate,
    /// Whether the sample may be below the rate that the path can deliver, because the sender was
    /// application-limited or in a pause for ProbeRTT.
    application_limited: bool,
}

impl Step<'_> {
    /// Returns the number of bytes delivered in the interval of the rate sample (`RS.delivered`).
    fn delivered(&self) -> u32 {
        self.sample.map_or(0, |sample| {
            u32::try_from(sample.delivered - sample.prior_delivered).unwrap_or(u32::MAX)
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bbr {
    window: Window,
    phase: Phase,
    random: Random,
    rounds: Rounds,
    bandwidth: MaxBandwidth,
    round_trip: ShortestRoundTrip,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    latest: Latest,
    bounds: Bounds,
    undo: Undo,
    probe: Probe,
    pause: Pause,
    /// `C.InitialCwnd`: the initial congestion window in bytes.
    initial: u32,
    /// `C.pacing_rate`: the rate at which segments are sent.
    rate: Rate,
    /// Whether the pacing rate is derived from a measured round-trip time.
    knows_round_trip: bool,
    /// The time when the most recent acknowledgement arrived. `None` before the first one.
    acknowledged: Option<Instant>,
    /// The present time. Only acknowledgements and the end of an idle period update it, because
    /// other events do not include the time.
    now: Instant,
    /// `C.delivered`: the number of bytes delivered since the connection was opened.
    delivered: u64,
    /// Rate samples of segments that were sent before this number of bytes was delivered count as
    /// application-limited, because ProbeRTT had reduced the window.
    limited_until: u64,
    /// `C.is_cwnd_limited`: whether the congestion window was full at some time in this round or
    /// the previous round.
    window_limited: bool,
    /// `drain_start_round`: the round in which Drain began.
    drain_began: u64,
    /// `idle_restart`: whether the sender has resumed after an idle period, and nothing was
    /// acknowledged since.
    idle_restart: bool,
    /// Whether loss recovery is in progress.
    recovering: bool,
}

packed!(Bbr {
    window,
    phase,
    random,
    rounds,
    bandwidth,
    round_trip,
    aggregation,
    full_pipe,
    latest,
    bounds,
    undo,
    probe,
    pause,
    initial,
    rate,
    knows_round_trip,
    acknowledged,
    now,
    delivered,
    limited_until,
    window_limited,
    drain_began,
    idle_restart,
    recovering
});

impl Bbr {
    /// Creates the initial state. All random decisions depend on `seed`.
    pub(super) fn new(window: Window, seed: u64) -> Self {
        let (initial, now) = (window.cwnd(), Instant::ZERO);
        Self {
            window,
            phase: Phase::Startup,
            random: Random::new(seed),
            rounds: Rounds::default(),
            bandwidth: MaxBandwidth::default(),
            round_trip: ShortestRoundTrip::new(now),
            aggregation: Aggregation::new(now),
            full_pipe: FullPipe::default(),
            latest: Latest::default(),
            bounds: Bounds::default(),
            undo: Undo::default(),
            probe: Probe::new(now),
            pause: Pause::default(),
            initial,
            rate: initial_rate(initial, ASSUMED_ROUND_TRIP),
            knows_round_trip: false,
            acknowledged: None,
            now,
            delivered: 0,
            limited_until: 0,
            window_limited: false,
            drain_began: 0,
            idle_restart: false,
            recovering: false,
        }
    }

    /// Sets the clock to `now`. The first acknowledgement also starts the filters, because the time
    /// is not available when a controller is created.
    fn start_clock(&mut self, now: Instant) {
        if self.acknowledged.is_none() {
            self.round_trip = ShortestRoundTrip::new(now);
            self.aggregation = Aggregation::new(now);
            self.probe = Probe::new(now);
        }
        self.acknowledged = Some(now);
        self.now = now;
    }

    /// `UpdateModelAndState`: updates the model of the path and the phase after an acknowledgement.
    fn update_model(&mut self, step: &Step<'_>) {
        self.note_latest(step);
        self.update_bandwidth(step);
        self.adapt_lower_bounds();
        self.update_aggregation(step.ack);
        self.check_full_pipe(step);
        self.check_startup_done(step);
        self.check_drain_done(step);
        self.update_cycle(step);
        let expired = self.round_trip.take(self.now, step.ack.round_trip);
        self.check_pause(step, expired);
        self.advance_latest(step);
    }

    /// `UpdateMaxBw` and `UpdateRound`: counts rounds, and updates the bandwidth estimate.
    fn update_bandwidth(&mut self, step: &Step<'_>) {
        self.rounds.started = false;
        let Some(sample) = step.sample else { return };
        self.rounds.take(sample.prior_delivered, sample.delivered);
        self.probe.rounds += u64::from(self.rounds.started);
        if step.rate >= self.bandwidth.best() || !step.application_limited {
            self.bandwidth.take(step.rate);
        }
    }

    /// `UpdateACKAggregation`: updates the estimate of ACK aggregation.
    fn update_aggregation(&mut self, ack: &Acknowledged) {
        let (bandwidth, cwnd) = (self.model_bandwidth(), self.window.cwnd());
        let memory = if self.full_pipe.reached { CLUMP_MEMORY } else { 1 };
        self.aggregation.take(self.now, ack.bytes, bandwidth, cwnd, self.rounds.count, memory);
    }

    /// `SetPacingRateWithGain`: sets the pacing rate. Until BBR has detected a full path, the rate
    /// never decreases, because early samples may be low for lack of data to send.
    fn set_rate(&mut self, gain: u32) {
        let rate = self.model_bandwidth().percent(gain).percent(MARGIN);
        if self.full_pipe.reached || rate > self.rate {
            self.rate = rate;
        }
    }

    /// `InitPacingRate`: sets the first pacing rate that is derived from a measured round-trip
    /// time.
    fn learn_round_trip(&mut self, ack: &Acknowledged) {
        let round_trip = ack.smoothed.filter(|&round_trip| round_trip > Duration::ZERO);
        if let Some(round_trip) = round_trip.filter(|_| !self.knows_round_trip) {
            self.knows_round_trip = true;
            self.rate = initial_rate(self.initial, round_trip);
        }
    }

    /// `SetCwnd`: sets the congestion window after an acknowledgement of `acked` bytes of new data.
    fn set_window(&mut self, acked: u32) {
        let most = self.most_inflight();
        let grown = self.window.cwnd().saturating_add(acked);
        let mut cwnd = self.window.cwnd();
        if self.full_pipe.reached {
            cwnd = grown.min(most);
        } else if cwnd < most || self.delivered < u64::from(self.initial) {
            cwnd = grown;
        }
        cwnd = cwnd.max(self.least_window());
        if self.phase == Phase::ProbeRtt {
            cwnd = cwnd.min(self.pause_window());
        }
        self.window.set(cwnd.min(self.volume_cap()));
    }

    /// `max_inflight` (`UpdateMaxInflight`): returns the congestion window, in bytes, that the
    /// model permits in the present phase, before the bounds are applied.
    fn most_inflight(&self) -> u32 {
        let product = self.product(self.model_bandwidth(), self.phase.window_gain());
        self.with_quanta(u64::from(product) + self.aggregation.extra())
    }

    /// `Inflight`: returns `gain` per cent of the amount of data in flight, in bytes, that keeps a
    /// path with `bandwidth` full.
    fn inflight(&self, bandwidth: Rate, gain: u32) -> u32 {
        self.with_quanta(u64::from(self.product(bandwidth, gain)))
    }

    /// Returns `gain` per cent of the bandwidth-delay product in bytes, with the bandwidth of the
    /// model.
    fn bdp(&self, gain: u32) -> u32 {
        self.product(self.model_bandwidth(), gain)
    }

    /// `BDPMultiple`: returns `gain` per cent of the bandwidth-delay product in bytes, for
    /// `bandwidth` and the minimum round-trip time. Before the first measurement of that time,
    /// returns the initial window.
    fn product(&self, bandwidth: Rate, gain: u32) -> u32 {
        let Some(round_trip) = self.round_trip.shortest() else { return self.initial };
        let bytes = bandwidth.bytes_in(round_trip).count();
        share(u32::try_from(bytes).unwrap_or(u32::MAX), gain)
    }

    /// `QuantizationBudget`: returns `inflight`, but at least three bursts, because a paced sender
    /// sends whole bursts. In ProbeBW_UP, the result is two segments larger.
    fn with_quanta(&self, inflight: u64) -> u32 {
        let inflight = u32::try_from(inflight).unwrap_or(u32::MAX);
        let mss = self.window.mss();
        let quantum = crate::send::pacing::burst(self.rate, mss).min(LARGEST_QUANTUM).max(2 * mss);
        let least = inflight.max(quantum * 3).max(self.least_window());
        if self.phase == Phase::Up { least.saturating_add(2 * mss) } else { least }
    }

    /// `MinPipeCwnd`: returns the minimum congestion window in bytes.
    fn least_window(&self) -> u32 {
        LEAST_SEGMENTS * self.window.mss()
    }

    /// Records whether the congestion window was full before this acknowledgement arrived.
    fn note_window_use(&mut self, ack: &Acknowledged) {
        let before = ack.in_flight.saturating_add(ack.bytes).saturating_add(self.window.mss());
        let is_limited = before > self.window.cwnd();
        self.window_limited = is_limited || (self.window_limited && !self.rounds.started);
    }
}

impl Controller for Bbr {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    /// `UpdateOnACK`: updates the model, the pacing rate and the window, both in recovery and
    /// outside it.
    fn on_every_acknowledgement(&mut self, ack: &Acknowledged) {
        self.start_clock(ack.now);
        self.learn_round_trip(ack);
        let counted = self.delivered + u64::from(ack.bytes);
        self.delivered = ack.sample.map_or(counted, |sample| sample.delivered);
        let rate = ack.sample.map_or_else(Rate::default, RateSample::rate);
        let application_limited = ack.sample.is_some_and(|sample| {
            sample.application_limited || sample.prior_delivered < self.limited_until
        });
        let step = Step { ack, sample: ack.sample, rate, application_limited };
        self.note_window_use(ack);
        self.update_model(&step);
        self.set_rate(self.phase.pacing_gain());
        self.set_window(ack.bytes);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.judge_lost(lost);
    }

    /// Does nothing, because `on_every_acknowledgement` sets the window.
    fn on_progress(&mut self, _ack: &Acknowledged, _limited: bool) {}

    /// `HandleRestartFromIdle`: prepares the model for data that is sent after nothing was in
    /// flight for the time `idle`.
    fn on_idle(&mut self, idle: Duration) {
        let Some(acknowledged) = self.acknowledged else { return };
        self.now = acknowledged + idle;
        self.idle_restart = true;
        self.aggregation.restart(self.now);
        if self.phase.is_probe_bandwidth() {
            self.set_rate(100);
        } else if self.phase == Phase::ProbeRtt {
            self.check_pause_done();
        }
    }

    /// Does nothing. BBR keeps its window after an idle period, because it paces the data that
    /// follows (draft-ietf-ccwg-bbr §5.4.2).
    fn forget_after_idle(&mut self) {}

    /// `OnEnterFastRecovery`: saves the state, so that it can be restored if the loss proves
    /// spurious.
    fn on_loss(&mut self, _flight: u32) {
        self.save_for_undo();
        self.recovering = true;
    }

    fn on_mark(&mut self, flight: u32) {
        self.note_loss();
        if self.probe.is_sample {
            self.on_inflight_too_high(flight, false);
        }
    }

    /// `OnEnterRTO`: saves the state, and reduces the window to one segment.
    fn on_timeout(&mut self, _flight: u32) {
        self.save_for_undo();
        self.recovering = true;
        self.window.restart();
    }

    fn on_recovered(&mut self) {
        if core::mem::take(&mut self.recovering) {
            self.restore_window();
            self.window.set(self.window.cwnd().min(self.volume_cap()));
            self.close_undo();
        }
    }

    fn on_spurious_loss(&mut self) {
        self.recovering = false;
        self.undo_losses();
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Bbr {
    /// Returns the pacing rate, `C.pacing_rate`.
    pub(super) const fn pacing_rate(&self) -> Rate {
        self.rate
    }
}

/// Returns `window` per `round_trip`, multiplied by the gain of Startup.
fn initial_rate(window: u32, round_trip: Duration) -> Rate {
    Rate::of(Bytes::new(u64::from(window)), round_trip).percent(STARTUP_GAIN)
}

#[cfg(test)]
mod tests;
