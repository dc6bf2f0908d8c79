//! What came of a world.

use crate::medium::MediumStatistics;
use crate::nic::NicStatistics;
use crate::program::ProgramReport;
use crate::published::Measure;
use crate::timeline::Timeline;
use crate::trace::Captured;
use linerate_units::{Span, Tick};

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
    /// What came of each wire.
    pub wires: Vec<WireOutcome>,
    /// Every frame, if they were to be kept.
    pub frames: Vec<Captured>,
    /// Who held what when, if that was to be kept.
    pub timeline: Option<Timeline>,
}

/// What came of a machine.
#[derive(Clone, Debug)]
pub struct MachineOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// Time during which its processor worked.
    pub busy: Span,
    /// Of that, for cards, for the network, for tasks.
    pub levels: [Span; 3],
    /// What its card counted.
    pub card: NicStatistics,
    /// How many of the longest frames its card holds until the driver takes them.
    pub room: usize,
}

/// What came of a wire.
#[derive(Clone, Debug)]
pub struct WireOutcome {
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
        self.programs.iter().filter(move |program| program.name == name || ends.contains(&program.name))
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
                let rates: Option<Vec<f64>> = names.iter().map(|name| self.goodput_of(name)).collect();
                let rates = rates?;
                let all: f64 = rates.iter().sum();
                rates.into_iter().reduce(f64::max).map(|most| most / all)
            }
            Measure::Spread(name) => {
                let rates: Option<Vec<f64>> =
                    self.programs_named(name).map(|program| self.goodput(program)).collect();
                spread(&rates?)
            }
            Measure::Idle(name) => machine(name).map(|machine| self.idle(machine)),
            Measure::Time(name, bytes) => Some(*bytes as f64 * 8.0 / self.goodput_of(name)? * 1e12),
            Measure::Carried => {
                let wire = self.wires.first()?;
                Some(wire.counted.bytes as f64 * 8.0 / self.time.as_secs_f64())
            }
            Measure::Marked => Some(self.wires.first()?.counted.marked as f64),
            Measure::FrameSize => {
                let counted = &self.wires.first()?.counted;
                (counted.frames > 0).then(|| counted.bytes as f64 / counted.frames as f64)
            }
            Measure::Waited => {
                let counted = &self.wires.first()?.counted;
                (counted.passed > 0).then(|| counted.waited.as_picos() as f64 / counted.passed as f64)
            }
            Measure::Counted(name, what) => {
                let counted = self.programs_named(name).flat_map(|program| &program.counted);
                let counts = counted.filter(|(name, _)| name == what).map(|&(_, count)| count);
                counts.reduce(|sum, count| sum + count).map(|sum| sum as f64)
            }
            Measure::Room(name) => machine(name).map(|machine| machine.room as f64),
            Measure::Lost(name) => machine(name).map(|machine| {
                let card = &machine.card;
                (card.receive_drops + card.receive_fifo + card.receive_errors) as f64
            }),
        }
    }

    /// Frames that crossed all wires.
    #[must_use]
    pub fn frames_carried(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counted.frames).sum()
    }

    /// The part of the time that a machine's processor had nothing to do.
    #[must_use]
    pub fn idle(&self, machine: &MachineOutcome) -> f64 {
        let time = self.time.since(Tick::ZERO).as_secs_f64();
        if time > 0.0 { 1.0 - machine.busy.as_secs_f64() / time } else { 1.0 }
    }
}

/// The standard deviation of some numbers; none of none.
fn spread(numbers: &[f64]) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "a number of stations")]
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (count > 0.0).then(|| (squares / count).sqrt())
}
