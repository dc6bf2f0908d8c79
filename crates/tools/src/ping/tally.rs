//! Which requests are out, which came back, and how long they took.

use super::questions::Questions;
use linerate_units::{Duration, Instant};
use std::collections::VecDeque;

/// Requests that are remembered: those whose answers can still be told apart by 16 bits of sequence
/// number.
const REMEMBERED: usize = 1 << 15;

/// Which requests are out, which came back, and how long they took.
#[derive(Clone, Debug)]
pub struct Tally {
    questions: Questions,
    began: Instant,
    ended: Instant,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that were answered.
    pub received: u64,
    /// Answers to requests that had been answered.
    pub duplicates: u64,
    /// Problems that were reported.
    pub problems: u64,
    /// The times of those that came back.
    pub round_trips: RoundTrips,
    /// The last requests, the latest at the back. Invariant: no more than [`REMEMBERED`].
    out: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    sent: Instant,
    answered: bool,
}

/// What an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) number: u64,
    pub(super) round_trip: Duration,
    pub(super) again: bool,
}

impl Tally {
    pub(super) fn new(questions: Questions, now: Instant) -> Self {
        Self {
            questions,
            began: now,
            ended: now,
            sent: 0,
            received: 0,
            duplicates: 0,
            problems: 0,
            round_trips: RoundTrips::default(),
            out: VecDeque::new(),
        }
    }

    /// What was asked.
    #[must_use]
    pub const fn questions(&self) -> &Questions {
        &self.questions
    }

    /// From the beginning to the end.
    #[must_use]
    pub const fn time(&self) -> Duration {
        self.ended.since(self.began)
    }

    /// Requests without an answer, in per cent.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share, for people")]
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            (self.sent - self.received) as f64 * 100.0 / self.sent as f64
        }
    }

    /// Is it time for another request?
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.has_more() && self.next_request() <= now
    }

    /// Is there nothing more to ask and nothing more to await?
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.has_more() && self.last_answer_by().is_none_or(|latest| latest <= now)
    }

    /// When there is something to do, if nothing arrives before.
    pub(super) fn next(&self, now: Instant) -> Instant {
        if self.has_more() { self.next_request() } else { self.last_answer_by().unwrap_or(now) }
    }

    /// Counts a request sent at `now`; its sequence number.
    pub(super) fn ask(&mut self, now: Instant) -> u16 {
        if self.out.len() == REMEMBERED {
            self.out.pop_front();
        }
        self.out.push_back(Request { sent: now, answered: false });
        self.sent += 1;
        sequence_of(self.sent)
    }

    /// Counts an answer; none if it belongs to no request that is remembered.
    pub(super) fn answer(&mut self, sequence: u16, arrived: Instant) -> Option<Met> {
        let back = usize::from(sequence_of(self.sent).wrapping_sub(sequence));
        let index = self.out.len().checked_sub(back + 1)?;
        let request = &mut self.out[index];
        let (again, round_trip) = (request.answered, arrived.since(request.sent));
        request.answered = true;
        if again {
            self.duplicates += 1;
        } else {
            self.received += 1;
            self.round_trips.add(round_trip);
        }
        Some(Met { number: self.sent - back as u64, round_trip, again })
    }

    /// Counts a problem.
    pub(super) const fn problem(&mut self) {
        self.problems += 1;
    }

    /// It ended at `now`.
    pub(super) fn finished(self, now: Instant) -> Self {
        Self { ended: now, ..self }
    }

    fn has_more(&self) -> bool {
        self.questions.count.is_none_or(|count| self.sent < count)
    }

    fn next_request(&self) -> Instant {
        let Some(last) = self.out.back() else {
            return self.began;
        };
        if self.questions.interval > Duration::ZERO {
            return last.sent + self.questions.interval;
        }
        if last.answered { last.sent } else { last.sent + self.questions.patience }
    }

    /// When the last answer that is awaited must have come; none if all have.
    fn last_answer_by(&self) -> Option<Instant> {
        let awaited = self.out.iter().rev().find(|request| !request.answered)?;
        Some(awaited.sent + self.questions.patience)
    }
}

/// The sequence number of the request with this number.
fn sequence_of(number: u64) -> u16 {
    u16::try_from(number & u64::from(u16::MAX)).unwrap_or(0)
}

/// Times of round trips, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    count: u64,
    least: Duration,
    most: Duration,
    sum: f64,
    squares: f64,
}

impl RoundTrips {
    /// Counts one.
    fn add(&mut self, time: Duration) {
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.count += 1;
        self.sum += time.as_secs_f64();
        self.squares += time.as_secs_f64().powi(2);
    }

    /// Least, mean, most and standard deviation, in seconds; none of none.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
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
        let questions = Questions {
            destination: Ipv4Addr::LOCALHOST,
            count,
            interval: Duration::from_millis(interval),
            patience: Duration::from_millis(500),
            size: 8,
            identifier: 1,
        };
        Tally::new(questions, at(0))
    }

    #[test]
    fn requests_go_out_at_their_interval_and_the_last_is_waited_for() {
        let mut tally = tally(Some(2), 100);
        assert!(tally.is_due(at(0)));
        assert_eq!(tally.ask(at(0)), 1);
        assert!(!tally.is_due(at(99)) && tally.is_due(at(100)));
        assert_eq!(tally.next(at(10)), at(100));
        assert_eq!(tally.ask(at(100)), 2);
        assert!(!tally.is_due(at(1_000)) && !tally.is_over(at(599)) && tally.is_over(at(600)));
        assert_eq!(tally.next(at(101)), at(600));
        tally.answer(2, at(110)).unwrap();
        assert!(tally.is_over(at(500)), "the first had its time");
        assert_eq!((tally.sent, tally.received, tally.loss_percent()), (2, 1, 50.0));
    }

    #[test]
    fn without_an_interval_the_answer_is_the_signal() {
        let mut tally = tally(None, 0);
        tally.ask(at(0));
        assert!(!tally.is_due(at(10)) && tally.is_due(at(500)));
        tally.answer(1, at(10)).unwrap();
        assert!(tally.is_due(at(10)));
    }

    #[test]
    fn an_answer_may_be_late_doubled_or_nobodys() {
        let mut tally = tally(None, 100);
        assert_eq!(tally.answer(1, at(0)), None);
        tally.ask(at(0));
        tally.ask(at(100));
        let met = |number, millis, again| {
            Some(Met { number, round_trip: Duration::from_millis(millis), again })
        };
        assert_eq!(tally.answer(1, at(150)), met(1, 150, false));
        assert_eq!(tally.answer(1, at(160)), met(1, 160, true));
        assert_eq!(tally.answer(3, at(170)), None, "it was never asked");
        assert_eq!((tally.received, tally.duplicates), (1, 1));
    }

    #[test]
    fn sequence_numbers_begin_again_and_memory_does_not_grow() {
        let mut tally = tally(None, 1);
        for number in 1..=200_000_u64 {
            let sequence = tally.ask(at(number));
            assert_eq!(tally.answer(sequence, at(number + 1)).unwrap().number, number);
        }
        assert_eq!((tally.received, tally.out.len()), (200_000, REMEMBERED));
        assert_eq!(tally.answer(sequence_of(200_000 - 40_000), at(0)), None, "forgotten");
    }

    #[test]
    fn round_trips_are_summed_up_as_people_know_it() {
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
