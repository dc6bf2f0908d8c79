//! A simulated transfer as the path of a diagnosis. The simulator counts everything, so the
//! evidence is exact and needs no samples. An intervention changes the scenario, which makes
//! interventions possible that a real machine does not allow, such as a faster processor.

use super::setup::Plain;
use super::{DiagnosedPath, LARGER_BUFFER, LARGER_WRITES};
use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_evidence::stats::as_f64;
use linerate_evidence::{
    Change, ConnectionEvidence, Distribution, EndEvidence, Framing, QueueEvidence, RunEvidence,
    SenderStates, ThreadEvidence,
};
use linerate_sim::{Blueprint, Keep, Outcome, ProgramReport, Scenario, TcpReport, TransferOptions};
use linerate_sim_tools::{ScenarioError, load};
use linerate_units::{Duration, Instant, Rate};
use std::collections::BTreeSet;

/// Factors by which the intervention of a faster processor multiplies processing times. The first
/// factor that the scenario accepts is used; a scenario may reject the smaller ones.
const FASTER: [f64; 3] = [0.5, 0.65, 0.8];
/// Factor by which the intervention of a faster link multiplies the bit rate.
const FASTER_LINK: f64 = 1.25;
/// Factor by which the intervention of longer queues multiplies the limit of each queue.
const LONGER_QUEUE: f64 = 10.0;
/// Minimum idle share of the receiving machine's time. If the machine was idle for less of the run,
/// it may have been too slow for the data.
const KEEPS_UP: f64 = 0.1;
/// Milliseconds in a second.
const MILLIS: f64 = 1e3;

/// The path of the first bulk transfer in a scenario.
#[derive(Debug)]
pub struct SimPath {
    /// Name or file of the scenario.
    name: String,
    /// Changes of the scenario's parameters, each as `KEY=VALUE`.
    set: Vec<String>,
    /// Seed of the simulation.
    seed: u64,
    /// The evidence of the run without intervention; `None` before that run. A simulation is
    /// deterministic, so the run need not be repeated.
    plain: Option<RunEvidence>,
}

impl SimPath {
    /// Creates the path of the first bulk transfer in the scenario `name`. `set` changes parameters
    /// of the scenario, each as `KEY=VALUE`.
    ///
    /// # Errors
    /// The scenario does not exist, it refuses a parameter, or it has no bulk transfer.
    pub fn new(name: &str, set: &[String], seed: u64) -> Result<Self, BenchError> {
        let scenario = load(name, set)?;
        let blueprint = scenario.blueprint().map_err(ScenarioError::from)?;
        if blueprint.transfer().is_none() {
            let line = format!("{name} has no bulk transfer: use `linerate sim run {name}`");
            return Err(ScenarioError::Unfit(line).into());
        }
        Ok(Self { name: name.to_owned(), set: set.to_vec(), seed, plain: None })
    }

    /// Returns the maximum pacing rate with the intervention `change`; `None` if the intervention
    /// does not pace the sender.
    fn pacing_rate(&self, change: Change) -> Option<Rate> {
        let plain = Plain::of(self.plain.as_ref()?, None);
        plain.pacing_rate(change).map(Rate::from_bytes_per_second)
    }

    /// Returns the congestion window, in segments, at the moment when `bytes` have arrived. It is
    /// the final window of a second simulation that transfers only `bytes`. A simulation is
    /// deterministic, so both simulations have the same state at that moment. Returns `None` if the
    /// scenario refuses so few bytes.
    fn window_after(&self, bytes: u64) -> Option<u64> {
        let mut scenario = load(&self.name, &self.set).ok()?;
        let program = scenario.blueprint().ok()?.transfer()?.name.to_owned();
        scenario.set(&format!("{program}.bytes={bytes}")).ok()?;
        let blueprint = scenario.blueprint().ok()?;
        let outcome = blueprint.run(self.seed, &TransferOptions::default(), Keep::default());
        let source = outcome.program(&format!("{program}: source"))?.tcp.as_ref()?;
        Some(window_in_segments(source))
    }

    /// Returns the scenario and the options of a run with the intervention `change`; `None` if the
    /// scenario does not support the intervention.
    fn changed(
        &self,
        change: Option<Change>,
    ) -> Result<Option<(Scenario, TransferOptions)>, BenchError> {
        let (mut scenario, mut options) =
            (load(&self.name, &self.set)?, TransferOptions::default());
        let Some(change) = change else { return Ok(Some((scenario, options))) };
        let blueprint = scenario.blueprint().map_err(ScenarioError::from)?;
        let Some(program) = blueprint.transfer().map(|transfer| transfer.name.to_owned()) else {
            return Ok(None);
        };
        let send = format!("{program}.send_buffer");
        let receive = format!("{program}.receive_buffer");
        let is_made = match change {
            Change::SendBufferLarger => multiply(&mut scenario, &send, LARGER_BUFFER.into()),
            Change::SendBufferHalved => multiply(&mut scenario, &send, 0.5),
            Change::ReceiveBufferLarger => multiply(&mut scenario, &receive, LARGER_BUFFER.into()),
            Change::ReceiveBufferHalved => multiply(&mut scenario, &receive, 0.5),
            Change::LargerWrites => {
                multiply(&mut scenario, &format!("{program}.write_size"), LARGER_WRITES.into())
            }
            Change::SenderCpuFaster | Change::ReceiverCpuFaster => {
                let end = if change == Change::SenderCpuFaster { "from" } else { "to" };
                word(&scenario, &format!("{program}.{end}")).and_then(|host| {
                    let key = format!("{host}.machine.scale");
                    FASTER.iter().find_map(|&factor| multiply(&mut scenario, &key, factor))
                })
            }
            Change::LinkFaster => {
                let slowest = blueprint.rate().bits_per_second();
                let is_slowest = |key: &str, value: &str| {
                    let rate = value.parse::<Rate>();
                    key.ends_with(".rate")
                        && rate.is_ok_and(|rate| rate.bits_per_second() == slowest)
                };
                multiply_all(&mut scenario, &is_slowest, FASTER_LINK)
            }
            Change::QueueLonger => {
                let is_limit = |key: &str, _: &str| key.ends_with(".queue.limit");
                multiply_all(&mut scenario, &is_limit, LONGER_QUEUE)
            }
            Change::Paced | Change::PacedAtHalf | Change::PacedAtTwice => {
                options.max_pacing_rate = self.pacing_rate(change);
                options.max_pacing_rate.map(|_| ())
            }
            _ => None,
        };
        Ok(is_made.map(|()| (scenario, options)))
    }
}

impl DiagnosedPath for SimPath {
    fn description(&self) -> String {
        format!("linerate's TCP on the simulated machines of {}", self.name)
    }

    fn run(
        &mut self,
        change: Option<Change>,
        _time: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<RunEvidence>, BenchError> {
        if let (None, Some(plain)) = (change, &self.plain) {
            return Ok(Some(plain.clone()));
        }
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let Some((scenario, options)) = self.changed(change)? else { return Ok(None) };
        let blueprint = scenario.blueprint().map_err(ScenarioError::from)?;
        let outcome = blueprint.run(self.seed, &options, Keep::default());
        let mut evidence =
            evidence(&blueprint, &outcome).ok_or_else(|| BenchError::ConnectionLost {
                bytes: 0,
                what: "there was no connection in the simulated network".to_owned(),
            })?;
        if change.is_none() {
            evidence.sender.connection.earlier_congestion_window =
                evidence.receiver.bytes.and_then(|bytes| self.window_after(bytes / 2));
            self.plain = Some(evidence.clone());
        }
        Ok(Some(RunEvidence { change, ..evidence }))
    }
}

/// Returns the value of the parameter `key` as a number; `None` if there is no such parameter, or
/// if its value does not begin with a number.
fn number(scenario: &Scenario, key: &str) -> Option<f64> {
    word(scenario, key)?.parse().ok()
}

/// Returns the first word in the value of the parameter `key`; `None` if there is no such
/// parameter.
fn word(scenario: &Scenario, key: &str) -> Option<String> {
    let mut settings = scenario.settings().iter();
    let (_, setting) = settings.find(|(known, _)| short(known) == key)?;
    setting.to_string().split_whitespace().next().map(str::to_owned)
}

/// Multiplies the parameter `key` of the scenario by `factor`. Returns `None` if there is no such
/// parameter, or if the scenario refuses the product.
fn multiply(scenario: &mut Scenario, key: &str, factor: f64) -> Option<()> {
    let value = (number(scenario, key)? * factor * 1e4).round() / 1e4;
    scenario.set(&format!("{key}={value}")).ok()
}

/// Multiplies several parameters of the scenario by `factor`: those for whose name and value
/// `is_meant` returns true. Returns `None` if there is no such parameter, or if the scenario
/// refuses a product.
fn multiply_all(
    scenario: &mut Scenario,
    is_meant: &dyn Fn(&str, &str) -> bool,
    factor: f64,
) -> Option<()> {
    let settings = scenario.settings().iter();
    let meant = settings.filter(|(key, setting)| is_meant(key, &setting.to_string()));
    let keys: Vec<String> = meant.map(|(key, _)| short(key).to_owned()).collect();
    (!keys.is_empty()).then_some(())?;
    keys.iter().try_for_each(|key| multiply(scenario, key, factor))
}

/// Returns the short name of a parameter, without its table, as `--set` accepts it.
fn short(key: &str) -> &str {
    linerate_sim_tools::Settings::short_key(key)
}

/// Returns the evidence of both ends of a simulated transfer; `None` if no data was transferred.
fn evidence(blueprint: &Blueprint, outcome: &Outcome) -> Option<RunEvidence> {
    let transfer = blueprint.transfer()?;
    let source = outcome.program(&format!("{}: source", transfer.name))?;
    let sink = outcome.program(&format!("{}: sink", transfer.name))?;
    let began = source.began?;
    let seconds = sink.ended.unwrap_or(outcome.time).since(began).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let bytes_per_second = as_f64(sink.bytes) / seconds;
    let mut sender = end(source, outcome, seconds);
    let mut receiver = end(sink, outcome, seconds);
    let sent = source.tcp.as_ref()?;
    sender.connection = connection(sent, seconds);
    sender.states = Some(states(sent, seconds));
    if idle(sink, outcome).is_some_and(|share| share >= KEEPS_UP) {
        let unread = Some(Distribution { mean: 0.0, max: 0 });
        receiver.queues = QueueEvidence { unread, ..QueueEvidence::default() };
    }
    let rate = as_f64(blueprint.rate().bits_per_second());
    let on_wire = if blueprint.is_shared() {
        // A shared wire is also occupied by acknowledgements and collisions of all stations. The
        // rate on it is therefore computed from the time in which it was busy, and not from the
        // throughput.
        let wire = outcome.wires.first()?;
        rate * wire.counted.busy.as_secs_f64() / outcome.time.as_secs_f64()
    } else {
        let payload = sent.information.effective_mss.max(1);
        let options = if sent.information.timestamps { 12 } else { 0 };
        shared_rate(blueprint, outcome) * Framing::ethernet(options).bits_per_byte(payload)
    };
    Some(RunEvidence {
        change: None,
        bytes_per_second,
        sender,
        receiver,
        link_bits_per_second: Some(rate),
        wire_bits_per_second: Some(on_wire),
    })
}

/// Returns the total throughput, in bytes per second, of all transfers over the slowest link in the
/// path of the diagnosed transfer.
fn shared_rate(blueprint: &Blueprint, outcome: &Outcome) -> f64 {
    let names: BTreeSet<String> =
        blueprint.sharing_the_narrowest().map(|name| format!("{name}: sink")).collect();
    let sharing = outcome.programs.iter().filter(|program| names.contains(&program.name));
    let rate = |program: &ProgramReport| {
        let seconds = program.ended.unwrap_or(outcome.time).since(program.began?).as_secs_f64();
        (seconds > 0.0).then(|| as_f64(program.bytes) / seconds)
    };
    sharing.filter_map(rate).sum()
}

/// Returns the share of the run in which the machine of `program` was idle; `None` if the outcome
/// does not contain that machine.
fn idle(program: &ProgramReport, outcome: &Outcome) -> Option<f64> {
    let machine = outcome.machines.iter().find(|machine| machine.name == program.host)?;
    Some(outcome.idle(machine))
}

/// Returns the evidence of one end of the transfer, but not of its connection. All work of a
/// machine counts as work of the program's thread, because no other program runs on the machine.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds of a simulated run"
)]
fn end(program: &ProgramReport, outcome: &Outcome, seconds: f64) -> EndEvidence {
    let busy = idle(program, outcome).map(|share| ((1.0 - share) * seconds * 1e9) as u64);
    let machine = outcome.machines.iter().find(|machine| machine.name == program.host);
    let dropped = machine.map_or(0, |machine| machine.nic.receive_drops + machine.nic.receive_fifo);
    EndEvidence {
        seconds: Some(seconds),
        bytes: Some(program.bytes),
        thread: ThreadEvidence { cpu_nanos: busy, ..ThreadEvidence::default() },
        system: [("nic.rx_dropped".to_owned(), dropped)].into(),
        ..EndEvidence::default()
    }
}

/// Returns the evidence of the connection at the sending end.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds of a simulated run"
)]
fn connection(tcp: &TcpReport, seconds: f64) -> ConnectionEvidence {
    let (state, counted) = (&tcp.information, &tcp.statistics);
    let exact = |value: u64| Some(Distribution { mean: as_f64(value), max: value });
    let segment = u64::from(state.effective_mss.max(1));
    let sent = counted.data_segments_sent;
    let [_, window, buffer] = shares(tcp, seconds);
    let micros = |share: f64| Some((share * seconds * 1e6) as u64);
    ConnectionEvidence {
        receive_window_limited_micros: micros(window),
        send_buffer_limited_micros: micros(buffer),
        data_segments_sent: Some(sent),
        retransmitted_segments: Some(counted.retransmitted_segments),
        whole_data_segments: Some(sent),
        whole_retransmitted_segments: Some(counted.retransmitted_segments),
        // A loss event comprises all losses within one round trip, because one recovery repairs
        // them all. The recoveries are counted: fast retransmissions and timeouts.
        loss_events: Some(counted.fast_retransmissions + counted.retransmission_timeouts),
        retransmission_timeouts: Some(counted.retransmission_timeouts),
        path_mtu: Some(state.path_mtu.into()),
        segment_bytes: Some(segment),
        congestion_window: exact(window_in_segments(tcp)),
        slow_start_threshold: Some(u64::from(state.slow_start_threshold) / segment),
        round_trip_micros: state.smoothed_round_trip.and_then(|time| exact(time.as_micros())),
        shortest_round_trip_micros: state.shortest_round_trip.map(Duration::as_micros),
        peer_window: exact(u64::from(state.send_window.max(1))),
        ..ConnectionEvidence::default()
    }
}

/// Returns the congestion window at the end of the run, in segments.
fn window_in_segments(tcp: &TcpReport) -> u64 {
    let state = &tcp.information;
    u64::from(state.congestion_window) / u64::from(state.effective_mss.max(1))
}

/// Returns three shares of `seconds`, the duration of the transfer: with data in flight, limited by
/// the peer's window, and limited by the send buffer.
fn shares(tcp: &TcpReport, seconds: f64) -> [f64; 3] {
    let state = &tcp.information;
    let end: Instant = state.last_received.max(state.last_sent);
    let share = |time: Duration| (time.as_secs_f64() / seconds).min(1.0);
    let busy = &state.busy;
    [share(busy.total(end)), share(busy.for_peer_window(end)), share(busy.for_send_buffer(end))]
}

/// Returns the share of the run that the sender spent in each state, computed from the times that
/// the connection measures. It does not measure waits for the congestion window separately. They
/// count as `held_back`, so the share of a full congestion window is zero.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds of a simulated run, as the number of samples"
)]
fn states(tcp: &TcpReport, seconds: f64) -> SenderStates {
    let [busy, window_full, buffer_full] = shares(tcp, seconds);
    SenderStates {
        samples: (seconds * MILLIS).max(1.0) as u64,
        buffer_full,
        out_of_data: 1.0 - busy,
        window_full,
        congestion_window_full: 0.0,
        held_back: (busy - window_full - buffer_full).max(0.0),
    }
}
