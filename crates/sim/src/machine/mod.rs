//! A machine: a processor at three levels, a card, tasks, and linerate's own host, which it turns when its
//! processor has done the work.
//!
//! The host runs in no time at all. What comes in is charged for before the host sees it, and what it makes is
//! charged for before the card sees it; what a task does is charged for before it is done.

mod clock;
mod cost;
mod cpu;
mod offload;
mod parameters;
mod port;
mod voice;

pub(crate) use cpu::{Cpu, Due, Level};
pub(crate) use parameters::MachineParameters;

use crate::frame::{FrameId, Frames};
use crate::nic::{Completion, Nic, NicAction, NicEvent};
use crate::program::{Charge, Program, ProgramReport, Step, Task};
use crate::speaker::Speaker;
use crate::trace::Look;
use clock::MachineClock;
use cost::Costs;
use linerate_stack::{Budget, Capabilities, Event, Stack};
use linerate_units::{Instant, Span, Tick};
use port::Port;
use std::collections::VecDeque;
use voice::Voice;

/// Frames that the driver keeps while the card has no room for them (4.3BSD: IFQ_MAXLEN).
const DRIVER_QUEUE: usize = 50;
/// Bytes in front of what TCP sums: the headers of Ethernet and IPv4.
const UNSUMMED: usize = 14 + 20;

/// What a machine wants to be told later.
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
    /// Tell me at that time.
    Later { at: Tick, event: MachineEvent },
    /// The card wants something.
    Card(NicAction),
}

/// What the processor works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The card has asked for the driver.
    Interrupt,
    /// The driver takes a frame.
    Receive(FrameId),
    /// The driver hears that a frame has left.
    Done,
    /// IP and TCP take a frame in.
    Input(FrameId),
    /// TCP, IP and the driver make a frame.
    Output(FrameId),
    /// A program that speaks in frames takes one in.
    Hear(FrameId),
    /// It has made one.
    Speak(FrameId),
    /// A timer of the host.
    Timer,
    /// The task with this number.
    Task(usize),
}

/// A program that runs on the machine.
#[derive(Debug)]
struct Process {
    program: Box<dyn Program>,
    sleeps: bool,
    /// Something happened while it did not sleep: it looks again before it does.
    alarmed: bool,
}

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    cpu: Cpu<Job>,
    costs: Costs,
    clock: MachineClock,
    stack: Stack,
    capabilities: Capabilities,
    nic: Nic,
    /// Frames that wait for room in the card.
    driver_queue: VecDeque<FrameId>,
    made: VecDeque<FrameId>,
    /// Pieces of the super-frame that the card takes.
    pieces: Vec<FrameId>,
    processes: Vec<Process>,
    voice: Option<Voice>,
    /// The earliest time for which the clock's event is announced.
    alarm: Tick,
    /// The processor will serve the host's timers.
    serves_timers: bool,
    card_actions: Vec<NicAction>,
}

impl Machine {
    /// A machine whose clock was started `head_start` before the world.
    pub(crate) fn new(
        parameters: &MachineParameters,
        nic: Nic,
        mut stack: Stack,
        capabilities: Capabilities,
        head_start: Span,
    ) -> Self {
        stack.attach(capabilities);
        Self {
            cpu: Cpu::new(parameters.wants_bus, parameters.bus.taken()),
            costs: parameters.costs,
            clock: MachineClock::new(head_start, parameters.clock_grain),
            stack,
            capabilities,
            nic,
            driver_queue: VecDeque::with_capacity(DRIVER_QUEUE),
            made: VecDeque::with_capacity(DRIVER_QUEUE),
            pieces: Vec::new(),
            processes: Vec::new(),
            voice: None,
            alarm: Tick::NEVER,
            serves_timers: false,
            card_actions: Vec::with_capacity(16),
        }
    }

    /// The card.
    pub(crate) const fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Time during which the processor worked, and at which level.
    pub(crate) fn busy(&self) -> (Span, [Span; 3]) {
        self.cpu.busy()
    }

    /// Has everything that runs on it done what it was to do?
    pub(crate) fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.program.is_over())
            && self.voice.iter().all(|voice| voice.speaker.is_over())
    }

    /// How everything that runs on it went.
    pub(crate) fn reports(&self) -> impl Iterator<Item = ProgramReport> {
        let reports = self.processes.iter().map(|process| process.program.report(&self.stack));
        reports.chain(self.voice.iter().map(|voice| voice.speaker.report()))
    }

    /// Gives the machine a program that speaks in frames, in place of the one it had.
    pub(crate) fn attach(&mut self, now: Tick, speaker: Box<dyn Speaker>, actions: &mut Vec<MachineAction>) {
        self.voice = Some(Voice::new(speaker));
        actions.push(MachineAction::Later { at: now, event: MachineEvent::Speaker });
    }

    /// Starts a program.
    pub(crate) fn start(&mut self, now: Tick, program: Box<dyn Program>, actions: &mut Vec<MachineAction>) {
        let index = self.processes.len();
        self.processes.push(Process { program, sleeps: false, alarmed: false });
        self.cpu.add(Level::Task, self.costs.wakeup, Job::Task(index));
        self.go_on(now, actions);
    }

    /// What the machine wanted to be told of.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MachineEvent,
        frames: &mut Frames,
        actions: &mut Vec<MachineAction>,
    ) {
        match event {
            MachineEvent::Job { plan } => {
                let Some((level, job)) = self.cpu.take_done(now, plan) else { return };
                self.finish(now, level, job, frames);
            }
            MachineEvent::Clock => self.handle_clock(now),
            MachineEvent::Speaker => self.voice.iter_mut().for_each(|voice| voice.handle_time(now)),
        }
        self.speak(now, frames);
        self.set_alarm(now, actions);
        self.go_on(now, actions);
    }

    /// Something happens to the card: `what` is told to it.
    pub(crate) fn handle_card(
        &mut self,
        now: Tick,
        what: impl FnOnce(&mut Nic, &mut Vec<NicAction>),
        actions: &mut Vec<MachineAction>,
    ) {
        what(&mut self.nic, &mut self.card_actions);
        self.go_on(now, actions);
    }

    /// The card's own time has come.
    pub(crate) fn handle_nic_event(&mut self, now: Tick, event: NicEvent, actions: &mut Vec<MachineAction>) {
        self.handle_card(now, |nic, card| nic.handle_event(now, event, card), actions);
    }

    /// Says what the card wants, and when the processor is done with what it works on.
    fn go_on(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        for index in 0..self.card_actions.len() {
            match self.card_actions[index] {
                NicAction::Interrupt => self.cpu.add(Level::Card, self.costs.interrupt, Job::Interrupt),
                NicAction::TakeBus { share } => {
                    announce(self.cpu.change_bus(now, |taken| taken + share), actions);
                }
                NicAction::GiveBus { share } => {
                    announce(self.cpu.change_bus(now, |taken| taken - share), actions);
                }
                action @ (NicAction::Later { .. }
                | NicAction::Request { .. }
                | NicAction::Hold { .. }
                | NicAction::Release { .. }) => {
                    actions.push(MachineAction::Card(action));
                }
            }
        }
        self.card_actions.clear();
        announce(self.cpu.resume(now), actions);
    }

    /// The work for a job is done: now it happens.
    fn finish(&mut self, now: Tick, level: Level, job: Job, frames: &mut Frames) {
        match job {
            Job::Interrupt => self.serve_card(frames),
            Job::Receive(frame) => {
                self.nic.give_back(frames[frame].length());
                let voice = self.voice.as_ref();
                let (work, job) = match voice.and_then(|voice| voice.cost_of(frames[frame].bytes())) {
                    Some(work) => (work, Job::Hear(frame)),
                    None => (self.costs.input + self.sum_of(frame, frames), Job::Input(frame)),
                };
                self.cpu.add(Level::Network, work, job);
            }
            Job::Done => self.feed_card(now, frames),
            Job::Input(frame) => {
                self.turn(now, level, Some(frame), frames);
                frames.release(frame);
            }
            Job::Hear(frame) => {
                let bytes = frames[frame].bytes();
                self.voice.iter_mut().for_each(|voice| voice.speaker.handle_frame(now, bytes));
                frames.release(frame);
            }
            Job::Speak(frame) => {
                self.voice.iter_mut().for_each(Voice::handle_made);
                self.give_to_card(now, frame, frames);
            }
            Job::Output(frame) => self.give_to_card(now, frame, frames),
            Job::Timer => {
                self.serves_timers = false;
                self.turn(now, level, None, frames);
            }
            Job::Task(index) => self.run_task(now, index, frames),
        }
    }

    /// The driver looks what the card has to tell. What has come in one behind the other the card has joined by now.
    fn serve_card(&mut self, frames: &mut Frames) {
        let most = self.nic.offload().joins;
        let mut last: Option<FrameId> = None;
        while let Some(completion) = self.nic.poll_completion() {
            match completion {
                // Nothing is held back that will not be joined: a driver does things in the order in which they came.
                Completion::Received(frame) if most == 0 => self.take_received(frame, frames),
                Completion::Received(frame) => {
                    let length = frames[frame].length();
                    let joined = last.and_then(|last| offload::join(frames, last, frame, most));
                    if joined.is_some() {
                        self.nic.note_joined(length);
                        last = joined;
                    } else if let Some(before) = last.replace(frame) {
                        self.take_received(before, frames);
                    }
                }
                Completion::Transmitted => self.cpu.add(Level::Card, self.costs.driver_done, Job::Done),
            }
        }
        if let Some(last) = last {
            self.take_received(last, frames);
        }
    }

    /// The driver takes a frame.
    fn take_received(&mut self, frame: FrameId, frames: &Frames) {
        let copy = self.costs.card_copy * frames[frame].length() as u64;
        self.cpu.add(Level::Card, self.costs.driver_receive + copy, Job::Receive(frame));
    }

    /// What the checksum of a frame costs the processor, made or verified.
    fn sum_of(&self, frame: FrameId, frames: &Frames) -> Span {
        if self.nic.offload().checksums {
            return Span::ZERO;
        }
        self.costs.sum * frames[frame].length().saturating_sub(UNSUMMED) as u64
    }

    fn give_to_card(&mut self, now: Tick, frame: FrameId, frames: &mut Frames) {
        if self.driver_queue.len() == DRIVER_QUEUE {
            self.nic.note_drop();
            frames.release(frame);
            return;
        }
        self.driver_queue.push_back(frame);
        self.feed_card(now, frames);
    }

    fn feed_card(&mut self, now: Tick, frames: &mut Frames) {
        while self.nic.has_room() {
            let Some(frame) = self.driver_queue.pop_front() else { return };
            if frames[frame].segment().is_none() {
                self.nic.transmit(now, frame, frames[frame].length(), true, &mut self.card_actions);
                continue;
            }
            offload::cut(frames, frame, self.capabilities.medium, &mut self.pieces);
            let count = self.pieces.len();
            for (number, piece) in (1..).zip(self.pieces.drain(..)) {
                let length = frames[piece].length();
                self.nic.transmit(now, piece, length, number == count, &mut self.card_actions);
            }
        }
    }

    /// Has the processor make the next frame of a program that speaks in frames, when the card can take it.
    fn speak(&mut self, now: Tick, frames: &mut Frames) {
        let Some(voice) = &mut self.voice else { return };
        let card_waits = self.driver_queue.is_empty() && self.nic.has_room();
        if card_waits && let Some((work, frame)) = voice.poll(now, frames, &self.costs) {
            self.cpu.add(Level::Network, work, Job::Speak(frame));
        }
    }

    /// Turns the host, and has the processor make at `level` what the host wants to send.
    fn turn(&mut self, now: Tick, level: Level, arrived: Option<FrameId>, frames: &mut Frames) {
        const BUDGET: Budget = Budget { receive: 2, timers: 64, transmit: 64 };
        let clock = self.clock.show(now);
        let mut arrived = arrived.map(|frame| (frame, clock));
        loop {
            let (capabilities, made) = (self.capabilities, &mut self.made);
            let mut port = Port { capabilities, frames, arrived: arrived.take(), made, room: DRIVER_QUEUE };
            let turn = self.stack.turn(&mut port, BUDGET, clock);
            let goes_on = turn.is_ok_and(|turn| turn.more || (turn.blocked && turn.transmitted > 0));
            while let Some(frame) = self.made.pop_front() {
                let work = self.costs.output + self.sum_of(frame, frames) + self.costs.driver_transmit;
                let copy = self.costs.card_copy * frames[frame].length() as u64;
                self.cpu.add(level, work + copy, Job::Output(frame));
            }
            if !goes_on {
                break;
            }
        }
        while let Some(event) = self.stack.poll_event() {
            self.wake(&event);
        }
    }

    /// Wakes the task that an event is for.
    fn wake(&mut self, event: &Event) {
        let Some(index) = self.processes.iter().position(|process| process.program.wants(event)) else {
            return;
        };
        let process = &mut self.processes[index];
        if std::mem::replace(&mut process.sleeps, false) {
            self.cpu.add(Level::Task, self.costs.wakeup, Job::Task(index));
        } else {
            process.alarmed = true;
        }
    }

    /// A task has had its processor time: what it did with it happens, and what it does next is charged for.
    fn run_task(&mut self, now: Tick, index: usize, frames: &mut Frames) {
        loop {
            let process = &mut self.processes[index];
            process.alarmed = false;
            let mut task = Task { stack: &mut self.stack, clock: self.clock.show(now), now };
            let step = process.program.handle_run(&mut task);
            self.turn(now, Level::Task, None, frames);
            match step {
                Step::Work(charge) => {
                    let work = self.cost_of(charge);
                    return self.cpu.add(Level::Task, work, Job::Task(index));
                }
                Step::Sleep if self.processes[index].alarmed => {}
                Step::Sleep => {
                    self.processes[index].sleeps = true;
                    return;
                }
            }
        }
    }

    fn cost_of(&self, charge: Charge) -> Span {
        self.costs.call * charge.calls + self.costs.copy * charge.copied
    }

    fn handle_clock(&mut self, now: Tick) {
        self.alarm = Tick::NEVER;
        if !self.serves_timers && self.stack.poll_timeout() <= self.clock.show(now) {
            self.serves_timers = true;
            self.cpu.add(Level::Network, self.costs.timer, Job::Timer);
        }
    }

    /// Has the machine told when the host waits for its clock. An announcement that came too early is repeated.
    fn set_alarm(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        if let Some(at) = self.voice.as_mut().and_then(|voice| voice.poll_alarm(now)) {
            actions.push(MachineAction::Later { at, event: MachineEvent::Speaker });
        }
        let wanted = self.stack.poll_timeout();
        if wanted == Instant::NEVER || self.serves_timers {
            return;
        }
        let at = self.clock.when(wanted).max(now);
        if at < self.alarm {
            self.alarm = at;
            actions.push(MachineAction::Later { at, event: MachineEvent::Clock });
        }
    }

    /// What it looks like from outside.
    pub(crate) fn look(&self) -> Look {
        let [to_send, received] = self.nic.held();
        Look {
            works: self.cpu.works(),
            bus: self.cpu.bus_taken(),
            frames: [self.driver_queue.len(), to_send, received],
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.cpu.check();
        self.nic.check();
        assert!(self.driver_queue.len() <= DRIVER_QUEUE, "the driver's queue holds what it holds");
    }
}

fn announce(due: Option<Due>, actions: &mut Vec<MachineAction>) {
    if let Some(due) = due {
        actions.push(MachineAction::Later { at: due.at, event: MachineEvent::Job { plan: due.plan } });
    }
}
