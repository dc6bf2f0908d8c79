//! The engine with linerate's TCP at both ends, on the machines and the medium of a scenario, in
//! virtual time.

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::plan::Plan;
use linerate_ends::Interrupt;
use linerate_evidence::{
    BenchFacts, Counters, EndCounters, Floor, Framing, LineRate, RunOutcome, names,
};
use linerate_link::capture_file::CaptureWriter;
use linerate_sim::{Blueprint, Family, Keep, Outcome, ProgramReport, TransferOptions};
use linerate_sim_tools::{FrameWriter, ScenarioError, load};
use linerate_tcp::{Config, Profile};
use std::collections::BTreeMap;

/// Number of bytes in a TCP header without options.
const TCP_HEADER: u32 = 20;
/// Number of bytes of the timestamp option, with padding.
const TIMESTAMPS: u32 = 12;

/// The bench for the simulated machines of a scenario.
#[derive(Debug)]
pub struct SimBench {
    blueprint: Blueprint,
    /// Name or file of the scenario.
    name: String,
    /// Configuration of the connections, without the buffers of a run.
    config: Config,
    family: Family,
    /// MTU of the plan in bytes.
    mtu: u16,
    /// Parameters of the scenario, for the facts of the sweep.
    settings: BTreeMap<String, String>,
    capture: Option<CaptureWriter>,
}

impl SimBench {
    /// Creates the bench for `plan`. If `capture` is given, all frames are written to the capture
    /// file.
    ///
    /// # Errors
    /// The scenario does not exist, or does not support the plan. The profile or the congestion
    /// control is unknown, or a receive buffer is too large.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let name = plan.scenario.clone().unwrap_or_default();
        let mut scenario = load(&name, &plan.set)?;
        if let Some(family) = plan.family {
            scenario.set(&format!("family={family}")).map_err(ScenarioError::from)?;
        }
        let blueprint = scenario.blueprint().map_err(ScenarioError::from)?;
        let transfer = blueprint.transfer().ok_or_else(|| {
            ScenarioError::Unfit(format!(
                "{name} has no bulk transfer: use `linerate sim run {name}`"
            ))
        })?;
        let (mut config, family) = (transfer.config, transfer.family);
        family.check_mtu("the plan", plan.mtu.into()).map_err(ScenarioError::from)?;
        if let Some(name) = &plan.profile {
            config = name
                .parse::<Profile>()
                .map_err(|_| unknown("profile", name, &Profile::ALL))?
                .config();
        }
        if let Some(name) = &plan.congestion {
            let all = linerate_tcp::CongestionName::ALL;
            config.congestion =
                name.parse().map_err(|_| unknown("congestion control", name, &all))?;
        }
        let settings = scenario
            .settings()
            .iter()
            .map(|(key, setting)| (format!("sim.{key}"), setting.to_string()));
        let settings = settings.collect();
        let bench = Self { settings, blueprint, name, config, family, mtu: plan.mtu, capture };
        bench.refuse_large_buffers(plan)?;
        Ok(bench)
    }

    /// Returns an error if a receive buffer exceeds 65,535 bytes and the TCPs do not scale windows.
    fn refuse_large_buffers(&self, plan: &Plan) -> Result<(), BenchError> {
        let largest = plan
            .receive_buffers
            .sizes()
            .iter()
            .map(|size| size.bytes(self.payload()))
            .max()
            .unwrap_or(0);
        if self.config.window_scaling || largest <= u64::from(u16::MAX) {
            return Ok(());
        }
        Err(BenchError::BufferTooLarge {
            which: "receive",
            requested: largest,
            granted: u16::MAX.into(),
            remedy: "the profile has no window scaling; ask for less, or use --profile modern"
                .to_owned(),
        })
    }

    /// Returns the number of data bytes in a full segment.
    fn payload(&self) -> u32 {
        let headers = ip_header(self.family) + TCP_HEADER + self.options();
        u32::from(self.mtu).saturating_sub(headers)
    }

    /// Returns the number of bytes of TCP options in every segment.
    const fn options(&self) -> u32 {
        if self.config.timestamps { TIMESTAMPS } else { 0 }
    }

    /// Returns the framing of the scenario's network. On a bus, data and acknowledgements take
    /// turns on one medium, so the time of acknowledgements counts. As in Van Jacobson's message of
    /// 1988, there is one acknowledgement for each data packet. An acknowledgement takes 76 byte
    /// times: a frame of 64 bytes, which is the minimum, and the gap.
    fn framing(&self) -> Framing {
        // `Framing` assumes an IPv4 header. The bytes by which an IPv6 header is longer are
        // therefore passed to it as TCP options.
        let longer = ip_header(self.family) - ip_header(Family::Ipv4);
        let framing = Framing::ethernet(self.options() + longer);
        if self.blueprint.is_shared() {
            Framing { acknowledgement: 76, segments_per_ack: 1, half_duplex: true, ..framing }
        } else {
            framing
        }
    }
}

impl Bench for SimBench {
    fn facts(&self) -> BenchFacts {
        let rate = self.blueprint.rate().bits_per_second();
        BenchFacts {
            description: format!(
                "linerate's TCP at both ends, in virtual time on the machines of {}",
                self.name
            ),
            segment_payload: self.payload(),
            framing: self.framing(),
            line_rate: Some(LineRate {
                bits_per_second: rate,
                source: format!("scenario {}", self.name),
            }),
            settings: self.settings.clone(),
        }
    }

    fn floor(
        &mut self,
        _request: &RunRequest,
        _interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError> {
        Ok(None)
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let options = TransferOptions {
            bytes: Some(request.bytes),
            send_buffer: Some(size(request.send_buffer.bytes)),
            receive_buffer: Some(size(request.receive_buffer.bytes)),
            write_size: Some(request.write_size),
            read_size: Some(request.read_size),
            verify: request.verify,
            config: Some(self.config),
            max_pacing_rate: None,
            mtu: Some(self.mtu.into()),
            limit: Some(request.max_time.into()),
            checks: false,
        };
        let keep = Keep { frames: self.capture.is_some(), timeline: None };
        let run = format!("seed {}", request.seed);
        let mut capture = self
            .capture
            .as_mut()
            .map(|capture| FrameWriter::new(capture, &self.blueprint, &run, None));
        let mut on_frame =
            |frame| capture.iter_mut().for_each(|capture| capture.handle_frame(&frame));
        let outcome = self.blueprint.run_watched(request.seed, &options, keep, &mut on_frame);
        capture
            .map_or(Ok(()), FrameWriter::finish)
            .map_err(|source| BenchError::Capture { source })?;
        self.outcome(request, &outcome)
    }
}

impl SimBench {
    /// Converts the outcome of a simulation to the outcome of a run.
    fn outcome(&self, request: &RunRequest, outcome: &Outcome) -> Result<RunOutcome, BenchError> {
        let (source, sink) =
            ends(&self.blueprint, outcome).ok_or_else(|| lost(0, "there is none"))?;
        let began = source.began.ok_or_else(|| lost(0, "there was no connection"))?;
        let ended = sink.ended.unwrap_or(outcome.time);
        if outcome.complete && !sink.complete {
            return Err(lost(sink.bytes, "data was lost in the simulated network"));
        }
        Ok(RunOutcome {
            bytes: sink.bytes,
            time: ended.since(began).into(),
            complete: sink.complete,
            verified: request.verify.then_some(sink.wrong_at.is_none()),
            send_granted: request.send_buffer.bytes,
            receive_granted: request.receive_buffer.bytes,
            counters: Counters {
                sender: counters(source, outcome),
                receiver: counters(sink, outcome),
            },
        })
    }
}

/// Returns the number of bytes in an IP header without options and extension headers.
fn ip_header(family: Family) -> u32 {
    u32::try_from(family.header_length()).unwrap_or(u32::MAX)
}

/// Returns the reports on the source and the sink of the scenario's first bulk transfer; `None` if
/// the scenario has no bulk transfer.
fn ends<'a>(
    blueprint: &Blueprint,
    outcome: &'a Outcome,
) -> Option<(&'a ProgramReport, &'a ProgramReport)> {
    let name = blueprint.transfer()?.name;
    Some((outcome.program(&format!("{name}: source"))?, outcome.program(&format!("{name}: sink"))?))
}

/// Returns the counters of the source or the sink: those of its connection and of its machine.
fn counters(program: &ProgramReport, outcome: &Outcome) -> EndCounters {
    let mut end = EndCounters::default();
    if let Some(tcp) = &program.tcp {
        let counted = &tcp.statistics;
        for (name, amount) in [
            ("segments_received", counted.segments_received),
            ("segments_sent", counted.segments_sent),
            ("pure_acks_sent", counted.pure_acks_sent),
            (names::DATA_SEGMENTS_SENT, counted.data_segments_sent),
            (names::RETRANSMITTED_SEGMENTS, counted.retransmitted_segments),
            (names::RETRANSMISSION_TIMEOUTS, counted.retransmission_timeouts),
            (names::DELAYED_ACK_TIMEOUTS, counted.delayed_ack_timeouts),
            (names::ZERO_WINDOW_PROBES, counted.window_probes),
            (names::SMALL_WINDOW_TIMEOUTS, counted.small_window_timeouts),
            (names::ZERO_WINDOWS_RECEIVED, counted.zero_windows_received),
        ] {
            end.set(name, amount);
        }
    }
    if let Some(machine) = outcome.machines.iter().find(|machine| machine.name == program.host) {
        let nic = &machine.nic;
        end.set("collisions", nic.collisions);
        end.set("interrupts", nic.interrupts);
        end.set(names::DROPPED_FRAMES, nic.receive_drops + nic.receive_fifo + nic.transmit_drops);
        end.set("cpu_busy_micros", machine.busy.as_picos() / 1_000_000);
    }
    end
}

fn unknown(what: &'static str, name: &str, known: &[impl ToString]) -> BenchError {
    let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    BenchError::UnknownName { what, name: name.to_owned(), known }
}

fn lost(bytes: u64, what: &str) -> BenchError {
    BenchError::ConnectionLost { bytes, what: what.to_owned() }
}
