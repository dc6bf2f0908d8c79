//! A machine: processors, and a card that spreads what comes in over them.
//!
//! The host runs in no time at all. What comes in is charged for before the host sees it, and what it makes is
//! charged for before the card sees it; what a task does is charged for before it is done.

mod card;
mod clock;
mod cost;
mod cpu;
mod offload;
mod parameters;
mod port;
mod processor;
mod voice;

pub(crate) use cpu::{Cpu, Due, Level};
pub(crate) use parameters::{MOST_PROCESSORS, MachineParameters};

use crate::frame::Frames;
use crate::nic::{Nic, NicAction, NicEvent};
use crate::program::{Program, ProgramReport};
use crate::speaker::Speaker;
use crate::trace::Look;
use card::Card;
use linerate_stack::{Capabilities, FIRST_SHARD, Stack, Steering};
use linerate_units::{Span, Tick};
use processor::Processor;

/// What a machine wants to be told later, of one of its processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    /// A job will be done, unless the plan has changed since.
    Job { plan: u32 },
    /// The host's clock may show what the host waits for.
    Clock,
    /// What a program that speaks in frames waits for has come.
    Speaker,
}

/// What follows for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineAction {
    /// Tell me at that time, for this processor.
    Later { at: Tick, processor: u16, event: MachineEvent },
    /// The card wants something.
    Card(NicAction),
}

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    card: Card,
    /// Those that serve a queue of the card: others would have nothing to do.
    processors: Vec<Processor>,
}

impl Machine {
    /// A machine whose clock was started `head_start` before the world, with a shard of its host for each queue of its
    /// card, all of them with the seed of `steering`.
    pub(crate) fn new(
        parameters: &MachineParameters,
        nic: Nic,
        shards: impl Iterator<Item = Stack>,
        steering: Steering,
        capabilities: Capabilities,
        head_start: Span,
    ) -> Self {
        let processor =
            |(number, shard)| Processor::new(number, parameters, shard, capabilities, head_start);
        Self {
            card: Card::new(nic, steering, capabilities.medium),
            processors: (0..).zip(shards).map(processor).collect(),
        }
    }

    /// The card.
    pub(crate) const fn nic(&self) -> &Nic {
        &self.card.nic
    }

    /// How its card spreads flows.
    pub(crate) const fn steering(&self) -> &Steering {
        self.card.steering()
    }

    /// Time during which each processor worked, and at which level.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (Span, [Span; 3])> {
        self.processors.iter().map(Processor::busy)
    }

    /// Has everything that runs on it done what it was to do?
    pub(crate) fn is_over(&self) -> bool {
        self.processors.iter().all(Processor::is_over)
    }

    /// How everything that runs on it went.
    pub(crate) fn reports(&self) -> impl Iterator<Item = ProgramReport> {
        self.processors.iter().flat_map(Processor::reports)
    }

    /// Gives the machine a program that speaks in frames, in place of the one it had: its frames are no flow's.
    pub(crate) fn attach(
        &mut self,
        now: Tick,
        speaker: Box<dyn Speaker>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.processors[usize::from(FIRST_SHARD)].attach(now, speaker, actions);
    }

    /// Starts a program on a processor.
    pub(crate) fn start(
        &mut self,
        now: Tick,
        processor: u16,
        program: Box<dyn Program>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.processors[usize::from(processor)].start(program);
        self.go_on(now, actions);
    }

    /// What a processor wanted to be told of.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        processor: u16,
        event: MachineEvent,
        frames: &mut Frames,
        actions: &mut Vec<MachineAction>,
    ) {
        let (before, from) = self.processors.split_at_mut(processor.into());
        let Some((processor, behind)) = from.split_first_mut() else { return };
        if let Some(frame) = processor.handle_event(now, event, &mut self.card, frames, actions) {
            for other in before.iter_mut().chain(behind) {
                frames.share(frame);
                other.take_in(frame, &self.card, frames);
            }
        }
        self.go_on(now, actions);
    }

    /// The queue of the card that a frame comes in by.
    pub(crate) fn queue_of(&mut self, frame: &[u8]) -> u16 {
        self.card.queue_of(frame)
    }

    /// Something happens to the card: `what` is told to it.
    pub(crate) fn handle_card(
        &mut self,
        now: Tick,
        what: impl FnOnce(&mut Nic, &mut Vec<NicAction>),
        actions: &mut Vec<MachineAction>,
    ) {
        what(&mut self.card.nic, &mut self.card.actions);
        self.go_on(now, actions);
    }

    /// The card's own time has come.
    pub(crate) fn handle_nic_event(
        &mut self,
        now: Tick,
        event: NicEvent,
        actions: &mut Vec<MachineAction>,
    ) {
        self.handle_card(now, |nic, card| nic.handle_event(now, event, card), actions);
    }

    /// Says what the card wants, and when the processors are done with what they work on.
    fn go_on(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        let processors = &mut self.processors;
        for action in self.card.actions.drain(..) {
            match action {
                NicAction::Interrupt { queue } => processors[usize::from(queue)].interrupt(),
                NicAction::TakeBus { share } => {
                    processors
                        .iter_mut()
                        .for_each(|one| one.change_bus(now, |taken| taken + share, actions));
                }
                NicAction::GiveBus { share } => {
                    processors
                        .iter_mut()
                        .for_each(|one| one.change_bus(now, |taken| taken - share, actions));
                }
                NicAction::Later { .. }
                | NicAction::Request { .. }
                | NicAction::Cut { .. }
                | NicAction::Hold { .. }
                | NicAction::Release { .. } => {
                    actions.push(MachineAction::Card(action));
                }
            }
        }
        processors.iter_mut().for_each(|one| one.resume(now, actions));
        if let [_, _, ..] = processors[..] {
            let working = processors.iter().filter(|one| one.works()).count();
            let rivals = working.saturating_sub(1) as u64;
            processors.iter_mut().for_each(|one| one.change_rivals(now, rivals, actions));
        }
    }

    /// What it looks like from outside.
    pub(crate) fn look(&self) -> Look {
        Look {
            bus: self.processors[usize::from(FIRST_SHARD)].bus_taken(),
            processors: self
                .processors
                .iter()
                .map(|processor| processor.look(&self.card.nic))
                .collect(),
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.card.nic.check();
        self.processors.iter().for_each(Processor::check);
    }
}
