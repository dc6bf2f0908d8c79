//! The runs of a plan in the order in which they are made.

use crate::buffers::BufferSize;
use crate::plan::Plan;
use oorandom::Rand64;

/// A pair of buffers, which is what the experiment varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The sender's buffer.
    pub send: BufferSize,
    /// The receiver's buffer.
    pub receive: BufferSize,
}

/// One run, before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its place in the night, from 0.
    pub order: u32,
    /// Which measurement of its cell it is, from 0.
    pub repeat: u32,
    /// The buffers.
    pub cell: Cell,
}

impl PlannedRun {
    /// What decides everything that is drawn in this run.
    #[must_use]
    pub fn seed(&self, plan: &Plan) -> u64 {
        // Neighbouring runs start far apart in the pattern of one seed, and the same run of the same
        // plan starts where it did before.
        plan.seed.wrapping_add(u64::from(self.order)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// All runs of `plan`, shuffled by its seed: what drifts in the course of a night must not look like
/// an effect of a buffer.
#[must_use]
pub fn schedule(plan: &Plan) -> Vec<PlannedRun> {
    let mut runs = Vec::new();
    for cell in cells(plan) {
        runs.extend((0..plan.repeat.get()).map(|repeat| PlannedRun { order: 0, repeat, cell }));
    }
    shuffle(&mut runs, plan.seed);
    for (order, run) in (0..).zip(&mut runs) {
        run.order = order;
    }
    runs
}

/// The cells row by row: for each send buffer all receive buffers, or the equal one.
fn cells(plan: &Plan) -> Vec<Cell> {
    let receives = plan.receive_buffers.sizes();
    let rows = plan.send_buffers.sizes().iter().flat_map(|&send| {
        let row = receives.iter().map(move |&receive| Cell { send, receive });
        row.filter(|cell| !plan.diagonal || cell.send == cell.receive)
    });
    rows.collect()
}

/// Fisher and Yates: every order is as likely as every other.
fn shuffle(runs: &mut [PlannedRun], seed: u64) {
    let mut random = Rand64::new(u128::from(seed));
    for unplaced in (1..runs.len()).rev() {
        let chosen = random.rand_range(0..unplaced as u64 + 1);
        runs.swap(unplaced, usize::try_from(chosen).unwrap_or(unplaced));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BenchKind, Draft};
    use std::collections::BTreeSet;

    fn plan(change: impl FnOnce(&mut Draft)) -> Plan {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        change(&mut draft);
        Plan::new(draft).unwrap()
    }

    #[test]
    fn each_cell_is_measured_as_often_as_the_plan_says() {
        let plan = plan(|_| ());
        let runs = schedule(&plan);
        let distinct: BTreeSet<_> =
            runs.iter().map(|run| (run.cell.send, run.cell.receive, run.repeat)).collect();
        assert_eq!((runs.len(), distinct.len()), (1_156, 1_156));
        assert!(runs.iter().zip(0..).all(|(run, order)| run.order == order));
    }

    #[test]
    fn the_seed_decides_the_order() {
        let (one, two) = (plan(|_| ()), plan(|draft| draft.seed = 2));
        assert_eq!(schedule(&one), schedule(&one));
        assert_ne!(schedule(&one), schedule(&two));
    }

    #[test]
    fn the_order_is_not_that_of_the_buffers() {
        let runs = schedule(&plan(|_| ()));
        let rises = runs.windows(2).filter(|pair| pair[0].cell.send < pair[1].cell.send).count();
        assert!((400..700).contains(&rises), "{rises}");
    }

    #[test]
    fn each_run_has_bytes_of_its_own() {
        let plan = plan(|_| ());
        let seeds: BTreeSet<u64> = schedule(&plan).iter().map(|run| run.seed(&plan)).collect();
        assert_eq!(seeds.len(), 1_156);
    }

    #[test]
    fn the_first_run_may_be_any_of_them() {
        let firsts = (0..200).map(|seed| {
            let plan = plan(|draft| {
                draft.send_buffers = "1..2".parse().unwrap();
                draft.receive_buffers = "1..2".parse().unwrap();
                draft.seed = seed;
            });
            let first = schedule(&plan)[0];
            (first.cell.send, first.cell.receive, first.repeat)
        });
        assert_eq!(firsts.collect::<BTreeSet<_>>().len(), 16);
    }

    #[test]
    fn the_diagonal_has_equal_buffers_only() {
        let runs = schedule(&plan(|draft| draft.diagonal = true));
        assert_eq!(runs.len(), 68);
        assert!(runs.iter().all(|run| run.cell.send == run.cell.receive));
    }
}
