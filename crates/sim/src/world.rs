//! The state of a simulation as a whole: hosts, the media that connect them, and the event queue.
//! All events are scheduled here; other modules only return actions.

use crate::background::Noise;
use crate::event_queue::EventQueue;
use crate::frame::{FrameId, Frames};
use crate::generator::Header;
use crate::mac::mac_number;
use crate::machine::{Machine, MachineAction, MachineEvent};
use crate::medium::{Audience, Medium, MediumAction, MediumEvent, Port};
use crate::nic::{FIRST_QUEUE, Nic, NicAction, NicEvent};
use crate::relay::{Relay, RelayAction, RelayEvent};
use crate::trace::{Captured, Trace};
use linerate_units::Tick;
use std::collections::BTreeMap;

/// Number in the source MAC address of background traffic. No NIC has this number.
const BACKGROUND: usize = 0xfffe;

/// A scheduled event of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A timer of the medium with this number expires.
    Medium(u16, MediumEvent),
    /// A timer of the NIC of the machine with this number expires.
    Nic(u16, NicEvent),
    /// A signal from the wire reaches the NIC of the machine with this number.
    Reception(u16, Reception),
    /// A timer of a machine's processor expires. The numbers are those of the machine and the
    /// processor.
    Machine(u16, u16, MachineEvent),
    /// A timer of the router or bridge with this number expires.
    Relay(u16, RelayEvent),
    /// A signal from the wire reaches a NIC of a relay, by the numbers of relay and NIC.
    RelayReception(u16, u16, Reception),
    /// The source of background traffic with this number generates a frame.
    Noise(u16),
}

/// A signal that reaches a NIC from its wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reception {
    Begin,
    Fragment,
    Frame { frame: FrameId, intact: bool },
}

/// The owner of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    Machine(u16),
    /// A NIC of a router or a bridge, by the numbers of relay and NIC.
    Relay(u16, u16),
    Noise(u16),
}

/// A medium, and the owner of each of its ports.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) medium: Medium,
    pub(crate) ports: Vec<Occupant>,
}

/// The state of a simulation.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Tick,
    pub(crate) queue: EventQueue<Event>,
    pub(crate) frames: Frames,
    pub(crate) wires: Vec<Wire>,
    pub(crate) machines: Vec<Machine>,
    /// Wire and port of each NIC, indexed by the number in its MAC address. NICs of machines come
    /// first, then those of relays.
    pub(crate) attachments: Vec<(u16, Port)>,
    pub(crate) relays: Vec<Relay>,
    /// Wire and port of each NIC of a relay. The first index is the number of the relay, the second
    /// that of the NIC.
    pub(crate) relay_attachments: Vec<Vec<(u16, Port)>>,
    /// Ports that lead to bridges. The key is a pair of wires in one network. The value is a port
    /// of the first wire, at which a bridge leads towards the second wire.
    pub(crate) bridged: BTreeMap<(u16, u16), Port>,
    pub(crate) noises: Vec<Noise>,
    pub(crate) noise_attachments: Vec<(u16, Port)>,
    pub(crate) trace: Trace,
    /// Whether every invariant is checked after every event.
    pub(crate) checks: bool,
    /// Number of events processed.
    pub(crate) events: u64,
    /// For each machine, whether all its programs have ended. `unfinished` is the number of
    /// machines for which this is false. Both are cached, because querying every machine after
    /// every event would be slow.
    finished: Vec<bool>,
    unfinished: usize,
    medium_actions: Vec<MediumAction>,
    machine_actions: Vec<MachineAction>,
    relay_actions: Vec<RelayAction>,
}

impl World {
    /// Creates a world without machines. Its frames have buffers of `room` bytes.
    pub(crate) fn new(room: usize, trace: Trace, checks: bool) -> Self {
        Self {
            now: Tick::ZERO,
            queue: EventQueue::new(),
            frames: Frames::new(room),
            wires: Vec::new(),
            machines: Vec::new(),
            attachments: Vec::new(),
            relays: Vec::new(),
            relay_attachments: Vec::new(),
            bridged: BTreeMap::new(),
            noises: Vec::new(),
            noise_attachments: Vec::new(),
            trace,
            checks,
            events: 0,
            finished: Vec::new(),
            unfinished: 0,
            medium_actions: Vec::with_capacity(16),
            machine_actions: Vec::with_capacity(16),
            relay_actions: Vec::with_capacity(16),
        }
    }

    /// Schedules the first frame of every source of background traffic.
    pub(crate) fn start_noise(&mut self) {
        for (index, noise) in (0..).zip(&mut self.noises) {
            self.queue.push(noise.next(self.now), Event::Noise(index));
        }
    }

    /// Starts a program on a processor of a machine.
    pub(crate) fn start(
        &mut self,
        machine: usize,
        processor: u16,
        program: Box<dyn crate::program::Program>,
    ) {
        self.machines[machine].start(self.now, processor, program, &mut self.machine_actions);
        self.act_for_machine(machine);
    }

    /// Starts a raw-frame generator on a machine.
    pub(crate) fn attach(
        &mut self,
        machine: usize,
        generator: Box<dyn crate::generator::FrameGenerator>,
    ) {
        self.machines[machine].attach(self.now, generator, &mut self.machine_actions);
        self.act_for_machine(machine);
    }

    /// Processes events until all programs have ended, the time `limit` is reached, or no event is
    /// left. Each captured frame is passed to `watch` immediately, so that the frames need not be
    /// stored.
    pub(crate) fn run(&mut self, limit: Tick, watch: &mut dyn FnMut(Captured)) {
        self.finished = self.machines.iter().map(Machine::is_finished).collect();
        self.unfinished = self.finished.iter().filter(|&&is_finished| !is_finished).count();
        while let Some((at, event)) = self.queue.pop() {
            if at > limit {
                self.queue.push(at, event);
                self.now = limit;
                return;
            }
            assert!(at >= self.now, "time never goes back");
            self.now = at;
            self.events += 1;
            self.step(event);
            self.trace.frames.drain(..).for_each(&mut *watch);
            if self.checks {
                self.check();
            }
            if self.unfinished == 0 && matches!(event, Event::Machine(..)) {
                return;
            }
        }
    }

    /// Handles one event, and the actions that it causes.
    fn step(&mut self, event: Event) {
        match event {
            Event::Medium(wire, event) => {
                let (frames, actions) = (&mut self.frames, &mut self.medium_actions);
                let medium = &mut self.wires[usize::from(wire)].medium;
                medium.handle_event(self.now, event, frames, actions);
                self.act_for_medium(wire);
            }
            Event::Nic(machine, event) => {
                let machine = usize::from(machine);
                self.machines[machine].handle_nic_event(self.now, event, &mut self.machine_actions);
                self.act_for_machine(machine);
            }
            Event::Reception(machine, reception) => {
                self.receive(usize::from(machine), reception);
            }
            Event::Machine(machine, processor, event) => {
                let index = usize::from(machine);
                let (frames, actions) = (&mut self.frames, &mut self.machine_actions);
                self.machines[index].handle_event(self.now, processor, event, frames, actions);
                self.act_for_machine(index);
                self.update_finished(index);
            }
            Event::Relay(relay, event) => {
                let (frames, actions) = (&mut self.frames, &mut self.relay_actions);
                self.relays[usize::from(relay)].handle_event(self.now, event, frames, actions);
                self.act_for_relay(relay);
            }
            Event::RelayReception(relay, nic, reception) => {
                let (now, frames, actions) = (self.now, &self.frames, &mut self.relay_actions);
                let report = |nic: &mut Nic, nic_actions: &mut Vec<NicAction>| {
                    reception.report(now, nic, FIRST_QUEUE, frames, nic_actions);
                };
                self.relays[usize::from(relay)].handle_nic(now, nic, report, actions);
                self.act_for_relay(relay);
            }
            Event::Noise(index) => {
                self.make_noise(index);
            }
        }
    }

    /// Updates the number of unfinished machines after an event of machine `machine`.
    fn update_finished(&mut self, machine: usize) {
        let is_finished = self.machines[machine].is_finished();
        if std::mem::replace(&mut self.finished[machine], is_finished) != is_finished {
            self.unfinished = if is_finished { self.unfinished - 1 } else { self.unfinished + 1 };
        }
    }

    fn receive(&mut self, machine: usize, reception: Reception) {
        let (now, frames, actions) = (self.now, &self.frames, &mut self.machine_actions);
        let receiver = &mut self.machines[machine];
        let queue = match reception {
            Reception::Frame { frame, .. } => receiver.queue_of(frames[frame].bytes()),
            Reception::Begin | Reception::Fragment => FIRST_QUEUE,
        };
        receiver.handle_nic(
            now,
            |nic, nic_actions| reception.report(now, nic, queue, frames, nic_actions),
            actions,
        );
        self.act_for_machine(machine);
    }

    fn make_noise(&mut self, index: u16) {
        let noise = &mut self.noises[usize::from(index)];
        self.queue.push(noise.next(self.now), Event::Noise(index));
        if noise.handle_frame() {
            self.send_noise(index);
        }
    }

    fn send_noise(&mut self, index: u16) {
        let (wire, port) = self.noise_attachments[usize::from(index)];
        let length = self.noises[usize::from(index)].length();
        let frame = self.frames.take();
        let length = Header::without_receiver(BACKGROUND).write(self.frames[frame].room(), length);
        self.frames[frame].set_length(length);
        self.request(wire, port, frame, Audience::None);
    }

    fn request(&mut self, wire: u16, port: Port, frame: FrameId, to: Audience) {
        let (frames, actions) = (&self.frames, &mut self.medium_actions);
        let medium = &mut self.wires[usize::from(wire)].medium;
        medium.handle_request(self.now, port, frame, to, frames, actions);
        self.act_for_medium(wire);
    }

    fn request_for_nic(&mut self, (wire, port): (u16, Port), frame: FrameId) {
        // This may be a repeated attempt to send the frame. In the earlier attempt the NIC may have
        // truncated the frame. The new attempt begins with the whole frame.
        self.frames[frame].truncate(None);
        let to = self.audience(wire, frame);
        self.request(wire, port, frame, to);
    }

    /// Truncates the frame that a NIC begins to send to `cut` bytes. `None` cancels an earlier
    /// truncation.
    fn cut(&mut self, (wire, port): (u16, Port), frame: FrameId, cut: Option<usize>) {
        self.frames[frame].truncate(cut);
        let (frames, actions) = (&self.frames, &mut self.medium_actions);
        let medium = &mut self.wires[usize::from(wire)].medium;
        medium.handle_truncation(self.now, port, frame, frames, actions);
        self.trace.note_wire(self.now, wire, MediumAction::Sending { port, frame }, &self.frames);
        self.act_for_medium(wire);
    }

    fn hold(&mut self, wire: u16, port: Port, until: Tick) {
        let medium = &mut self.wires[usize::from(wire)].medium;
        medium.handle_hold(port, until, &mut self.medium_actions);
        self.act_for_medium(wire);
    }

    /// Returns the receivers of a frame on a wire. If the destination is on this wire, it is that
    /// NIC; if it is on a wire behind a bridge, it is the bridge. A frame to a group address is
    /// received by all NICs on this wire.
    fn audience(&self, wire: u16, frame: FrameId) -> Audience {
        match mac_number(self.frames[frame].destination()) {
            Some(number) => match self.attachments.get(number) {
                Some(&(at, port)) if at == wire => Audience::One(port),
                Some(&(at, _)) => self
                    .bridged
                    .get(&(wire, at))
                    .map_or(Audience::None, |&port| Audience::One(port)),
                None => Audience::None,
            },
            None => Audience::All,
        }
    }

    /// Executes the actions of a machine.
    fn act_for_machine(&mut self, machine: usize) {
        let number = u16::try_from(machine).unwrap_or(u16::MAX);
        let mut actions = std::mem::take(&mut self.machine_actions);
        for action in actions.drain(..) {
            match action {
                MachineAction::Later { at, processor, event } => {
                    self.queue.push(at, Event::Machine(number, processor, event));
                }
                MachineAction::Nic(NicAction::Later { at, event }) => {
                    self.queue.push(at, Event::Nic(number, event));
                }
                MachineAction::Nic(NicAction::Request { frame }) => {
                    self.request_for_nic(self.attachments[machine], frame);
                }
                MachineAction::Nic(NicAction::Truncate { frame, cut }) => {
                    self.cut(self.attachments[machine], frame, cut);
                }
                MachineAction::Nic(NicAction::Hold { until }) => {
                    let (wire, port) = self.attachments[machine];
                    self.hold(wire, port, until);
                }
                MachineAction::Nic(NicAction::Release { frame }) => self.frames.release(frame),
                MachineAction::Nic(
                    NicAction::Interrupt { .. }
                    | NicAction::TakeBus { .. }
                    | NicAction::GiveBus { .. },
                ) => {}
            }
        }
        self.machine_actions = actions;
        let machines = &self.machines;
        self.trace.note_machine(self.now, machine, || machines[machine].snapshot());
    }

    /// Executes the actions of a router or a bridge.
    fn act_for_relay(&mut self, relay: u16) {
        let mut actions = std::mem::take(&mut self.relay_actions);
        for action in actions.drain(..) {
            match action {
                RelayAction::Later { at, event } => self.queue.push(at, Event::Relay(relay, event)),
                RelayAction::Request { nic, frame } => {
                    self.request_for_nic(
                        self.relay_attachments[usize::from(relay)][usize::from(nic)],
                        frame,
                    );
                }
                RelayAction::Truncate { nic, frame, cut } => {
                    self.cut(
                        self.relay_attachments[usize::from(relay)][usize::from(nic)],
                        frame,
                        cut,
                    );
                }
                RelayAction::Hold { nic, until } => {
                    let (wire, port) = self.relay_attachments[usize::from(relay)][usize::from(nic)];
                    self.hold(wire, port, until);
                }
                RelayAction::Release { frame } => self.frames.release(frame),
            }
        }
        self.relay_actions = actions;
        let relays = &self.relays;
        self.trace.note_relay(self.now, relay, || relays[usize::from(relay)].snapshot());
    }

    /// Executes the actions of a medium.
    fn act_for_medium(&mut self, wire: u16) {
        let mut actions = std::mem::take(&mut self.medium_actions);
        for action in actions.drain(..) {
            self.carry_out(wire, action);
        }
        // An action may cause further actions of the medium. A nested call of this function has
        // then executed those, so `medium_actions` is empty. The drained vector is put back only to
        // keep its allocation.
        self.medium_actions = actions;
    }

    fn carry_out(&mut self, wire: u16, action: MediumAction) {
        self.trace.note_wire(self.now, wire, action, &self.frames);
        match action {
            MediumAction::Later { at, event } => self.queue.push(at, Event::Medium(wire, event)),
            MediumAction::Sending { port, frame } => {
                self.report_to_sender(wire, port, frame, SendProgress::Sending);
            }
            MediumAction::Collided { port, frame } => {
                self.report_to_sender(wire, port, frame, SendProgress::Collided);
            }
            MediumAction::Sent { port, frame } => {
                self.report_to_sender(wire, port, frame, SendProgress::Sent);
            }
            MediumAction::GivenUp { port, frame } => {
                self.report_to_sender(wire, port, frame, SendProgress::GivenUp);
            }
            MediumAction::Arriving { port, at } => {
                self.schedule_reception(wire, port, at, Reception::Begin);
            }
            MediumAction::Fragment { port, at } => {
                self.schedule_reception(wire, port, at, Reception::Fragment);
            }
            MediumAction::Arrived { port, at, frame, intact } => {
                self.frames.share(frame);
                // The sender may have truncated the frame, which damages it. This must be checked
                // now: when the frame reaches the receiver, its sender may already be sending it
                // again as a whole.
                let intact = intact && !self.frames[frame].is_truncated();
                self.schedule_reception(wire, port, at, Reception::Frame { frame, intact });
            }
        }
    }

    fn schedule_reception(&mut self, wire: u16, port: Port, at: Tick, reception: Reception) {
        match self.wires[usize::from(wire)].ports[port] {
            Occupant::Machine(machine) => self.queue.push(at, Event::Reception(machine, reception)),
            Occupant::Relay(relay, nic) => {
                self.queue.push(at, Event::RelayReception(relay, nic, reception));
            }
            Occupant::Noise(_) => {
                if let Reception::Frame { frame, .. } = reception {
                    self.frames.release(frame);
                }
            }
        }
    }

    fn report_to_sender(&mut self, wire: u16, port: Port, frame: FrameId, progress: SendProgress) {
        match self.wires[usize::from(wire)].ports[port] {
            Occupant::Machine(machine) => {
                self.report_to_machine(usize::from(machine), frame, progress);
            }
            Occupant::Relay(relay, nic) => self.report_to_relay(relay, nic, frame, progress),
            Occupant::Noise(index) => self.report_to_noise(index, frame, progress),
        }
    }

    fn report_to_machine(&mut self, machine: usize, frame: FrameId, progress: SendProgress) {
        let (now, length) = (self.now, self.frames[frame].length());
        let report = |nic: &mut Nic, nic_actions: &mut Vec<NicAction>| {
            progress.report(now, nic, length, nic_actions);
        };
        self.machines[machine].handle_nic(now, report, &mut self.machine_actions);
        self.act_for_machine(machine);
    }

    fn report_to_relay(&mut self, relay: u16, nic: u16, frame: FrameId, progress: SendProgress) {
        let (now, length) = (self.now, self.frames[frame].length());
        let report = |nic: &mut Nic, nic_actions: &mut Vec<NicAction>| {
            progress.report(now, nic, length, nic_actions);
        };
        self.relays[usize::from(relay)].handle_nic(now, nic, report, &mut self.relay_actions);
        self.act_for_relay(relay);
    }

    fn report_to_noise(&mut self, index: u16, frame: FrameId, progress: SendProgress) {
        if matches!(progress, SendProgress::Sent | SendProgress::GivenUp) {
            self.frames.release(frame);
            if self.noises[usize::from(index)].handle_sent() {
                self.send_noise(index);
            }
        }
    }

    /// Checks every invariant.
    fn check(&self) {
        self.machines.iter().for_each(Machine::check);
        self.relays.iter().for_each(Relay::check);
        self.wires.iter().for_each(|wire| wire.medium.check());
    }
}

/// Progress of a frame's transmission, which is reported to the sender's NIC.
#[derive(Clone, Copy, Debug)]
enum SendProgress {
    Sending,
    Collided,
    Sent,
    GivenUp,
}

impl Reception {
    /// Passes the signal to a NIC. A complete frame goes to the NIC's queue `queue`.
    fn report(
        self,
        now: Tick,
        nic: &mut Nic,
        queue: u16,
        frames: &Frames,
        actions: &mut Vec<NicAction>,
    ) {
        match self {
            Self::Begin => nic.handle_arriving(now, actions),
            Self::Fragment => nic.handle_fragment(actions),
            Self::Frame { frame, intact } => {
                nic.handle_arrived(now, queue, frame, frames[frame].length(), intact, actions);
            }
        }
    }
}

impl SendProgress {
    fn report(self, now: Tick, nic: &mut Nic, length: usize, actions: &mut Vec<NicAction>) {
        match self {
            Self::Sending => nic.handle_sending(now, actions),
            Self::Collided => nic.handle_collided(actions),
            Self::Sent => nic.handle_sent(now, length, false, actions),
            Self::GivenUp => nic.handle_sent(now, length, true, actions),
        }
    }
}
