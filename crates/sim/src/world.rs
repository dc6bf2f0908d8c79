//! The world: who is on which cable, and what happens next. It alone makes events of what its parts want.

use crate::frame::{FrameId, Frames};
use crate::machine::{Machine, MachineAction, MachineEvent};
use crate::medium::{Audience, Medium, MediumAction, MediumEvent, Port};
use crate::nic::{FIRST_QUEUE, Nic, NicAction, NicEvent};
use crate::noise::Noise;
use crate::queue::Queue;
use crate::relay::{Relay, RelayAction, RelayEvent};
use crate::speaker::Header;
use crate::station::station_number;
use crate::trace::{Captured, Trace};
use linerate_units::Tick;
use std::collections::BTreeMap;

/// The station that stands for everybody else: no machine has its number.
const OTHERS: usize = 0xfffe;

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// On a medium.
    Medium(u16, MediumEvent),
    /// To a machine's card, from within.
    Card(u16, NicEvent),
    /// To a machine's card, from its wire.
    Wire(u16, Heard),
    /// To a machine, for this processor of it.
    Machine(u16, u16, MachineEvent),
    /// To a router or a bridge.
    Relay(u16, RelayEvent),
    /// To one of its cards, from the card's wire.
    RelayWire(u16, u16, Heard),
    /// A station of noise has a frame.
    Noise(u16),
}

/// What a card hears.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    Begin,
    Fragment,
    Frame { frame: FrameId, intact: bool },
}

/// Who is at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    Machine(u16),
    /// A router or a bridge, with this card.
    Relay(u16, u16),
    Noise(u16),
}

/// A medium and who is on it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) medium: Medium,
    pub(crate) ports: Vec<Occupant>,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Tick,
    pub(crate) queue: Queue<Event>,
    pub(crate) frames: Frames,
    pub(crate) places: Vec<Place>,
    pub(crate) machines: Vec<Machine>,
    /// Where each station is, its medium and port: machines, then routers' cards.
    pub(crate) seats: Vec<(u16, Port)>,
    pub(crate) relays: Vec<Relay>,
    /// Where their cards are.
    pub(crate) relay_seats: Vec<Vec<(u16, Port)>>,
    /// By medium, and by the medium of a station: the port of the bridge that leads there.
    pub(crate) bridged: BTreeMap<(u16, u16), Port>,
    pub(crate) noises: Vec<Noise>,
    pub(crate) noise_seats: Vec<(u16, Port)>,
    pub(crate) trace: Trace,
    /// Judge every invariant after every event?
    pub(crate) checks: bool,
    /// Events that have happened.
    pub(crate) events: u64,
    /// Machines whose programs have come to their ends, and how many others there are: who has nothing to do is not asked.
    are_over: Vec<bool>,
    under_way: usize,
    medium_actions: Vec<MediumAction>,
    machine_actions: Vec<MachineAction>,
    relay_actions: Vec<RelayAction>,
}

impl World {
    /// A world in which frames have up to `room` bytes.
    pub(crate) fn new(room: usize, trace: Trace, checks: bool) -> Self {
        Self {
            now: Tick::ZERO,
            queue: Queue::new(),
            frames: Frames::new(room),
            places: Vec::new(),
            machines: Vec::new(),
            seats: Vec::new(),
            relays: Vec::new(),
            relay_seats: Vec::new(),
            bridged: BTreeMap::new(),
            noises: Vec::new(),
            noise_seats: Vec::new(),
            trace,
            checks,
            events: 0,
            are_over: Vec::new(),
            under_way: 0,
            medium_actions: Vec::with_capacity(16),
            machine_actions: Vec::with_capacity(16),
            relay_actions: Vec::with_capacity(16),
        }
    }

    /// Begins the noise.
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

    /// Starts a program that speaks in frames on a machine.
    pub(crate) fn attach(&mut self, machine: usize, speaker: Box<dyn crate::speaker::Speaker>) {
        self.machines[machine].attach(self.now, speaker, &mut self.machine_actions);
        self.act_for_machine(machine);
    }

    /// Lets things happen until all programs have come to their ends, or `limit` has come, or nothing will ever happen
    /// again. Frames that are to be kept are shown to `watch` as they leave, and not held on to.
    pub(crate) fn run(&mut self, limit: Tick, watch: &mut dyn FnMut(Captured)) {
        self.are_over = self.machines.iter().map(Machine::is_over).collect();
        self.under_way = self.are_over.iter().filter(|&&is_over| !is_over).count();
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
            if self.under_way == 0 && matches!(event, Event::Machine(..)) {
                return;
            }
        }
    }

    /// One thing happens.
    fn step(&mut self, event: Event) {
        match event {
            Event::Medium(place, event) => {
                let (frames, actions) = (&mut self.frames, &mut self.medium_actions);
                let medium = &mut self.places[usize::from(place)].medium;
                medium.handle_event(self.now, event, frames, actions);
                self.act_for_medium(place);
            }
            Event::Card(machine, event) => {
                let machine = usize::from(machine);
                self.machines[machine].handle_nic_event(self.now, event, &mut self.machine_actions);
                self.act_for_machine(machine);
            }
            Event::Wire(machine, heard) => {
                self.hear(usize::from(machine), heard);
            }
            Event::Machine(machine, processor, event) => {
                let index = usize::from(machine);
                let (frames, actions) = (&mut self.frames, &mut self.machine_actions);
                self.machines[index].handle_event(self.now, processor, event, frames, actions);
                self.act_for_machine(index);
                self.note_end(index);
            }
            Event::Relay(relay, event) => {
                let (frames, actions) = (&mut self.frames, &mut self.relay_actions);
                self.relays[usize::from(relay)].handle_event(self.now, event, frames, actions);
                self.act_for_relay(relay);
            }
            Event::RelayWire(relay, card, heard) => {
                let (now, frames, actions) = (self.now, &self.frames, &mut self.relay_actions);
                let tell = |nic: &mut Nic, card: &mut Vec<NicAction>| {
                    heard.tell(now, nic, FIRST_QUEUE, frames, card);
                };
                self.relays[usize::from(relay)].handle_card(now, card, tell, actions);
                self.act_for_relay(relay);
            }
            Event::Noise(index) => {
                self.make_noise(index);
            }
        }
    }

    /// A program of a machine may have come to its end.
    fn note_end(&mut self, machine: usize) {
        let is_over = self.machines[machine].is_over();
        if std::mem::replace(&mut self.are_over[machine], is_over) != is_over {
            self.under_way = if is_over { self.under_way - 1 } else { self.under_way + 1 };
        }
    }

    fn hear(&mut self, machine: usize, heard: Heard) {
        let (now, frames, actions) = (self.now, &self.frames, &mut self.machine_actions);
        let hearer = &mut self.machines[machine];
        let queue = match heard {
            Heard::Frame { frame, .. } => hearer.queue_of(frames[frame].bytes()),
            Heard::Begin | Heard::Fragment => FIRST_QUEUE,
        };
        hearer.handle_card(now, |nic, card| heard.tell(now, nic, queue, frames, card), actions);
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
        let (place, port) = self.noise_seats[usize::from(index)];
        let length = self.noises[usize::from(index)].length();
        let frame = self.frames.take();
        let length = Header::to_nobody(OTHERS).write(self.frames[frame].room(), length);
        self.frames[frame].set_length(length);
        self.request(place, port, frame, Audience::Nobody);
    }

    fn request(&mut self, place: u16, port: Port, frame: FrameId, to: Audience) {
        let (frames, actions) = (&self.frames, &mut self.medium_actions);
        let medium = &mut self.places[usize::from(place)].medium;
        medium.handle_request(self.now, port, frame, to, frames, actions);
        self.act_for_medium(place);
    }

    fn request_for_card(&mut self, (place, port): (u16, Port), frame: FrameId) {
        // It may have been broken off before.
        self.frames[frame].cut_to(None);
        let to = self.audience(place, frame);
        self.request(place, port, frame, to);
    }

    /// The frame that a card begins to send ends after so many bytes.
    fn cut(&mut self, (place, port): (u16, Port), frame: FrameId, cut: Option<usize>) {
        self.frames[frame].cut_to(cut);
        let (frames, actions) = (&self.frames, &mut self.medium_actions);
        let medium = &mut self.places[usize::from(place)].medium;
        medium.handle_cut(self.now, port, frame, frames, actions);
        self.trace.note_wire(self.now, place, MediumAction::Sending { port, frame }, &self.frames);
        self.act_for_medium(place);
    }

    fn hold(&mut self, place: u16, port: Port, until: Tick) {
        let medium = &mut self.places[usize::from(place)].medium;
        medium.handle_hold(port, until, &mut self.medium_actions);
        self.act_for_medium(place);
    }

    /// Who is to take a frame off the medium: the station that its destination names, or the bridge that leads there.
    fn audience(&self, place: u16, frame: FrameId) -> Audience {
        match station_number(self.frames[frame].destination()) {
            Some(number) => match self.seats.get(number) {
                Some(&(at, port)) if at == place => Audience::One(port),
                Some(&(at, _)) => self
                    .bridged
                    .get(&(place, at))
                    .map_or(Audience::Nobody, |&port| Audience::One(port)),
                None => Audience::Nobody,
            },
            None => Audience::All,
        }
    }

    /// Carries out what a machine wants.
    fn act_for_machine(&mut self, machine: usize) {
        let number = u16::try_from(machine).unwrap_or(u16::MAX);
        let mut actions = std::mem::take(&mut self.machine_actions);
        for action in actions.drain(..) {
            match action {
                MachineAction::Later { at, processor, event } => {
                    self.queue.push(at, Event::Machine(number, processor, event));
                }
                MachineAction::Card(NicAction::Later { at, event }) => {
                    self.queue.push(at, Event::Card(number, event));
                }
                MachineAction::Card(NicAction::Request { frame }) => {
                    self.request_for_card(self.seats[machine], frame);
                }
                MachineAction::Card(NicAction::Cut { frame, cut }) => {
                    self.cut(self.seats[machine], frame, cut);
                }
                MachineAction::Card(NicAction::Hold { until }) => {
                    let (place, port) = self.seats[machine];
                    self.hold(place, port, until);
                }
                MachineAction::Card(NicAction::Release { frame }) => self.frames.release(frame),
                MachineAction::Card(
                    NicAction::Interrupt { .. }
                    | NicAction::TakeBus { .. }
                    | NicAction::GiveBus { .. },
                ) => {}
            }
        }
        self.machine_actions = actions;
        let machines = &self.machines;
        self.trace.note_machine(self.now, machine, || machines[machine].look());
    }

    /// Carries out what a router or a bridge wants.
    fn act_for_relay(&mut self, relay: u16) {
        let mut actions = std::mem::take(&mut self.relay_actions);
        for action in actions.drain(..) {
            match action {
                RelayAction::Later { at, event } => self.queue.push(at, Event::Relay(relay, event)),
                RelayAction::Request { card, frame } => {
                    self.request_for_card(
                        self.relay_seats[usize::from(relay)][usize::from(card)],
                        frame,
                    );
                }
                RelayAction::Cut { card, frame, cut } => {
                    self.cut(self.relay_seats[usize::from(relay)][usize::from(card)], frame, cut);
                }
                RelayAction::Hold { card, until } => {
                    let (place, port) = self.relay_seats[usize::from(relay)][usize::from(card)];
                    self.hold(place, port, until);
                }
                RelayAction::Release { frame } => self.frames.release(frame),
            }
        }
        self.relay_actions = actions;
        let relays = &self.relays;
        self.trace.note_relay(self.now, relay, || relays[usize::from(relay)].look());
    }

    /// Carries out what a medium wants.
    fn act_for_medium(&mut self, place: u16) {
        let mut actions = std::mem::take(&mut self.medium_actions);
        for action in actions.drain(..) {
            self.carry_out(place, action);
        }
        // What was wanted meanwhile has been carried out, by a call from within this one.
        self.medium_actions = actions;
    }

    fn carry_out(&mut self, place: u16, action: MediumAction) {
        self.trace.note_wire(self.now, place, action, &self.frames);
        match action {
            MediumAction::Later { at, event } => self.queue.push(at, Event::Medium(place, event)),
            MediumAction::Sending { port, frame } => {
                self.tell_sender(place, port, frame, Told::Sending)
            }
            MediumAction::Collided { port, frame } => {
                self.tell_sender(place, port, frame, Told::Collided)
            }
            MediumAction::Sent { port, frame } => self.tell_sender(place, port, frame, Told::Sent),
            MediumAction::GivenUp { port, frame } => {
                self.tell_sender(place, port, frame, Told::GivenUp)
            }
            MediumAction::Arriving { port, at } => self.let_hear(place, port, at, Heard::Begin),
            MediumAction::Fragment { port, at } => self.let_hear(place, port, at, Heard::Fragment),
            MediumAction::Arrived { port, at, frame, intact } => {
                self.frames.share(frame);
                // Whether it was broken off is known now: when it is heard its sender may have begun it anew.
                let intact = intact && !self.frames[frame].is_cut();
                self.let_hear(place, port, at, Heard::Frame { frame, intact });
            }
        }
    }

    fn let_hear(&mut self, place: u16, port: Port, at: Tick, heard: Heard) {
        match self.places[usize::from(place)].ports[port] {
            Occupant::Machine(machine) => self.queue.push(at, Event::Wire(machine, heard)),
            Occupant::Relay(relay, card) => {
                self.queue.push(at, Event::RelayWire(relay, card, heard))
            }
            Occupant::Noise(_) => {
                if let Heard::Frame { frame, .. } = heard {
                    self.frames.release(frame);
                }
            }
        }
    }

    fn tell_sender(&mut self, place: u16, port: Port, frame: FrameId, told: Told) {
        match self.places[usize::from(place)].ports[port] {
            Occupant::Machine(machine) => self.tell_machine(usize::from(machine), frame, told),
            Occupant::Relay(relay, card) => self.tell_relay(relay, card, frame, told),
            Occupant::Noise(index) => self.tell_noise(index, frame, told),
        }
    }

    fn tell_machine(&mut self, machine: usize, frame: FrameId, told: Told) {
        let (now, length) = (self.now, self.frames[frame].length());
        let tell = |nic: &mut Nic, card: &mut Vec<NicAction>| told.tell(now, nic, length, card);
        self.machines[machine].handle_card(now, tell, &mut self.machine_actions);
        self.act_for_machine(machine);
    }

    fn tell_relay(&mut self, relay: u16, card: u16, frame: FrameId, told: Told) {
        let (now, length) = (self.now, self.frames[frame].length());
        let tell = |nic: &mut Nic, card: &mut Vec<NicAction>| told.tell(now, nic, length, card);
        self.relays[usize::from(relay)].handle_card(now, card, tell, &mut self.relay_actions);
        self.act_for_relay(relay);
    }

    fn tell_noise(&mut self, index: u16, frame: FrameId, told: Told) {
        if matches!(told, Told::Sent | Told::GivenUp) {
            self.frames.release(frame);
            if self.noises[usize::from(index)].handle_sent() {
                self.send_noise(index);
            }
        }
    }

    /// Judges every invariant.
    fn check(&self) {
        self.machines.iter().for_each(Machine::check);
        self.relays.iter().for_each(Relay::check);
        self.places.iter().for_each(|place| place.medium.check());
    }
}

/// What a sender is told.
#[derive(Clone, Copy, Debug)]
enum Told {
    Sending,
    Collided,
    Sent,
    GivenUp,
}

impl Heard {
    /// A frame comes in by this queue.
    fn tell(
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

impl Told {
    fn tell(self, now: Tick, nic: &mut Nic, length: usize, actions: &mut Vec<NicAction>) {
        match self {
            Self::Sending => nic.handle_sending(now, actions),
            Self::Collided => nic.handle_collided(actions),
            Self::Sent => nic.handle_sent(now, length, false, actions),
            Self::GivenUp => nic.handle_sent(now, length, true, actions),
        }
    }
}
