//! The night itself: run after run in the order of the schedule, each kept as it ends.

use crate::bench::{Bench, BenchError, BufferRequest, Floor, RunRequest};
use crate::buffers::BufferSize;
use crate::facts::Facts;
use crate::interrupt::Interrupt;
use crate::maximum::Maximum;
use crate::plan::Plan;
use crate::run::RunRecord;
use crate::stats::Sample;
use crate::store::{Start, Store, StoreError};
use crate::sweep::{Cell, PlannedRun, schedule};
use linerate_units::Duration;
use std::collections::BTreeMap;
use thiserror::Error;

/// How long the machine warms up, and how long its floor is measured: a moment is not enough on a
/// machine that has other things to do.
const WARM_UP: Duration = Duration::from_millis(100);
const FLOOR_TIME: Duration = Duration::from_millis(500);
/// Where a floor takes long there are at least so many, and where it takes no time at most.
const FEWEST_FLOORS: usize = 5;
const MOST_FLOORS: usize = 200;
/// Each floor carries as much as a run of the plan, and no more than this: a run of any length is cut short by its
/// time, a floor by nothing.
const FLOOR_BYTES: u64 = 8 << 20;

/// Whoever watches the night.
pub trait Observer {
    /// The hundred per cent is known, the runs begin.
    fn begins(&mut self, start: &Start, progress: &Progress);

    /// A run begins.
    fn run_begins(&mut self, run: &PlannedRun, progress: &Progress);

    /// A run has ended, and is kept.
    fn run_ended(&mut self, run: &RunRecord, progress: &Progress);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Observer for Unwatched {
    fn begins(&mut self, _: &Start, _: &Progress) {}
    fn run_begins(&mut self, _: &PlannedRun, _: &Progress) {}
    fn run_ended(&mut self, _: &RunRecord, _: &Progress) {}
}

/// How far the night has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Runs that have been made, in this process or an earlier one.
    pub done: u64,
    /// Runs of the plan.
    pub total: u64,
    /// The cell with the best median so far, and that median in bytes per second.
    pub best: Option<(Cell, f64)>,
}

/// Why a night ended early.
#[derive(Debug, Error)]
pub enum NightError {
    /// A transfer could not take place.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A run could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What remains would be measured under other conditions than what is there.
    #[error("the sweep cannot go on, {0}: begin a new one")]
    OtherConditions(String),
}

/// Makes the runs that remain of the store's plan. `options` are the words of the command line.
///
/// # Errors
/// The first thing that goes wrong, or the interruption; what was measured until then is kept.
pub fn make_runs(
    bench: &mut dyn Bench,
    store: &mut Store,
    options: &[String],
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<(), NightError> {
    let mut best = BestSoFar::of(store);
    if store.remaining().is_empty() {
        return Ok(());
    }
    let start = begin(bench, store, options, interrupt)?;
    observer.begins(&start, &best.progress(store));
    let result = make_remaining(bench, store, &start, interrupt, observer, &mut best);
    store.sync()?;
    result?;
    Ok(bench.end()?)
}

fn make_remaining(
    bench: &mut dyn Bench,
    store: &mut Store,
    start: &Start,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
    best: &mut BestSoFar,
) -> Result<(), NightError> {
    while let Some(&run) = store.remaining().first() {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted.into());
        }
        observer.run_begins(&run, &best.progress(store));
        let request = request(store.plan(), &run, start.facts.bench.segment_payload);
        let outcome = bench.run(&request, interrupt)?;
        let record = RunRecord::new(&run, &request, outcome, &start.facts.bench);
        best.note(run.cell, record.bytes_per_second);
        store.append(record.clone())?;
        observer.run_ended(&record, &best.progress(store));
    }
    Ok(())
}

/// The facts and the maximum: those of the store if it has them and they still hold, else new ones.
fn begin(
    bench: &mut dyn Bench,
    store: &mut Store,
    options: &[String],
    interrupt: &Interrupt,
) -> Result<Start, NightError> {
    let facts = Facts::collect(bench.facts(), options.to_vec());
    if let Some(start) = store.start() {
        return match start.facts.difference(&facts) {
            Some(difference) => Err(NightError::OtherConditions(difference)),
            None => Ok(start.clone()),
        };
    }
    let floors = floors(bench, store.plan(), facts.bench.segment_payload, interrupt)?;
    let maximum = Maximum::of(&facts.bench, store.plan().line_rate(), &floors, store.plan().seed);
    let start = Start { facts, maximum };
    store.begin(start.clone())?;
    Ok(start)
}

/// The floor, several times; nothing if the bench has none.
fn floors(
    bench: &mut dyn Bench,
    plan: &Plan,
    payload: u32,
    interrupt: &Interrupt,
) -> Result<Vec<Floor>, BenchError> {
    let largest = |sizes: &[BufferSize]| sizes.last().copied();
    let (Some(send), Some(receive)) =
        (largest(plan.send_buffers.sizes()), largest(plan.receive_buffers.sizes()))
    else {
        return Ok(Vec::new());
    };
    let run = PlannedRun { order: 0, repeat: 0, cell: Cell { send, receive } };
    let whole = request(plan, &run, payload);
    let request = RunRequest { bytes: whole.bytes.min(FLOOR_BYTES), ..whole };
    measure_floor(bench, &request, WARM_UP, interrupt)?;
    measure_floor(bench, &request, FLOOR_TIME, interrupt)
}

/// Floors for so long; none if the bench has none.
fn measure_floor(
    bench: &mut dyn Bench,
    request: &RunRequest,
    span: Duration,
    interrupt: &Interrupt,
) -> Result<Vec<Floor>, BenchError> {
    let (mut floors, mut time) = (Vec::new(), Duration::ZERO);
    while floors.len() < FEWEST_FLOORS || (time < span && floors.len() < MOST_FLOORS) {
        let Some(floor) = bench.floor(request, interrupt)? else { break };
        time += floor.time;
        floors.push(floor);
    }
    Ok(floors)
}

/// What a run of the plan asks of the bench.
fn request(plan: &Plan, run: &PlannedRun, payload: u32) -> RunRequest {
    let buffer =
        |size: BufferSize| BufferRequest { packets: size.packets(), bytes: size.bytes(payload) };
    RunRequest {
        send_buffer: buffer(run.cell.send),
        receive_buffer: buffer(run.cell.receive),
        bytes: plan.bytes.get(),
        max_time: plan.max_time,
        write_size: plan.write_size.get() as usize,
        read_size: plan.read_size.get() as usize,
        verify: plan.verify,
        seed: run.seed(plan),
        congestion: plan.congestion.clone(),
    }
}

/// The cell with the best median of the runs there are.
#[derive(Default)]
struct BestSoFar {
    rates: BTreeMap<Cell, Vec<f64>>,
    best: Option<(Cell, f64)>,
}

impl BestSoFar {
    fn of(store: &Store) -> Self {
        let mut best = Self::default();
        for (planned, run) in schedule(store.plan()).iter().zip(store.runs()) {
            best.note(planned.cell, run.bytes_per_second);
        }
        best
    }

    fn note(&mut self, cell: Cell, rate: f64) {
        self.rates.entry(cell).or_default().push(rate);
        let Some(median) = self.median(cell) else { return };
        match self.best {
            Some((best, rate)) if best != cell && median <= rate => {}
            // The best cell may have become worse than another one.
            Some((best, rate)) if best == cell && median < rate => self.best = self.search(),
            _ => self.best = Some((cell, median)),
        }
    }

    fn search(&self) -> Option<(Cell, f64)> {
        let medians = self.rates.keys().filter_map(|&cell| Some((cell, self.median(cell)?)));
        medians.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn median(&self, cell: Cell) -> Option<f64> {
        Some(Sample::new(self.rates.get(&cell)?.clone())?.median())
    }

    fn progress(&self, store: &Store) -> Progress {
        Progress { done: store.runs().len() as u64, total: store.plan().runs(), best: self.best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Draft;
    use crate::testing::{FakeBench, small_plan};
    use std::fs;

    fn night(bench: &mut FakeBench, store: &mut Store) -> Result<(), NightError> {
        let interrupt = bench.interrupt.clone();
        make_runs(bench, store, &[], &interrupt, &mut Unwatched)
    }

    #[test]
    fn a_night_makes_all_runs_of_the_plan_in_the_order_of_its_schedule() {
        let folder = tempfile::tempdir().unwrap();
        let plan = small_plan();
        let mut store = Store::create(&folder.path().join("night"), plan.clone()).unwrap();
        night(&mut FakeBench::new(), &mut store).unwrap();
        assert!(store.runs().iter().zip(schedule(&plan)).all(|(run, planned)| run.is_of(&planned)));
        assert_eq!(store.runs().len() as u64, plan.runs());
        assert!(matches!(store.start().unwrap().maximum, Maximum::Floor { .. }));
    }

    #[test]
    fn a_floor_is_measured_with_what_can_be_carried_whatever_the_plan_would_carry() {
        let folder = tempfile::tempdir().unwrap();
        for (bytes, rate) in [(1_000, 1e6), (1 << 60, f64::from(8 << 20) * 1e3)] {
            let draft = Draft { bytes: bytes.try_into().unwrap(), ..Draft::from(small_plan()) };
            let plan = Plan::new(draft).unwrap();
            let mut store = Store::create(&folder.path().join(bytes.to_string()), plan).unwrap();
            night(&mut FakeBench::interrupting_after(1), &mut store).unwrap_err();
            assert_eq!(store.start().unwrap().maximum.bytes_per_second(), Some(rate));
        }
    }

    #[test]
    fn floors_are_many_where_they_are_short_and_some_where_they_are_long_and_the_first_are_a_warm_up()
     {
        let folder = tempfile::tempdir().unwrap();
        for (millis, counted, warm_up) in [(1, 200, 100), (10, 50, 10), (1_000, 5, 5)] {
            let mut store =
                Store::create(&folder.path().join(millis.to_string()), small_plan()).unwrap();
            let mut bench = FakeBench::new();
            bench.floor_time = Duration::from_millis(millis);
            night(&mut bench, &mut store).unwrap();
            let Maximum::Floor { samples, .. } = &store.start().unwrap().maximum else { panic!() };
            assert_eq!((samples.len(), bench.floors.len()), (counted, counted + warm_up));
            assert!(
                bench.floors.iter().all(|buffer| buffer.packets == Some(2)),
                "the largest of the plan"
            );
        }
    }

    #[test]
    fn a_night_interrupted_after_each_run_resumes_to_the_same_table() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let mut store = Store::create(&whole, small_plan()).unwrap();
        night(&mut FakeBench::new(), &mut store).unwrap();
        let total = store.runs().len();
        drop(Store::create(&parts, small_plan()).unwrap());
        for done in 1..=total {
            let mut store = Store::resume(&parts).unwrap();
            let result = night(&mut FakeBench::interrupting_after(1), &mut store);
            assert_eq!(store.runs().len(), done);
            let interrupted = matches!(result, Err(NightError::Bench(BenchError::Interrupted)));
            assert_eq!(interrupted, done < total);
        }
        assert_eq!(
            fs::read(whole.join("runs.jsonl")).unwrap(),
            fs::read(parts.join("runs.jsonl")).unwrap()
        );
    }

    #[test]
    fn a_night_interrupted_before_its_first_run_goes_on_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("night");
        let mut store = Store::create(&path, small_plan()).unwrap();
        let mut bench = FakeBench::new();
        bench.interrupt.raise();
        night(&mut bench, &mut store).unwrap_err();
        drop(store);
        night(&mut FakeBench::new(), &mut Store::resume(&path).unwrap()).unwrap();
        assert_eq!(Store::resume(&path).unwrap().remaining(), []);
    }

    #[test]
    fn a_failing_run_leaves_the_runs_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("night");
        let mut store = Store::create(&path, small_plan()).unwrap();
        let result = night(&mut FakeBench::failing_after(3), &mut store);
        assert!(matches!(result, Err(NightError::Bench(BenchError::ConnectionLost { .. }))));
        drop(store);
        assert_eq!(Store::resume(&path).unwrap().runs().len(), 3);
    }

    #[test]
    fn under_other_conditions_a_night_does_not_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(&folder.path().join("night"), small_plan()).unwrap();
        night(&mut FakeBench::interrupting_after(1), &mut store).unwrap_err();
        let mut other = FakeBench::new();
        other.payload = 536;
        let error = night(&mut other, &mut store).unwrap_err();
        assert!(matches!(error, NightError::OtherConditions(_)), "{error}");
    }

    #[test]
    fn the_best_so_far_is_a_median_and_may_fall() {
        let cell = |packets: &str| {
            let list: crate::buffers::BufferList = packets.parse().unwrap();
            Cell { send: list.sizes()[0], receive: list.sizes()[0] }
        };
        let mut best = BestSoFar::default();
        for (packets, rate, expected) in [
            ("1", 5.0, ("1", 5.0)),
            ("2", 4.0, ("1", 5.0)),
            ("1", 1.0, ("2", 4.0)),
            ("2", 8.0, ("2", 6.0)),
        ] {
            best.note(cell(packets), rate);
            assert_eq!(best.best, Some((cell(expected.0), expected.1)));
        }
    }
}
