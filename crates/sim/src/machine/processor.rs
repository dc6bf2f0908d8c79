//! A processor of a machine: its work at three levels, its queue of the card, the tasks that run on it, and its shard of
//! linerate's own host, which it turns when it has done the work. On a machine that has no other it is the host.

use super::card::Card;
use super::clock::MachineClock;
use super::cost::Costs;
use super::cpu::{Cpu, Due, Level};
use super::parameters::MachineParameters;
use super::port::Port;
use super::voice::Voice;
use super::{MachineAction, MachineEvent, offload};
use crate::frame::{FrameId, Frames};
use crate::nic::{Completion, Nic, Piece};
use crate::program::{Charge, Program, ProgramReport, Step, Task};
use crate::speaker::Speaker;
use crate::trace::ProcessorLook;
use linerate_stack::{Budget, Capabilities, Event, Stack, Steered};
use linerate_units::{Instant, Span, Tick};
use std::collections::VecDeque;

/// Frames that the driver keeps while the card has no room for them (4.3BSD: IFQ_MAXLEN).
const DRIVER_QUEUE: usize = 50;
/// Bytes in front of what TCP sums: the headers of Ethernet and IPv4.
const UNSUMMED: usize = 14 + 20;

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

impl Job {
    /// Is it a frame that the host has made, and that others of its are not to overtake?
    const fn is_frame_of_host(&self) -> bool {
        matches!(self, Self::Output(_))
    }
}

/// A program that runs on the processor.
#[derive(Debug)]
struct Process {
    program: Box<dyn Program>,
    sleeps: bool,
    /// Something happened while it did not sleep: it looks again before it does.
    alarmed: bool,
}

/// A processor.
#[derive(Debug)]
pub(super) struct Processor {
    /// Its queue of the card, whose number is its own.
    queue: u16,
    cpu: Cpu<Job>,
    costs: Costs,
    clock: MachineClock,
    stack: Stack,
    capabilities: Capabilities,
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
}

impl Processor {
    /// A processor whose clock was started `head_start` before the world.
    pub(super) fn new(
        queue: u16,
        parameters: &MachineParameters,
        mut stack: Stack,
        capabilities: Capabilities,
        head_start: Span,
    ) -> Self {
        stack.attach(capabilities);
        Self {
            queue,
            cpu: Cpu::new(parameters.wants_bus, parameters.bus.taken()),
            costs: parameters.costs,
            clock: MachineClock::new(head_start, parameters.clock_grain),
            stack,
            capabilities,
            driver_queue: VecDeque::with_capacity(DRIVER_QUEUE),
            made: VecDeque::with_capacity(DRIVER_QUEUE),
            pieces: Vec::new(),
            processes: Vec::new(),
            voice: None,
            alarm: Tick::NEVER,
            serves_timers: false,
        }
    }

    /// Time during which it worked, and at which level.
    pub(super) fn busy(&self) -> (Span, [Span; 3]) {
        self.cpu.busy()
    }

    /// Has everything that runs on it done what it was to do?
    pub(super) fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.program.is_over())
            && self.voice.iter().all(|voice| voice.speaker.is_over())
    }

    /// How everything that runs on it went.
    pub(super) fn reports(&self) -> impl Iterator<Item = ProgramReport> {
        let reports = self.processes.iter().map(|process| process.program.report(&self.stack));
        reports.chain(self.voice.iter().map(|voice| voice.speaker.report()))
    }

    /// Gives it a program that speaks in frames, in place of the one it had.
    pub(super) fn attach(
        &mut self,
        now: Tick,
        speaker: Box<dyn Speaker>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.voice = Some(Voice::new(speaker));
        self.ask_for(now, MachineEvent::Speaker, actions);
    }

    /// Starts a program.
    pub(super) fn start(&mut self, program: Box<dyn Program>) {
        let index = self.processes.len();
        self.processes.push(Process { program, sleeps: false, alarmed: false });
        self.cpu.add(Level::Task, self.costs.wakeup, Job::Task(index));
    }

    /// What it wanted to be told of. A frame that it has taken in, and that every other processor must see, is what it
    /// returns.
    pub(super) fn handle_event(
        &mut self,
        now: Tick,
        event: MachineEvent,
        card: &mut Card,
        frames: &mut Frames,
        actions: &mut Vec<MachineAction>,
    ) -> Option<FrameId> {
        let mut for_all = None;
        match event {
            MachineEvent::Job { plan } => {
                let (level, job) = self.cpu.take_done(now, plan)?;
                if let Job::Receive(frame) = job {
                    match card.steer(frames[frame].bytes()) {
                        Steered::To(queue) => {
                            assert_eq!(queue, self.queue, "nobody gets another's flow")
                        }
                        Steered::ToAll => for_all = Some(frame),
                    }
                }
                self.finish(now, level, job, card, frames);
            }
            MachineEvent::Clock => self.handle_clock(now),
            MachineEvent::Speaker => self.voice.iter_mut().for_each(|voice| voice.handle_time(now)),
        }
        self.speak(now, card, frames);
        self.set_alarm(now, actions);
        for_all
    }

    /// The card asks for its driver.
    pub(super) fn interrupt(&mut self) {
        self.cpu.add(Level::Card, self.costs.interrupt, Job::Interrupt);
    }

    /// Turns to what is most urgent.
    pub(super) fn resume(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        let due = self.cpu.resume(now);
        self.announce(due, actions);
    }

    /// Cards hold so much more of the bus, or less.
    pub(super) fn change_bus(
        &mut self,
        now: Tick,
        taken: impl FnOnce(u64) -> u64,
        actions: &mut Vec<MachineAction>,
    ) {
        let due = self.cpu.change_bus(now, taken);
        self.announce(due, actions);
    }

    /// So many other processors work now.
    pub(super) fn change_rivals(
        &mut self,
        now: Tick,
        rivals: u64,
        actions: &mut Vec<MachineAction>,
    ) {
        let due = self.cpu.change_rivals(now, rivals);
        self.announce(due, actions);
    }

    fn announce(&self, due: Option<Due>, actions: &mut Vec<MachineAction>) {
        if let Some(Due { at, plan }) = due {
            self.ask_for(at, MachineEvent::Job { plan }, actions);
        }
    }

    fn ask_for(&self, at: Tick, event: MachineEvent, actions: &mut Vec<MachineAction>) {
        actions.push(MachineAction::Later { at, processor: self.queue, event });
    }

    /// The work for a job is done: now it happens.
    fn finish(&mut self, now: Tick, level: Level, job: Job, card: &mut Card, frames: &mut Frames) {
        match job {
            Job::Interrupt => self.serve_card(card, frames),
            Job::Receive(frame) => {
                card.nic.give_back(self.queue, frames[frame].length());
                self.take_in(frame, card, frames);
            }
            Job::Done => self.feed_card(now, card, frames),
            Job::Input(frame) => {
                self.turn(now, level, Some(frame), card, frames);
                frames.release(frame);
            }
            Job::Hear(frame) => {
                let bytes = frames[frame].bytes();
                self.voice.iter_mut().for_each(|voice| voice.speaker.handle_frame(now, bytes));
                frames.release(frame);
            }
            Job::Speak(frame) => {
                self.voice.iter_mut().for_each(Voice::handle_made);
                self.give_to_card(now, frame, card, frames);
            }
            Job::Output(frame) => self.give_to_card(now, frame, card, frames),
            Job::Timer => {
                self.serves_timers = false;
                self.turn(now, level, None, card, frames);
            }
            Job::Task(index) => self.run_task(now, index, card, frames),
        }
    }

    /// A frame waits for IP and TCP, or for whom it is for in place of them.
    pub(super) fn take_in(&mut self, frame: FrameId, card: &Card, frames: &Frames) {
        let voice = self.voice.as_ref();
        let (work, job) = match voice.and_then(|voice| voice.cost_of(frames[frame].bytes())) {
            Some(work) => (work, Job::Hear(frame)),
            None => (self.costs.input + self.sum_of(frame, card, frames), Job::Input(frame)),
        };
        self.cpu.add(Level::Network, work, job);
    }

    /// The driver looks what the card has to tell. What has come in one behind the other the card has joined by now.
    fn serve_card(&mut self, card: &mut Card, frames: &mut Frames) {
        let most = card.nic.offload().joins;
        let mut last: Option<FrameId> = None;
        while let Some(completion) = card.nic.poll_completion(self.queue) {
            match completion {
                // Nothing is held back that will not be joined: a driver does things in the order in which they came.
                Completion::Received(frame) if most == 0 => self.take_received(frame, frames),
                Completion::Received(frame) => {
                    let length = frames[frame].length();
                    let joined = last.and_then(|last| offload::join(frames, last, frame, most));
                    if joined.is_some() {
                        card.nic.note_joined(self.queue, length);
                        last = joined;
                    } else if let Some(before) = last.replace(frame) {
                        self.take_received(before, frames);
                    }
                }
                Completion::Transmitted => {
                    self.cpu.add(Level::Card, self.costs.driver_done, Job::Done)
                }
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
    fn sum_of(&self, frame: FrameId, card: &Card, frames: &Frames) -> Span {
        if card.nic.offload().checksums {
            return Span::ZERO;
        }
        self.costs.sum * frames[frame].length().saturating_sub(UNSUMMED) as u64
    }

    fn give_to_card(&mut self, now: Tick, frame: FrameId, card: &mut Card, frames: &mut Frames) {
        if self.driver_queue.len() == DRIVER_QUEUE {
            card.nic.note_drop(self.queue);
            frames.release(frame);
            return;
        }
        self.driver_queue.push_back(frame);
        self.feed_card(now, card, frames);
    }

    fn feed_card(&mut self, now: Tick, card: &mut Card, frames: &mut Frames) {
        let queue = self.queue;
        while card.nic.has_room(queue) {
            let Some(frame) = self.driver_queue.pop_front() else { return };
            if frames[frame].segment().is_none() {
                let piece = Piece { frame, length: frames[frame].length(), is_last: true };
                card.nic.transmit(now, queue, piece, &mut card.actions);
                continue;
            }
            offload::cut(frames, frame, self.capabilities.medium, &mut self.pieces);
            let count = self.pieces.len();
            for (number, frame) in (1..).zip(self.pieces.drain(..)) {
                let piece =
                    Piece { frame, length: frames[frame].length(), is_last: number == count };
                card.nic.transmit(now, queue, piece, &mut card.actions);
            }
        }
    }

    /// Has the processor make the next frame of a program that speaks in frames, when the card can take it.
    fn speak(&mut self, now: Tick, card: &Card, frames: &mut Frames) {
        let Some(voice) = &mut self.voice else { return };
        let card_waits = self.driver_queue.is_empty() && card.nic.has_room(self.queue);
        if card_waits && let Some((work, frame)) = voice.poll(now, frames, &self.costs) {
            self.cpu.add(Level::Network, work, Job::Speak(frame));
        }
    }

    /// Turns the host, and has the processor make at `level` what the host wants to send.
    fn turn(
        &mut self,
        now: Tick,
        level: Level,
        arrived: Option<FrameId>,
        card: &Card,
        frames: &mut Frames,
    ) {
        const BUDGET: Budget = Budget { receive: 2, timers: 64, transmit: 64 };
        let clock = self.clock.show(now);
        let mut arrived = arrived.map(|frame| (frame, clock));
        loop {
            let (capabilities, made) = (self.capabilities, &mut self.made);
            let mut port =
                Port { capabilities, frames, arrived: arrived.take(), made, room: DRIVER_QUEUE };
            let turn = self.stack.turn(&mut port, BUDGET, clock);
            let goes_on =
                turn.is_ok_and(|turn| turn.more || (turn.blocked && turn.transmitted > 0));
            if level == Level::Network && !self.made.is_empty() {
                // What the host has made for a task before leaves before, as kernels keep interrupts of the network off
                // until that has been done.
                self.cpu.hurry(Level::Task, level, Job::is_frame_of_host);
            }
            while let Some(frame) = self.made.pop_front() {
                let work = self.costs.output
                    + self.sum_of(frame, card, frames)
                    + self.costs.driver_transmit;
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
        let Some(index) = self.processes.iter().position(|process| process.program.wants(event))
        else {
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
    fn run_task(&mut self, now: Tick, index: usize, card: &Card, frames: &mut Frames) {
        loop {
            let process = &mut self.processes[index];
            process.alarmed = false;
            let mut task = Task { stack: &mut self.stack, clock: self.clock.show(now), now };
            let step = process.program.handle_run(&mut task);
            self.turn(now, Level::Task, None, card, frames);
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

    /// Has itself told when the host waits for its clock. An announcement that came too early is repeated.
    fn set_alarm(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        if let Some(at) = self.voice.as_mut().and_then(|voice| voice.poll_alarm(now)) {
            self.ask_for(at, MachineEvent::Speaker, actions);
        }
        let wanted = self.stack.poll_timeout();
        if wanted == Instant::NEVER || self.serves_timers {
            return;
        }
        let at = self.clock.when(wanted).max(now);
        if at < self.alarm {
            self.alarm = at;
            self.ask_for(at, MachineEvent::Clock, actions);
        }
    }

    /// Does it work?
    pub(super) fn works(&self) -> bool {
        self.cpu.works().is_some()
    }

    /// What cards hold of the bus, in per cent.
    pub(super) const fn bus_taken(&self) -> u64 {
        self.cpu.bus_taken()
    }

    /// What it looks like from outside.
    pub(super) fn look(&self, nic: &Nic) -> ProcessorLook {
        let [to_send, received] = nic.held(self.queue);
        ProcessorLook {
            works: self.cpu.works(),
            frames: [self.driver_queue.len(), to_send, received],
        }
    }

    /// Judges what must hold after every event.
    pub(super) fn check(&self) {
        self.cpu.check();
        let makes_frames = |level| self.cpu.jobs(level).any(Job::is_frame_of_host);
        assert!(
            !(makes_frames(Level::Network) && makes_frames(Level::Task)),
            "the host's frames leave in the order in which it made them"
        );
        assert!(self.driver_queue.len() <= DRIVER_QUEUE, "the driver's queue holds what it holds");
    }
}
