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
}

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

    /// Returns the number of runs.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.cell_count() * u64::from(self.repeat.get())
    }

    /// Checks that the number of runs is within [`Design::MOST_RUNS`].
    ///
    /// # Errors
    /// [`TooManyRuns`] with the number of runs.
    pub fn check(&self) -> Result<(), TooManyRuns> {
        match self.run_count() {
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
    fn the_diagonal_has_one_cell_for_each_buffer() {
        let design = Design { diagonal: true, ..Design::of_1988() };
        assert_eq!((design.cell_count(), design.cells().len()), (17, 17));
    }
}
