//! All cells of the loss grid, and its table in the repository.

use super::{BUFFERS, CONTROLS, Cell, Figures, LOSSES, QUEUE, RATE, ROUND_TRIPS, SEEDS};
use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration};
use std::fmt;
use std::thread;

/// All cells of the grid, with their figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossGrid {
    cells: Vec<(Cell, Figures)>,
}

impl LossGrid {
    /// Runs the transfers of all cells, on all CPUs in parallel. The results do not depend on the
    /// number of CPUs.
    ///
    /// # Panics
    /// If a transfer does not complete.
    #[must_use]
    pub fn measure() -> Self {
        let cells = all_cells();
        let count = thread::available_parallelism().map_or(1, usize::from);
        let mut shares = thread::scope(|scope| {
            // The threads get the cells in turn, one by one. Cells with long transfers are next to
            // each other in the list, so that each thread gets some of them.
            let deal =
                |first| cells.iter().skip(first).step_by(count).map(|cell| (*cell, cell.median()));
            let threads: Vec<_> = (0..count)
                .map(|first| scope.spawn(move || deal(first).collect::<Vec<_>>()))
                .collect();
            let joined = threads.into_iter().map(|thread| match thread.join() {
                Ok(share) => share.into_iter(),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Vec<_>>()
        });
        let measured = (0..cells.len()).filter_map(|index| shares[index % count].next()).collect();
        Self { cells: measured }
    }

    /// Returns the figures of a cell, if the grid contains it.
    #[must_use]
    pub fn figures(&self, wanted: &Cell) -> Option<Figures> {
        self.cells.iter().find(|(cell, _)| cell == wanted).map(|&(_, figures)| figures)
    }

    /// Formats one line of the table, which has a column for each loss rate. All cells of a line
    /// have equal round-trip time, buffer size and congestion control.
    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        (round_trip, buffer, congestion): (Duration, Bytes, CongestionName),
    ) -> fmt::Result {
        write!(f, "{:>8}  {congestion:<8}", buffer.to_string())?;
        for loss in LOSSES {
            let cell = Cell { round_trip, loss, buffer, congestion };
            let Figures { goodput, timeouts } = self.figures(&cell).unwrap_or_default();
            write!(f, " {goodput:>11} {timeouts:>4}")?;
        }
        writeln!(f)
    }
}

fn all_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for round_trip in ROUND_TRIPS {
        for buffer in BUFFERS {
            for congestion in CONTROLS {
                cells.extend(LOSSES.map(|loss| Cell { round_trip, loss, buffer, congestion }));
            }
        }
    }
    cells
}

impl fmt::Display for LossGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Goodput in bytes a second, and expiries of the retransmission timer, of one bulk \
             transfer in"
        )?;
        writeln!(
            f,
            "virtual time: a path of {RATE} with a queue of {}, loss in both directions, send",
            Bytes::new(QUEUE)
        )?;
        writeln!(
            f,
            "and receive buffers of the size at the left; medians of {SEEDS} seeds. A test \
             compares this"
        )?;
        writeln!(f, "table byte for byte; `cargo xtask grid` writes it anew.")?;
        for round_trip in ROUND_TRIPS {
            write!(f, "\nround trip {round_trip}\n  buffer  control ")?;
            for loss in LOSSES {
                write!(f, " {:>11} {:>4}", format!("{}.{} % lost", loss / 10, loss % 10), "RTO")?;
            }
            writeln!(f)?;
            for buffer in BUFFERS {
                for congestion in CONTROLS {
                    self.line(f, (round_trip, buffer, congestion))?;
                }
            }
        }
        Ok(())
    }
}
