//! Pacing: segments leave in small bursts, one after the other at a rate, rather than all at once when
//! an acknowledgement lets them. What the rate is, the congestion control says, or its window does.
//!
//! A burst is a millisecond's worth: a path that is shorter than that has its window in one burst, and
//! is not paced at all.

use crate::Connection;
use crate::rest::pack::packed;
use crate::timers::Timer;
use linerate_units::{Bytes, Duration, Instant, Rate};

/// What a burst takes at the rate at which it is paid for; a path with a shorter round trip is a short one.
pub(crate) const BURST: Duration = Duration::from_millis(1);

/// Segments of the smallest burst: what a receiver acknowledges together.
const SMALLEST_BURST: u32 = 2;

/// Segments that leave unpaced before the rate is asked for again.
const FREE_SEGMENTS: u32 = 256;

/// Are segments spread over the round trip?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacingRule {
    /// No, whatever the congestion control would like.
    Off,
    /// At the rate that the congestion control asks for, if it does.
    Controller,
    /// Always: without such a rate, at twice the window a round trip in slow start and at 1.2 times the
    /// window after it (Linux's ratios).
    On,
}

/// Who lets segments go.
///
/// A burst may leave once the one before it has been paid for: when as much time has passed as its bytes
/// take at the rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pacer {
    /// Bytes of the present burst.
    budget: u32,
    /// Bytes of it that have left.
    spent: u32,
    /// When it began, or could have begun.
    began: Instant,
    /// The rate at which it is paid for; none if it costs nothing.
    rate: Option<Rate>,
}

packed!(Pacer { budget, spent, began, rate });

impl Pacer {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { budget: 1, spent: 0, began: now, rate: None }
    }

    /// May a segment leave now?
    pub(crate) const fn is_open(&self) -> bool {
        self.spent < self.budget
    }

    /// Bytes of the present burst that have not left. The last segment may take more.
    pub(crate) const fn left(&self) -> u32 {
        self.budget.saturating_sub(self.spent)
    }

    /// Bytes that may leave in one frame: of a burst that costs nothing the last frame may take more, as its last
    /// segment may.
    pub(crate) const fn left_in_one_frame(&self) -> u32 {
        if self.rate.is_none() && self.is_open() { u32::MAX } else { self.left() }
    }

    /// A segment with so many bytes of data has left.
    pub(crate) const fn on_sent(&mut self, length: u32) {
        self.spent = self.spent.saturating_add(length);
    }

    /// When the present burst has been paid for: after a `timeout` at the latest. What little was heard of a path that
    /// has been silent for long may give a rate of next to nothing.
    fn paid_at(&self, timeout: Duration) -> Instant {
        match self.rate {
            Some(rate) => {
                self.began + rate.time_for(Bytes::new(u64::from(self.spent))).min(timeout)
            }
            None => self.began,
        }
    }

    /// The burst before was paid for at `paid`: the next one begins, at `rate`, with segments of `mss`.
    fn begin(&mut self, now: Instant, paid: Instant, rate: Option<Rate>, mss: u32) {
        // Who comes late, because a timer was late, has half a burst's time to his credit.
        let earliest = now - BURST / 2;
        self.began = if self.rate.is_some() { paid.max(earliest) } else { now };
        self.rate = rate;
        self.spent = 0;
        self.budget = match rate {
            Some(rate) => burst(rate, mss),
            None => mss.saturating_mul(FREE_SEGMENTS),
        };
    }

    /// What is due now does not wait: the timer has expired.
    pub(crate) const fn let_go(&mut self) {
        self.spent = 0;
        if self.budget == 0 {
            self.budget = 1;
        }
    }

    /// Nothing leaves before `until`.
    pub(crate) const fn hold(&mut self, until: Instant) {
        *self = Self { budget: 0, spent: 0, began: until, rate: None };
    }
}

/// Bytes of a burst (as `C.send_quantum` of draft-ietf-ccwg-bbr §5.6.3, but without its limit of
/// 64 KiB, for which there is a timer too many at high rates).
pub(crate) fn burst(rate: Rate, mss: u32) -> u32 {
    let bytes = u32::try_from(rate.bytes_in(BURST).count()).unwrap_or(u32::MAX);
    bytes.max(mss.saturating_mul(SMALLEST_BURST))
}

impl Connection {
    /// Begins the next burst if it is time.
    #[inline]
    pub(crate) fn pace(&mut self, now: Instant) {
        if self.sender.pacer.is_open() {
            return;
        }
        let paid = self.paid_at();
        if now >= paid {
            let (rate, mss) = (self.pacing_rate(), self.full_segment());
            self.sender.pacer.begin(now, paid, rate, mss);
        }
    }

    fn paid_at(&self) -> Instant {
        self.sender.pacer.paid_at(self.sender.rtt.timeout(&self.config.rto))
    }

    /// The rate at which segments leave; none if they need not be spread.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let wish = self.sender.congestion.pacing_rate();
        match self.config.pacing {
            PacingRule::Off => None,
            PacingRule::Controller => wish,
            PacingRule::On => wish.or_else(|| self.rate_of_window()),
        }
    }

    fn rate_of_window(&self) -> Option<Rate> {
        let round_trip = self.sender.rtt.smoothed().filter(|&round_trip| round_trip >= BURST)?;
        let window = self.sender.congestion.window();
        let percent = if window.cwnd() < window.ssthresh() / 2 { 200 } else { 120 };
        Some(Rate::of(Bytes::new(u64::from(window.cwnd()) * percent / 100), round_trip))
    }

    /// Nothing could be sent. If it was for pacing, a timer asks again.
    pub(crate) fn watch_pacer(&mut self, now: Instant) {
        if self.waits_for_pacer() {
            let span = self.paid_at().since(now);
            self.timers.set(Timer::Pacing, now, span);
        }
    }

    /// Would there be data to send, if it were not for pacing?
    pub(crate) fn waits_for_pacer(&self) -> bool {
        !self.sender.pacer.is_open() && self.has_sendable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1_000;
    const MEGABYTE_A_SECOND: Rate = Rate::from_bits_per_second(8_000_000);

    const TIMEOUT: Duration = Duration::from_millis(200);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1) + Duration::from_micros(micros)
    }

    fn begin(pacer: &mut Pacer, now: Instant, rate: Rate) {
        pacer.begin(now, pacer.paid_at(TIMEOUT), Some(rate), MSS);
    }

    /// When each of `count` segments leaves that is always ready.
    fn departures(pacer: &mut Pacer, rate: Rate, count: usize) -> Vec<u64> {
        let mut now = at(0);
        let mut times = Vec::new();
        while times.len() < count {
            if !pacer.is_open() {
                now = now.max(pacer.paid_at(TIMEOUT));
                begin(pacer, now, rate);
            }
            pacer.on_sent(MSS);
            times.push(now.since(at(0)).as_micros());
        }
        times
    }

    #[test]
    fn slow_segments_leave_in_pairs_at_the_rate() {
        let mut pacer = Pacer::new(at(0));
        let times = departures(&mut pacer, MEGABYTE_A_SECOND, 7);
        assert_eq!(times, [0, 0, 0, 2_000, 2_000, 4_000, 4_000], "the first one is free");
    }

    #[test]
    fn a_burst_is_a_millisecond_s_worth() {
        assert_eq!(burst(Rate::from_bits_per_second(80_000_000), MSS), 10_000);
        assert_eq!(burst(Rate::from_bits_per_second(8), MSS), 2_000);
        assert_eq!(burst(Rate::from_bits_per_second(u64::MAX), MSS), u32::MAX);
    }

    #[test]
    fn who_comes_late_makes_up_for_half_a_burst_and_no_more() {
        let mut pacer = Pacer::new(at(0));
        begin(&mut pacer, at(0), MEGABYTE_A_SECOND);
        pacer.on_sent(2 * MSS);
        assert_eq!(pacer.paid_at(TIMEOUT), at(2_000));
        let mut late = pacer.clone();
        begin(&mut late, at(2_300), MEGABYTE_A_SECOND);
        late.on_sent(2 * MSS);
        assert_eq!(late.paid_at(TIMEOUT), at(4_000), "the rate is kept");
        begin(&mut pacer, at(9_000), MEGABYTE_A_SECOND);
        pacer.on_sent(2 * MSS);
        assert_eq!(pacer.paid_at(TIMEOUT), at(10_500), "a pause is not made up for");
    }

    #[test]
    fn a_burst_is_paid_for_after_a_timeout_however_low_the_rate() {
        for bits in [0, 1, 80_000] {
            let mut pacer = Pacer::new(at(0));
            let times = departures(&mut pacer, Rate::from_bits_per_second(bits), 5);
            assert_eq!(times, [0, 0, 0, 200_000, 200_000], "{bits} bit/s");
        }
    }

    #[test]
    fn what_is_held_leaves_when_the_time_has_come_and_what_is_due_at_once() {
        let mut pacer = Pacer::new(at(0));
        pacer.hold(at(500));
        assert!(!pacer.is_open());
        assert_eq!(pacer.paid_at(TIMEOUT), at(500));
        pacer.let_go();
        assert!(pacer.is_open());
    }
}
