//! The schedule of a sweep: all runs of a design in random order.

use crate::cell::Cell;
use crate::design::Design;
use oorandom::Rand64;

/// A run that a design plans, with its position among all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Position of the run in the order in which all runs are made, from 0. Without a time budget,
    /// this is the order of the schedule.
    pub order: u32,
    /// Number of the run among the runs of its cell, from 0. One cell of a design may have baseline
    /// runs in addition to its ordinary runs; they have the numbers after the ordinary runs.
    pub repeat: u32,
    /// The send buffer and the receive buffer of the run.
    pub cell: Cell,
}

impl PlannedRun {
    /// Returns the seed for all random numbers of this run. Equal designs give equal seeds.
    #[must_use]
    pub fn seed(&self, design: &Design) -> u64 {
        // The multiplication spreads the seeds of successive runs over the whole range of 64 bits.
        design.seed.wrapping_add(u64::from(self.order)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Returns all runs of `design` in random order, which its seed determines. Baseline runs are
/// interspersed.
///
/// The order is random because a drift of the machine's speed would otherwise look like an effect
/// of the buffer size.
#[must_use]
pub fn schedule(design: &Design) -> Vec<PlannedRun> {
    let mut runs = with_baseline(design, shuffled(design));
    for (order, run) in (0..).zip(&mut runs) {
        run.order = order;
    }
    runs
}

/// Returns the ordinary runs of all cells, without baseline runs. If [`Design::blocks`] is set,
/// each block of runs is shuffled separately, otherwise all runs together. The field `order` is not
/// set yet.
fn shuffled(design: &Design) -> Vec<PlannedRun> {
    let cells = design.cells();
    let run = |repeat, &cell: &Cell| PlannedRun { order: 0, repeat, cell };
    if !design.blocks {
        let repeats = |cell| (0..design.repeat.get()).map(move |repeat| run(repeat, cell));
        let mut runs: Vec<_> = cells.iter().flat_map(repeats).collect();
        shuffle(&mut runs, design.seed);
        return runs;
    }
    let block = |repeat: u32| {
        let mut block: Vec<_> = cells.iter().map(|cell| run(repeat, cell)).collect();
        shuffle(&mut block, design.seed.wrapping_add(repeat.into()));
        block
    };
    (0..design.repeat.get()).flat_map(block).collect()
}

/// Inserts a baseline run before every group of `baseline_every` ordinary runs. The cell of the
/// baseline runs also has ordinary runs, whose repeat numbers begin with 0. The baseline runs
/// continue that numbering.
fn with_baseline(design: &Design, runs: Vec<PlannedRun>) -> Vec<PlannedRun> {
    let (Some(cell), Some(every)) = (design.baseline(), design.baseline_every) else {
        return runs;
    };
    let every = usize::try_from(every.get()).unwrap_or(usize::MAX);
    let groups = runs.chunks(every).zip(design.repeat.get()..);
    groups
        .flat_map(|(group, repeat)| {
            std::iter::once(PlannedRun { order: 0, repeat, cell }).chain(group.iter().copied())
        })
        .collect()
}

/// Shuffles `items` by the Fisher–Yates algorithm. Equal seeds give equal orders.
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
    fn each_block_has_one_run_of_each_cell_in_an_order_of_its_own() {
        let design = design(|design| design.blocks = true);
        let runs = schedule(&design);
        let blocks: Vec<Vec<Cell>> =
            runs.chunks(289).map(|block| block.iter().map(|run| run.cell).collect()).collect();
        assert_eq!(blocks.len(), 4);
        for (number, block) in (0..).zip(&blocks) {
            let distinct: BTreeSet<_> =
                block.iter().map(|cell| (cell.send, cell.receive)).collect();
            assert_eq!(distinct.len(), 289);
            let start = number * 289;
            assert!(runs[start..start + 289].iter().all(|run| run.repeat as usize == number));
        }
        assert_ne!(blocks[0], blocks[1]);
    }

    #[test]
    fn runs_of_the_baseline_are_interleaved() {
        let plain = design(|design| design.blocks = true);
        let design = design(|design| {
            design.blocks = true;
            design.baseline_every = 8.try_into().ok();
        });
        let runs = schedule(&design);
        assert_eq!(runs.len() as u64, design.run_count());
        let (baseline, others): (Vec<PlannedRun>, Vec<PlannedRun>) =
            runs.iter().copied().partition(|run| run.order % 9 == 0);
        assert_eq!(baseline.len() as u64, design.baseline_count());
        assert!(baseline.iter().all(|run| Some(run.cell) == design.baseline() && run.repeat >= 4));
        let cells =
            |runs: &[PlannedRun]| -> Vec<Cell> { runs.iter().map(|run| run.cell).collect() };
        assert_eq!(cells(&others), cells(&schedule(&plain)));
        let distinct: BTreeSet<_> =
            runs.iter().map(|run| (run.cell.send, run.cell.receive, run.repeat)).collect();
        assert_eq!(distinct.len(), runs.len());
    }

    #[test]
    fn runs_are_not_ordered_by_buffer_size() {
        let runs = schedule(&design(|_| ()));
        let rises = runs.windows(2).filter(|pair| pair[0].cell.send < pair[1].cell.send).count();
        assert!((400..700).contains(&rises), "{rises}");
    }

    #[test]
    fn each_run_has_a_seed_of_its_own() {
        let design = design(|_| ());
        let seeds: BTreeSet<u64> = schedule(&design).iter().map(|run| run.seed(&design)).collect();
        assert_eq!(seeds.len(), 1_156);
    }

    #[test]
    fn every_run_comes_first_with_some_seed() {
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
