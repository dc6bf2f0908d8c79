//! Statistics of a series of echo requests. The most recent requests are stored, so that replies
//! can be matched to them.

use super::parameters::EchoParameters;
use linerate_units::{Duration, Instant};
use std::collections::VecDeque;

/// Maximum number of stored requests: half the number of 16-bit sequence numbers. If all sequence
/// numbers were stored, a late reply to an old request would be taken for a reply to a newer one
/// with an equal number.
const MAX_STORED: usize = 1 << 15;

/// Statistics of a series of echo requests, and the most recent requests, to which replies are
/// matched.
#[derive(Clone, Debug)]
pub struct Tally {
    parameters: EchoParameters,
    began: Instant,
    ended: Instant,
    /// Number of requests sent.
    pub sent: u64,
    /// Number of requests that were answered.
    pub received: u64,
    /// Number of replies to requests that had already been answered.
    pub duplicates: u64,
    /// Number of ICMP errors received.
    pub problems: u64,
    /// Statistics of the round-trip times.
    pub round_trips: RoundTrips,
    /// The most recent requests, oldest first. Invariant: at most [`MAX_STORED`].
    outstanding: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    sent: Instant,
    answered: bool,
}

/// The request to which a reply belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatchedRequest {
    pub(super) number: u64,
    pub(super) round_trip: Duration,
    pub(super) again: bool,
}

impl Tally {
    pub(super) fn new(parameters: EchoParameters, now: Instant) -> Self {
        Self {
            parameters,
            began: now,
            ended: now,
            sent: 0,
            received: 0,
            duplicates: 0,
            problems: 0,
            round_trips: RoundTrips::default(),
            outstanding: VecDeque::new(),
        }
    }

    /// Returns the parameters of the series.
    #[must_use]
    pub const fn parameters(&self) -> &EchoParameters {
        &self.parameters
    }

    /// Returns the duration of the series.
    #[must_use]
    pub const fn time(&self) -> Duration {
        self.ended.since(self.began)
    }

    /// Returns the percentage of requests that were not answered.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the share is rounded for display")]
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            (self.sent - self.received) as f64 * 100.0 / self.sent as f64
        }
    }

    /// Returns whether another request must be sent now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.has_more() && self.next_request() <= now
    }

    /// Returns whether every request has been sent, and has been answered or has timed out.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.has_more() && self.last_answer_by().is_none_or(|latest| latest <= now)
    }

    /// Returns the time at which the next request must be sent. After the final request, returns
    /// the time at which the series ends by a timeout.
    pub(super) fn next(&self, now: Instant) -> Instant {
        if self.has_more() { self.next_request() } else { self.last_answer_by().unwrap_or(now) }
    }

    /// Records that a request is sent at `now`. Returns its sequence number.
    pub(super) fn record_request(&mut self, now: Instant) -> u16 {
        if self.outstanding.len() == MAX_STORED {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Request { sent: now, answered: false });
        self.sent += 1;
        sequence_of(self.sent)
    }

    /// Records a reply, and returns its request; `None` if no stored request has the sequence
    /// number.
    pub(super) fn answer(&mut self, sequence: u16, arrived: Instant) -> Option<MatchedRequest> {
        let back = usize::from(sequence_of(self.sent).wrapping_sub(sequence));
        let index = self.outstanding.len().checked_sub(back + 1)?;
        let request = &mut self.outstanding[index];
        let (again, round_trip) = (request.answered, arrived.since(request.sent));
        request.answered = true;
        if again {
            self.duplicates += 1;
        } else {
            self.received += 1;
            self.round_trips.add(round_trip);
        }
        Some(MatchedRequest { number: self.sent - back as u64, round_trip, again })
    }

    /// Counts an ICMP error.
    pub(super) const fn problem(&mut self) {
        self.problems += 1;
    }

    /// Records `now` as the end of the series.
    pub(super) fn finished(self, now: Instant) -> Self {
        Self { ended: now, ..self }
    }

    fn has_more(&self) -> bool {
        self.parameters.count.is_none_or(|count| self.sent < count)
    }

    fn next_request(&self) -> Instant {
        let Some(last) = self.outstanding.back() else {
            return self.began;
        };
        if self.parameters.interval > Duration::ZERO {
            return last.sent + self.parameters.interval;
        }
        if last.answered { last.sent } else { last.sent + self.parameters.timeout }
    }

    /// Returns the time at which the most recent of the unanswered requests times out; `None` if
    /// all requests are answered.
    fn last_answer_by(&self) -> Option<Instant> {
        let awaited = self.outstanding.iter().rev().find(|request| !request.answered)?;
        Some(awaited.sent + self.parameters.timeout)
    }
}

/// Returns the ICMP sequence number of a request, from the request's number in the series.
fn sequence_of(number: u64) -> u16 {
    u16::try_from(number & u64::from(u16::MAX)).unwrap_or(0)
}

/// Statistics of round-trip times: their number, sums and extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    count: u64,
    least: Duration,
    most: Duration,
    sum: f64,
    squares: f64,
}

impl RoundTrips {
    /// Adds a round-trip time.
    pub(crate) fn add(&mut self, time: Duration) {
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.count += 1;
        self.sum += time.as_secs_f64();
        self.squares += time.as_secs_f64().powi(2);
    }

    /// Returns the minimum, mean, maximum and standard deviation in seconds; `None` without a
    /// round-trip time.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the figures are rounded for display")]
    pub fn summary(&self) -> Option<[f64; 4]> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum / count;
        let deviation = (self.squares / count - mean * mean).max(0.0).sqrt();
        Some([self.least.as_secs_f64(), mean, self.most.as_secs_f64(), deviation])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn tally(count: Option<u64>, interval: u64) -> Tally {
        let parameters = EchoParameters {
            destination: Ipv4Addr::LOCALHOST.into(),
            count,
            interval: Duration::from_millis(interval),
            timeout: Duration::from_millis(500),
            size: 8,
            identifier: 1,
        };
        Tally::new(parameters, at(0))
    }

    #[test]
    fn requests_are_sent_at_the_interval_and_the_last_is_waited_for() {
        let mut tally = tally(Some(2), 100);
        assert!(tally.is_due(at(0)));
        assert_eq!(tally.record_request(at(0)), 1);
        assert!(!tally.is_due(at(99)) && tally.is_due(at(100)));
        assert_eq!(tally.next(at(10)), at(100));
        assert_eq!(tally.record_request(at(100)), 2);
        assert!(!tally.is_due(at(1_000)) && !tally.is_over(at(599)) && tally.is_over(at(600)));
        assert_eq!(tally.next(at(101)), at(600));
        tally.answer(2, at(110)).unwrap();
        assert!(tally.is_over(at(500)), "the first request has timed out");
        assert_eq!((tally.sent, tally.received, tally.loss_percent()), (2, 1, 50.0));
    }

    #[test]
    fn with_an_interval_of_zero_a_reply_triggers_the_next_request() {
        let mut tally = tally(None, 0);
        tally.record_request(at(0));
        assert!(!tally.is_due(at(10)) && tally.is_due(at(500)));
        tally.answer(1, at(10)).unwrap();
        assert!(tally.is_due(at(10)));
    }

    #[test]
    fn replies_can_be_late_duplicated_or_unknown() {
        let mut tally = tally(None, 100);
        assert_eq!(tally.answer(1, at(0)), None);
        tally.record_request(at(0));
        tally.record_request(at(100));
        let matched = |number, millis, again| {
            Some(MatchedRequest { number, round_trip: Duration::from_millis(millis), again })
        };
        assert_eq!(tally.answer(1, at(150)), matched(1, 150, false));
        assert_eq!(tally.answer(1, at(160)), matched(1, 160, true));
        assert_eq!(tally.answer(3, at(170)), None, "the request was never sent");
        assert_eq!((tally.received, tally.duplicates), (1, 1));
    }

    #[test]
    fn sequence_numbers_wrap_and_memory_is_bounded() {
        let mut tally = tally(None, 1);
        for number in 1..=200_000_u64 {
            let sequence = tally.record_request(at(number));
            assert_eq!(tally.answer(sequence, at(number + 1)).unwrap().number, number);
        }
        assert_eq!((tally.received, tally.outstanding.len()), (200_000, MAX_STORED));
        assert_eq!(tally.answer(sequence_of(200_000 - 40_000), at(0)), None, "forgotten");
    }

    #[test]
    fn round_trips_are_summarised_like_those_of_ping() {
        let mut times = RoundTrips::default();
        assert_eq!(times.summary(), None);
        for millis in [1, 2, 3] {
            times.add(Duration::from_millis(millis));
        }
        let [least, mean, most, deviation] = times.summary().unwrap();
        assert_eq!((least, most), (0.001, 0.003));
        assert!((mean - 0.002).abs() < 1e-9 && (deviation - 0.000_816_5).abs() < 1e-6);
    }
}
