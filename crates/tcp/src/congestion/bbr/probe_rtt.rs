//! The ProbeRTT phase of BBR (draft-ietf-ccwg-bbr §5.3.4). In this phase, BBR halves the data in
//! flight for a short time, the pause. Thus the queue drains and the minimum round-trip time can be
//! measured. The phase begins when no shorter round-trip time than the recent minimum was measured
//! for five seconds.

use super::{Bbr, Phase, Step};
use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};

/// `ProbeRTTDuration`: the minimum duration of a pause, counted from the time when the data in
/// flight is small enough.
const DURATION: Duration = Duration::from_millis(200);
/// `ProbeRTTCwndGain`: the congestion window during the pause, in per cent of the bandwidth-delay
/// product.
const GAIN: u32 = 50;

/// The state of a pause for ProbeRTT, and the congestion window to restore after the pause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pause {
    /// `probe_rtt_done_stamp`: the end of the pause. `None` until the data in flight fits the
    /// reduced window.
    ends: Option<Instant>,
    /// `probe_rtt_round_done`: whether a whole round has passed since the data in flight fitted the
    /// reduced window.
    round_done: bool,
    /// `prior_cwnd`: the most recent size of the window, in bytes, that neither a recovery nor a
    /// pause had reduced.
    window_before: u32,
}

packed!(Pause { ends, round_done, window_before });

impl Bbr {
    /// `CheckProbeRTT`: begins, continues or ends a pause. `expired` is true if a new measurement
    /// of the minimum round-trip time is due.
    pub(super) fn check_pause(&mut self, step: &Step<'_>, expired: bool) {
        if self.phase != Phase::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.phase = Phase::ProbeRtt;
            self.pause.ends = None;
            self.probe.stop();
            self.rounds.begin(self.delivered);
        }
        if self.phase == Phase::ProbeRtt {
            self.handle_pause(step);
        }
        if step.ack.bytes > 0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`: ends the pause when both its minimum duration and a whole round have
    /// passed.
    fn handle_pause(&mut self, step: &Step<'_>) {
        // Rate samples of the data that is in flight during the pause are too low. They count as
        // application-limited, so that they do not lower the bandwidth estimate.
        self.limited_until = self.delivered + u64::from(step.ack.in_flight);
        match self.pause.ends {
            None if step.ack.in_flight <= self.pause_window() => {
                self.pause.ends = Some(self.now + DURATION);
                self.pause.round_done = false;
                self.rounds.begin(self.delivered);
            }
            None => {}
            Some(_) => {
                self.pause.round_done |= self.rounds.started;
                if self.pause.round_done {
                    self.check_pause_done();
                }
            }
        }
    }

    /// `CheckProbeRTTDone`: if the duration of the pause is over, restores the window and leaves
    /// ProbeRTT.
    pub(super) fn check_pause_done(&mut self) {
        if self.pause.ends.is_none_or(|end| self.now <= end) {
            return;
        }
        self.round_trip.restart_interval(self.now);
        self.restore_window();
        self.forget_short_term();
        if self.full_pipe.reached {
            self.start_down();
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    /// `ProbeRTTCwnd`: returns the window during the pause, in bytes.
    pub(super) fn pause_window(&self) -> u32 {
        self.bdp(GAIN).max(self.least_window())
    }

    /// `SaveCwnd`: saves the window, unless a recovery or a pause has already reduced it.
    pub(super) fn save_window(&mut self) {
        let cwnd = self.window.cwnd();
        let is_disturbed = self.undo.is_kept || self.recovering || self.phase == Phase::ProbeRtt;
        self.pause.window_before =
            if is_disturbed { self.pause.window_before.max(cwnd) } else { cwnd };
    }

    /// `RestoreCwnd`: enlarges the window to the saved size.
    pub(super) fn restore_window(&mut self) {
        let cwnd = self.window.cwnd().max(self.pause.window_before);
        self.window.set(cwnd);
    }
}
