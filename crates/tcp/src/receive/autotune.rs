//! How large the receive buffer should be: twice what the application reads in a round trip (dynamic
//! right-sizing, Fisk and Feng 2001; Linux since 2.6).
//!
//! What is read in a round trip was in flight in the one before. A window of twice that lets the sender
//! double its own, as it does in slow start, before ours stands in its way; and what nobody reads makes
//! the buffer no larger, however much arrives.
//!
//! Reads are counted here. The round trip is that of the timestamps that come back with data in order,
//! measured on one segment in a round trip; before the first, and without timestamps, it is what the
//! sending half knows from the handshake.

use crate::rest::pack::packed;
use linerate_units::{Duration, Instant};

/// Segments that are added to the measured amount, so that a small one does not stay small by rounding.
const SLACK: u32 = 16;

/// Segments that a connection reads in its first round trip: what we would send ourselves.
const USUAL: u32 = 10;

/// The resolution of the clock in timestamps: a round trip of zero ticks may have taken this.
const TICK: Duration = Duration::from_millis(1);

/// What is known of the reader.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Autotune {
    /// The buffer may become so large; it is fixed if that is zero.
    most: u32,
    /// The round trip as the timestamps tell it, smoothed; zero before the first.
    round_trip: Duration,
    /// The timestamp of the next data in order is to be looked at.
    wants_echo: bool,
    /// When the present round trip began.
    since: Instant,
    /// Bytes read in it.
    read: u32,
    /// Bytes read in the round trip in which most was read.
    best: u32,
}

packed!(Autotune { most, round_trip, wants_echo, since, read, best });

impl Autotune {
    /// A reader of whom nothing is known, and a buffer that may become `most` bytes large, or is fixed
    /// if that is zero.
    pub(crate) const fn new(most: u32, now: Instant) -> Self {
        Self { most, round_trip: Duration::ZERO, wants_echo: false, since: now, read: 0, best: 0 }
    }

    /// The application has chosen a size.
    pub(crate) const fn fix(&mut self) {
        self.most = 0;
        self.wants_echo = false;
    }

    /// The host had no memory for the size that was asked for, or took it back. What was read before would
    /// keep the buffer small for ever otherwise, because a small one never lets more be read.
    pub(crate) const fn start_over(&mut self) {
        self.best = 0;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Is the timestamp of the next data in order to be looked at?
    #[inline(always)]
    pub(crate) const fn wants_echo(&self) -> bool {
        self.wants_echo
    }

    /// The segment that was waited for has come: so long took the timestamp of ours that it brings back, if
    /// it brings one.
    pub(crate) fn on_echo(&mut self, round_trip: Option<Duration>) {
        self.wants_echo = false;
        let Some(round_trip) = round_trip.map(|round_trip| round_trip.max(TICK)) else { return };
        self.round_trip =
            self.round_trip().map_or(round_trip, |known| (known * 7 + round_trip) / 8);
    }

    /// The round trip as the timestamps tell it, once they do.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        (self.round_trip > Duration::ZERO).then_some(self.round_trip)
    }

    /// Bytes read in the round trip in which most was read.
    pub(crate) const fn best(&self) -> u32 {
        self.best
    }

    /// `count` bytes were read. Has a round trip ended since the last one has? `known` is that of the sending half.
    #[inline]
    pub(crate) fn note_read(&mut self, now: Instant, count: u32, known: Option<Duration>) -> bool {
        self.read = self.read.saturating_add(count);
        self.round_trip().or(known).is_some_and(|round_trip| now.since(self.since) >= round_trip)
    }

    /// A round trip has ended. If more was read in it than in any before, the size that the buffer should have.
    /// `segment` is the peer's segment, and `stamped` says whether its segments bring timestamps back.
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
        // Reads that grow from round trip to round trip will go on to; and the window is late by one.
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
        /// What a connection does with both.
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
    fn a_round_trip_with_more_reads_than_before_asks_for_twice_as_much_at_least() {
        let mut tune = Autotune::new(1 << 20, at(0));
        assert_eq!(
            tune.on_read(at(5), 20_000, RTT, 1_000, true),
            None,
            "the round trip is not over"
        );
        let wanted = tune.on_read(at(10), 20_000, RTT, 1_000, true).unwrap();
        assert!((96_000..=1 << 20).contains(&wanted), "{wanted}");
        assert!(tune.wants_echo());
        assert_eq!(tune.on_read(at(20), 40_000, RTT, 1_000, true), None, "no more than before");
    }

    #[test]
    fn the_largest_size_is_never_exceeded() {
        let mut tune = Autotune::new(100_000, at(0));
        assert_eq!(tune.on_read(at(10), 1 << 30, RTT, 1_000, true), Some(100_000));
    }

    #[test]
    fn a_size_that_was_taken_back_is_asked_for_again() {
        let mut tune = Autotune::new(1 << 20, at(0));
        let wanted = tune.on_read(at(10), 60_000, RTT, 1_000, true);
        assert!(wanted.is_some());
        assert_eq!(tune.on_read(at(20), 60_000, RTT, 1_000, true), None);
        tune.start_over();
        assert_eq!(tune.on_read(at(30), 60_000, RTT, 1_000, true), wanted);
    }

    #[test]
    fn what_comes_back_with_data_is_the_round_trip() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_echo(Some(Duration::ZERO));
        tune.on_echo(Some(Duration::from_millis(9)));
        assert_eq!(tune.round_trip(), Some(Duration::from_millis(2)));
        assert_eq!(tune.on_read(at(1), 90_000, None, 1_000, true), None);
        assert!(tune.on_read(at(2), 1, None, 1_000, true).is_some());
    }

    #[test]
    fn a_segment_that_brings_nothing_back_ends_the_wait_and_teaches_nothing() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_read(at(10), 1, RTT, 1_000, true);
        assert!(tune.wants_echo());
        tune.on_echo(None);
        assert_eq!((tune.wants_echo(), tune.round_trip()), (false, None));
    }

    #[test]
    fn without_timestamps_none_is_waited_for() {
        let mut tune = Autotune::new(1 << 20, at(0));
        tune.on_read(at(10), 1, RTT, 1_000, false);
        assert!(!tune.wants_echo());
    }
}
