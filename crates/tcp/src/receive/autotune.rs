//! The tuning of the receive buffer: its size is twice the amount that the application reads in a
//! round trip (dynamic right-sizing, Fisk and Feng 2001; Linux since 2.6).
//!
//! The data that the application reads in a round trip was in flight during the round trip before.
//! A receive window of twice that amount therefore does not limit a sender that doubles its
//! congestion window in each round trip, as in slow start. The buffer grows only with the data that
//! is read, not with the data that arrives.
//!
//! The round-trip time is measured by the timestamps that in-order data echoes, on one segment in
//! each round trip. Before the first measurement, and if there are no timestamps, the round-trip
//! estimate of the sending half is used. That estimate may come from the handshake alone.

use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};

/// The buffer size is twice the amount read in a round trip, plus this number of segments. The
/// addition lets a small buffer grow despite rounding.
const SLACK: u32 = 16;

/// The minimum, in segments, with which the amount read in a round trip is compared. It equals the
/// usual initial congestion window, so a first flight of that size does not enlarge the buffer.
const USUAL: u32 = 10;

/// The resolution of the timestamp clock. A round trip that is measured as zero ticks may have
/// taken up to this time.
const TICK: Duration = Duration::from_millis(1);

/// The measurements of the reading application, from which the buffer size is derived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Autotune {
    /// The maximum size of the buffer in bytes; zero if the size is fixed.
    most: u32,
    /// The smoothed round-trip time, measured by timestamps. Zero before the first measurement.
    round_trip: Duration,
    /// Whether the round-trip time is to be measured by the timestamp in the next in-order segment.
    wants_echo: bool,
    /// The start of the current round trip. A round trip begins when the one before it has ended.
    since: Instant,
    /// The number of bytes read in the current round trip.
    read: u32,
    /// The largest number of bytes that were read in one round trip.
    best: u32,
}

packed!(Autotune { most, round_trip, wants_echo, since, read, best });

impl Autotune {
    /// Creates the initial state for a buffer of at most `most` bytes. Zero means a fixed size.
    pub(crate) const fn new(most: u32, now: Instant) -> Self {
        Self { most, round_trip: Duration::ZERO, wants_echo: false, since: now, read: 0, best: 0 }
    }

    /// Ends the tuning, because the application has set a fixed size.
    pub(crate) const fn fix(&mut self) {
        self.most = 0;
        self.wants_echo = false;
    }

    /// Resets the largest amount read, after the host has refused or withdrawn memory. The buffer
    /// is now smaller than the wanted size and limits what can be read. The amount read could not
    /// exceed the former maximum, so without the reset the buffer would never grow again.
    pub(crate) const fn start_over(&mut self) {
        self.best = 0;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Whether the round-trip time is to be measured on the next in-order segment.
    #[inline(always)]
    pub(crate) const fn wants_echo(&self) -> bool {
        self.wants_echo
    }

    /// Stores `round_trip`, which was measured by the timestamp in the awaited segment; `None` if
    /// that segment echoed none. Ends the wait for such a segment.
    pub(crate) fn on_echo(&mut self, round_trip: Option<Duration>) {
        self.wants_echo = false;
        let Some(round_trip) = round_trip.map(|round_trip| round_trip.max(TICK)) else { return };
        self.round_trip =
            self.round_trip().map_or(round_trip, |known| (known * 7 + round_trip) / 8);
    }

    /// Returns the smoothed round-trip time, if it was measured.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        (self.round_trip > Duration::ZERO).then_some(self.round_trip)
    }

    /// Returns the largest number of bytes read in any round trip.
    pub(crate) const fn best(&self) -> u32 {
        self.best
    }

    /// Counts `count` bytes read, and returns whether a round trip has ended. `known` is the
    /// round-trip estimate of the sending half, which is used if the receiver has measured none.
    #[inline]
    pub(crate) fn note_read(&mut self, now: Instant, count: u32, known: Option<Duration>) -> bool {
        self.read = self.read.saturating_add(count);
        self.round_trip().or(known).is_some_and(|round_trip| now.since(self.since) >= round_trip)
    }

    /// Ends a round trip. Returns the wanted buffer size in bytes if the application has read more
    /// than in any earlier round trip, otherwise `None`. `segment` is the number of bytes in the
    /// peer's segments. `stamped` is true if these segments echo timestamps, so that the round-trip
    /// time of the next round trip can be measured.
    pub(crate) fn end_round_trip(
        &mut self,
        now: Instant,
        segment: u32,
        stamped: bool,
    ) -> Option<u32> {
        self.since = now;
        self.wants_echo = stamped && self.is_on();
        let read = core::mem::take(&mut self.read);
        let before = self.best.max(USUAL * segment).max(1);
        if read <= before {
            return None;
        }
        self.best = read;
        // The amount that the application reads in a round trip has grown by `read - before`. It
        // will probably grow by the same factor again. A larger window takes effect only one round
        // trip later, so twice the next growth is added in advance.
        let wanted = u64::from(read) * 2 + u64::from(SLACK * segment);
        let growth = wanted * u64::from(read - before) / u64::from(before);
        Some(u32::try_from(wanted + growth * 2).unwrap_or(u32::MAX).min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const RTT: Option<Duration> = Some(Duration::from_millis(10));

    impl Autotune {
        /// Counts a read. If the round trip is over, ends it and returns the wanted size, as a
        /// connection does.
        fn on_read(
            &mut self,
            now: Instant,
            count: u32,
            known: Option<Duration>,
            segment: u32,
            stamped: bool,
        ) -> Option<u32> {
            if self.note_read(now, count, known) {
                self.end_round_trip(now, segment, stamped)
            } else {
                None
            }
        }
    }

    #[test]
    fn more_reads_than_before_enlarge_the_buffer_at_least_twofold() {
        let mut tune = Autotune::new(1 << 20, at(0));
        assert_eq!(
            tune.on_read(at(5), 20_000, RTT, 1_000, true),
            None,
            "the round trip has not ended"
        );
        let wanted = tune.on_read(at(10), 20_000, RTT, 1_000, true).unwrap();
        assert!((96_000..=1 << 20).contains(&wanted), "{wanted}");
        assert!(tune.wants_echo());
        assert_eq!(tune.on_read(at(20), 40_000, RTT, 1_000, true), None, "no more than before");
    }

    #[test]
    fn the_maximum_size_is_never_exceeded() {
        let mut tune = Autotune::new(100_000, at(0));
        assert_eq!(tune.on_read(at(10), 1 << 30, RTT, 1_000, true), Some(100_000));
    }

    #[test]
    fn a_withdrawn_size_is_requested_again() {
        let mut tune = Autotune::new(1 << 20, at(0));
        let wanted = tune.on_read(at(10), 60_000, RTT, 1_000, true);
        assert!(wanted.is_some());
        assert_eq!(tune.on_read(at(20), 60_000, RTT, 1_000, true), None);
        tune.start_over();
        assert_eq!(tune.on_read(at(30), 60_000, RTT, 1_000, true), wanted);
    }

    #[test]
    fn an_echoed_timestamp_measures_the_round_trip() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_echo(Some(Duration::ZERO));
        tune.on_echo(Some(Duration::from_millis(9)));
        assert_eq!(tune.round_trip(), Some(Duration::from_millis(2)));
        assert_eq!(tune.on_read(at(1), 90_000, None, 1_000, true), None);
        assert!(tune.on_read(at(2), 1, None, 1_000, true).is_some());
    }

    #[test]
    fn a_segment_without_an_echo_ends_the_measurement_without_a_sample() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_read(at(10), 1, RTT, 1_000, true);
        assert!(tune.wants_echo());
        tune.on_echo(None);
        assert_eq!((tune.wants_echo(), tune.round_trip()), (false, None));
    }

    #[test]
    fn no_echo_is_awaited_without_timestamps() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_read(at(10), 1, RTT, 1_000, false);
        assert!(!tune.wants_echo());
    }
}
