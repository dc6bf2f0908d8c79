//! The experimental design of a sweep.

use crate::buffers::{BufferList, BufferSize};
use crate::cell::Cell;
use crate::notation;
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};
use thiserror::Error;

/// The experimental design of a sweep: the cells, the repeats, and the order of the runs.
///
/// It is the part of a plan that does not depend on the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The sender's socket buffers.
    pub send_buffers: BufferList,
    /// The receiver's socket buffers.
    pub receive_buffers: BufferList,
    /// Whether only the cells with equal buffers are measured.
    pub diagonal: bool,
    /// Runs of each cell.
    pub repeat: NonZeroU32,
    /// Bytes that each run transfers.
    pub bytes: NonZeroU64,
    /// Time limit of a run, after which it is cut short.
    pub max_time: Duration,
    /// Seed of the order of the runs and of all random numbers in a run.
    pub seed: u64,
    /// Whether the runs are in randomised complete blocks: each block has one run of each cell.
    /// Otherwise all runs are shuffled together.
    pub blocks: bool,
    /// Number of runs between two runs of the baseline; `None` without a baseline.
    pub baseline_every: Option<NonZeroU32>,
    /// Time in which the runs that tell the most are made, in an order that depends on their
    /// results; `None` if all runs are made in the order of the schedule.
    pub budget: Option<Duration>,
}

/// Fewest runs for which a budget suffices: those of the corners, the diagonal, and the gaps.
const RUNS_OF_A_BUDGET: u64 = 24;

/// A design asks for more runs than [`Design::MOST_RUNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{} runs are too many, the most are {}: take fewer buffers or a smaller --repeat",
    notation::count(*.0), notation::count(Design::MOST_RUNS)
)]
pub struct TooManyRuns(pub u64);

impl Design {
    /// The largest number of runs of a design.
    pub const MOST_RUNS: u64 = 1_000_000;

    /// Returns the design of 1988: every pair of buffers from 1 to 17 packets, four runs of 8 MiB
    /// each.
    ///
    /// # Panics
    /// Never: the constants are valid.
    #[must_use]
    pub fn of_1988() -> Self {
        let one_to_seventeen = BufferList::up_to(const { NonZeroU32::new(17).unwrap() });
        Self {
            send_buffers: one_to_seventeen.clone(),
            receive_buffers: one_to_seventeen,
            diagonal: false,
            repeat: const { NonZeroU32::new(4).unwrap() },
            bytes: const { NonZeroU64::new(8 << 20).unwrap() },
            max_time: Duration::from_secs(10),
            seed: 1988,
            blocks: false,
            baseline_every: None,
            budget: None,
        }
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn cell_count(&self) -> u64 {
        let (sends, receives) =
            (self.send_buffers.sizes().len(), self.receive_buffers.sizes().len());
        let cells = if self.diagonal { sends } else { sends * receives };
        cells as u64
    }

    /// Returns the maximum time of a run: a budget must suffice for several.
    #[must_use]
    pub fn longest_run(&self) -> Duration {
        let share = self.budget.map(|budget| budget / RUNS_OF_A_BUDGET);
        share.map_or(self.max_time, |share| share.min(self.max_time))
    }

    /// Returns the number of runs, those of the baseline included.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.cell_run_count() + self.baseline_count()
    }

    /// Returns the number of runs without those of the baseline.
    #[must_use]
    pub fn cell_run_count(&self) -> u64 {
        self.cell_count() * u64::from(self.repeat.get())
    }

    /// Returns the number of runs of the baseline.
    #[must_use]
    pub fn baseline_count(&self) -> u64 {
        let runs = self.cell_run_count();
        self.baseline_every.map_or(0, |every| runs.div_ceil(every.get().into()))
    }

    /// Returns the cell of the baseline, which shows the speed of the machine: that of the largest
    /// buffers, where neither buffer is the limit.
    #[must_use]
    pub fn baseline(&self) -> Option<Cell> {
        let largest = |list: &BufferList| list.sizes().last().copied();
        let (send, receive) = (largest(&self.send_buffers)?, largest(&self.receive_buffers)?);
        self.baseline_every.map(|_| Cell { send, receive })
    }

    /// Checks that the number of runs, without the baseline, is within [`Design::MOST_RUNS`].
    ///
    /// # Errors
    /// [`TooManyRuns`] with the number of runs.
    pub fn check(&self) -> Result<(), TooManyRuns> {
        match self.cell_run_count() {
            count if count > Self::MOST_RUNS => Err(TooManyRuns(count)),
            _ => Ok(()),
        }
    }

    /// Returns the cells row by row: for each send buffer all receive buffers, or the equal one.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let row = |&send: &BufferSize| {
            let receives = self.receive_buffers.sizes().iter();
            let row = receives.map(move |&receive| Cell { send, receive });
            row.filter(|cell| !self.diagonal || cell.send == cell.receive)
        };
        self.send_buffers.sizes().iter().flat_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiment_of_1988_has_1156_runs_of_289_cells() {
        let design = Design::of_1988();
        assert_eq!((design.cell_count(), design.run_count()), (289, 1_156));
        assert_eq!(design.cells().len(), 289);
    }

    #[test]
    fn a_baseline_run_precedes_each_group_of_runs() {
        let every = NonZeroU32::new(10);
        let design = Design { baseline_every: every, ..Design::of_1988() };
        assert_eq!((design.baseline_count(), design.run_count()), (116, 1_272));
        let baseline = design.baseline().unwrap();
        assert_eq!((baseline.send.packets(), baseline.receive.packets()), (Some(17), Some(17)));
        assert_eq!(Design::of_1988().baseline(), None);
    }

    #[test]
    fn the_diagonal_has_one_cell_for_each_buffer() {
        let design = Design { diagonal: true, ..Design::of_1988() };
        assert_eq!((design.cell_count(), design.cells().len()), (17, 17));
    }
}
