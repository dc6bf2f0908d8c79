//! The random order of the runs of a design.

use crate::cell::Cell;
use crate::design::Design;
use oorandom::Rand64;

/// A run before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Position in the schedule, from 0.
    pub order: u32,
    /// Number of the measurement within its cell, from 0.
    pub repeat: u32,
    /// The buffers.
    pub cell: Cell,
}

impl PlannedRun {
    /// Returns the seed of the run's random numbers.
    #[must_use]
    pub fn seed(&self, design: &Design) -> u64 {
        // Spreads the seeds of successive runs over the whole range; a design always gives the same
        // seeds.
        design.seed.wrapping_add(u64::from(self.order)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Returns all runs of `design`, shuffled by its seed, so that a drift of the machine during a
/// night does not look like an effect of a buffer.
#[must_use]
pub fn schedule(design: &Design) -> Vec<PlannedRun> {
    let mut runs = Vec::new();
    for cell in design.cells() {
        runs.extend((0..design.repeat.get()).map(|repeat| PlannedRun { order: 0, repeat, cell }));
    }
    shuffle(&mut runs, design.seed);
    for (order, run) in (0..).zip(&mut runs) {
        run.order = order;
    }
    runs
}

/// Shuffles by the algorithm of Fisher and Yates. A seed always gives the same order.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Rand64::new(u128::from(seed));
    for unplaced in (1..items.len()).rev() {
        let chosen = random.rand_range(0..unplaced as u64 + 1);
        items.swap(unplaced, usize::try_from(chosen).unwrap_or(unplaced));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn design(change: impl FnOnce(&mut Design)) -> Design {
        let mut design = Design::of_1988();
        change(&mut design);
        design
    }

    #[test]
    fn each_cell_is_scheduled_as_often_as_planned() {
        let design = design(|_| ());
        let runs = schedule(&design);
        let distinct: BTreeSet<_> =
            runs.iter().map(|run| (run.cell.send, run.cell.receive, run.repeat)).collect();
        assert_eq!((runs.len(), distinct.len()), (1_156, 1_156));
        assert!(runs.iter().zip(0..).all(|(run, order)| run.order == order));
    }

    #[test]
    fn the_seed_determines_the_order() {
        let (one, two) = (design(|_| ()), design(|design| design.seed = 2));
        assert_eq!(schedule(&one), schedule(&one));
        assert_ne!(schedule(&one), schedule(&two));
    }

    #[test]
    fn the_order_is_not_that_of_the_buffers() {
        let runs = schedule(&design(|_| ()));
        let rises = runs.windows(2).filter(|pair| pair[0].cell.send < pair[1].cell.send).count();
        assert!((400..700).contains(&rises), "{rises}");
    }

    #[test]
    fn each_run_has_bytes_of_its_own() {
        let design = design(|_| ());
        let seeds: BTreeSet<u64> = schedule(&design).iter().map(|run| run.seed(&design)).collect();
        assert_eq!(seeds.len(), 1_156);
    }

    #[test]
    fn the_first_run_may_be_any_of_them() {
        let firsts = (0..200).map(|seed| {
            let design = design(|design| {
                design.send_buffers = "1..2".parse().unwrap();
                design.receive_buffers = "1..2".parse().unwrap();
                design.seed = seed;
            });
            let first = schedule(&design)[0];
            (first.cell.send, first.cell.receive, first.repeat)
        });
        assert_eq!(firsts.collect::<BTreeSet<_>>().len(), 16);
    }

    #[test]
    fn the_diagonal_has_equal_buffers_only() {
        let runs = schedule(&design(|design| design.diagonal = true));
        assert_eq!(runs.len(), 68);
        assert!(runs.iter().all(|run| run.cell.send == run.cell.receive));
    }
}
