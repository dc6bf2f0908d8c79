//! Made-up sweeps for tests: designs, records of runs at chosen rates, and facts about a machine
//! that does not exist.

use crate::bench_facts::BenchFacts;
use crate::buffers::BufferList;
use crate::cell::Cell;
use crate::counters::Counters;
use crate::design::Design;
use crate::facts::Facts;
use crate::floor::Floor;
use crate::framing::Framing;
use crate::maximum::Maximum;
use crate::run_outcome::RunOutcome;
use crate::run_record::RunRecord;
use crate::schedule::{PlannedRun, schedule};
use crate::start::Start;
use linerate_units::Duration;
use std::collections::BTreeMap;

/// Number of bytes that every made-up run transfers.
const BYTES: u64 = 8 << 20;

/// Returns a design of 2 × 2 cells, with two runs of each cell.
///
/// # Panics
/// Never: the constants are valid.
#[must_use]
#[allow(clippy::unwrap_used, reason = "constants that are valid")]
pub fn small_design() -> Design {
    Design { repeat: 2.try_into().unwrap(), ..square_design(2) }
}

/// Returns a design with buffers from 1 to `most` packets at both ends, and four runs of each cell.
///
/// # Panics
/// If `most` is zero.
#[must_use]
#[allow(clippy::unwrap_used, reason = "documented")]
pub fn square_design(most: u32) -> Design {
    let buffers = BufferList::up_to(most.try_into().unwrap());
    Design { send_buffers: buffers.clone(), receive_buffers: buffers, ..Design::of_1988() }
}

/// Returns made-up facts about a bench.
#[must_use]
pub fn bench_facts() -> BenchFacts {
    BenchFacts {
        description: "nothing at both ends, over nothing".to_owned(),
        segment_payload: 1_448,
        framing: Framing::ethernet(12),
        line_rate: None,
        settings: BTreeMap::new(),
    }
}

/// Returns the outcome of a complete run that transferred `bytes` in `time`. The system granted the
/// buffer sizes that the cell requests.
#[must_use]
pub fn outcome(cell: Cell, bytes: u64, time: Duration) -> RunOutcome {
    let payload = bench_facts().segment_payload;
    RunOutcome {
        bytes,
        time,
        complete: true,
        verified: None,
        send_granted: cell.send.bytes(payload),
        receive_granted: cell.receive.bytes(payload),
        counters: Counters::default(),
    }
}

/// Returns the record of a run that transferred 8 MiB at about `rate` bytes per second. The
/// recorded throughput can differ slightly from `rate`, because the duration is rounded to
/// nanoseconds.
#[must_use]
pub fn record(run: &PlannedRun, rate: f64) -> RunRecord {
    let time = std::time::Duration::from_secs_f64(8_388_608.0 / rate).into();
    RunRecord::new(run, outcome(run.cell, BYTES, time), &bench_facts())
}

/// Returns the facts and the maximum throughput of a made-up sweep. They do not depend on the
/// machine on which the test runs.
///
/// # Panics
/// Never: the constants are valid.
#[must_use]
#[allow(clippy::unwrap_used, reason = "constants that are valid")]
pub fn start() -> Start {
    let bench = bench_facts();
    let floor = |micros| Floor {
        bytes: BYTES,
        time: Duration::from_micros(micros),
        how: "no copy".to_owned(),
    };
    let maximum = Maximum::of(&bench, None, &[floor(800), floor(810), floor(790)], 1);
    let mut facts: Facts = serde_json::from_str(include_str!("sample_facts.json")).unwrap();
    facts.bench = bench;
    Start { facts, maximum }
}

/// Returns the records of all runs of a design, in the order of the schedule. `rate` maps the cell
/// and the repeat of a run to its throughput in bytes per second.
#[must_use]
pub fn records(design: &Design, rate: impl Fn(Cell, u32) -> f64) -> Vec<RunRecord> {
    schedule(design).iter().map(|run| record(run, rate(run.cell, run.repeat))).collect()
}

/// Returns the noise of a made-up run: a factor between 1 − `amplitude` and 1 + `amplitude` by
/// which a test multiplies the run's rate. The factor looks random but depends only on the cell and
/// the repeat, so tests are reproducible.
///
/// # Panics
/// Never: 24 bits fit into 32.
#[must_use]
#[allow(clippy::unwrap_used, reason = "24 bits fit into 32")]
pub fn noise(cell: Cell, repeat: u32, amplitude: f64) -> f64 {
    let number = cell.send.bytes(7) * 31 + cell.receive.bytes(1) * 17 + u64::from(repeat) * 101;
    let hash = u32::try_from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).unwrap();
    let uniform = f64::from(hash) / 16_777_216.0;
    1.0 + amplitude * (2.0 * uniform - 1.0)
}
