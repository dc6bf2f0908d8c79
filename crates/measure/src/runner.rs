//! Execution of the runs of a sweep, each of which is saved when it ends.

use crate::bench::{Bench, BufferRequest, RunRequest};
use crate::bench_error::BenchError;
use crate::best_so_far::BestSoFar;
use crate::machine_facts::{self, Invocation};
use crate::plan::Plan;
use crate::store::{Store, StoreError};
use linerate_ends::Interrupt;
use linerate_evidence::{
    BufferSize, Cell, Floor, Maximum, PlannedRun, RunOutcome, RunRecord, Start, names,
};
use linerate_units::Duration;
use std::time::Instant;
use thiserror::Error;

/// Duration of the warm-up: floor measurements whose results are discarded.
const WARM_UP: Duration = Duration::from_millis(100);
/// Total duration of the floor measurements after the warm-up. On a busy machine, the floor varies
/// too much if it is measured for a shorter time.
const FLOOR_TIME: Duration = Duration::from_millis(500);
/// Minimum number of floor measurements, even if fewer would take [`FLOOR_TIME`].
const MIN_FLOORS: usize = 5;
/// Maximum number of floor measurements, even if they take less than [`FLOOR_TIME`].
const MAX_FLOORS: usize = 200;
/// Maximum number of bytes in a floor measurement. If a run transfers fewer bytes, so does the
/// floor measurement. The maximum is needed because the floor of the memory link has no time limit.
const FLOOR_BYTES: u64 = 8 << 20;

/// Maximum share of a thread's time that may be lost to contention: to waits for a processor, or to
/// the hypervisor. If a larger share is lost, the run is repeated.
const CONTENDED_SHARE: f64 = 0.02;
/// Maximum number of repetitions of one run because of contention.
const MOST_REPETITIONS: u64 = 2;
/// Number of remaining runs for each repetition that is allowed because of contention. If eight
/// runs remain when the process starts, it may make two repetitions in all.
const RUNS_PER_SPARE: usize = 4;

/// A receiver of the progress of a sweep, such as a display.
pub trait Observer {
    /// Handles the start of the sweep, before its first run. `start` contains the maximum rate.
    fn begins(&mut self, start: &Start, progress: &Progress);

    /// Handles the start of a run.
    fn run_begins(&mut self, run: &PlannedRun, progress: &Progress);

    /// Handles the end of a run, after it has been saved.
    fn run_ended(&mut self, run: &RunRecord, progress: &Progress);
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn begins(&mut self, _: &Start, _: &Progress) {}
    fn run_begins(&mut self, _: &PlannedRun, _: &Progress) {}
    fn run_ended(&mut self, _: &RunRecord, _: &Progress) {}
}

/// The progress of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Number of completed runs, including those that earlier processes completed before the sweep
    /// was resumed.
    pub done: u64,
    /// Number of runs in the plan.
    pub total: u64,
    /// The cell with the highest median rate so far, and this median in bytes per second; `None`
    /// before the first run.
    pub best: Option<(Cell, f64)>,
}

/// The reason why a sweep ended early.
#[derive(Debug, Error)]
pub enum NightError {
    /// A transfer failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A run could not be saved.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine or the program has changed since the sweep began, so the remaining runs would
    /// not be comparable. The text names the difference.
    #[error("the sweep cannot continue, {0}: start a new one")]
    OtherConditions(String),
}

/// Executes the remaining runs of the sweep in `store`, saves each one, and ends the bench.
///
/// # Errors
/// The first error of the bench or the store, or [`BenchError::Interrupted`]. The runs completed
/// until then are saved. An error of [`Bench::end`] takes precedence over an interrupt.
pub fn make_runs(
    bench: &mut dyn Bench,
    store: &mut Store,
    invocation: &Invocation,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<(), NightError> {
    let mut best = BestSoFar::of(store);
    if store.next_run().is_none() {
        return Ok(());
    }
    let result = begin(bench, store, invocation, interrupt).and_then(|start| {
        observer.begins(&start, &progress(store, &best));
        let result = make_remaining(bench, store, &start, interrupt, observer, &mut best);
        store.sync()?;
        result
    });
    // The bench is ended even after an error. It may still have a capture file open, which must be
    // complete to find the cause of the error.
    match (result, bench.end()) {
        // If the run was interrupted and the capture is incomplete, the incomplete capture is
        // reported. The user already knows of the interrupt.
        (Ok(()) | Err(NightError::Bench(BenchError::Interrupted)), Err(error)) => Err(error.into()),
        (result, _) => result,
    }
}

/// Executes the remaining runs until all are complete or the time budget is spent.
fn make_remaining(
    bench: &mut dyn Bench,
    store: &mut Store,
    start: &Start,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
    best: &mut BestSoFar,
) -> Result<(), NightError> {
    let mut spare = store.remaining().len() / RUNS_PER_SPARE;
    let began = Instant::now();
    let budget = store.plan().budget.map(std::time::Duration::from);
    // The whole elapsed time counts against the budget: besides the runs, it includes handshakes
    // and repetitions of runs.
    let is_spent = || budget.is_some_and(|budget| began.elapsed() >= budget);
    while let Some(run) = store.next_run().filter(|_| !is_spent()) {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted.into());
        }
        observer.run_begins(&run, &progress(store, best));
        let request = request(store.plan(), &run, start.facts.bench.segment_payload);
        let outcome = run_fairly(bench, &request, interrupt, &mut spare)?;
        let record = RunRecord::new(&run, outcome, &start.facts.bench);
        best.note(run.cell, record.bytes_per_second);
        store.append(record.clone())?;
        observer.run_ended(&record, &progress(store, best));
    }
    Ok(())
}

/// Executes a run. If more than [`CONTENDED_SHARE`] of a thread's time is lost to contention, the
/// run is repeated, at most [`MOST_REPETITIONS`] times. `spare` is the number of repetitions that
/// the process may still make, and each repetition reduces it. Returns the outcome with the
/// smallest lost share.
fn run_fairly(
    bench: &mut dyn Bench,
    request: &RunRequest,
    interrupt: &Interrupt,
    spare: &mut usize,
) -> Result<RunOutcome, BenchError> {
    let waited = |outcome: &RunOutcome| outcome.counters.contended_share().unwrap_or(0.0);
    let mut outcome = bench.run(request, interrupt)?;
    let mut repetitions = 0;
    while waited(&outcome) > CONTENDED_SHARE && repetitions < MOST_REPETITIONS && *spare > 0 {
        *spare -= 1;
        repetitions += 1;
        let again = bench.run(request, interrupt)?;
        if waited(&again) < waited(&outcome) {
            outcome = again;
        }
    }
    if repetitions > 0 {
        outcome.counters.sender.set(names::REPEATED_FOR_CONTENTION, repetitions);
    }
    Ok(outcome)
}

/// Returns the facts about the machine, and the maximum rate. If the sweep is resumed, they are
/// read from the store. For a new sweep, they are determined and saved.
///
/// Returns an error if a fact has changed since the sweep began.
fn begin(
    bench: &mut dyn Bench,
    store: &mut Store,
    invocation: &Invocation,
    interrupt: &Interrupt,
) -> Result<Start, NightError> {
    let facts = machine_facts::collect(bench.facts(), invocation);
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

/// Measures the floor several times, after a warm-up of floor measurements that do not count.
/// Returns an empty list if the bench has no floor.
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

/// Measures the floor until the measured times add up to `span`, but at least [`MIN_FLOORS`] and at
/// most [`MAX_FLOORS`] times. Returns an empty list if the bench has no floor.
fn measure_floor(
    bench: &mut dyn Bench,
    request: &RunRequest,
    span: Duration,
    interrupt: &Interrupt,
) -> Result<Vec<Floor>, BenchError> {
    let (mut floors, mut time) = (Vec::new(), Duration::ZERO);
    while floors.len() < MIN_FLOORS || (time < span && floors.len() < MAX_FLOORS) {
        let Some(floor) = bench.floor(request, interrupt)? else { break };
        time += floor.time;
        floors.push(floor);
    }
    Ok(floors)
}

/// Returns the progress of the sweep.
fn progress(store: &Store, best: &BestSoFar) -> Progress {
    Progress {
        done: store.runs().len() as u64,
        total: store.plan().design().run_count(),
        best: best.best(),
    }
}

/// Converts a planned run to a request to the bench. `payload` is the number of data bytes in a
/// full segment.
fn request(plan: &Plan, run: &PlannedRun, payload: u32) -> RunRequest {
    let buffer =
        |size: BufferSize| BufferRequest { packets: size.packets(), bytes: size.bytes(payload) };
    RunRequest {
        send_buffer: buffer(run.cell.send),
        receive_buffer: buffer(run.cell.receive),
        bytes: plan.bytes.get(),
        max_time: plan.design().longest_run(),
        write_size: plan.write_size.get() as usize,
        read_size: plan.read_size.get() as usize,
        verify: plan.verify,
        seed: run.seed(&plan.design()),
        congestion: plan.congestion.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_bench::{FakeBench, invocation, small_plan};
    use crate::plan::Draft;
    use linerate_evidence::schedule;
    use std::fs;

    fn night(bench: &mut FakeBench, store: &mut Store) -> Result<(), NightError> {
        let interrupt = bench.interrupt.clone();
        make_runs(bench, store, &invocation(), &interrupt, &mut NoObserver)
    }

    #[test]
    fn a_night_executes_all_runs_in_the_order_of_its_schedule() {
        let folder = tempfile::tempdir().unwrap();
        let plan = small_plan();
        let mut store = Store::create(&folder.path().join("night"), plan.clone()).unwrap();
        night(&mut FakeBench::new(), &mut store).unwrap();
        assert!(
            store
                .runs()
                .iter()
                .zip(schedule(&plan.design()))
                .all(|(run, planned)| run.is_of(&planned))
        );
        assert_eq!(store.runs().len() as u64, plan.design().run_count());
        assert!(matches!(store.start().unwrap().maximum, Maximum::Floor { .. }));
    }

    #[test]
    fn a_floor_uses_the_largest_buffers_and_a_limited_number_of_bytes() {
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
    fn floors_are_repeated_by_time_and_preceded_by_a_warm_up() {
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
    fn a_contended_run_is_repeated_and_the_fairest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(&folder.path().join("night"), small_plan()).unwrap();
        let mut bench = FakeBench::new();
        bench.cpu_waits = vec![50, 30, 40, 10, 0, 500];
        night(&mut bench, &mut store).unwrap();
        let waited: Vec<_> =
            store.runs().iter().map(|run| run.counters.contended_share().unwrap()).collect();
        let repetitions: Vec<_> = store
            .runs()
            .iter()
            .map(|run| run.counters.sender.get(names::REPEATED_FOR_CONTENTION))
            .collect();
        // With eight planned runs, at most two repetitions are allowed. The first run uses both, so
        // the fourth run is not repeated, although it is contended (0.5).
        assert_eq!(waited, [0.03, 0.01, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(repetitions[..4], [Some(2), None, None, None]);
    }

    #[test]
    fn a_night_with_a_budget_makes_the_corners_first_and_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("night");
        let budget = Some(Duration::from_secs(60));
        let draft = Draft { budget, ..Draft::from(small_plan()) };
        let mut store = Store::create(&path, Plan::new(draft).unwrap()).unwrap();
        night(&mut FakeBench::interrupting_after(3), &mut store).unwrap_err();
        drop(store);
        let mut store = Store::resume(&path).unwrap();
        assert_eq!(store.runs().len(), 3);
        let first = store.runs()[0].cell();
        assert_eq!((first.send.packets(), first.receive.packets()), (Some(2), Some(2)));
        night(&mut FakeBench::new(), &mut store).unwrap();
        // The budget is large enough for all planned runs, so every cell is measured.
        assert_eq!(store.runs().len() as u64, store.plan().design().run_count());
        assert_eq!(store.next_run(), None);
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
    fn a_night_interrupted_before_its_first_run_can_resume() {
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
    fn the_bench_is_ended_after_an_interrupt_and_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(&folder.path().join("night"), small_plan()).unwrap();
        let mut under_other_conditions = FakeBench::new();
        under_other_conditions.payload = 536;
        for mut bench in
            [FakeBench::interrupting_after(1), FakeBench::failing_after(1), under_other_conditions]
        {
            night(&mut bench, &mut store).unwrap_err();
            assert!(bench.is_ended);
        }
    }

    #[test]
    fn an_incomplete_capture_is_reported_unless_it_would_hide_another_error() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mut bench, is_reported) in [
            ("complete", FakeBench::new(), true),
            ("interrupted", FakeBench::interrupting_after(1), true),
            ("failed", FakeBench::failing_after(1), false),
        ] {
            bench.end_fails = true;
            let mut store = Store::create(&folder.path().join(name), small_plan()).unwrap();
            let error = night(&mut bench, &mut store).unwrap_err();
            let is_of_capture = matches!(error, NightError::Bench(BenchError::Capture { .. }));
            assert_eq!(is_of_capture, is_reported, "{name}: {error}");
        }
    }

    #[test]
    fn earlier_runs_are_kept_when_a_run_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("night");
        let mut store = Store::create(&path, small_plan()).unwrap();
        let result = night(&mut FakeBench::failing_after(3), &mut store);
        assert!(matches!(result, Err(NightError::Bench(BenchError::ConnectionLost { .. }))));
        drop(store);
        assert_eq!(Store::resume(&path).unwrap().runs().len(), 3);
    }

    #[test]
    fn a_night_does_not_resume_under_different_conditions() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(&folder.path().join("night"), small_plan()).unwrap();
        night(&mut FakeBench::interrupting_after(1), &mut store).unwrap_err();
        let mut other = FakeBench::new();
        other.payload = 536;
        let error = night(&mut other, &mut store).unwrap_err();
        assert!(matches!(error, NightError::OtherConditions(_)), "{error}");
    }
}
