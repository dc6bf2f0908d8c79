//! The choice of the next run of a sweep with a time budget. The most informative cells are
//! measured first.
//!
//! The table has a row for each send buffer and a column for each receive buffer. Its corner cells
//! are measured first, because they bound the throughput of all other cells. If the remaining
//! budget then suffices for all remaining runs, they follow in the random order of the schedule.
//! Otherwise, three cells of the table's diagonal are measured next. After them, three choices
//! alternate:
//!
//! - the cell in the middle of the steepest change of rate between two measured cells,
//! - the unmeasured cell whose predicted rate has the widest confidence interval,
//! - another run of a measured cell, which shows how much the rates of one cell scatter.
//!
//! Each choice depends only on the previous runs, so the order can be recomputed from the records
//! of those runs.

use crate::buffers::BufferSize;
use crate::cell::Cell;
use crate::design::Design;
use crate::run_record::RunRecord;
use crate::schedule::{PlannedRun, schedule};
use crate::stats::{Surface, SurfacePoint, as_f64, repeat_noise};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Interval between two repetitions, in runs. If the time budget does not suffice for all runs,
/// every fifth run repeats a cell that has been measured before.
const REPEAT_EVERY: usize = 5;
/// Ratio of the rates of two measured cells above which the unmeasured cell midway between them is
/// worth measuring.
const STEEP: f64 = 1.1;
/// Maximum number of unmeasured cells that are compared to find the one with the least certain
/// prediction. If there are more, only every n-th of them is compared, to bound the computing time.
const MAX_CANDIDATES: usize = 2_048;
/// Number of equal parts into which the table's diagonal is divided. If the budget does not suffice
/// for all runs, the cells at the three inner boundaries are measured after the corners.
const PARTS: usize = 4;

/// Returns the run to make after the completed `runs`. Returns `None` if all planned runs are
/// complete, or if the expected duration of the next run exceeds the remaining time budget. The
/// first run of a sweep is always made.
///
/// Without a budget, the runs follow the order of the schedule. `payload` is the number of data
/// bytes in a full segment. It is needed to convert buffer sizes from packets to bytes.
#[must_use]
pub fn next_run(design: &Design, payload: u32, runs: &[RunRecord]) -> Option<PlannedRun> {
    if design.budget.is_none() {
        return schedule(design).get(runs.len()).copied();
    }
    let state = State::new(design, payload, runs);
    let (cell, seconds) = state.next()?;
    let order = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    (runs.is_empty() || seconds <= state.left).then_some(PlannedRun {
        order,
        repeat: state.count(cell),
        cell,
    })
}

/// The state of a sweep with a time budget: the results of its completed runs and the remaining
/// time. The next run is chosen from this state.
struct State<'a> {
    design: &'a Design,
    payload: u32,
    /// For each measured cell, the rates of all its runs in bytes per second.
    measured: BTreeMap<Cell, Vec<f64>>,
    surface: OnceCell<Option<Surface>>,
    /// Number of completed runs.
    runs: usize,
    /// Time budget minus the durations of the completed runs, in seconds.
    left: f64,
}

impl<'a> State<'a> {
    fn new(design: &'a Design, payload: u32, runs: &[RunRecord]) -> Self {
        let mut measured = BTreeMap::<Cell, Vec<f64>>::new();
        for run in runs {
            measured.entry(run.cell()).or_default().push(run.bytes_per_second);
        }
        let budget = design.budget.map_or(f64::INFINITY, |budget| budget.as_secs_f64());
        let spent: f64 = runs.iter().map(|run| run.seconds).sum();
        let surface = OnceCell::new();
        Self { design, payload, measured, surface, runs: runs.len(), left: budget - spent }
    }

    /// Returns the model that predicts the rates of unmeasured cells; `None` if too few cells have
    /// been measured to fit the model.
    fn surface(&self) -> Option<&Surface> {
        let fit = || {
            let measured = self.measured.iter();
            let points: Vec<SurfacePoint> =
                measured.map(|(&cell, rates)| point(cell, self.payload, mean(rates))).collect();
            Surface::fit(&points, repeat_noise(self.measured.values().map(Vec::as_slice)))
        };
        self.surface.get_or_init(fit).as_ref()
    }

    /// Returns the cell of the next run, and the expected duration of that run in seconds. Returns
    /// `None` if all planned runs are complete.
    fn next(&self) -> Option<(Cell, f64)> {
        let cell = self.corner().or_else(|| {
            if self.all_fit() {
                return self.scheduled();
            }
            let new = || self.diagonal().or_else(|| self.informative());
            if self.runs % REPEAT_EVERY == REPEAT_EVERY - 1 {
                return self.repetition().or_else(new);
            }
            new().or_else(|| self.repetition())
        })?;
        Some((cell, self.seconds(cell)))
    }

    fn count(&self, cell: Cell) -> u32 {
        self.measured.get(&cell).map_or(0, |rates| u32::try_from(rates.len()).unwrap_or(u32::MAX))
    }

    fn is_new(&self, cell: Cell) -> bool {
        !self.measured.contains_key(&cell)
    }

    /// Returns a corner cell of the table that has not been measured; `None` if all corners have
    /// been measured. The corner with the two largest buffers comes first, because it is expected
    /// to be the fastest, so its runs are the shortest.
    fn corner(&self) -> Option<Cell> {
        let last = |sizes: &[BufferSize]| sizes.len() - 1;
        let (sends, receives) = self.sizes();
        let (send, receive) = (last(sends), last(receives));
        let corners = [(send, receive), (0, 0), (send, 0), (0, receive)];
        self.first_new(corners.into_iter())
    }

    /// Returns the first unmeasured one of three cells of the diagonal: at one half, one quarter
    /// and three quarters of its length. Returns `None` if all three have been measured.
    fn diagonal(&self) -> Option<Cell> {
        self.first_new([2, 1, 3].into_iter().map(|part| self.on_diagonal(part, PARTS)))
    }

    /// Returns the row and the column of a cell on the diagonal. Its distance from the cell with
    /// the smallest buffers is the fraction `part / parts` of the diagonal's length.
    fn on_diagonal(&self, part: usize, parts: usize) -> (usize, usize) {
        let (sends, receives) = self.sizes();
        ((sends.len() - 1) * part / parts, (receives.len() - 1) * part / parts)
    }

    fn sizes(&self) -> (&[BufferSize], &[BufferSize]) {
        (self.design.send_buffers.sizes(), self.design.receive_buffers.sizes())
    }

    fn cell(&self, (send, receive): (usize, usize)) -> Option<Cell> {
        let (sends, receives) = self.sizes();
        let cell = Cell { send: *sends.get(send)?, receive: *receives.get(receive)? };
        (!self.design.diagonal || cell.send == cell.receive).then_some(cell)
    }

    fn first_new(&self, mut places: impl Iterator<Item = (usize, usize)>) -> Option<Cell> {
        places.find_map(|place| self.cell(place).filter(|&cell| self.is_new(cell)))
    }

    /// Returns the unmeasured cell that gives the most information. If the number of completed runs
    /// is even, [`State::steepest_gap`] chooses it, otherwise [`State::least_certain`]. If the
    /// chosen function finds no cell, the other function is called. Returns `None` if neither finds
    /// one.
    fn informative(&self) -> Option<Cell> {
        let (one, other) = (|| self.steepest_gap(), || self.least_certain());
        if self.runs.is_multiple_of(2) { one().or_else(other) } else { other().or_else(one) }
    }

    /// Returns the cell in the middle of the steepest gap; `None` if no gap is steeper than
    /// [`STEEP`]. A gap is a series of unmeasured cells between two measured cells. The steepest
    /// gap is the one whose two bounding cells differ most in rate. Gaps are searched on the
    /// diagonal, the row of the largest send buffer, and the column of the largest receive buffer.
    fn steepest_gap(&self) -> Option<Cell> {
        let (sends, receives) = (self.sizes().0.len(), self.sizes().1.len());
        let steps = sends.max(receives) - 1;
        let lines: [Vec<(usize, usize)>; 3] = [
            (0..=steps).map(|part| self.on_diagonal(part, steps.max(1))).collect(),
            (0..receives).map(|receive| (sends - 1, receive)).collect(),
            (0..sends).map(|send| (send, receives - 1)).collect(),
        ];
        let gap = |line: &Vec<(usize, usize)>| {
            let line: Vec<Cell> = line.iter().filter_map(|&place| self.cell(place)).collect();
            let known: Vec<usize> =
                (0..line.len()).filter(|&index| !self.is_new(line[index])).collect();
            let gaps = known.windows(2).filter(|pair| pair[1] - pair[0] > 1);
            let gaps = gaps.filter_map(|pair| {
                let rate = |index: usize| mean(&self.measured[&line[index]]);
                let ratio = rate(pair[1]).max(1.0) / rate(pair[0]).max(1.0);
                let ratio = ratio.max(1.0 / ratio);
                let middle = line[usize::midpoint(pair[0], pair[1])];
                (ratio > STEEP && self.is_new(middle)).then_some((ratio, middle))
            });
            gaps.max_by(|(one, _), (other, _)| one.total_cmp(other))
        };
        let steepest = lines.iter().filter_map(gap);
        steepest.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, cell)| cell)
    }

    /// Returns the unmeasured cell whose predicted rate has the widest confidence interval; `None`
    /// if all cells were measured. If no model exists yet, returns the next cell of the schedule.
    fn least_certain(&self) -> Option<Cell> {
        let Some(surface) = self.surface() else { return self.scheduled() };
        let mut cells = self.design.cells();
        cells.retain(|&cell| self.is_new(cell));
        let every = cells.len().div_ceil(MAX_CANDIDATES).max(1);
        let cells = cells.into_iter().step_by(every);
        let width = |cell: Cell| {
            let SurfacePoint { send, receive, .. } = point(cell, self.payload, 1.0);
            let predicted = surface.predict(send, receive);
            predicted.high / predicted.low.max(f64::MIN_POSITIVE)
        };
        cells.max_by(|&one, &other| width(one).total_cmp(&width(other)))
    }

    /// Returns the cell to repeat: the measured cell with the fewest runs. Of several cells with
    /// equally few runs, the one with the shortest expected run is returned. Returns `None` if
    /// every measured cell has its planned number of runs.
    fn repetition(&self) -> Option<Cell> {
        let planned = self.design.repeat.get();
        let cells = self.measured.keys().copied().filter(|&cell| self.count(cell) < planned);
        let time = |cell| self.seconds(cell);
        cells.min_by(|&one, &other| {
            self.count(one).cmp(&self.count(other)).then(time(one).total_cmp(&time(other)))
        })
    }

    /// Returns the cell of the first run in the schedule that has not been made; `None` if all runs
    /// have been made.
    fn scheduled(&self) -> Option<Cell> {
        let mut planned = schedule(self.design).into_iter();
        planned.find(|run| run.repeat >= self.count(run.cell)).map(|run| run.cell)
    }

    /// Does the remaining budget suffice for all remaining runs?
    fn all_fit(&self) -> bool {
        let planned = self.design.repeat.get();
        let cells = self.design.cells().into_iter();
        let seconds = cells
            .map(|cell| f64::from(planned.saturating_sub(self.count(cell))) * self.seconds(cell));
        seconds.sum::<f64>() <= self.left
    }

    /// Returns the expected duration of a run of `cell`, in seconds: the number of bytes divided by
    /// an expected rate. For a measured cell, this is the mean rate of its runs. An unmeasured cell
    /// is assumed to be as fast as the fastest measured cell whose buffers are no larger than its
    /// own. The result is at most the maximum duration of a run, which is also returned if no rate
    /// is known.
    fn seconds(&self, cell: Cell) -> f64 {
        let longest = self.design.longest_run().as_secs_f64();
        let at = point(cell, self.payload, 1.0);
        let smaller = || {
            let cells = self.measured.iter().filter(|(other, _)| {
                let other = point(**other, self.payload, 1.0);
                other.send <= at.send && other.receive <= at.receive
            });
            cells.map(|(_, rates)| mean(rates)).reduce(f64::max)
        };
        let own = self.measured.get(&cell).map(|rates| mean(rates));
        let rate = own.or_else(smaller).unwrap_or(0.0);
        let bytes = as_f64(self.design.bytes.get());
        if rate > 0.0 { (bytes / rate).min(longest) } else { longest }
    }
}

/// Converts a cell and its rate in bytes per second to an input of the throughput model, which
/// needs buffer sizes in bytes.
fn point(cell: Cell, payload: u32, rate: f64) -> SurfacePoint {
    let bytes = |size: BufferSize| as_f64(size.bytes(payload).max(1));
    SurfacePoint { send: bytes(cell.send), receive: bytes(cell.receive), rate }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / as_f64(rates.len().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_data::{bench_facts, outcome, square_design};
    use linerate_units::Duration;

    fn design(budget: u64) -> Design {
        Design { budget: Some(Duration::from_secs(budget)), ..square_design(17) }
    }

    /// Simulates a whole sweep: makes the runs that `next_run` chooses until it returns `None`.
    /// Returns the records of these runs. `rate` gives the rate of each cell in bytes per second.
    fn sweep(design: &Design, rate: impl Fn(Cell) -> f64) -> Vec<RunRecord> {
        let facts = bench_facts();
        let mut runs = Vec::new();
        while let Some(run) = next_run(design, facts.segment_payload, &runs) {
            let bytes = design.bytes.get();
            let seconds = (as_f64(bytes) / rate(run.cell)).min(design.longest_run().as_secs_f64());
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
            let sent = (rate(run.cell) * seconds) as u64;
            let time = Duration::from(std::time::Duration::from_secs_f64(seconds));
            runs.push(RunRecord::new(&run, outcome(run.cell, sent, time), &facts));
        }
        runs
    }

    fn packets(cell: Cell) -> (u32, u32) {
        (cell.send.packets().unwrap(), cell.receive.packets().unwrap())
    }

    /// Returns the rate of a cell on a path of 50 Mb/s, in bytes per second. Up to eight packets,
    /// the rate is proportional to the smaller buffer. Eight packets fill the path, so larger
    /// buffers gain nothing.
    fn slow(cell: Cell) -> f64 {
        let (send, receive) = packets(cell);
        6.25e6 * (f64::from(send.min(receive)) / 8.0).min(1.0)
    }

    #[test]
    fn a_slow_path_is_measured_within_the_budget_from_the_corners_on() {
        let design = design(60);
        let runs = sweep(&design, slow);
        let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
        assert!((50.0..=60.0).contains(&seconds), "{seconds}");
        let cells: Vec<(u32, u32)> = runs.iter().map(|run| packets(run.cell())).collect();
        assert_eq!(cells[..4], [(17, 17), (1, 1), (17, 1), (1, 17)]);
        let distinct: std::collections::BTreeSet<_> = cells.iter().collect();
        assert!(distinct.len() >= 12 && distinct.len() < cells.len(), "{cells:?}");
        // The rate stops growing when the smaller buffer reaches eight packets. The search must
        // therefore measure a cell near this bend, with a smaller buffer of 7 to 9 packets.
        let near = |size: u32| (7..=9).contains(&size);
        assert!(cells.iter().any(|&(send, receive)| near(send.min(receive))), "{cells:?}");
    }

    #[test]
    fn a_fast_path_is_measured_completely_in_random_order() {
        let design = design(600);
        let runs = sweep(&design, |_| 1e9);
        assert_eq!(runs.len() as u64, design.cell_run_count());
        let ordered: Vec<Cell> = runs.iter().map(RunRecord::cell).collect();
        assert_ne!(ordered[4..20], design.cells()[..16], "not in the order of the rows");
        for cell in design.cells() {
            assert_eq!(ordered.iter().filter(|&&one| one == cell).count(), 4, "{cell:?}");
        }
    }

    #[test]
    fn the_order_without_a_budget_is_that_of_the_schedule() {
        let design = square_design(3);
        let next = next_run(&design, 1_448, &[]).unwrap();
        assert_eq!(next, schedule(&design)[0]);
        let diagonal = Design { diagonal: true, ..self::design(5) };
        let runs = sweep(&diagonal, slow);
        assert!(runs.iter().all(|run| run.cell().send == run.cell().receive));
    }
}
