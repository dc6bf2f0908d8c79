//! The experimental design of a sweep: its cells, the number of runs of each cell, and their order.

use crate::buffers::{BufferList, BufferSize};
use crate::cell::Cell;
use crate::notation;
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};
use thiserror::Error;

/// The experimental design of a sweep: its cells, the number of runs of each cell, and their order.
///
/// A cell is one pair of buffer sizes. A plan consists of a design and the settings of an engine;
/// the design does not depend on the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Sizes of the sender's socket buffer.
    pub send_buffers: BufferList,
    /// Sizes of the receiver's socket buffer.
    pub receive_buffers: BufferList,
    /// Whether only cells with two equal buffers are measured. If so, `send_buffers` and
    /// `receive_buffers` must be equal.
    pub diagonal: bool,
    /// Number of runs of each cell, not counting baseline runs.
    pub repeat: NonZeroU32,
    /// Number of bytes that a complete run transfers.
    pub bytes: NonZeroU64,
    /// Maximum duration of a run. A run that takes longer is cut short.
    pub max_time: Duration,
    /// Seed of the random order of the runs and of all random numbers within runs.
    pub seed: u64,
    /// Whether the order of runs consists of randomised blocks, each with one run of every cell.
    /// Otherwise all runs of the sweep are shuffled together.
    pub blocks: bool,
    /// Number of ordinary runs between two baseline runs; `None` for no baseline runs. All baseline
    /// runs are of the cell with the largest buffers, so their rates show changes of the machine's
    /// speed.
    pub baseline_every: Option<NonZeroU32>,
    /// Time budget of the sweep. With a budget, the most informative cells are measured first, and
    /// the order depends on the results of previous runs. With `None`, all runs are made in the
    /// order of the schedule.
    pub budget: Option<Duration>,
}

/// Minimum number of runs that must fit into a time budget, even if every run takes the maximum
/// duration. These runs suffice for the corners of the table, for cells of its diagonal, and for
/// the cells between which the rate changes most.
const RUNS_OF_A_BUDGET: u64 = 24;

/// The error that a design has more than [`Design::MOST_RUNS`] runs. The field is the number of
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{} runs are too many, the most are {}: take fewer buffers or a smaller --repeat",
    notation::count(*.0), notation::count(Design::MOST_RUNS)
)]
pub struct TooManyRuns(pub u64);

impl Design {
    /// Maximum number of runs of a design.
    pub const MOST_RUNS: u64 = 1_000_000;

    /// Returns the design of Van Jacobson's series of 1988: every pair of buffers from 1 to 17
    /// packets. Each pair has four runs of 8 MiB.
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

    /// Returns the number of cells of the design.
    #[must_use]
    pub fn cell_count(&self) -> u64 {
        let (sends, receives) =
            (self.send_buffers.sizes().len(), self.receive_buffers.sizes().len());
        let cells = if self.diagonal { sends } else { sends * receives };
        cells as u64
    }

    /// Returns the maximum duration of a run. With a time budget, it is at most 1/24 of the budget,
    /// so that enough runs for the most informative cells fit into the budget.
    #[must_use]
    pub fn longest_run(&self) -> Duration {
        let share = self.budget.map(|budget| budget / RUNS_OF_A_BUDGET);
        share.map_or(self.max_time, |share| share.min(self.max_time))
    }

    /// Returns the number of runs of the design, including baseline runs.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.cell_run_count() + self.baseline_count()
    }

    /// Returns the number of runs of the design, excluding baseline runs.
    #[must_use]
    pub fn cell_run_count(&self) -> u64 {
        self.cell_count() * u64::from(self.repeat.get())
    }

    /// Returns the number of baseline runs.
    #[must_use]
    pub fn baseline_count(&self) -> u64 {
        let runs = self.cell_run_count();
        self.baseline_every.map_or(0, |every| runs.div_ceil(every.get().into()))
    }

    /// Returns the cell of the baseline runs; `None` if the design has no baseline runs. It is the
    /// cell with the largest buffers. No buffer limits its throughput, so differences between its
    /// runs show changes of the machine's speed.
    #[must_use]
    pub fn baseline(&self) -> Option<Cell> {
        let largest = |list: &BufferList| list.sizes().last().copied();
        let (send, receive) = (largest(&self.send_buffers)?, largest(&self.receive_buffers)?);
        self.baseline_every.map(|_| Cell { send, receive })
    }

    /// Checks that the number of runs, excluding baseline runs, is at most [`Design::MOST_RUNS`].
    ///
    /// # Errors
    /// [`TooManyRuns`] with the number of runs.
    pub fn check(&self) -> Result<(), TooManyRuns> {
        match self.cell_run_count() {
            count if count > Self::MOST_RUNS => Err(TooManyRuns(count)),
            _ => Ok(()),
        }
    }

    /// Returns all cells of the table, row by row. A row has one send buffer and every receive
    /// buffer; the row of the smallest send buffer comes first.
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
