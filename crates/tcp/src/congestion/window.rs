//! The congestion window: CWND and SSTHRESH, and how they grow (RFC 5681 §3.1).

use super::Acknowledged;
use crate::compact::pack::packed;

/// The largest possible congestion window in bytes, which is the largest scaled receive window.
const MOST: u32 = 1 << 30;

/// The segment size in bytes that RFC 6928 assumes: an Ethernet packet without TCP options.
const USUAL_MSS: u32 = 1_460;

/// A congestion window in bytes.
///
/// Invariant: `mss ≤ cwnd ≤ 2^30`.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    cwnd: u32,
    ssthresh: u32,
    mss: u32,
    /// The number of bytes acknowledged in congestion avoidance that have not enlarged the window
    /// yet.
    credit: u32,
    /// IW: the initial window in bytes.
    initial: u32,
    /// RW: the restart window after an idle period, in bytes (RFC 5681 §4.1).
    restart: u32,
}

packed!(Window { cwnd, ssthresh, mss, credit, initial, restart });

impl Window {
    pub(crate) fn new(mss: u32, initial_segments: u32) -> Self {
        let initial = initial_window(mss, initial_segments.max(1));
        Self { cwnd: initial, ssthresh: MOST, mss, credit: 0, initial, restart: initial }
    }

    /// Returns CWND, the congestion window, in bytes.
    #[must_use]
    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Returns SSTHRESH, the slow start threshold, in bytes.
    #[must_use]
    pub const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Returns the number of data bytes in a full segment.
    #[must_use]
    pub const fn mss(&self) -> u32 {
        self.mss
    }

    /// Increases the window after `ack`: by slow start below SSTHRESH, and above it by one segment
    /// per round trip (RFC 5681 §3.1).
    pub fn grow(&mut self, ack: &Acknowledged) {
        if self.cwnd < self.ssthresh {
            self.grow_slowly(ack.bytes_within(self.mss));
            return;
        }
        self.credit += ack.bytes.min(self.cwnd);
        if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.set(self.cwnd + self.mss);
        }
    }

    /// Increases the window by `growth` bytes in slow start. The growth is limited so that CWND
    /// exceeds SSTHRESH by at most one segment, even if several coalesced acknowledgements permit
    /// more.
    pub fn grow_slowly(&mut self, growth: u32) {
        let below = self.ssthresh.saturating_sub(self.cwnd);
        self.set(self.cwnd.saturating_add(growth.min(below.max(self.mss))));
    }

    /// Sets SSTHRESH to max(flight / 2, 2·SMSS), RFC 5681 equation (4).
    pub fn halve_threshold(&mut self, flight: u32) {
        self.ssthresh = (flight / 2).max(2 * self.mss);
    }

    /// Reduces CWND to `target`, and sets SSTHRESH to `target`, after a congestion mark. CWND
    /// remains at least one segment, and SSTHRESH at least two (RFC 3168 §6.1.2, RFC 9438 §4.6).
    pub fn reduce_to(&mut self, target: u32) {
        self.ssthresh = target.max(2 * self.mss);
        self.set(self.cwnd.min(target));
    }

    /// Sets SSTHRESH to `ssthresh` bytes.
    pub const fn set_threshold(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// Enlarges CWND by `growth` bytes.
    pub fn add(&mut self, growth: u32) {
        self.set(self.cwnd.saturating_add(growth));
    }

    /// Reduces CWND to one segment, as after a timeout.
    pub fn restart(&mut self) {
        self.set(self.mss);
    }

    /// Reduces the window after an idle period longer than the retransmission timeout, because the
    /// state of the path is outdated (RFC 5681 §4.1). SSTHRESH becomes three quarters of the
    /// earlier window, so slow start leads back to that size (RFC 7661 §4.4.3).
    pub fn forget_after_idle(&mut self) {
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        self.set(self.cwnd.min(self.restart));
    }

    /// Limits the restart window to the initial window of RFC 3390, after losses in the first
    /// flight (RFC 6928 §2).
    pub(crate) fn restart_with_less(&mut self) {
        self.restart = self.restart.min(small_initial_window(self.mss));
    }

    /// Sets CWND to SSTHRESH plus `segments` segments. The duplicate ACKs have shown that so many
    /// segments have left the network.
    pub(crate) fn set_to_threshold_plus(&mut self, segments: u32) {
        self.set(self.ssthresh + segments * self.mss);
    }

    /// Enlarges CWND by one segment after a duplicate ACK, which shows that a segment has left the
    /// network.
    pub(crate) fn inflate(&mut self) {
        self.set(self.cwnd + self.mss);
    }

    /// Removes `acked` bytes from an inflated window, and adds one segment if a full segment or
    /// more was acknowledged (RFC 6582 §3.2 step 3).
    pub(crate) fn deflate(&mut self, acked: u32) {
        let add_back = if acked >= self.mss { self.mss } else { 0 };
        self.set(self.cwnd.saturating_sub(acked) + add_back);
    }

    /// Sets CWND after recovery to min(SSTHRESH, max(flight, SMSS) + SMSS), so that the sender
    /// cannot send a burst (RFC 6582 §3.2 step 3, option 1).
    pub(crate) fn end_recovery(&mut self, flight: u32) {
        self.set(self.ssthresh.min(flight.max(self.mss) + self.mss));
    }

    /// Sets CWND after recovery, with `pipe` bytes in flight, to SSTHRESH or to `pipe` plus the
    /// initial window, whichever is smaller. Thus no burst can exceed the initial window. In the
    /// second case, slow start leads to SSTHRESH.
    pub(crate) fn end_recovery_without_burst(&mut self, pipe: u32) {
        self.set(self.ssthresh.min(pipe.saturating_add(self.initial)));
    }

    /// Changes the segment size. If segments become smaller, CWND shrinks to the same number of
    /// segments. If it kept its bytes, it would permit a burst of more segments (RFC 5681 §3.1).
    pub(crate) fn set_mss(&mut self, mss: u32) {
        let in_segments = u64::from(self.cwnd) * u64::from(mss) / u64::from(self.mss);
        self.mss = mss;
        self.set(u32::try_from(in_segments).map_or(self.cwnd, |cwnd| cwnd.min(self.cwnd)));
    }

    /// Sets CWND, limited to the range from one segment to 2^30 bytes.
    pub fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.clamp(self.mss, MOST);
    }

    pub(crate) fn check(&self) {
        assert!(self.mss <= self.cwnd && self.cwnd <= MOST, "a congestion window of {}", self.cwnd);
    }
}

/// Returns the initial window in bytes: `segments` segments (RFC 6928 §2 permits ten). If the MSS
/// is larger than [`USUAL_MSS`], the window has the bytes of `segments` usual segments, but at
/// least two segments.
fn initial_window(mss: u32, segments: u32) -> u32 {
    let usual = segments.saturating_mul(USUAL_MSS).max(mss.saturating_mul(2));
    mss.saturating_mul(segments).min(usual).min(MOST)
}

/// Returns the initial window of RFC 3390 §1 in bytes: four segments, but not more than the larger
/// of two limits, 4,380 bytes and two segments.
fn small_initial_window(mss: u32) -> u32 {
    mss.saturating_mul(4).min(mss.saturating_mul(2).max(4_380))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_is_ten_segments_of_the_usual_size_or_two_large_ones() {
        let bytes = |mss| Window::new(mss, 10).cwnd();
        assert_eq!([536, 1_448, 1_460].map(bytes), [5_360, 14_480, 14_600]);
        assert_eq!([4_000, 8_948, 65_483].map(bytes), [14_600, 17_896, 130_966]);
        assert_eq!(Window::new(1_460, 1).cwnd(), 1_460);
        assert_eq!(Window::new(65_483, u32::MAX).cwnd(), MOST);
    }

    #[test]
    fn the_reduced_restart_window_has_two_to_four_segments_and_never_exceeds_the_initial_window() {
        let restart = |mss, segments| {
            let mut window = Window::new(mss, segments);
            window.restart_with_less();
            window.forget_after_idle();
            window.cwnd()
        };
        assert_eq!([536, 1_460, 8_948].map(|mss| restart(mss, 10)), [2_144, 4_380, 17_896]);
        assert_eq!(restart(1_460, 1), 1_460);
    }

    #[test]
    fn a_smaller_segment_size_does_not_increase_the_number_of_segments() {
        let mut window = Window::new(1_400, 10);
        window.set_mss(700);
        assert_eq!((window.cwnd(), window.mss()), (7_000, 700));
        window.set_mss(1_400);
        assert_eq!((window.cwnd(), window.mss()), (7_000, 1_400));
    }

    #[test]
    fn an_idle_time_shrinks_the_window_and_keeps_the_threshold() {
        let mut window = Window::new(1_000, 10);
        window.add(90_000);
        window.set_threshold(20_000);
        window.forget_after_idle();
        assert_eq!((window.cwnd(), window.ssthresh()), (10_000, 75_000));
        window.forget_after_idle();
        assert_eq!(
            (window.cwnd(), window.ssthresh()),
            (10_000, 75_000),
            "the second call changes nothing"
        );
    }
}
