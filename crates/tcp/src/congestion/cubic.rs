//! CUBIC (RFC 9438). After a loss, the window returns quickly to its former size, stays there for a
//! while, and then grows faster and faster beyond that size. The growth depends on the time since
//! the loss, and not on the round-trip time.

use super::curve::Curve;
use super::hystart::HyStart;
use super::{Acknowledged, Controller, FastRecovery, Window};
use crate::compact::pack::packed;
use alloc::boxed::Box;
use linerate_units::{Duration, Instant};

/// β = 7/10: the factor by which a loss reduces the window (RFC 9438 §4.6).
const BETA: (u32, u32) = (7, 10);
/// (1 + β) / 2: the factor that fast convergence applies to `W_max` (RFC 9438 §4.7).
const CONVERGENCE: (u32, u32) = (17, 20);
/// α = 3·(1 − β)/(1 + β) = 9/17: the growth of `W_est` in segments per round trip. With this growth
/// and the factor β, the window has the same average as that of Reno (RFC 9438 §4.3).
const ALPHA: (u64, u64) = (9, 17);

#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Cubic {
    window: Window,
    /// `cwnd_prior`: the congestion window in bytes at the time when SSTHRESH was most recently
    /// set.
    cwnd_prior: u32,
    /// HyStart++, used in the initial slow start. `None` after its end or after a loss.
    hystart: Option<HyStart>,
    /// The current stage of congestion avoidance. `None` in slow start. A loss ends the stage, and
    /// the next one begins with the first acknowledgement in congestion avoidance.
    stage: Option<Stage>,
    /// `W_max` in bytes; `None` before the first loss, and after a timeout.
    w_max: Option<u32>,
}

packed!(Cubic { window, hystart, w_max, cwnd_prior, stage });

impl Cubic {
    pub(super) const fn new(window: Window, paced: bool) -> Self {
        Self { window, hystart: Some(HyStart::new(paced)), w_max: None, cwnd_prior: 0, stage: None }
    }

    /// Whether the window is in slow start, which includes CWND = SSTHRESH (RFC 9438 §4.10). RFC
    /// 5681 leaves open whether CWND = SSTHRESH is slow start.
    const fn is_in_slow_start(&self) -> bool {
        self.window.cwnd() <= self.window.ssthresh()
    }

    fn grow_in_slow_start(&mut self, ack: &Acknowledged) {
        // Slow start, after an idle period or a timeout, ends the stage of congestion avoidance.
        // When slow start is over, a new stage begins.
        self.stage = None;
        let mss = self.window.mss();
        let growth = match &self.hystart {
            Some(hystart) => hystart.growth(ack, mss),
            None => ack.bytes_within(mss),
        };
        self.window.grow_slowly(growth);
    }

    #[inline]
    fn observe(&mut self, ack: &Acknowledged) {
        if let Some(hystart) = &mut self.hystart
            && hystart.on_acknowledged(ack)
        {
            self.hystart = None;
            self.cwnd_prior = self.window.cwnd();
            self.window.set_threshold(self.cwnd_prior);
        }
    }

    fn grow_in_congestion_avoidance(&mut self, ack: &Acknowledged) {
        let (cwnd, mss) = (self.window.cwnd(), self.window.mss());
        let w_max = self.w_max.unwrap_or(cwnd);
        let stage = self.stage.get_or_insert_with(|| Stage::begin(ack.now, cwnd, w_max, mss));
        self.w_max = Some(stage.curve.w_max());
        let next = stage.next_window(ack, &self.window, self.cwnd_prior);
        self.window.add(next.saturating_sub(cwnd));
    }

    /// Sets `W_max` to the present window, at which congestion occurred (RFC 9438 §4.6). If that
    /// window is below the previous `W_max`, the new `W_max` is 15 % lower than the window, for
    /// fast convergence (§4.7).
    fn note_congestion(&mut self) {
        let cwnd = self.window.cwnd();
        let converges = self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = Some(if converges { part(cwnd, CONVERGENCE) } else { cwnd });
    }

    /// Sets SSTHRESH to flight · β, but at least two segments, and ends HyStart++ and the stage of
    /// congestion avoidance (RFC 9438 §4.6).
    fn reduce(&mut self, flight: u32) {
        self.hystart = None;
        self.stage = None;
        self.cwnd_prior = self.window.cwnd();
        self.window.set_threshold(part(flight, BETA).max(2 * self.window.mss()));
    }
}

impl Controller for Cubic {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn on_acknowledged(&mut self, ack: &Acknowledged) {
        if self.is_in_slow_start() {
            self.grow_in_slow_start(ack);
            self.observe(ack);
        } else {
            self.grow_in_congestion_avoidance(ack);
        }
    }

    #[inline]
    fn on_acknowledged_unused(&mut self, ack: &Acknowledged) {
        self.observe(ack);
        if let Some(stage) = &mut self.stage {
            stage.pause(ack.now);
        }
    }

    fn on_idle(&mut self, idle: Duration) {
        if let Some(stage) = &mut self.stage {
            stage.skip(idle);
        }
    }

    fn on_loss(&mut self, flight: u32) {
        self.note_congestion();
        self.reduce(flight);
    }

    /// Sets SSTHRESH to flight · β, but at least two segments, and reduces CWND to flight · β, but
    /// at least one segment (RFC 9438 §4.6).
    fn on_mark(&mut self, flight: u32) {
        self.note_congestion();
        self.reduce(flight);
        self.window.reduce_to(part(flight, BETA));
    }

    /// Sets SSTHRESH to flight · β and CWND to one segment (RFC 9438 §4.8). `W_max` is discarded,
    /// so the curve of the next stage begins at its plateau.
    fn on_timeout(&mut self, flight: u32) {
        self.reduce(flight);
        self.w_max = None;
        self.window.restart();
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A stage of congestion avoidance, which lasts from a loss or the end of slow start to the next
/// loss.
#[derive(Clone, Debug, PartialEq)]
struct Stage {
    curve: Curve,
    /// `t_epoch`, the start of the stage. Each period in which the sender was not cwnd-limited
    /// moves it forward by the length of the period.
    began: Instant,
    /// The start of the current period in which the sender is not cwnd-limited. `None` if the
    /// sender is cwnd-limited.
    unused_since: Option<Instant>,
    /// `W_est`: the window in bytes that Reno would have.
    w_est: u32,
    w_est_rest: Rest,
    cwnd_rest: Rest,
}

packed!(Stage { curve, began, unused_since, w_est, w_est_rest, cwnd_rest });

impl Stage {
    fn begin(now: Instant, cwnd: u32, w_max: u32, mss: u32) -> Self {
        Self {
            curve: Curve::from(cwnd, w_max, mss),
            began: now,
            unused_since: None,
            w_est: cwnd,
            w_est_rest: Rest::default(),
            cwnd_rest: Rest::default(),
        }
    }

    /// Returns CWND after an acknowledgement. If Reno's window, `W_est`, is above the curve, it
    /// becomes CWND (RFC 9438 §4.3). Otherwise CWND moves one step towards the value that the curve
    /// has one round trip from now (§4.4, §4.5).
    fn next_window(&mut self, ack: &Acknowledged, window: &Window, cwnd_prior: u32) -> u32 {
        let (cwnd, mss) = (window.cwnd(), window.mss());
        self.resume(ack.now);
        self.grow_estimate(ack.bytes, window, cwnd_prior);
        let t = ack.now.since(self.began);
        if self.curve.at(t, mss) < self.w_est {
            return self.w_est.max(cwnd);
        }
        let round_trip = ack.smoothed.unwrap_or(Duration::ZERO);
        let target = self.curve.at(t + round_trip, mss).clamp(cwnd, cwnd + cwnd / 2);
        // The increment in the RFC, (target − cwnd) / cwnd, is in segments for each acknowledged
        // segment. With both windows in bytes, this fraction times the acknowledged bytes is the
        // increment in bytes.
        let acked = u64::from(ack.bytes.min(cwnd));
        cwnd + self.cwnd_rest.take(u64::from(target - cwnd) * acked, u64::from(cwnd))
    }

    /// Increases `W_est` (RFC 9438 figure 4). It grows by α segments per window of acknowledged
    /// data until it reaches the window before the reduction, and then by one segment.
    fn grow_estimate(&mut self, acked: u32, window: &Window, cwnd_prior: u32) {
        let (cwnd, mss) = (u64::from(window.cwnd()), u64::from(window.mss()));
        let alpha = if self.w_est >= cwnd_prior { ALPHA.1 } else { ALPHA.0 };
        let growth = self.w_est_rest.take(u64::from(acked) * mss * alpha, cwnd * ALPHA.1);
        self.w_est = self.w_est.saturating_add(growth);
    }

    /// Stops the clock of the curve, because the sender is not cwnd-limited (RFC 9438 §4.2, §5.8).
    fn pause(&mut self, now: Instant) {
        self.unused_since.get_or_insert(now);
    }

    fn resume(&mut self, now: Instant) {
        if let Some(since) = self.unused_since.take() {
            self.skip(now.since(since));
        }
    }

    /// Excludes the time `idle`, in which nothing was in flight, from the clock of the curve. If
    /// the clock is stopped already, [`resume`](Self::resume) will exclude this time.
    fn skip(&mut self, idle: Duration) {
        if self.unused_since.is_none() {
            self.began += idle;
        }
    }
}

/// The remainder of a division. It is carried over to the next division, so that rounding to bytes
/// loses nothing.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rest(u64);

packed!(Rest(0));

impl Rest {
    /// Divides `numerator` plus the carried remainder by `divisor`. Returns the quotient, and keeps
    /// the new remainder.
    fn take(&mut self, numerator: u64, divisor: u64) -> u32 {
        let sum = self.0 + numerator;
        self.0 = sum % divisor;
        u32::try_from(sum / divisor).unwrap_or(u32::MAX)
    }
}

/// Returns `whole`·n/d, rounded down, for n < d.
fn part(whole: u32, (n, d): (u32, u32)) -> u32 {
    whole / d * n + whole % d * n / d
}

#[cfg(test)]
mod tests;
