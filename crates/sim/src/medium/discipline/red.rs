//! Random early detection: marks or drops frames with a probability that grows with the average
//! queue length (Floyd and Jacobson, "Random Early Detection gateways for congestion avoidance",
//! 1993).

use crate::rng::Stream;
use linerate_units::{Span, Tick};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RedParameters {
    /// Average queue length, in frames, up to which no frame is marked or dropped.
    pub(crate) low: f64,
    /// Average queue length, in frames, at and above which every frame is marked or dropped.
    pub(crate) high: f64,
    /// Base probability of marking or dropping a frame when the average is just below `high`.
    pub(crate) most: f64,
    /// Weight of the present queue length in the moving average.
    pub(crate) weight: f64,
    /// Time to send a typical frame. While the queue is empty, the average decays as if an arriving
    /// frame had found the queue empty once per such time.
    pub(crate) frame: Span,
}

#[derive(Debug)]
pub(super) struct Red {
    parameters: RedParameters,
    random: Stream,
    average: f64,
    /// Number of frames that have arrived since the most recent marked or dropped one; `None` while
    /// the average is below `low`.
    count: Option<f64>,
    empty_since: Option<Tick>,
}

impl Red {
    pub(super) const fn new(parameters: RedParameters, random: Stream) -> Self {
        Self { parameters, random, average: 0.0, count: None, empty_since: Some(Tick::ZERO) }
    }

    /// Notes the time at which the queue became empty.
    pub(super) const fn handle_empty(&mut self, now: Tick) {
        self.empty_since = Some(now);
    }

    /// Returns whether the average queue length has reached `high`. Frames must then be dropped,
    /// even if they could be marked.
    pub(super) fn is_beyond(&self) -> bool {
        self.average >= self.parameters.high
    }

    /// Returns whether to mark or drop a frame that arrives at a queue of `length` frames.
    pub(super) fn chooses(&mut self, now: Tick, length: usize) -> bool {
        self.update(now, length);
        let RedParameters { low, high, most, .. } = self.parameters;
        if self.average < low {
            self.count = None;
            return false;
        }
        let count = self.count.map_or(0.0, |count| count + 1.0);
        let share = most * (self.average - low) / (high - low);
        // `share` is the base probability at this average queue length. The actual probability
        // grows with the number of frames since the last chosen one (marked or dropped). The
        // distances between chosen frames are thus more even than with a constant probability.
        let probability = if count * share < 1.0 { share / (1.0 - count * share) } else { 1.0 };
        let chosen = self.average >= high || self.random.happens(probability);
        self.count = Some(if chosen { 0.0 } else { count });
        chosen
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "a number of frames in a bounded queue, or a time"
    )]
    fn update(&mut self, now: Tick, length: usize) {
        let weight = self.parameters.weight;
        match self.empty_since.take() {
            Some(since) => {
                let frames =
                    now.since(since).as_secs_f64() / self.parameters.frame.as_secs_f64().max(1e-12);
                self.average *= (1.0 - weight).powf(frames);
            }
            None => self.average += weight * (length as f64 - self.average),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(weight: f64) -> Red {
        let frame = Span::from_picos(1_000_000_000);
        let parameters = RedParameters { low: 5.0, high: 15.0, most: 0.1, weight, frame };
        Red::new(parameters, Stream::new(7, 7))
    }

    /// Returns how many of `frames` frames are marked or dropped if each arrives at a queue of
    /// `length` frames.
    fn chosen(red: &mut Red, length: usize, frames: usize) -> usize {
        (0..frames).filter(|_| red.chooses(Tick::ZERO, length)).count()
    }

    #[test]
    fn no_frame_is_chosen_below_the_range_and_every_one_above() {
        let mut red = red(1.0);
        assert_eq!(chosen(&mut red, 4, 1_000), 0);
        assert_eq!(chosen(&mut red, 15, 1_000), 1_000);
        assert!(red.is_beyond());
    }

    #[test]
    fn within_the_range_the_share_grows_with_the_average() {
        // `share` is the base probability p at this queue length. The distance from one marked
        // frame to the next is uniformly distributed over 1, 2, … 1/p − 1 (section 7 of the paper
        // on RED). Its mean is 1/(2p), so the fraction 2p of all frames is marked.
        for (length, share) in [(7, 0.02), (10, 0.05), (14, 0.09)] {
            let told = chosen(&mut red(1.0), length, 100_000);
            let expected = 100_000.0 * 2.0 * share;
            #[allow(clippy::cast_precision_loss, reason = "a test")]
            let error = told as f64 / expected - 1.0;
            assert!(error.abs() < 0.08, "{length}: {told} of {expected}");
        }
    }

    #[test]
    fn the_average_lags_behind_a_burst_and_decays_while_empty() {
        let mut red = red(0.002);
        red.chooses(Tick::ZERO, 0);
        assert_eq!(chosen(&mut red, 50, 40), 0, "a burst passes");
        assert!(chosen(&mut red, 50, 400) > 0, "a standing queue does not");
        let before = red.average;
        red.handle_empty(Tick::ZERO);
        red.chooses(Tick::from_picos(1_000_000_000_000), 0);
        assert!(
            red.average < before / 5.0,
            "the average has decayed after the time of 1,000 frames"
        );
    }
}
