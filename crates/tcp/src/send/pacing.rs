//! Pacing: segments are sent in small bursts at a given rate, instead of all at once when an
//! acknowledgement permits them. Congestion control may set the rate. If it sets none, the rate may
//! be derived from the congestion window, as [`PacingRule`] decides. The application can set a
//! maximum.
//!
//! A burst contains the data that the pacing rate sends in one millisecond. If the round-trip time
//! is shorter than that, a burst would contain the whole congestion window. In this case, no rate
//! is derived from the window.

use crate::Connection;
use crate::compact::pack::packed;
use crate::timers::Timer;
use linerate_units::{Bytes, Duration, Instant, Rate};

/// The time in which the pacing rate sends one burst. On paths with a round-trip time below this
/// time, no rate is derived from the congestion window.
pub(crate) const BURST: Duration = Duration::from_millis(1);

/// The number of segments in the smallest burst: two, because a receiver usually acknowledges two
/// segments by one ACK.
const SMALLEST_BURST: u32 = 2;

/// The number of segments in a burst without a pacing rate. After each burst, it is decided again
/// whether there is a rate.
const FREE_SEGMENTS: u32 = 256;

/// The rule that decides whether segments are paced, that is, spread over the round trip. A maximum
/// pacing rate ([`crate::Config::max_pacing_rate`]) applies with every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacingRule {
    /// Segments are not paced, even if congestion control requests a rate.
    Off,
    /// Segments are paced at the rate that congestion control requests. If it requests none,
    /// segments are not paced.
    Controller,
    /// Segments are paced at the rate that congestion control requests. If it requests none, the
    /// rate is two windows per round trip while CWND is below half of SSTHRESH, and 1.2 windows
    /// otherwise (as in Linux). If the rate is derived from the window and the round-trip time is
    /// below one millisecond, segments are not paced.
    On,
}

/// The pacer, which decides when the next burst may be sent. It may be sent after the time in which
/// the pacing rate sends the bytes of the current burst.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pacer {
    /// The number of bytes that the current burst may contain.
    budget: u32,
    /// The number of bytes of the current burst that were sent.
    spent: u32,
    /// The start of the current burst. This is the time at which the pacing rate permitted the
    /// burst, if it began somewhat later.
    began: Instant,
    /// The pacing rate of the current burst; `None` if it is not paced.
    rate: Option<Rate>,
}

packed!(Pacer { budget, spent, began, rate });

impl Pacer {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { budget: 1, spent: 0, began: now, rate: None }
    }

    /// Whether a segment may be sent now.
    pub(crate) const fn is_open(&self) -> bool {
        self.spent < self.budget
    }

    /// Returns the number of bytes that may still be sent in the current burst. The final segment
    /// of the burst may be larger than this number.
    pub(crate) const fn left(&self) -> u32 {
        self.budget.saturating_sub(self.spent)
    }

    /// Returns the number of data bytes that a GSO frame may contain now. If segments are not
    /// paced, the number has no limit: the final frame may exceed the budget, as the final segment
    /// may.
    pub(crate) const fn left_in_one_frame(&self) -> u32 {
        if self.rate.is_none() && self.is_open() { u32::MAX } else { self.left() }
    }

    /// Counts a segment with `length` bytes of data that was sent.
    pub(crate) const fn on_sent(&mut self, length: u32) {
        self.spent = self.spent.saturating_add(length);
    }

    /// Returns the time at which the pacing rate has sent the bytes of the current burst, but at
    /// most `timeout` after the start of the burst. Without this limit, a rate near zero, from
    /// outdated samples of an idle path, would stop the sender.
    fn paid_at(&self, timeout: Duration) -> Instant {
        match self.rate {
            Some(rate) => {
                self.began + rate.time_for(Bytes::new(u64::from(self.spent))).min(timeout)
            }
            None => self.began,
        }
    }

    /// Begins the next burst at `rate`, with segments of `mss` bytes. `paid` is the time at which
    /// the pacing rate has sent the previous burst.
    fn begin(&mut self, now: Instant, paid: Instant, rate: Option<Rate>, mss: u32) {
        // If the timer has fired late, the burst is treated as if it had begun at `paid`, so that
        // the sender catches up. The start is moved back by at most `BURST / 2`, so the sender
        // gains at most half a burst.
        let earliest = now - BURST / 2;
        self.began = if self.rate.is_some() { paid.max(earliest) } else { now };
        self.rate = rate;
        self.spent = 0;
        self.budget = match rate {
            Some(rate) => burst(rate, mss),
            None => mss.saturating_mul(FREE_SEGMENTS),
        };
    }

    /// Ends the current burst before its budget is used. The next burst then begins with the pacing
    /// rate that applies at that time.
    pub(crate) const fn end_burst(&mut self) {
        self.budget = self.spent;
    }

    /// Permits a segment at once. Called when the retransmission timer has expired.
    pub(crate) const fn let_go(&mut self) {
        self.spent = 0;
        if self.budget == 0 {
            self.budget = 1;
        }
    }

    /// Permits no segment before `until`.
    pub(crate) const fn hold(&mut self, until: Instant) {
        *self = Self { budget: 0, spent: 0, began: until, rate: None };
    }
}

/// Returns the number of bytes in a burst (`C.send_quantum` of draft-ietf-ccwg-bbr §5.6.3). The
/// limit of 64 KiB in the draft is omitted. It would make bursts at high rates much shorter than a
/// millisecond, for which the timer is too coarse.
pub(crate) fn burst(rate: Rate, mss: u32) -> u32 {
    let bytes = u32::try_from(rate.bytes_in(BURST).count()).unwrap_or(u32::MAX);
    bytes.max(mss.saturating_mul(SMALLEST_BURST))
}

impl Connection {
    /// Begins the next burst, if the budget of the current burst is used and the pacing rate has
    /// sent its bytes by `now`.
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

    /// Returns the pacing rate; `None` if segments are not paced.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let wish = self.sender.congestion.pacing_rate();
        let rate = match self.config.pacing {
            PacingRule::Off => None,
            PacingRule::Controller => wish,
            PacingRule::On => wish.or_else(|| self.rate_of_window()),
        };
        self.max_pacing_rate().map_or(rate, |most| Some(rate.map_or(most, |rate| rate.min(most))))
    }

    /// Whether the application's maximum determines the rate of the current burst. If it does, the
    /// congestion window does not limit the sender. A window that is not used must not grow (RFC
    /// 7661).
    pub(crate) fn is_paced_at_maximum(&self) -> bool {
        self.sender.pacer.rate.is_some() && self.sender.pacer.rate == self.max_pacing_rate()
    }

    fn rate_of_window(&self) -> Option<Rate> {
        let round_trip = self.sender.rtt.smoothed().filter(|&round_trip| round_trip >= BURST)?;
        let window = self.sender.congestion.window();
        let percent = if window.cwnd() < window.ssthresh() / 2 { 200 } else { 120 };
        Some(Rate::of(Bytes::new(u64::from(window.cwnd()) * percent / 100), round_trip))
    }

    /// Sets the pacing timer, if pacing alone holds back data.
    pub(crate) fn watch_pacer(&mut self, now: Instant) {
        if self.waits_for_pacer() {
            let span = self.paid_at().since(now);
            self.timers.set(Timer::Pacing, now, span);
        }
    }

    /// Whether pacing alone holds back data: the windows would permit it to be sent.
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

    /// Returns the times, in microseconds, at which a sender that always has data to send sends
    /// `count` segments.
    fn send_times(pacer: &mut Pacer, rate: Rate, count: usize) -> Vec<u64> {
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
    fn slow_segments_are_sent_in_pairs_at_the_rate() {
        let mut pacer = Pacer::new(at(0));
        let times = send_times(&mut pacer, MEGABYTE_A_SECOND, 7);
        assert_eq!(times, [0, 0, 0, 2_000, 2_000, 4_000, 4_000], "the first one is free");
    }

    #[test]
    fn a_burst_takes_a_millisecond() {
        assert_eq!(burst(Rate::from_bits_per_second(80_000_000), MSS), 10_000);
        assert_eq!(burst(Rate::from_bits_per_second(8), MSS), 2_000);
        assert_eq!(burst(Rate::from_bits_per_second(u64::MAX), MSS), u32::MAX);
    }

    #[test]
    fn a_late_burst_earns_at_most_half_a_burst_of_credit() {
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
        assert_eq!(pacer.paid_at(TIMEOUT), at(10_500), "a long pause permits at most half a burst");
    }

    #[test]
    fn a_burst_ends_after_a_timeout_however_low_the_rate() {
        for bits in [0, 1, 80_000] {
            let mut pacer = Pacer::new(at(0));
            let times = send_times(&mut pacer, Rate::from_bits_per_second(bits), 5);
            assert_eq!(times, [0, 0, 0, 200_000, 200_000], "{bits} bit/s");
        }
    }

    #[test]
    fn held_segments_are_sent_at_the_given_time_or_when_a_timer_expires() {
        let mut pacer = Pacer::new(at(0));
        pacer.hold(at(500));
        assert!(!pacer.is_open());
        assert_eq!(pacer.paid_at(TIMEOUT), at(500));
        pacer.let_go();
        assert!(pacer.is_open());
    }
}
