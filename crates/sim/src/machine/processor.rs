//! A processor of a machine, with its jobs, its queue of the NIC, its tasks, and its shard of the
//! host. At the end of each job that affects the host, the host performs a turn.

use super::attached_generator::AttachedGenerator;
use super::clock::MachineClock;
use super::cost::Costs;
use super::cpu::{Cpu, Due, Level};
use super::parameters::MachineParameters;
use super::port::Port;
use super::rss::RssNic;
use super::snapshot::ProcessorSnapshot;
use super::{MachineAction, MachineEvent, offload};
use crate::frame::{FrameId, Frames};
use crate::generator::FrameGenerator;
use crate::nic::{Completion, Nic, TransmitFrame};
use crate::program::{Charge, Program, ProgramReport, Step, Task};
use crate::timeline::Activity;
use linerate_stack::{Budget, Capabilities, Event, Stack, Steered};
use linerate_units::{Instant, Span, Tick};
use linerate_wire::{EthernetHeader, Ipv4Header, Ipv6Header};
use std::collections::VecDeque;

/// Maximum number of frames in the driver's queue (IFQ_MAXLEN of 4.3BSD). Frames to be sent wait in
/// this queue while the transmit ring is full.
const DRIVER_QUEUE: usize = 50;

/// A unit of work that takes processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The processor enters an interrupt handler.
    Interrupt,
    /// The driver takes a received frame from the NIC.
    Receive(FrameId),
    /// The driver handles the completion of a sent frame.
    Done,
    /// IP and TCP process a received frame.
    Input(FrameId),
    /// TCP, IP and the driver build a frame.
    Output(FrameId),
    /// The raw-frame generator processes a received frame.
    GeneratorInput(FrameId),
    /// The raw-frame generator builds a frame.
    GeneratorOutput(FrameId),
    /// A timer of the host expires.
    Timer,
    /// The task with this number runs.
    Task(usize),
}

/// Returns the number of bytes of a frame that the TCP checksum does not cover: the Ethernet and IP
/// headers.
fn unsummed(frame: &[u8]) -> usize {
    let is_ipv6 = frame.get(12..14) == Some(&[0x86, 0xdd]);
    EthernetHeader::LENGTH + if is_ipv6 { Ipv6Header::LENGTH } else { Ipv4Header::LENGTH }
}

impl Job {
    /// Returns whether the job builds a frame of the TCP/IP stack. These jobs must stay in their
    /// order, because the stack's frames must leave in the order in which the stack sends them.
    const fn is_frame_of_host(&self) -> bool {
        matches!(self, Self::Output(_))
    }
}

/// A program and its scheduling state.
#[derive(Debug)]
struct Process {
    program: Box<dyn Program>,
    is_asleep: bool,
    /// Whether an event for the program arrived while the program was running. If so, the program
    /// must run once more before it may sleep.
    is_woken: bool,
}

/// A processor and the software that runs on it.
#[derive(Debug)]
pub(super) struct Processor {
    /// Number of the processor, which is also the number of the NIC queue that it serves.
    queue: u16,
    cpu: Cpu<Job>,
    costs: Costs,
    clock: MachineClock,
    stack: Stack,
    capabilities: Capabilities,
    /// Frames of the driver's queue, which wait for room in the transmit ring.
    driver_queue: VecDeque<FrameId>,
    /// Scratch buffer for the frames that the host sends in one turn.
    made: VecDeque<FrameId>,
    /// Scratch buffer for the segments into which the NIC divides a GSO frame.
    segments: Vec<FrameId>,
    processes: Vec<Process>,
    attached: Option<AttachedGenerator>,
    /// Time of the scheduled clock event; the earliest if there are several, and `Tick::NEVER` if
    /// there is none.
    scheduled: Tick,
    /// Whether a timer job is queued.
    timer_queued: bool,
}

impl Processor {
    /// Creates a processor. Its machine's clock started `head_start` before the simulation.
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
            cpu: Cpu::new(parameters.bus_demand, parameters.bus.taken()),
            costs: parameters.costs,
            clock: MachineClock::new(head_start, parameters.clock_grain),
            stack,
            capabilities,
            driver_queue: VecDeque::with_capacity(DRIVER_QUEUE),
            made: VecDeque::with_capacity(DRIVER_QUEUE),
            segments: Vec::new(),
            processes: Vec::new(),
            attached: None,
            scheduled: Tick::NEVER,
            timer_queued: false,
        }
    }

    /// Returns the busy time, in total and by priority level.
    pub(super) fn busy(&self) -> (Span, [Span; 3]) {
        self.cpu.busy()
    }

    /// Returns whether all programs have ended.
    pub(super) fn is_finished(&self) -> bool {
        self.processes.iter().all(|process| process.program.is_finished())
            && self.attached.iter().all(|attached| attached.generator.is_finished())
    }

    /// Returns the reports of all programs.
    pub(super) fn reports(&self) -> impl Iterator<Item = ProgramReport> {
        let reports = self.processes.iter().map(|process| process.program.report(&self.stack));
        reports.chain(self.attached.iter().map(|attached| attached.generator.report()))
    }

    /// Returns the event that a TCP connection waits for: the connection of the first unfinished
    /// program that has one. Returns `None` if there is no such connection, or if it waits for its
    /// program.
    pub(super) fn waits_for(&self) -> Option<Activity> {
        let mut programs = self.processes.iter().map(|process| process.program.report(&self.stack));
        programs.find(|program| !program.complete && program.tcp.is_some())?.waits_for()
    }

    /// Attaches a raw-frame generator to this processor. It replaces a generator that was attached
    /// before.
    pub(super) fn attach(
        &mut self,
        now: Tick,
        generator: Box<dyn FrameGenerator>,
        actions: &mut Vec<MachineAction>,
    ) {
        self.attached = Some(AttachedGenerator::new(generator));
        self.schedule(now, MachineEvent::Generator, actions);
    }

    /// Starts a program.
    pub(super) fn start(&mut self, program: Box<dyn Program>) {
        let index = self.processes.len();
        self.processes.push(Process { program, is_asleep: false, is_woken: false });
        self.cpu.add(Level::Task, self.costs.wakeup, Job::Task(index));
    }

    /// Handles a timer of the processor, or the end of a job. If the job received a frame that all
    /// shards of the host must get, returns the frame, and the caller passes it to all other
    /// processors.
    pub(super) fn handle_event(
        &mut self,
        now: Tick,
        event: MachineEvent,
        rss: &mut RssNic,
        frames: &mut Frames,
        actions: &mut Vec<MachineAction>,
    ) -> Option<FrameId> {
        let mut for_all = None;
        match event {
            MachineEvent::Job { plan } => {
                let (level, job) = self.cpu.take_done(now, plan)?;
                if let Job::Receive(frame) = job {
                    match rss.steer(frames[frame].bytes()) {
                        Steered::To(queue) => {
                            assert_eq!(
                                queue, self.queue,
                                "a processor receives only its own flows"
                            );
                        }
                        Steered::ToAll => for_all = Some(frame),
                    }
                }
                self.finish(now, level, job, rss, frames);
            }
            MachineEvent::Clock => self.handle_clock(now),
            MachineEvent::Generator => {
                self.attached.iter_mut().for_each(|attached| attached.handle_time(now));
            }
        }
        self.poll_generator(now, rss, frames);
        self.schedule_timeouts(now, actions);
        for_all
    }

    /// Queues the job that enters the interrupt handler.
    pub(super) fn interrupt(&mut self) {
        self.cpu.add(Level::Driver, self.costs.interrupt, Job::Interrupt);
    }

    /// Starts the most urgent job, and schedules its end.
    pub(super) fn resume(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        let due = self.cpu.resume(now);
        self.schedule_job(due, actions);
    }

    /// Changes the fraction of the bus that NICs and other bus masters use, in 65,536ths. `taken`
    /// computes the new fraction from the present one.
    pub(super) fn change_bus(
        &mut self,
        now: Tick,
        taken: impl FnOnce(u64) -> u64,
        actions: &mut Vec<MachineAction>,
    ) {
        let due = self.cpu.change_bus(now, taken);
        self.schedule_job(due, actions);
    }

    /// Changes the number of other processors that are running on the bus.
    pub(super) fn change_competitors(
        &mut self,
        now: Tick,
        competitors: u64,
        actions: &mut Vec<MachineAction>,
    ) {
        let due = self.cpu.change_competitors(now, competitors);
        self.schedule_job(due, actions);
    }

    fn schedule_job(&self, due: Option<Due>, actions: &mut Vec<MachineAction>) {
        if let Some(Due { at, plan }) = due {
            self.schedule(at, MachineEvent::Job { plan }, actions);
        }
    }

    fn schedule(&self, at: Tick, event: MachineEvent, actions: &mut Vec<MachineAction>) {
        actions.push(MachineAction::Later { at, processor: self.queue, event });
    }

    /// Applies the effect of a job whose work is done.
    fn finish(&mut self, now: Tick, level: Level, job: Job, rss: &mut RssNic, frames: &mut Frames) {
        match job {
            Job::Interrupt => self.service_nic(rss, frames),
            Job::Receive(frame) => {
                rss.nic.free_slots(self.queue, frames[frame].length());
                self.input(frame, rss, frames);
            }
            Job::Done => self.refill_nic(now, rss, frames),
            Job::Input(frame) => {
                self.turn(now, level, Some(frame), rss, frames);
                frames.release(frame);
            }
            Job::GeneratorInput(frame) => {
                let bytes = frames[frame].bytes();
                self.attached
                    .iter_mut()
                    .for_each(|attached| attached.generator.handle_frame(now, bytes));
                frames.release(frame);
            }
            Job::GeneratorOutput(frame) => {
                self.attached.iter_mut().for_each(AttachedGenerator::handle_built);
                self.send_to_nic(now, frame, rss, frames);
            }
            Job::Output(frame) => self.send_to_nic(now, frame, rss, frames),
            Job::Timer => {
                self.timer_queued = false;
                self.turn(now, level, None, rss, frames);
            }
            Job::Task(index) => self.run_task(now, index, rss, frames),
        }
    }

    /// Queues the processing of a received frame. The raw-frame generator processes it if
    /// [`FrameGenerator::wants`] returns true, otherwise the host.
    pub(super) fn input(&mut self, frame: FrameId, rss: &RssNic, frames: &Frames) {
        let attached = self.attached.as_ref();
        let (work, job) = match attached
            .and_then(|attached| attached.cost_of(frames[frame].bytes()))
        {
            Some(work) => (work, Job::GeneratorInput(frame)),
            None => (self.costs.input + self.checksum_cost(frame, rss, frames), Job::Input(frame)),
        };
        self.cpu.add(Level::Network, work, job);
    }

    /// Reads the NIC's completions, and queues the driver's work for each. With LRO, consecutive
    /// received frames are merged first.
    fn service_nic(&mut self, rss: &mut RssNic, frames: &mut Frames) {
        let most = rss.nic.offload().lro_max_size;
        let mut last: Option<FrameId> = None;
        while let Some(completion) = rss.nic.poll_completion(self.queue) {
            match completion {
                // Without LRO, nothing can be merged into this frame, so it is passed to the driver
                // immediately.
                Completion::Received(frame) if most == 0 => self.take_received(frame, frames),
                Completion::Received(frame) => {
                    let length = frames[frame].length();
                    let merged = last.and_then(|last| offload::merge(frames, last, frame, most));
                    if merged.is_some() {
                        rss.nic.note_merged(self.queue, length);
                        last = merged;
                    } else if let Some(before) = last.replace(frame) {
                        self.take_received(before, frames);
                    }
                }
                Completion::Transmitted => {
                    self.cpu.add(Level::Driver, self.costs.driver_done, Job::Done);
                }
            }
        }
        if let Some(last) = last {
            self.take_received(last, frames);
        }
    }

    /// Queues the driver's job of taking a received frame from the NIC.
    fn take_received(&mut self, frame: FrameId, frames: &Frames) {
        let copy = self.costs.nic_copy * frames[frame].length() as u64;
        self.cpu.add(Level::Driver, self.costs.driver_receive + copy, Job::Receive(frame));
    }

    /// Returns the processor time of computing or verifying the checksum of a frame; zero if the
    /// NIC does it.
    fn checksum_cost(&self, frame: FrameId, rss: &RssNic, frames: &Frames) -> Span {
        if rss.nic.offload().checksums {
            return Span::ZERO;
        }
        let bytes = frames[frame].bytes();
        self.costs.sum * bytes.len().saturating_sub(unsummed(bytes)) as u64
    }

    fn send_to_nic(&mut self, now: Tick, frame: FrameId, rss: &mut RssNic, frames: &mut Frames) {
        if self.driver_queue.len() == DRIVER_QUEUE {
            rss.nic.note_drop(self.queue);
            frames.release(frame);
            return;
        }
        self.driver_queue.push_back(frame);
        self.refill_nic(now, rss, frames);
    }

    fn refill_nic(&mut self, now: Tick, rss: &mut RssNic, frames: &mut Frames) {
        let queue = self.queue;
        while rss.nic.has_room(queue) {
            let Some(frame) = self.driver_queue.pop_front() else { return };
            if frames[frame].segment().is_none() {
                let sent = TransmitFrame { frame, length: frames[frame].length(), is_last: true };
                rss.nic.transmit(now, queue, sent, &mut rss.actions);
                continue;
            }
            offload::segment(frames, frame, self.capabilities.medium, &mut self.segments);
            let count = self.segments.len();
            for (number, frame) in (1..).zip(self.segments.drain(..)) {
                let sent = TransmitFrame {
                    frame,
                    length: frames[frame].length(),
                    is_last: number == count,
                };
                rss.nic.transmit(now, queue, sent, &mut rss.actions);
            }
        }
    }

    /// Starts to build the generator's next frame, if the transmit ring has room and the driver's
    /// queue is empty.
    fn poll_generator(&mut self, now: Tick, rss: &RssNic, frames: &mut Frames) {
        let Some(attached) = &mut self.attached else { return };
        let nic_has_room = self.driver_queue.is_empty() && rss.nic.has_room(self.queue);
        if nic_has_room && let Some((work, frame)) = attached.poll(now, frames, &self.costs) {
            self.cpu.add(Level::Network, work, Job::GeneratorOutput(frame));
        }
    }

    /// Runs a turn of the host. For each frame that the host sends, queues a job of `level` that
    /// builds the frame.
    fn turn(
        &mut self,
        now: Tick,
        level: Level,
        arrived: Option<FrameId>,
        rss: &RssNic,
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
                // The frames in `made` are sent at the network level, which runs before the task
                // level. Frames that a task has sent earlier may still wait at the task level, and
                // would be overtaken. So their jobs move to the network level first. A real kernel
                // avoids the overtaking by masking network interrupts while it builds a task's
                // frames.
                self.cpu.promote(Level::Task, level, Job::is_frame_of_host);
            }
            while let Some(frame) = self.made.pop_front() {
                let work = self.costs.output
                    + self.checksum_cost(frame, rss, frames)
                    + self.costs.driver_transmit;
                let copy = self.costs.nic_copy * frames[frame].length() as u64;
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

    /// Wakes the first task that waits for an event.
    fn wake(&mut self, event: &Event) {
        let Some(index) = self.processes.iter().position(|process| process.program.wants(event))
        else {
            return;
        };
        let process = &mut self.processes[index];
        if std::mem::replace(&mut process.is_asleep, false) {
            self.cpu.add(Level::Task, self.costs.wakeup, Job::Task(index));
        } else {
            process.is_woken = true;
        }
    }

    /// Runs a task whose processor time for its current step has passed. The step takes effect now,
    /// and the task's next step is queued.
    fn run_task(&mut self, now: Tick, index: usize, rss: &RssNic, frames: &mut Frames) {
        loop {
            let process = &mut self.processes[index];
            process.is_woken = false;
            let mut task = Task { stack: &mut self.stack, clock: self.clock.show(now), now };
            let step = process.program.handle_run(&mut task);
            self.turn(now, Level::Task, None, rss, frames);
            match step {
                Step::Work(charge) => {
                    let work = self.cost_of(charge);
                    return self.cpu.add(Level::Task, work, Job::Task(index));
                }
                Step::Sleep if self.processes[index].is_woken => {}
                Step::Sleep => {
                    self.processes[index].is_asleep = true;
                    return;
                }
            }
        }
    }

    fn cost_of(&self, charge: Charge) -> Span {
        self.costs.call * charge.calls + self.costs.copy * charge.copied
    }

    fn handle_clock(&mut self, now: Tick) {
        self.scheduled = Tick::NEVER;
        if !self.timer_queued && self.stack.poll_timeout() <= self.clock.show(now) {
            self.timer_queued = true;
            self.cpu.add(Level::Network, self.costs.timer, Job::Timer);
        }
    }

    /// Schedules events for the next timeouts of the host and of the generator. If a timeout is
    /// postponed afterwards, its event does nothing but schedule another event for the new time.
    fn schedule_timeouts(&mut self, now: Tick, actions: &mut Vec<MachineAction>) {
        if let Some(at) = self.attached.as_mut().and_then(|attached| attached.poll_timeout(now)) {
            self.schedule(at, MachineEvent::Generator, actions);
        }
        let wanted = self.stack.poll_timeout();
        if wanted == Instant::NEVER || self.timer_queued {
            return;
        }
        let at = self.clock.when(wanted).max(now);
        if at < self.scheduled {
            self.scheduled = at;
            self.schedule(at, MachineEvent::Clock, actions);
        }
    }

    /// Returns whether a job is running.
    pub(super) fn is_busy(&self) -> bool {
        self.cpu.running_level().is_some()
    }

    /// Returns the percentage of the bus that NICs use.
    pub(super) const fn bus_taken(&self) -> u64 {
        self.cpu.bus_taken()
    }

    /// Returns the state of the processor that the timeline shows.
    pub(super) fn snapshot(&self, nic: &Nic) -> ProcessorSnapshot {
        let [to_send, received] = nic.held(self.queue);
        ProcessorSnapshot {
            level: self.cpu.running_level(),
            frames: [self.driver_queue.len(), to_send, received],
        }
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        self.cpu.check();
        let makes_frames = |level| self.cpu.jobs(level).any(Job::is_frame_of_host);
        assert!(
            !(makes_frames(Level::Network) && makes_frames(Level::Task)),
            "frames of the host keep their order"
        );
        assert!(
            self.driver_queue.len() <= DRIVER_QUEUE,
            "the driver's queue does not exceed its limit"
        );
    }
}
