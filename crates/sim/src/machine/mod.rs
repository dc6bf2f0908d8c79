//! A machine: one or more processors, and a NIC that distributes received frames among them.
//!
//! The code of the TCP/IP stack runs in no simulated time. Instead, the machine delays each effect
//! by its processor time. The delayed effects are the delivery of a received frame to the stack,
//! the delivery of a sent frame to the NIC, and the work of a task.

mod attached_generator;
mod clock;
mod cost;
mod cpu;
mod offload;
mod parameters;
mod port;
mod processor;
mod rss;
mod snapshot;

pub(crate) use cpu::{Cpu, Due, Level};
pub(crate) use parameters::MachineParameters;
pub(crate) use snapshot::MachineSnapshot;

use crate::frame::Frames;
use crate::generator::FrameGenerator;
use crate::nic::{Nic, NicAction, NicEvent};
use crate::program::{Program, ProgramReport};
use linerate_stack::{Capabilities, FIRST_SHARD, Stack, Steering};
use linerate_units::{Span, Tick};
use processor::Processor;
use rss::RssNic;

/// The expiry of a timer of one processor of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    /// The running job ends, unless its schedule has a newer version than `plan`.
    Job { plan: u32 },
    /// The machine's clock may have reached the next timeout of the TCP/IP stack.
    Clock,
    /// The timeout of the attached raw-frame generator may have expired.
    Generator,
}

/// An effect of a machine on other components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineAction {
    /// Schedule an event for one of the processors.
    Later { at: Tick, processor: u16, event: MachineEvent },
    /// Execute an action of the NIC.
    Nic(NicAction),
}

/// A machine: its processors, its NIC, and the programs that run on it.
#[derive(Debug)]
pub(crate) struct Machine {
    rss: RssNic,
    /// One processor for each queue of the NIC. Further processors would have no work.
    processors: Vec<Processor>,
}

impl Machine {
    /// Creates a machine with a processor for each shard of its host. The machine's clock started
    /// `head_start` before the simulation. The NIC and all shards hash flows with the seed of
    /// `steering`, so that a flow always belongs to the same processor.
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
            rss: RssNic::new(nic, steering, capabilities.medium),
            processors: (0..).zip(shards).map(processor).collect(),
        }
    }

    /// Returns the NIC of the machine.
    pub(crate) const fn nic(&self) -> &Nic {
        &self.rss.nic
    }

    /// Returns the rule that assigns flows to queues.
    pub(crate) const fn steering(&self) -> &Steering {
        self.rss.steering()
    }

    /// Returns the busy time of each processor, in total and by priority level.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (Span, [Span; 3])> {
        self.processors.iter().map(Processor::busy)
    }

    /// Returns whether all programs have ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.processors.iter().all(Processor::is_finished)
    }

    /// Returns the reports of all programs.
    pub(crate) fn reports(&self) -> impl Iterator<Item = ProgramReport> {
        self.processors.iter().flat_map(Processor::reports)
    }

    /// Attaches a raw-frame generator to the first processor, in place of one that was attached
    /// before. No other processor could receive its frames, because they belong to no flow.
    pub(crate) fn attach(
        &mut self,
        now: Tick,
        generator: Box<dyn FrameGenerator>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.processors[usize::from(FIRST_SHARD)].attach(now, generator, actions);
    }

    /// Starts a program on the processor with this number.
    pub(crate) fn start(
        &mut self,
        now: Tick,
        processor: u16,
        program: Box<dyn Program>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.processors[usize::from(processor)].start(program);
        self.progress(now, actions);
    }

    /// Handles an expired timer of a processor.
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
        if let Some(frame) = processor.handle_event(now, event, &mut self.rss, frames, actions) {
            for other in before.iter_mut().chain(behind) {
                frames.share(frame);
                other.input(frame, &self.rss, frames);
            }
        }
        self.progress(now, actions);
    }

    /// Returns the queue of the NIC on which a frame arrives.
    pub(crate) fn queue_of(&mut self, frame: &[u8]) -> u16 {
        self.rss.queue_of(frame)
    }

    /// Calls a method of the NIC and handles the actions that it returns.
    pub(crate) fn handle_nic(
        &mut self,
        now: Tick,
        call: impl FnOnce(&mut Nic, &mut Vec<NicAction>),
        actions: &mut Vec<MachineAction>,
    ) {
        call(&mut self.rss.nic, &mut self.rss.actions);
        self.progress(now, actions);
    }

    /// Handles an expired timer of the NIC.
    pub(crate) fn handle_nic_event(
        &mut self,
        now: Tick,
        event: NicEvent,
        actions: &mut Vec<MachineAction>,
    ) {
        self.handle_nic(now, |nic, actions| nic.handle_event(now, event, actions), actions);
    }

    /// Handles the NIC's pending actions, and schedules the new ends of jobs whose speed has
    /// changed.
    fn progress(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        let processors = &mut self.processors;
        for action in self.rss.actions.drain(..) {
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
                | NicAction::Truncate { .. }
                | NicAction::Hold { .. }
                | NicAction::Release { .. } => {
                    actions.push(MachineAction::Nic(action));
                }
            }
        }
        processors.iter_mut().for_each(|one| one.resume(now, actions));
        if let [_, _, ..] = processors[..] {
            let working = processors.iter().filter(|one| one.is_busy()).count();
            let competitors = working.saturating_sub(1) as u64;
            processors.iter_mut().for_each(|one| one.change_competitors(now, competitors, actions));
        }
    }

    /// Returns the state that the timeline shows.
    pub(crate) fn snapshot(&self) -> MachineSnapshot {
        let processors: Vec<_> =
            self.processors.iter().map(|processor| processor.snapshot(&self.rss.nic)).collect();
        let is_idle = processors.iter().all(|one| one.level.is_none() && one.frames == [0; 3]);
        let first = &self.processors[usize::from(FIRST_SHARD)];
        let waits_for = if is_idle { first.waits_for() } else { None };
        MachineSnapshot { bus: first.bus_taken(), waits_for, processors }
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        self.rss.nic.check();
        self.processors.iter().for_each(Processor::check);
    }
}
