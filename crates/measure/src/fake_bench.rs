//! A bench that transfers no data, for tests of the code that executes and saves runs.

use crate::bench::{Bench, BufferRequest, RunRequest};
use crate::bench_error::BenchError;
use crate::machine_facts::Invocation;
use crate::plan::{BenchKind, Draft, Plan};
use linerate_ends::Interrupt;
use linerate_evidence::sample_data::{bench_facts, small_design, start};
use linerate_evidence::{BenchFacts, Counters, Floor, RunOutcome, names};
use linerate_units::Duration;
use std::io;

/// Returns a plan of 2 × 2 cells with two runs each.
pub(crate) fn small_plan() -> Plan {
    let design = small_design();
    let mut draft = Draft::of_1988(BenchKind::Stack);
    draft.send_buffers = design.send_buffers;
    draft.receive_buffers = design.receive_buffers;
    draft.repeat = design.repeat;
    draft.blocks = design.blocks;
    Plan::new(draft).unwrap()
}

/// Returns a made-up command line and version.
pub(crate) fn invocation() -> Invocation {
    Invocation { options: vec!["sweep".to_owned()], versions: start().facts.versions }
}

/// A bench that transfers no data. The rate of its runs in MB/s is the number of packets in the
/// smaller of the two buffers.
pub(crate) struct FakeBench {
    /// Number of data bytes in a full segment.
    pub(crate) payload: u32,
    /// The interrupt that the bench itself raises, during the run that
    /// [`FakeBench::interrupting_after`] sets.
    pub(crate) interrupt: Interrupt,
    /// The time that the bench reports for each floor measurement.
    pub(crate) floor_time: Duration,
    /// The requested send buffer of each floor measurement so far.
    pub(crate) floors: Vec<BufferRequest>,
    /// The waits for a processor that the bench reports for its first runs. The value for a run is
    /// a share of the source's time, in thousandths. Runs after the end of the list report no
    /// waits. If the list is empty, no run reports counters of waits.
    pub(crate) cpu_waits: Vec<u64>,
    /// Has the bench been ended?
    pub(crate) is_ended: bool,
    /// Does [`Bench::end`] report that the capture is incomplete?
    pub(crate) end_fails: bool,
    /// Number of successful runs so far.
    runs: u32,
    interrupts_after: Option<u32>,
    fails_after: Option<u32>,
}

impl FakeBench {
    pub(crate) fn new() -> Self {
        Self {
            payload: bench_facts().segment_payload,
            interrupt: Interrupt::default(),
            floor_time: Duration::from_millis(1),
            floors: Vec::new(),
            cpu_waits: Vec::new(),
            is_ended: false,
            end_fails: false,
            runs: 0,
            interrupts_after: None,
            fails_after: None,
        }
    }

    /// Creates a bench that raises its interrupt during run number `runs`, counted from one. This
    /// run still succeeds.
    pub(crate) fn interrupting_after(runs: u32) -> Self {
        Self { interrupts_after: Some(runs), ..Self::new() }
    }

    /// Creates a bench whose runs fail after `runs` successful runs.
    pub(crate) fn failing_after(runs: u32) -> Self {
        Self { fails_after: Some(runs), ..Self::new() }
    }
}

impl Bench for FakeBench {
    fn facts(&self) -> BenchFacts {
        BenchFacts { segment_payload: self.payload, ..bench_facts() }
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
        let mut counters = Counters::default();
        if !self.cpu_waits.is_empty() {
            let waited = self.cpu_waits.get(self.runs as usize - 1).copied().unwrap_or(0);
            counters.sender.set(names::THREAD_MICROS, 1_000);
            counters.sender.set(names::CPU_WAIT_MICROS, waited);
        }
        Ok(RunOutcome {
            bytes: request.bytes,
            time: Duration::from_millis(request.bytes / 1_000 / u64::from(packets)),
            complete: true,
            verified: None,
            send_granted: request.send_buffer.bytes,
            receive_granted: request.receive_buffer.bytes,
            counters,
        })
    }

    fn end(&mut self) -> Result<(), BenchError> {
        self.is_ended = true;
        if self.end_fails {
            return Err(BenchError::Capture { source: io::ErrorKind::StorageFull.into() });
        }
        Ok(())
    }
}
