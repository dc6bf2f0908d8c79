//! What came of a world.

use crate::medium::{MediumStatistics, OutletStatistics};
use crate::nic::{NicStatistics, QueueStatistics};
use crate::program::ProgramReport;
use crate::published::Measure;
use crate::relay::RelayStatistics;
use crate::timeline::Timeline;
use crate::trace::Captured;
use linerate_stack::Medium;
use linerate_units::{Rate, Span, Tick};

/// What came of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How long the world lasted.
    pub time: Tick,
    /// Things that happened in it.
    pub events: u64,
    /// Did all programs that are waited for come to their end within the limit?
    pub complete: bool,
    /// What came of each program.
    pub programs: Vec<ProgramReport>,
    /// What came of each machine.
    pub machines: Vec<MachineOutcome>,
    /// What came of each router and bridge.
    pub relays: Vec<RelayOutcome>,
    /// What came of each wire.
    pub wires: Vec<WireOutcome>,
    /// Every frame, if they were to be kept and nobody else took them.
    pub frames: Vec<Captured>,
    /// Who held what when, if that was to be kept.
    pub timeline: Option<Timeline>,
}

/// What came of a machine.
#[derive(Clone, Debug)]
pub struct MachineOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// Time during which its processors worked, together.
    pub busy: Span,
    /// Of that, for cards, for the network, for tasks.
    pub levels: [Span; 3],
    /// What each of them did.
    pub processors: Vec<ProcessorOutcome>,
    /// What its card counted.
    pub card: NicStatistics,
    /// How many of the longest frames a queue of its card holds until the driver takes them.
    pub room: usize,
}

/// What came of a processor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorOutcome {
    /// Time during which it worked.
    pub busy: Span,
    /// Of that, for cards, for the network, for tasks.
    pub levels: [Span; 3],
    /// What its queue of the card counted; none if it serves none.
    pub queue: Option<QueueStatistics>,
}

/// What came of a router or a bridge.
#[derive(Clone, Debug)]
pub struct RelayOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// Time during which its processor worked.
    pub busy: Span,
    /// Of that, for cards, for deciding, and for nothing else.
    pub levels: [Span; 3],
    /// What it counted.
    pub counted: RelayStatistics,
    /// What came of each of its cards.
    pub cards: Vec<RelayCardOutcome>,
}

/// What came of a card of a router or a bridge.
#[derive(Clone, Debug)]
pub struct RelayCardOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// What it counted.
    pub card: NicStatistics,
    /// What happened to those that waited for it.
    pub outlet: OutletStatistics,
}

/// What came of a wire.
#[derive(Clone, Debug)]
pub struct WireOutcome {
    /// Its name in the scenario; `wire` if it is the only one.
    pub name: String,
    /// Its bit rate; of a switch, that of its own cables.
    pub rate: Rate,
    /// What its frames begin with.
    pub framing: Medium,
    /// What happened on it.
    pub counted: MediumStatistics,
    /// Who is on it, by place.
    pub stations: Vec<String>,
}

impl Outcome {
    /// What came of the program with this name.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<&ProgramReport> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// The programs of a name; of a transfer, the end where the bytes go.
    fn programs_named(&self, name: &str) -> impl Iterator<Item = &ProgramReport> {
        let ends = [format!("{name}: sink"), format!("{name}: typist")];
        self.programs
            .iter()
            .filter(move |program| program.name == name || ends.contains(&program.name))
    }

    /// What a program moved in a second, in bits; one that is not over has had all the time there was.
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

    /// A figure of the run, in bits a second, picoseconds, parts of one, or as it was counted; none if there is
    /// nothing to measure.
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
                Some(machine) => Some(lost(&machine.card) as f64),
                None => self.relay(name).map(|relay| relay.lost() as f64),
            },
        }
    }

    /// The wire of this name, or the first one.
    fn wire(&self, name: Option<&str>) -> Option<&WireOutcome> {
        self.wires.iter().find(|wire| name.is_none_or(|name| wire.name == name))
    }

    fn relay(&self, name: &str) -> Option<&RelayOutcome> {
        self.relays.iter().find(|relay| relay.name == name)
    }

    /// What happened in the queues of the switch, the router or the bridge of this name, or of the first wire.
    fn queues(&self, name: Option<&str>) -> Option<OutletStatistics> {
        if let Some(relay) = name.and_then(|name| self.relay(name)) {
            return Some(relay.queues());
        }
        let counted = &self.wire(name)?.counted;
        let &MediumStatistics { passed, waited, longest_wait, dropped, marked, .. } = counted;
        Some(OutletStatistics { passed, waited, longest_wait, dropped, marked })
    }

    /// Frames that crossed all wires.
    #[must_use]
    pub fn frames_carried(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counted.frames).sum()
    }

    /// The part of the time that a machine's processors had nothing to do, on average.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a number of processors")]
    pub fn idle(&self, machine: &MachineOutcome) -> f64 {
        self.idle_share(machine.busy, machine.processors.len() as f64)
    }

    /// The same of one of them.
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
    /// What happened in front of its cards, together; the waiting is that of the card where frames waited longest.
    #[must_use]
    pub fn queues(&self) -> OutletStatistics {
        OutletStatistics::of_all(self.cards.iter().map(|card| card.outlet))
    }

    /// Frames that it lost: on their way into its cards, in front of its processor, and in front of its cards.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let cards = self.cards.iter().map(|card| lost(&card.card)).sum::<u64>();
        cards + self.counted.overrun + self.queues().dropped
    }
}

/// Frames that a card has lost.
const fn lost(card: &NicStatistics) -> u64 {
    card.receive_drops + card.receive_fifo + card.receive_errors
}

/// The standard deviation of some numbers; none of none.
fn spread(numbers: &[f64]) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "a number of stations")]
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (count > 0.0).then(|| (squares / count).sqrt())
}
