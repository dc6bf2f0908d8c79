//! What is kept of a simulated run: its figures and its timeline as JSON, its frames as a capture.

use super::figures::part;
use crate::bench::BenchError;
use linerate_link::capture_file::{CaptureWriter, Direction, Record as Packet};
use linerate_sim::{
    Blueprint, By, Captured, NicStatistics, Outcome, ProgramReport, QueueStatistics, RelayOutcome,
    RelayStatistics, Timeline, Window,
};
use linerate_stack::Capabilities;
use linerate_units::{Duration, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// A run, to be written as JSON.
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

/// A router or a bridge.
#[derive(Clone, Debug, Serialize)]
struct Relay {
    name: String,
    busy_seconds: f64,
    #[serde(flatten)]
    counted: RelayStatistics,
    cards: Vec<RelayCard>,
}

#[derive(Clone, Debug, Serialize)]
struct RelayCard {
    name: String,
    passed_on: u64,
    dropped: u64,
    marked: u64,
    waited_seconds: f64,
    longest_wait_seconds: f64,
    #[serde(flatten)]
    card: NicStatistics,
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
    busy_for_cards_seconds: f64,
    busy_for_network_seconds: f64,
    busy_for_tasks_seconds: f64,
    /// Each of them, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processors: Vec<Processor>,
    #[serde(flatten)]
    card: NicStatistics,
}

#[derive(Clone, Debug, Serialize)]
struct Processor {
    idle_share: f64,
    busy_for_cards_seconds: f64,
    busy_for_network_seconds: f64,
    busy_for_tasks_seconds: f64,
    /// What its queue of the card counted.
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
    /// Of no slot, of one, of two or three, of four to seven …
    backoffs_by_slots: Vec<u64>,
    /// Frames that the medium lost, damaged, or delivered behind later ones.
    impaired: u64,
    /// Frames that were broken off, and that a switch passed on to nobody.
    discarded: u64,
    passed_on: u64,
    dropped: u64,
    marked: u64,
    waited_seconds: f64,
    longest_wait_seconds: f64,
}

/// A timeline, to be written as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineRecord {
    scenario: String,
    seed: u64,
    from_seconds: f64,
    until_seconds: f64,
    /// Spans that there was no room for.
    left_out: u64,
    lanes: Vec<LaneRecord>,
}

#[derive(Clone, Debug, Serialize)]
struct LaneRecord {
    part: String,
    held: Vec<HeldRecord>,
}

#[derive(Clone, Debug, Serialize)]
struct HeldRecord {
    from_seconds: f64,
    until_seconds: f64,
    by: By,
    amount: u64,
}

impl TimelineRecord {
    /// The record of a timeline of this window.
    #[must_use]
    pub fn new(
        scenario: &str,
        seed: u64,
        window: Window,
        outcome: &Outcome,
        timeline: &Timeline,
    ) -> Self {
        let lanes = timeline.lanes.iter().map(|lane| LaneRecord {
            part: lane.part.clone(),
            held: lane
                .held
                .iter()
                .map(|held| HeldRecord {
                    from_seconds: held.from.as_secs_f64(),
                    until_seconds: held.until.as_secs_f64(),
                    by: held.by,
                    amount: held.amount,
                })
                .collect(),
        });
        Self {
            scenario: scenario.to_owned(),
            seed,
            from_seconds: window.from.as_secs_f64(),
            until_seconds: window.until.min(outcome.time).as_secs_f64(),
            left_out: timeline.left_out,
            lanes: lanes.collect(),
        }
    }
}

impl Record {
    /// The record of a run.
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
        let cards = relay.cards.iter().map(|card| RelayCard {
            name: card.name.clone(),
            passed_on: card.outlet.passed,
            dropped: card.outlet.dropped,
            marked: card.outlet.marked,
            waited_seconds: card.outlet.waited.as_secs_f64(),
            longest_wait_seconds: card.outlet.longest_wait.as_secs_f64(),
            card: card.card,
        });
        Self {
            name: relay.name.clone(),
            busy_seconds: relay.busy.as_secs_f64(),
            counted: relay.counted,
            cards: cards.collect(),
        }
    }
}

impl Machine {
    fn new(outcome: &Outcome, machine: &linerate_sim::MachineOutcome) -> Self {
        let [cards, network, tasks] = machine.levels.map(Span::as_secs_f64);
        Self {
            name: machine.name.clone(),
            idle_share: outcome.idle(machine),
            busy_for_cards_seconds: cards,
            busy_for_network_seconds: network,
            busy_for_tasks_seconds: tasks,
            processors: match &machine.processors[..] {
                [_] => Vec::new(),
                several => several.iter().map(|one| Processor::new(outcome, one)).collect(),
            },
            card: machine.card,
        }
    }
}

impl Processor {
    fn new(outcome: &Outcome, processor: &linerate_sim::ProcessorOutcome) -> Self {
        let [cards, network, tasks] = processor.levels.map(Span::as_secs_f64);
        Self {
            idle_share: outcome.idle_of(processor),
            busy_for_cards_seconds: cards,
            busy_for_network_seconds: network,
            busy_for_tasks_seconds: tasks,
            queue: processor.queue,
        }
    }
}

/// The frames of a run on their way into a capture, as those of interfaces of their own, a wire each.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    capture: &'a mut CaptureWriter,
    /// By wire; none of one that is not wanted.
    interfaces: Vec<Option<u32>>,
}

impl<'a> FrameWriter<'a> {
    /// Announces the wires of a run of this name; one wire only, if one is named.
    pub fn new(
        capture: &'a mut CaptureWriter,
        blueprint: &Blueprint,
        name: &str,
        only: Option<&str>,
    ) -> Self {
        let mtu = blueprint.transfer().map_or(1_500, |transfer| transfer.mtu);
        let wires = blueprint.wires().zip(blueprint.framings());
        let interfaces = wires.map(|(wire, (rate, framing))| {
            let capabilities = Capabilities { rate: Some(rate), ..Capabilities::new(framing, mtu) };
            let wanted = only.is_none_or(|only| wire == only);
            wanted.then(|| capture.add_interface(&format!("{name}, {wire}"), &capabilities))
        });
        Self { interfaces: interfaces.collect(), capture }
    }

    /// A frame has left its sender. Trouble with the file ends the capture, and not the run.
    pub fn handle_frame(&mut self, frame: &Captured) {
        let Some(&Some(interface)) = self.interfaces.get(usize::from(frame.wire)) else { return };
        let time = Duration::from_nanos(frame.at.as_picos() / 1_000);
        self.capture.write(&Packet {
            interface,
            time,
            direction: Direction::Received,
            bytes: &frame.bytes,
        });
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// [`BenchError::Capture`] if not all could be written.
    pub fn finish(self) -> Result<(), BenchError> {
        self.capture.flush();
        match self.capture.error() {
            Some(error) => {
                Err(BenchError::Capture { source: io::Error::new(error.kind(), error.to_string()) })
            }
            None => Ok(()),
        }
    }
}
