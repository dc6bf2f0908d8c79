//! The outcome of a simulated run in the form of JSON.

use crate::describe::part;
use linerate_sim::{
    NicStatistics, Outcome, ProgramReport, QueueStatistics, RelayOutcome, RelayStatistics,
};
use linerate_units::Span;
use serde::Serialize;
use std::collections::BTreeMap;

/// The outcome of a run, with the fields of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    scenario: String,
    seed: u64,
    seconds: f64,
    events: u64,
    complete: bool,
    programs: Vec<Program>,
    machines: Vec<Machine>,
    relays: Vec<Relay>,
    wires: Vec<Wire>,
}

/// The results of a router or a bridge.
#[derive(Clone, Debug, Serialize)]
struct Relay {
    name: String,
    busy_seconds: f64,
    #[serde(flatten)]
    counted: RelayStatistics,
    nics: Vec<RelayNic>,
}

#[derive(Clone, Debug, Serialize)]
struct RelayNic {
    name: String,
    passed_on: u64,
    dropped: u64,
    marked: u64,
    waited_seconds: f64,
    longest_wait_seconds: f64,
    #[serde(flatten)]
    nic: NicStatistics,
}

#[derive(Clone, Debug, Serialize)]
struct Program {
    name: String,
    host: String,
    bytes: u64,
    seconds: Option<f64>,
    bytes_per_second: Option<f64>,
    complete: bool,
    retransmitted_segments: Option<u64>,
    retransmission_timeouts: Option<u64>,
    delayed_ack_timeouts: Option<u64>,
    counted: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Serialize)]
struct Machine {
    name: String,
    idle_share: f64,
    busy_for_nics_seconds: f64,
    busy_for_network_seconds: f64,
    busy_for_tasks_seconds: f64,
    /// Results of each processor, if the machine has several; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processors: Vec<Processor>,
    #[serde(flatten)]
    nic: NicStatistics,
}

#[derive(Clone, Debug, Serialize)]
struct Processor {
    idle_share: f64,
    busy_for_nics_seconds: f64,
    busy_for_network_seconds: f64,
    busy_for_tasks_seconds: f64,
    /// Counters of the NIC queue that the processor serves; `None` if it serves none.
    queue: Option<QueueStatistics>,
}

#[derive(Clone, Debug, Serialize)]
struct Wire {
    name: String,
    stations: Vec<String>,
    frames: u64,
    bytes: u64,
    busy_share: f64,
    collisions: u64,
    frames_by_collisions: Vec<u64>,
    given_up: u64,
    late_collisions: u64,
    backoff_seconds: f64,
    /// Numbers of backoffs by their duration: 0 slot times, 1, 2 to 3, 4 to 7 …
    backoffs_by_slots: Vec<u64>,
    /// Number of frames that the medium lost, damaged, or delayed so that later frames may arrive
    /// before them.
    impaired: u64,
    /// Number of frames that a switch did not forward because their sender had aborted them.
    discarded: u64,
    passed_on: u64,
    dropped: u64,
    marked: u64,
    waited_seconds: f64,
    longest_wait_seconds: f64,
}

impl Record {
    /// Creates the record of a run.
    #[must_use]
    pub fn new(scenario: &str, seed: u64, outcome: &Outcome) -> Self {
        let seconds = outcome.time.as_secs_f64();
        let wires = outcome.wires.iter().map(|wire| Wire {
            name: wire.name.clone(),
            stations: wire.stations.clone(),
            frames: wire.counted.frames,
            bytes: wire.counted.bytes,
            busy_share: part(wire.counted.busy, seconds),
            collisions: wire.counted.collisions,
            frames_by_collisions: wire.counted.attempts.to_vec(),
            given_up: wire.counted.given_up,
            late_collisions: wire.counted.late,
            backoff_seconds: wire.counted.backoff.as_secs_f64(),
            backoffs_by_slots: wire.counted.backoffs.to_vec(),
            impaired: wire.counted.impaired,
            discarded: wire.counted.discarded,
            passed_on: wire.counted.passed,
            dropped: wire.counted.dropped,
            marked: wire.counted.marked,
            waited_seconds: wire.counted.waited.as_secs_f64(),
            longest_wait_seconds: wire.counted.longest_wait.as_secs_f64(),
        });
        Self {
            scenario: scenario.to_owned(),
            seed,
            seconds,
            events: outcome.events,
            complete: outcome.complete,
            programs: outcome.programs.iter().map(Program::new).collect(),
            machines: outcome
                .machines
                .iter()
                .map(|machine| Machine::new(outcome, machine))
                .collect(),
            relays: outcome.relays.iter().map(Relay::new).collect(),
            wires: wires.collect(),
        }
    }
}

impl Program {
    fn new(program: &ProgramReport) -> Self {
        let counted = program.tcp.as_ref().map(|tcp| &tcp.statistics);
        Self {
            name: program.name.clone(),
            host: program.host.clone(),
            bytes: program.bytes,
            seconds: program.time().map(Span::as_secs_f64),
            bytes_per_second: program.bytes_per_second(),
            complete: program.complete,
            retransmitted_segments: counted.map(|counted| counted.retransmitted_segments),
            retransmission_timeouts: counted.map(|counted| counted.retransmission_timeouts),
            delayed_ack_timeouts: counted.map(|counted| counted.delayed_ack_timeouts),
            counted: program.counted.iter().copied().collect(),
        }
    }
}

impl Relay {
    fn new(relay: &RelayOutcome) -> Self {
        let nics = relay.nics.iter().map(|nic| RelayNic {
            name: nic.name.clone(),
            passed_on: nic.egress.passed,
            dropped: nic.egress.dropped,
            marked: nic.egress.marked,
            waited_seconds: nic.egress.waited.as_secs_f64(),
            longest_wait_seconds: nic.egress.longest_wait.as_secs_f64(),
            nic: nic.nic,
        });
        Self {
            name: relay.name.clone(),
            busy_seconds: relay.busy.as_secs_f64(),
            counted: relay.counted,
            nics: nics.collect(),
        }
    }
}

impl Machine {
    fn new(outcome: &Outcome, machine: &linerate_sim::MachineOutcome) -> Self {
        let [nics, network, tasks] = machine.levels.map(Span::as_secs_f64);
        Self {
            name: machine.name.clone(),
            idle_share: outcome.idle(machine),
            busy_for_nics_seconds: nics,
            busy_for_network_seconds: network,
            busy_for_tasks_seconds: tasks,
            processors: match &machine.processors[..] {
                [_] => Vec::new(),
                several => several.iter().map(|one| Processor::new(outcome, one)).collect(),
            },
            nic: machine.nic,
        }
    }
}

impl Processor {
    fn new(outcome: &Outcome, processor: &linerate_sim::ProcessorOutcome) -> Self {
        let [nics, network, tasks] = processor.levels.map(Span::as_secs_f64);
        Self {
            idle_share: outcome.idle_of(processor),
            busy_for_nics_seconds: nics,
            busy_for_network_seconds: network,
            busy_for_tasks_seconds: tasks,
            queue: processor.queue,
        }
    }
}
