//! The effect of an intervention on the rate and on losses, and what a rule expects of it.

use linerate_evidence::Change;

/// The effect of a change, against plain transfers before and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The change.
    pub change: Change,
    /// Rate with the change over the plain rate.
    pub ratio: f64,
    /// Lower end of the interval of `ratio`.
    pub low: f64,
    /// Upper end of the interval of `ratio`.
    pub high: f64,
    /// Retransmitted share with the change over that of the plain transfer; `None` if the plain
    /// transfer has no retransmissions or one of them is unknown.
    pub loss_ratio: Option<f64>,
    /// Was the run with the change contended? Then it could only have been faster without the other
    /// work: `ratio` is a lower bound.
    pub is_lower_bound: bool,
}

/// The effect that a rule expects of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// The rate is at least this multiple.
    Raises(Change, f64),
    /// The rate is at most this multiple.
    Lowers(Change, f64),
    /// The rate is between these multiples.
    Keeps(Change, f64, f64),
    /// The share of retransmissions is at most this multiple.
    LossFalls(Change, f64),
    /// The share of retransmissions is at least this multiple.
    LossStays(Change, f64),
}

/// The comparison of an effect with an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The effect is as expected.
    Confirmed,
    /// The effect contradicts the expectation.
    Refuted,
    /// The interval of the effect allows both, or there was no such run.
    Unclear,
}

impl Expectation {
    /// Returns the change that is to be tried.
    #[must_use]
    pub const fn change(self) -> Change {
        match self {
            Self::Raises(change, _)
            | Self::Lowers(change, _)
            | Self::Keeps(change, _, _)
            | Self::LossFalls(change, _)
            | Self::LossStays(change, _) => change,
        }
    }

    /// Compares `effect` with the expectation.
    #[must_use]
    pub fn compare(self, effect: &Effect) -> Outcome {
        let is = |confirmed: bool, refuted: bool| match (confirmed, refuted) {
            (true, false) => Outcome::Confirmed,
            (false, true) => Outcome::Refuted,
            _ => Outcome::Unclear,
        };
        match self {
            // A bound that exceeds the range already refutes it.
            Self::Keeps(_, _, most) if effect.is_lower_bound => is(false, effect.low > most),
            Self::Lowers(..) | Self::LossFalls(..) | Self::LossStays(..)
                if effect.is_lower_bound =>
            {
                Outcome::Unclear
            }
            Self::Raises(_, least) if effect.is_lower_bound => is(effect.low >= least, false),
            Self::Raises(_, least) => {
                is(effect.ratio >= least && effect.low > 1.0, effect.high < least)
            }
            Self::Lowers(_, most) => {
                is(effect.ratio <= most && effect.high < 1.0, effect.low > most)
            }
            Self::Keeps(_, least, most) => {
                is((least..=most).contains(&effect.ratio), effect.low > most || effect.high < least)
            }
            Self::LossFalls(_, most) => match effect.loss_ratio {
                // Between the two, chance decides: losses come in bursts.
                Some(ratio) => is(ratio <= most, ratio >= (2.0 * most).max(0.5)),
                None => Outcome::Unclear,
            },
            Self::LossStays(_, least) => match effect.loss_ratio {
                Some(ratio) => is(ratio >= least, ratio <= least / 2.0),
                None => Outcome::Unclear,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(ratio: f64, width: f64, loss_ratio: Option<f64>) -> Effect {
        let change = Change::Paced;
        Effect {
            change,
            ratio,
            low: ratio - width,
            high: ratio + width,
            loss_ratio,
            is_lower_bound: false,
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
            assert_eq!(raises.compare(&effect(ratio, width, None)), expected, "{ratio}");
        }
        let lowers = Expectation::Lowers(change, 0.8);
        assert_eq!(lowers.compare(&effect(0.5, 0.1, None)), Outcome::Confirmed);
        assert_eq!(lowers.compare(&effect(1.0, 0.1, None)), Outcome::Refuted);
        let keeps = Expectation::Keeps(change, 0.9, 1.1);
        assert_eq!(keeps.compare(&effect(1.05, 0.2, None)), Outcome::Confirmed);
        assert_eq!(keeps.compare(&effect(1.5, 0.2, None)), Outcome::Refuted);
    }

    #[test]
    fn a_contended_run_can_confirm_only_a_rise() {
        let change = Change::Paced;
        for (ratio, expected) in [(1.5, Outcome::Confirmed), (1.0, Outcome::Unclear)] {
            let effect = Effect { is_lower_bound: true, ..effect(ratio, 0.1, Some(1.0)) };
            assert_eq!(Expectation::Raises(change, 1.2).compare(&effect), expected);
            for other in [
                Expectation::Keeps(change, 0.9, 2.0),
                Expectation::Lowers(change, 2.0),
                Expectation::LossStays(change, 0.4),
                Expectation::LossFalls(change, 2.0),
            ] {
                assert_eq!(other.compare(&effect), Outcome::Unclear);
            }
        }
    }

    #[test]
    fn losses_are_compared_only_where_there_are_some() {
        let falls = Expectation::LossFalls(Change::Paced, 0.2);
        let stays = Expectation::LossStays(Change::Paced, 0.4);
        for (ratio, of_falls, of_stays) in [
            (Some(0.0), Outcome::Confirmed, Outcome::Refuted),
            (Some(0.3), Outcome::Unclear, Outcome::Unclear),
            (Some(1.1), Outcome::Refuted, Outcome::Confirmed),
            (None, Outcome::Unclear, Outcome::Unclear),
        ] {
            let effect = effect(1.0, 0.1, ratio);
            assert_eq!((falls.compare(&effect), stays.compare(&effect)), (of_falls, of_stays));
        }
    }
}
