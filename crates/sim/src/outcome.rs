//! The results of a simulation.

use crate::measure::Measure;
use crate::medium::{EgressStatistics, MediumStatistics};
use crate::nic::{NicStatistics, QueueStatistics};
use crate::program::ProgramReport;
use crate::relay::RelayStatistics;
use crate::timeline::Timeline;
use crate::trace::Captured;
use linerate_stack::Medium;
use linerate_units::{Rate, Span, Tick};

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Simulated time at the end of the run.
    pub time: Tick,
    /// Number of events processed.
    pub events: u64,
    /// Whether all programs have finished within the time limit.
    pub complete: bool,
    /// Report of each program.
    pub programs: Vec<ProgramReport>,
    /// Results of each machine.
    pub machines: Vec<MachineOutcome>,
    /// Results of each router and bridge.
    pub relays: Vec<RelayOutcome>,
    /// Results of each wire.
    pub wires: Vec<WireOutcome>,
    /// Captured frames, if they were not streamed to the caller.
    pub frames: Vec<Captured>,
    /// The timeline, if one was recorded.
    pub timeline: Option<Timeline>,
}

/// Results of a machine.
#[derive(Clone, Debug)]
pub struct MachineOutcome {
    /// Name of the machine in the scenario.
    pub name: String,
    /// Sum of the busy times of all processors.
    pub busy: Span,
    /// Busy time at the priority levels of drivers, of IP and TCP, and of tasks.
    pub levels: [Span; 3],
    /// Results of each processor.
    pub processors: Vec<ProcessorOutcome>,
    /// Counters of the machine's NIC.
    pub nic: NicStatistics,
    /// Number of full-size frames that fit a receive ring of the machine's NIC.
    pub room: usize,
}

/// Results of a processor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorOutcome {
    /// Time for which the processor was busy.
    pub busy: Span,
    /// Busy time at the priority levels of drivers, of IP and TCP, and of tasks.
    pub levels: [Span; 3],
    /// Counters of the NIC queue that the processor serves, if it serves one.
    pub queue: Option<QueueStatistics>,
}

/// Results of a router or a bridge.
#[derive(Clone, Debug)]
pub struct RelayOutcome {
    /// Name of the relay in the scenario.
    pub name: String,
    /// Time for which the relay's processor was busy.
    pub busy: Span,
    /// Busy time at the priority levels of drivers, of forwarding, and of tasks (always zero).
    pub levels: [Span; 3],
    /// Counters of the relay.
    pub counted: RelayStatistics,
    /// Results of each NIC of the relay.
    pub nics: Vec<RelayNicOutcome>,
}

/// Results of a NIC of a router or a bridge.
#[derive(Clone, Debug)]
pub struct RelayNicOutcome {
    /// Name of the NIC in the scenario.
    pub name: String,
    /// Counters of the NIC.
    pub nic: NicStatistics,
    /// Counters of the egress queue in front of the NIC.
    pub egress: EgressStatistics,
}

/// Results of a wire.
#[derive(Clone, Debug)]
pub struct WireOutcome {
    /// Name of the wire in the scenario; `wire` if it is the only one.
    pub name: String,
    /// Bit rate of the wire. For a switch, it is that of the default cable, which applies to ports
    /// for which the scenario specifies no other one.
    pub rate: Rate,
    /// Header format of the wire's frames, such as Ethernet.
    pub framing: Medium,
    /// Counters of the medium.
    pub counted: MediumStatistics,
    /// Names of the stations in the order of their ports.
    pub stations: Vec<String>,
}

impl Outcome {
    /// Returns the report of the program with this name; `None` if there is no such program.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<&ProgramReport> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// Returns the reports of all programs with this name. A transfer or a dialogue has two
    /// programs; of these, only the one that measures the throughput is returned: the sink or the
    /// typist.
    fn programs_named(&self, name: &str) -> impl Iterator<Item = &ProgramReport> {
        let ends = [format!("{name}: sink"), format!("{name}: typist")];
        self.programs
            .iter()
            .filter(move |program| program.name == name || ends.contains(&program.name))
    }

    /// Returns the throughput of a program in bit/s. The transfer of an unfinished program is
    /// measured up to the end of the run. Returns `None` if the program has not begun to transfer.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
    fn goodput(&self, program: &ProgramReport) -> Option<f64> {
        let ended = program.ended.unwrap_or(self.time);
        let seconds = ended.since(program.began?).as_secs_f64();
        (seconds > 0.0).then(|| program.bytes as f64 * 8.0 / seconds)
    }

    fn goodput_of(&self, name: &str) -> Option<f64> {
        let rates: Option<Vec<f64>> =
            self.programs_named(name).map(|program| self.goodput(program)).collect();
        rates.filter(|rates| !rates.is_empty()).map(|rates| rates.iter().sum())
    }

    /// Returns a figure of the run: a rate in bit/s, a time in picoseconds, a fraction or a count.
    /// Returns `None` if the run has no such figure.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
    pub fn measure(&self, measure: &Measure) -> Option<f64> {
        let machine = |name: &str| self.machines.iter().find(|machine| machine.name == name);
        match measure {
            Measure::Goodput(names) => names.iter().map(|name| self.goodput_of(name)).sum(),
            Measure::LargerShare(names) => {
                let rates: Option<Vec<f64>> =
                    names.iter().map(|name| self.goodput_of(name)).collect();
                let rates = rates?;
                let all = Some(rates.iter().sum::<f64>()).filter(|&all| all > 0.0)?;
                rates.into_iter().reduce(f64::max).map(|most| most / all)
            }
            Measure::Spread(name) => {
                let rates: Option<Vec<f64>> =
                    self.programs_named(name).map(|program| self.goodput(program)).collect();
                spread(&rates?)
            }
            Measure::Idle(name) => machine(name).map(|machine| self.idle(machine)),
            Measure::Time(name, bytes) => {
                let rate = self.goodput_of(name).filter(|&rate| rate > 0.0)?;
                Some(*bytes as f64 * 8.0 / rate * 1e12)
            }
            Measure::Carried(name) => {
                let wire = self.wire(name.as_deref())?;
                let seconds = self.time.as_secs_f64();
                (seconds > 0.0).then(|| wire.counted.bytes as f64 * 8.0 / seconds)
            }
            Measure::Marked(name) => Some(self.queues(name.as_deref())?.marked as f64),
            Measure::FrameSize(name) => {
                let counted = &self.wire(name.as_deref())?.counted;
                (counted.frames > 0).then(|| counted.bytes as f64 / counted.frames as f64)
            }
            Measure::Waited(name) => {
                let counted = self.queues(name.as_deref())?;
                (counted.passed > 0)
                    .then(|| counted.waited.as_picos() as f64 / counted.passed as f64)
            }
            Measure::Counted(name, what) => {
                let counted = self.programs_named(name).flat_map(|program| &program.counted);
                let counts = counted.filter(|(name, _)| name == what).map(|&(_, count)| count);
                counts.reduce(|sum, count| sum + count).map(|sum| sum as f64)
            }
            Measure::Room(name) => machine(name).map(|machine| machine.room as f64),
            Measure::Lost(name) => match machine(name) {
                Some(machine) => Some(lost(&machine.nic) as f64),
                None => self.relay(name).map(|relay| relay.lost() as f64),
            },
        }
    }

    /// Returns the wire with this name, or the first wire for `None`.
    fn wire(&self, name: Option<&str>) -> Option<&WireOutcome> {
        self.wires.iter().find(|wire| name.is_none_or(|name| wire.name == name))
    }

    fn relay(&self, name: &str) -> Option<&RelayOutcome> {
        self.relays.iter().find(|relay| relay.name == name)
    }

    /// Returns the counters of the queues in the switch, router or bridge with this name. `None` as
    /// the name means the switch of the first wire.
    fn queues(&self, name: Option<&str>) -> Option<EgressStatistics> {
        if let Some(relay) = name.and_then(|name| self.relay(name)) {
            return Some(relay.queues());
        }
        let counted = &self.wire(name)?.counted;
        let &MediumStatistics { passed, waited, longest_wait, dropped, marked, .. } = counted;
        Some(EgressStatistics { passed, waited, longest_wait, dropped, marked })
    }

    /// Returns the number of frames that all wires have carried.
    #[must_use]
    pub fn frames_carried(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counted.frames).sum()
    }

    /// Returns the fraction of the run in which a machine's processors were idle, from 0 to 1. It
    /// is the mean over all processors.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a number of processors")]
    pub fn idle(&self, machine: &MachineOutcome) -> f64 {
        self.idle_share(machine.busy, machine.processors.len() as f64)
    }

    /// Returns the fraction of the run in which a processor was idle, from 0 to 1.
    #[must_use]
    pub fn idle_of(&self, processor: &ProcessorOutcome) -> f64 {
        self.idle_share(processor.busy, 1.0)
    }

    fn idle_share(&self, busy: Span, processors: f64) -> f64 {
        let time = self.time.since(Tick::ZERO).as_secs_f64() * processors;
        if time > 0.0 { 1.0 - busy.as_secs_f64() / time } else { 1.0 }
    }
}

impl RelayOutcome {
    /// Returns the counters of all queues in front of the relay's NICs, combined. Drops and marks
    /// are sums. The number of frames passed and their total delay are those of the queue with the
    /// largest total delay.
    #[must_use]
    pub fn queues(&self) -> EgressStatistics {
        EgressStatistics::of_all(self.nics.iter().map(|nic| nic.egress))
    }

    /// Returns the number of frames that the relay lost. This includes frames that its NICs failed
    /// to receive, that exceeded the queue in front of its processor, or that the queues in front
    /// of its NICs dropped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let nics = self.nics.iter().map(|nic| lost(&nic.nic)).sum::<u64>();
        nics + self.counted.overrun + self.queues().dropped
    }
}

/// Returns the number of frames that a NIC failed to receive.
const fn lost(nic: &NicStatistics) -> u64 {
    nic.receive_drops + nic.receive_fifo + nic.receive_errors
}

/// Returns the standard deviation of the numbers, or `None` if there are none.
fn spread(numbers: &[f64]) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "a number of stations")]
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (count > 0.0).then(|| (squares / count).sqrt())
}
