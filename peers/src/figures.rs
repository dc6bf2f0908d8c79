//! Computation of medians, spreads and ratios from the rounds of a benchmark.

use crate::turns::Rounds;
use serde::Serialize;

/// The median of several values, with the smallest and the largest value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (middle, last) = (sorted.len() / 2, sorted.len() - 1);
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        };
        Self { median, least: sorted[0], most: sorted[last] }
    }
}

/// The result of one contender for one workload, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Name of the workload.
    pub work: &'static str,
    /// Name of the unit of work, such as `round trip`.
    pub unit: &'static str,
    /// Name of the contender.
    pub contender: &'static str,
    /// Processor time of both ends per unit of work, in nanoseconds. For the workload `shards`, it
    /// is wall-clock time instead.
    pub nanoseconds: Spread,
    /// Ratio of the contender's time to linerate's time in the same round.
    pub times_linerate: Spread,
    /// Frames per unit of work, taken from the most recent round. The first number counts frames
    /// from the client to the server, and the second those from the server to the client.
    pub frames: [f64; 2],
    /// Processor time per unit of work in each round, in nanoseconds and in the order of the
    /// rounds.
    pub samples: Vec<f64>,
}

/// Computes the results of all contenders for one workload. A ratio divides two times of the same
/// round, so a disturbance that slows both contenders cancels out. The result is the median of the
/// ratios of all rounds.
pub fn figures(rounds: &Rounds) -> Vec<Figure> {
    let times = |contender: usize| {
        rounds.taken.iter().map(move |round| round[contender].nanoseconds_a_unit())
    };
    rounds
        .names
        .iter()
        .enumerate()
        .map(|(contender, name)| Figure {
            work: rounds.work.name(),
            unit: rounds.work.unit(),
            contender: name,
            nanoseconds: Spread::of(times(contender)),
            times_linerate: Spread::of(
                times(contender).zip(times(0)).map(|(own, linerate)| own / linerate),
            ),
            frames: rounds.taken.last().map_or([0.0; 2], |round| {
                let taken = round[contender];
                [taken.frames_out, taken.frames_back]
                    .map(|frames| frames as f64 / taken.units as f64)
            }),
            samples: times(contender).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Taken;
    use crate::work::Work;

    #[test]
    fn ratios_are_taken_within_a_round_before_their_median_is() {
        let taken = |nanoseconds| Taken { nanoseconds, units: 1, frames_out: 1, frames_back: 0 };
        // In the second round, the machine is about ten times slower, so both times are much
        // longer. Their ratio is still meaningful, because both are affected.
        let rounds =
            [[100, 200], [1_000, 3_000], [100, 220]].map(|round| round.map(taken).to_vec());
        let names = vec!["linerate", "other"];
        let [linerate, other] =
            &figures(&Rounds { work: Work::Bulk, names, taken: rounds.to_vec() })[..]
        else {
            panic!("a figure for each contender")
        };
        assert_eq!(linerate.times_linerate.median, 1.0);
        assert_eq!((other.times_linerate.median, other.nanoseconds.median), (2.2, 220.0));
        assert_eq!((other.times_linerate.least, other.times_linerate.most), (2.0, 3.0));
    }
}
