//! A bench that only pretends, and what else the tests of this crate share.

use crate::bench::{
    Bench, BenchError, BenchFacts, BufferRequest, Counters, Floor, Framing, RunOutcome, RunRequest,
};
use crate::buffers::BufferList;
use crate::diagnose::{Evidence, Finding};
use crate::facts::Facts;
use crate::interrupt::Interrupt;
use crate::maximum::Maximum;
use crate::plan::{BenchKind, Draft, Plan};
use crate::run::RunRecord;
use crate::store::Start;
use crate::sweep::{Cell, PlannedRun, schedule};
use crate::table::Table;
use linerate_units::Duration;
use std::collections::BTreeMap;

/// Two by two cells, twice each.
pub(crate) fn small_plan() -> Plan {
    let mut draft = Draft::of_1988(BenchKind::Stack);
    draft.send_buffers = "1..2".parse().unwrap();
    draft.receive_buffers = "1..2".parse().unwrap();
    draft.repeat = 2.try_into().unwrap();
    Plan::new(draft).unwrap()
}

/// Carries no bytes; its rate is the smaller buffer's packets in MB/s.
pub(crate) struct FakeBench {
    pub(crate) payload: u32,
    pub(crate) interrupt: Interrupt,
    /// How long each of its floors takes, and of which buffers they were.
    pub(crate) floor_time: Duration,
    pub(crate) floors: Vec<BufferRequest>,
    runs: u32,
    interrupts_after: Option<u32>,
    fails_after: Option<u32>,
}

impl FakeBench {
    pub(crate) fn new() -> Self {
        let interrupt = Interrupt::default();
        let (floor_time, floors) = (Duration::from_millis(1), Vec::new());
        Self {
            payload: 1_448,
            interrupt,
            floor_time,
            floors,
            runs: 0,
            interrupts_after: None,
            fails_after: None,
        }
    }

    pub(crate) fn interrupting_after(runs: u32) -> Self {
        Self { interrupts_after: Some(runs), ..Self::new() }
    }

    pub(crate) fn failing_after(runs: u32) -> Self {
        Self { fails_after: Some(runs), ..Self::new() }
    }
}

impl Bench for FakeBench {
    fn facts(&self) -> BenchFacts {
        BenchFacts {
            description: "nothing at both ends, over nothing".to_owned(),
            segment_payload: self.payload,
            framing: Framing::ethernet(12),
            line_rate: None,
            settings: BTreeMap::new(),
        }
    }

    fn floor(&mut self, request: &RunRequest, _: &Interrupt) -> Result<Option<Floor>, BenchError> {
        self.floors.push(request.send_buffer);
        Ok(Some(Floor { bytes: request.bytes, time: self.floor_time, how: "no copy".to_owned() }))
    }

    fn run(&mut self, request: &RunRequest, _: &Interrupt) -> Result<RunOutcome, BenchError> {
        if self.fails_after == Some(self.runs) {
            return Err(BenchError::ConnectionLost { bytes: 0, what: "pretended".to_owned() });
        }
        self.runs += 1;
        if self.interrupts_after == Some(self.runs) {
            self.interrupt.raise();
        }
        let packets =
            request.send_buffer.packets.unwrap().min(request.receive_buffer.packets.unwrap());
        let millis = request.bytes / 1_000 / u64::from(packets);
        Ok(outcome(request, Duration::from_millis(millis)))
    }
}

/// Everything that was asked for, in `time`.
fn outcome(request: &RunRequest, time: Duration) -> RunOutcome {
    RunOutcome {
        bytes: request.bytes,
        time,
        complete: true,
        verified: None,
        send_granted: request.send_buffer.bytes,
        receive_granted: request.receive_buffer.bytes,
        counters: Counters::default(),
    }
}

/// The record of a run at about `rate` bytes a second.
pub(crate) fn record(run: &PlannedRun, rate: f64) -> RunRecord {
    let bytes = 8 << 20;
    let buffer = |size: crate::buffers::BufferSize| BufferRequest {
        packets: size.packets(),
        bytes: size.bytes(1_448),
    };
    let request = RunRequest {
        send_buffer: buffer(run.cell.send),
        receive_buffer: buffer(run.cell.receive),
        bytes,
        max_time: Duration::from_secs(10),
        write_size: 65_536,
        read_size: 65_536,
        verify: false,
        seed: 1,
        congestion: None,
    };
    let time = std::time::Duration::from_secs_f64(8_388_608.0 / rate).into();
    RunRecord::new(run, &request, outcome(&request, time), &FakeBench::new().facts())
}

/// A start whose facts do not depend on the machine.
pub(crate) fn start() -> Start {
    let bench = FakeBench::new().facts();
    let floor = |micros| Floor {
        bytes: 8 << 20,
        time: Duration::from_micros(micros),
        how: "no copy".to_owned(),
    };
    let maximum = Maximum::of(&bench, None, &[floor(800), floor(810), floor(790)], 1);
    let text = include_str!("testing/facts.json");
    let mut facts: Facts = serde_json::from_str(text).unwrap();
    facts.bench = bench;
    Start { facts, maximum }
}

/// Buffers from 1 to `most` packets at both ends, four runs each.
pub(crate) fn square_plan(most: u32) -> Plan {
    let mut draft = Draft::of_1988(BenchKind::Stack);
    draft.send_buffers = BufferList::up_to(most.try_into().unwrap());
    draft.receive_buffers = draft.send_buffers.clone();
    Plan::new(draft).unwrap()
}

/// All runs of a plan, at the rates in bytes per second that `rate` makes up.
pub(crate) fn made_up_runs(plan: &Plan, rate: impl Fn(Cell, u32) -> f64) -> Vec<RunRecord> {
    schedule(plan).iter().map(|run| record(run, rate(run.cell, run.repeat))).collect()
}

/// A factor near 1 that depends on the cell and the repeat, as noise would.
pub(crate) fn noise(cell: Cell, repeat: u32, amplitude: f64) -> f64 {
    let number = cell.send.bytes(7) * 31 + cell.receive.bytes(1) * 17 + u64::from(repeat) * 101;
    let uniform =
        f64::from(u32::try_from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).unwrap())
            / 16_777_216.0;
    1.0 + amplitude * (2.0 * uniform - 1.0)
}

/// What one question answers about runs at made-up rates, with buffers from 1 to `most` packets.
pub(crate) fn findings_of(
    most: u32,
    rate: impl Fn(Cell, u32) -> f64,
    question: fn(&Evidence<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    let plan = square_plan(most);
    findings_of_runs(&plan, &made_up_runs(&plan, rate), question)
}

/// What one question answers about these runs.
pub(crate) fn findings_of_runs(
    plan: &Plan,
    runs: &[RunRecord],
    question: fn(&Evidence<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    question(&Evidence { plan, start: &start(), runs, table: &Table::new(plan, runs) })
}
