//! A bench that only pretends, and what else the tests of this crate share.

use crate::bench::{Bench, BenchError, BenchFacts, Counters, Floor, Framing, RunOutcome, RunRequest};
use crate::facts::Facts;
use crate::interrupt::Interrupt;
use crate::maximum::Maximum;
use crate::plan::{BenchKind, Draft, Plan};
use crate::run::RunRecord;
use crate::runner::{Observer, Progress};
use crate::store::Start;
use crate::sweep::PlannedRun;
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
    runs: u32,
    interrupts_after: Option<u32>,
    fails_after: Option<u32>,
}

impl FakeBench {
    pub(crate) fn new() -> Self {
        let interrupt = Interrupt::default();
        Self { payload: 1_448, interrupt, runs: 0, interrupts_after: None, fails_after: None }
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
        let time = Duration::from_millis(1);
        Ok(Some(Floor { bytes: request.bytes, time, how: "no copy".to_owned() }))
    }

    fn run(&mut self, request: &RunRequest, _: &Interrupt) -> Result<RunOutcome, BenchError> {
        if self.fails_after == Some(self.runs) {
            return Err(BenchError::ConnectionLost { bytes: 0, what: "pretended".to_owned() });
        }
        self.runs += 1;
        if self.interrupts_after == Some(self.runs) {
            self.interrupt.raise();
        }
        let packets = request.send_buffer.packets.unwrap().min(request.receive_buffer.packets.unwrap());
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
    let buffer = |size: crate::buffers::BufferSize| crate::bench::BufferRequest {
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
    let floor =
        |micros| Floor { bytes: 8 << 20, time: Duration::from_micros(micros), how: "no copy".to_owned() };
    let maximum = Maximum::of(&bench, None, &[floor(800), floor(810), floor(790)], 1);
    let text = include_str!("testing/facts.json");
    let mut facts: Facts = serde_json::from_str(text).unwrap();
    facts.bench = bench;
    Start { facts, maximum }
}

/// Watches without a word.
pub(crate) struct Silent;

impl Observer for Silent {
    fn begins(&mut self, _: &Start, _: &Progress) {}
    fn run_begins(&mut self, _: &PlannedRun, _: &Progress) {}
    fn run_ended(&mut self, _: &RunRecord, _: &Progress) {}
}
