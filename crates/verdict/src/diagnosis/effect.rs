//! The measured effect of an intervention on rate, losses and queueing delay, and its comparison
//! with the effect that a rule expects.

use linerate_evidence::Change;
use linerate_evidence::stats::as_f64;

/// The effect of an intervention, relative to transfers without the intervention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The intervention that has the effect.
    pub change: Change,
    /// Ratio of the rate with the intervention to the rate without it.
    pub ratio: f64,
    /// Lower bound of the interval of `ratio`. In a diagnosis, it is about two standard deviations
    /// below `ratio`.
    pub low: f64,
    /// Upper bound of the interval of `ratio`. In a diagnosis, it is about two standard deviations
    /// above `ratio`.
    pub high: f64,
    /// The losses with the intervention; `None` if there were no losses without the intervention,
    /// or if a counter is absent.
    pub losses: Option<Losses>,
    /// Ratio of the queueing delay with the intervention to the queueing delay without it; `None`
    /// if there was no delay without it, or if the delay is unknown.
    pub queue_ratio: Option<f64>,
}

impl Effect {
    /// Combines several measurements of one intervention's effect into their mean. The ratios of
    /// rates are averaged geometrically, and the interval shrinks with the square root of the
    /// number of measurements. `all` must not be empty.
    pub(super) fn mean(all: &[Self]) -> Self {
        let count = as_f64(all.len() as u64);
        let mean = |log: fn(&Self) -> f64| all.iter().map(log).sum::<f64>() / count;
        let centre = mean(|one| one.ratio.max(f64::MIN_POSITIVE).ln());
        let half = mean(|one| (one.high / one.ratio.max(f64::MIN_POSITIVE)).max(1.0).ln());
        let half = half / count.sqrt();
        let losses = all.iter().map(|one| one.losses).reduce(|one, other| {
            let (one, other) = (one?, other?);
            let (count, expected) = (one.count + other.count, one.expected + other.expected);
            Some(Losses { count, expected })
        });
        let queues: Option<f64> = all.iter().map(|one| one.queue_ratio).sum();
        match all {
            [one] => *one,
            _ => Self {
                change: all[0].change,
                ratio: centre.exp(),
                low: (centre - half).exp(),
                high: (centre + half).exp(),
                losses: losses.flatten(),
                queue_ratio: queues.map(|sum| sum / count),
            },
        }
    }
}

/// The losses of transfers with an intervention. If the TCP reports loss events, all losses within
/// one round trip count as one, because one cause can produce them all. Otherwise every
/// retransmitted segment counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// The number of losses that occurred.
    pub count: f64,
    /// The number of losses that would be expected without the intervention: the loss rate of
    /// transfers without it, applied to as many segments.
    pub expected: f64,
}

/// Significance level for a difference between two numbers of losses.
const SIGNIFICANCE: f64 = 0.05;

impl Losses {
    /// Returns the ratio of the loss rate with the intervention to the loss rate without it.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.count / self.expected
    }

    /// Are the losses significantly fewer than `share` times the expected number?
    fn is_below(self, share: f64) -> bool {
        at_most(self.expected * share, self.count) < SIGNIFICANCE
    }

    /// Are the losses significantly more than `share` times the expected number?
    fn is_above(self, share: f64) -> bool {
        self.count > 0.0 && 1.0 - at_most(self.expected * share, self.count - 1.0) < SIGNIFICANCE
    }
}

/// Returns the probability that a Poisson variable with this mean is at most `count`. Callers only
/// compare the result with 5 % or 95 %. For a large mean, it is therefore rounded: to 0 below 5 %,
/// to 1 above 95 %, and otherwise to 0.5.
fn at_most(mean: f64, count: f64) -> f64 {
    // Above this mean, the normal approximation is used, which is accurate there. The exact sum
    // would fail for large means, because its first term, exp(−mean), would underflow.
    const LARGE: f64 = 500.0;
    if mean > LARGE {
        let deviations = (count + 0.5 - mean) / mean.sqrt();
        return if deviations.abs() < 1.645 { 0.5 } else { deviations.signum().max(0.0) };
    }
    let mut term = (-mean).exp();
    let mut sum = term;
    let mut k = 1.0;
    while k <= count {
        term *= mean / k;
        sum += term;
        k += 1.0;
    }
    sum.min(1.0)
}

/// The effect that a rule expects of an intervention. Each variant contains the intervention, and
/// one or two bounds of a factor: a quantity with the intervention divided by that quantity without
/// it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// The intervention multiplies the throughput by at least this factor.
    Raises(Change, f64),
    /// The intervention lowers the throughput: it multiplies the throughput by at most this factor,
    /// which is below 1.
    Lowers(Change, f64),
    /// The intervention hardly changes the throughput: it multiplies the throughput by a factor
    /// between these two values.
    Keeps(Change, f64, f64),
    /// The intervention raises the throughput hardly or not at all: it multiplies the throughput by
    /// at most this factor, which is above 1.
    RaisesAtMost(Change, f64),
    /// The intervention avoids losses: it multiplies the loss rate by at most this factor.
    LossFalls(Change, f64),
    /// The intervention does not avoid losses: it multiplies the loss rate by at least this factor.
    LossStays(Change, f64),
    /// The intervention shortens the queue: it multiplies the queueing delay by at most this
    /// factor.
    QueueFalls(Change, f64),
}

/// The result of comparing a measured effect with an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The effect meets the expectation.
    Confirmed,
    /// The effect contradicts the expectation.
    Refuted,
    /// The effect neither confirms nor refutes the expectation: its interval is too wide, the
    /// quantity was not measured, or no run had the intervention.
    Unclear,
}

impl Expectation {
    /// Returns the intervention that tests this expectation.
    #[must_use]
    pub const fn change(self) -> Change {
        match self {
            Self::Raises(change, _)
            | Self::Lowers(change, _)
            | Self::Keeps(change, _, _)
            | Self::RaisesAtMost(change, _)
            | Self::LossFalls(change, _)
            | Self::LossStays(change, _)
            | Self::QueueFalls(change, _) => change,
        }
    }

    /// Compares a measured effect with the expectation.
    #[must_use]
    pub fn compare(self, effect: &Effect) -> Outcome {
        let is = |confirmed: bool, refuted: bool| match (confirmed, refuted) {
            (true, false) => Outcome::Confirmed,
            (false, true) => Outcome::Refuted,
            _ => Outcome::Unclear,
        };
        match self {
            Self::Raises(_, least) => {
                is(effect.ratio >= least && effect.low > 1.0, effect.high < least)
            }
            Self::Lowers(_, most) => {
                is(effect.ratio <= most && effect.high < 1.0, effect.low > most)
            }
            Self::Keeps(_, least, most) => {
                // With a wide interval, the true ratio may be far from 1. The measured ratio then
                // does not confirm that the rate is unchanged.
                let is_narrow = effect.high <= effect.low * (most / least).powi(2);
                let keeps = (least..=most).contains(&effect.ratio) && is_narrow;
                is(keeps, effect.low > most || effect.high < least)
            }
            Self::RaisesAtMost(_, most) => {
                let is_narrow = effect.high <= most.powi(2);
                is(effect.ratio <= most && is_narrow, effect.low > most)
            }
            Self::LossFalls(_, most) => effect.losses.map_or(Outcome::Unclear, |losses| {
                let falls = losses.ratio() <= most && losses.is_below(1.0);
                is(falls, losses.ratio() >= (2.0 * most).max(0.5) && losses.is_above(most))
            }),
            // If the intervention removes the cause of the losses, nearly all of them vanish. To
            // count as unchanged, the ratio of loss rates must therefore only be at least `least`,
            // and significantly above a quarter of `least`.
            Self::LossStays(_, least) => effect.losses.map_or(Outcome::Unclear, |losses| {
                let stays = losses.ratio() >= least && losses.is_above(least / 4.0);
                is(stays, losses.ratio() <= least / 2.0 && losses.is_below(least))
            }),
            Self::QueueFalls(_, most) => effect
                .queue_ratio
                .map_or(Outcome::Unclear, |ratio| is(ratio <= most, ratio > (1.0 + most) / 2.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(ratio: f64, width: f64) -> Effect {
        Effect {
            change: Change::Paced,
            ratio,
            low: ratio - width,
            high: ratio + width,
            losses: None,
            queue_ratio: None,
        }
    }

    #[test]
    fn an_effect_confirms_or_refutes_only_beyond_its_interval() {
        let change = Change::Paced;
        let raises = Expectation::Raises(change, 1.2);
        for (ratio, width, expected) in [
            (1.5, 0.1, Outcome::Confirmed),
            (1.3, 0.4, Outcome::Unclear),
            (1.0, 0.1, Outcome::Refuted),
            (1.1, 0.15, Outcome::Unclear),
        ] {
            assert_eq!(raises.compare(&effect(ratio, width)), expected, "{ratio}");
        }
        let lowers = Expectation::Lowers(change, 0.8);
        assert_eq!(lowers.compare(&effect(0.5, 0.1)), Outcome::Confirmed);
        assert_eq!(lowers.compare(&effect(1.0, 0.1)), Outcome::Refuted);
        let keeps = Expectation::Keeps(change, 0.9, 1.1);
        assert_eq!(keeps.compare(&effect(1.05, 0.2)), Outcome::Confirmed);
        assert_eq!(keeps.compare(&effect(1.5, 0.2)), Outcome::Refuted);
        assert_eq!(keeps.compare(&effect(1.05, 0.5)), Outcome::Unclear, "too wide");
        let raises_little = Expectation::RaisesAtMost(change, 1.2);
        assert_eq!(raises_little.compare(&effect(0.5, 0.1)), Outcome::Confirmed);
        assert_eq!(raises_little.compare(&effect(1.1, 0.3)), Outcome::Confirmed);
        assert_eq!(raises_little.compare(&effect(1.5, 0.2)), Outcome::Refuted);
        assert_eq!(raises_little.compare(&effect(1.1, 0.5)), Outcome::Unclear, "too wide");
    }

    #[test]
    fn a_repeated_change_has_a_narrower_interval() {
        let losses = Some(Losses { count: 2.0, expected: 4.0 });
        let one = Effect { low: 1.6, high: 2.5, losses, ..effect(2.0, 0.5) };
        assert_eq!(Effect::mean(&[one]), one);
        let mean = Effect::mean(&[one; 4]);
        assert!((mean.ratio - 2.0).abs() < 1e-9 && (mean.high - 2.236).abs() < 1e-3, "{mean:?}");
        assert_eq!(mean.losses, Some(Losses { count: 8.0, expected: 16.0 }));
    }

    #[test]
    fn losses_are_compared_only_where_there_are_enough() {
        let falls = Expectation::LossFalls(Change::Paced, 0.2);
        let stays = Expectation::LossStays(Change::Paced, 0.4);
        for (losses, of_falls, of_stays) in [
            (Some((0.0, 10.0)), Outcome::Confirmed, Outcome::Refuted),
            (Some((0.0, 2.0)), Outcome::Unclear, Outcome::Unclear),
            (Some((3.0, 10.0)), Outcome::Unclear, Outcome::Unclear),
            (Some((11.0, 10.0)), Outcome::Refuted, Outcome::Confirmed),
            (Some((1.0, 1.0)), Outcome::Unclear, Outcome::Unclear),
            (Some((900.0, 1_000.0)), Outcome::Refuted, Outcome::Confirmed),
            (Some((5.0, 1_000.0)), Outcome::Confirmed, Outcome::Refuted),
            (None, Outcome::Unclear, Outcome::Unclear),
        ] {
            let counted = losses.map(|(count, expected)| Losses { count, expected });
            let effect = Effect { losses: counted, ..effect(1.0, 0.1) };
            let outcomes = (falls.compare(&effect), stays.compare(&effect));
            assert_eq!(outcomes, (of_falls, of_stays), "{losses:?}");
        }
    }

    #[test]
    fn a_queue_that_empties_under_pacing_confirms_the_expectation() {
        let falls = Expectation::QueueFalls(Change::Paced, 0.5);
        for (queue_ratio, expected) in [
            (Some(0.1), Outcome::Confirmed),
            (Some(0.6), Outcome::Unclear),
            (Some(1.0), Outcome::Refuted),
            (None, Outcome::Unclear),
        ] {
            assert_eq!(falls.compare(&Effect { queue_ratio, ..effect(0.9, 0.1) }), expected);
        }
    }

    #[test]
    fn the_distribution_of_losses_is_that_of_poisson() {
        assert!((at_most(1.0, 0.0) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!((at_most(4.0, 4.0) - 0.628_837).abs() < 1e-6);
        assert!(at_most(1_000.0, 900.0) < SIGNIFICANCE && at_most(1_000.0, 990.0) > SIGNIFICANCE);
    }
}
