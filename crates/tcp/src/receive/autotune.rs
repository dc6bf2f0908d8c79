//! The size of the receive buffer: twice what the application reads in a round trip (dynamic
//! right-sizing, Fisk and Feng 2001; Linux since 2.6).
//!
//! Data read in one round trip was in flight during the previous one. A window of twice that lets
//! the sender double its congestion window, as in slow start, before the receive window limits it.
//! The buffer grows only with the data read, not with the data that arrives.
//!
//! The round trip is measured by timestamps that return with in-order data, on one segment per
//! round trip. Before the first measurement, and without timestamps, the sending half's estimate
//! from the handshake is used.

use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};

/// Number of segments added to the measured amount, so that rounding cannot keep a small amount
/// small.
const SLACK: u32 = 16;

/// Assumed amount read in the first round trip, in segments: the initial window that we would use
/// ourselves.
const USUAL: u32 = 10;

/// Resolution of the timestamp clock: a measurement of zero ticks may have taken this long.
const TICK: Duration = Duration::from_millis(1);

/// The measured behaviour of the reading application.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Autotune {
    /// Maximum size of the buffer in bytes; zero if the size is fixed.
    most: u32,
    /// The smoothed round trip by timestamps; zero before the first.
    round_trip: Duration,
    /// Whether to examine the timestamp of the next in-order data.
    wants_echo: bool,
    /// Start of the current round trip.
    since: Instant,
    /// Bytes read in the current round trip.
    read: u32,
    /// Most bytes read in any round trip.
    best: u32,
}

packed!(Autotune { most, round_trip, wants_echo, since, read, best });

impl Autotune {
    /// Returns the initial state for a buffer of at most `most` bytes, or of fixed size if that is
    /// zero.
    pub(crate) const fn new(most: u32, now: Instant) -> Self {
        Self { most, round_trip: Duration::ZERO, wants_echo: false, since: now, read: 0, best: 0 }
    }

    /// Fixes the size, which the application has chosen.
    pub(crate) const fn fix(&mut self) {
        self.most = 0;
        self.wants_echo = false;
    }

    /// Forgets the measured amount after the host refused or withdrew memory. A small buffer limits
    /// reads, so the former maximum would prevent any growth.
    pub(crate) const fn start_over(&mut self) {
        self.best = 0;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Whether to examine the timestamp of the next in-order data.
    #[inline(always)]
    pub(crate) const fn wants_echo(&self) -> bool {
        self.wants_echo
    }

    /// Takes the round trip measured on the awaited segment, if it echoed a timestamp.
    pub(crate) fn on_echo(&mut self, round_trip: Option<Duration>) {
        self.wants_echo = false;
        let Some(round_trip) = round_trip.map(|round_trip| round_trip.max(TICK)) else { return };
        self.round_trip =
            self.round_trip().map_or(round_trip, |known| (known * 7 + round_trip) / 8);
    }

    /// Returns the round trip by timestamps, once measured.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        (self.round_trip > Duration::ZERO).then_some(self.round_trip)
    }

    /// Returns the most bytes read in any round trip.
    pub(crate) const fn best(&self) -> u32 {
        self.best
    }

    /// Counts `count` bytes read. Returns whether a round trip has ended; `known` is the sending
    /// half's estimate of the round-trip time.
    #[inline]
    pub(crate) fn note_read(&mut self, now: Instant, count: u32, known: Option<Duration>) -> bool {
        self.read = self.read.saturating_add(count);
        self.round_trip().or(known).is_some_and(|round_trip| now.since(self.since) >= round_trip)
    }

    /// Ends a round trip, and returns the wanted buffer size if more was read in this round trip
    /// than in any before. `segment` is the peer's segment size; `stamped` says whether its
    /// segments echo timestamps.
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
        // Reads that grow will probably grow further, and a larger window takes effect one round
        // trip later.
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
        /// Counts a read and ends the round trip if it is over, as a connection does.
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
