//! A machine with several cards that passes on what comes in by one of them: a router, which knows packets, or a bridge,
//! which knows stations. It stores a frame, its processor decides for a while, and the frame waits for the card where
//! it goes on.
//!
//! Every queue on the way has a limit: the receive area of the card, the frames that wait for the processor, those that
//! wait for the card where they leave, and the ring of that card.

mod bridge;
mod parameters;
mod router;

pub(crate) use bridge::Bridge;
pub(crate) use parameters::RelayParameters;
pub(crate) use router::{Interface, NETWORK_BITS, Router, Way, network_of};

use crate::frame::{FrameId, Frames};
use crate::machine::{Cpu, Due, Level};
use crate::medium::{Outlet, OutletStatistics, on_wire};
use crate::nic::{Completion, FIRST_QUEUE, Nic, NicAction, NicEvent, NicStatistics, Piece};
use crate::trace::RelayLook;
use linerate_units::{Span, Tick};
use serde::Serialize;

/// What a relay wants to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEvent {
    /// A job will be done, unless the plan has changed since.
    Job { plan: u32 },
    /// To one of its cards, from within.
    Card(u16, NicEvent),
}

/// What follows for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayAction {
    /// Tell me at that time.
    Later { at: Tick, event: RelayEvent },
    /// This frame wants to get onto the wire of a card.
    Request { card: u16, frame: FrameId },
    /// What this card begins to send ends after so many bytes: see [`NicAction::Cut`].
    Cut { card: u16, frame: FrameId, cut: Option<usize> },
    /// What a card wants to get onto its wire may not leave before then.
    Hold { card: u16, until: Tick },
    /// Nobody needs this frame any more.
    Release { frame: FrameId },
}

/// What the processor works on, and for which card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The card has asked for the driver.
    Interrupt(u16),
    /// The driver takes a frame from it.
    Receive(u16, FrameId),
    /// The driver hears that a frame has left it.
    Done(u16),
    /// Where does a frame go that came in by it?
    Forward(u16, FrameId),
}

/// What a relay has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RelayStatistics {
    /// Frames that it gave to another card, or those of a broadcast to others.
    pub forwarded: u64,
    /// Frames that it answered, or said a word of its own about (ARP, ICMP).
    pub answered: u64,
    /// Frames for which there was no room among those that wait for the processor.
    pub overrun: u64,
    /// Packets whose time to live was over.
    pub expired: u64,
    /// Packets to addresses that no route leads to, or that nobody has.
    pub unreachable: u64,
    /// Packets that are longer than what the next network takes.
    pub too_long: u64,
    /// Frames that were nothing that it passes on.
    pub ignored: u64,
}

/// What is decided about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// It goes on by this card.
    Forward { card: u16, frame: FrameId },
    /// Everybody on the other cards' media gets it.
    Flood,
    /// A frame that the relay has made goes out by this card, in its place.
    Answer { card: u16, frame: FrameId, instead: Reason },
    /// It goes nowhere.
    Drop(Reason),
}

/// Why a frame does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It was meant for the relay.
    OurOwn,
    Expired,
    Unreachable,
    TooLong,
    Ignored,
}

/// How a relay decides.
#[derive(Debug)]
pub(crate) enum Mind {
    /// By the addresses of packets.
    Router(Router),
    /// By the stations of frames.
    Bridge(Bridge),
}

/// A card, and what waits for it.
#[derive(Debug)]
pub(crate) struct RelayCard {
    pub(crate) nic: Nic,
    pub(crate) outlet: Outlet,
}

/// A router or a bridge.
#[derive(Debug)]
pub(crate) struct Relay {
    parameters: RelayParameters,
    cpu: Cpu<Job>,
    cards: Vec<RelayCard>,
    mind: Mind,
    /// Frames that wait for the processor to decide. Invariant: at most `parameters.input`.
    waiting: usize,
    counted: RelayStatistics,
    card_actions: Vec<NicAction>,
}

impl Relay {
    /// A relay with these cards.
    pub(crate) fn new(parameters: RelayParameters, mind: Mind, cards: Vec<RelayCard>) -> Self {
        Self {
            cpu: Cpu::new(parameters.machine.wants_bus, parameters.machine.bus.taken()),
            parameters,
            cards,
            mind,
            waiting: 0,
            counted: RelayStatistics::default(),
            card_actions: Vec::with_capacity(16),
        }
    }

    /// Time during which the processor worked, and at which level.
    pub(crate) fn busy(&self) -> (Span, [Span; 3]) {
        self.cpu.busy()
    }

    /// What it has counted.
    pub(crate) const fn statistics(&self) -> &RelayStatistics {
        &self.counted
    }

    /// What its cards have counted, and what happened in front of each.
    pub(crate) fn cards(&self) -> impl Iterator<Item = (NicStatistics, &OutletStatistics)> {
        self.cards.iter().map(|card| (card.nic.statistics(), card.outlet.statistics()))
    }

    /// What the relay wanted to be told of.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: RelayEvent,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        match event {
            RelayEvent::Job { plan } => {
                if let Some((_, job)) = self.cpu.take_done(now, plan) {
                    self.finish(now, job, frames, actions);
                }
                self.announce(now, actions);
            }
            RelayEvent::Card(card, event) => {
                self.handle_card(
                    now,
                    card,
                    |nic, actions| nic.handle_event(now, event, actions),
                    actions,
                );
            }
        }
    }

    /// Something happens to a card: `what` is told to it.
    pub(crate) fn handle_card(
        &mut self,
        now: Tick,
        card: u16,
        what: impl FnOnce(&mut Nic, &mut Vec<NicAction>),
        actions: &mut Vec<RelayAction>,
    ) {
        what(&mut self.cards[usize::from(card)].nic, &mut self.card_actions);
        self.act_for_card(now, card, actions);
        self.announce(now, actions);
    }

    /// Carries out what a card wants.
    fn act_for_card(&mut self, now: Tick, card: u16, actions: &mut Vec<RelayAction>) {
        for index in 0..self.card_actions.len() {
            match self.card_actions[index] {
                NicAction::Interrupt { .. } => {
                    self.cpu.add(
                        Level::Card,
                        self.parameters.machine.costs.interrupt,
                        Job::Interrupt(card),
                    );
                }
                NicAction::TakeBus { share } => {
                    tell(self.cpu.change_bus(now, |taken| taken + share), actions);
                }
                NicAction::GiveBus { share } => {
                    tell(self.cpu.change_bus(now, |taken| taken - share), actions);
                }
                NicAction::Later { at, event } => {
                    actions.push(RelayAction::Later { at, event: RelayEvent::Card(card, event) });
                }
                NicAction::Request { frame } => actions.push(RelayAction::Request { card, frame }),
                NicAction::Cut { frame, cut } => {
                    actions.push(RelayAction::Cut { card, frame, cut })
                }
                NicAction::Hold { until } => actions.push(RelayAction::Hold { card, until }),
                NicAction::Release { frame } => actions.push(RelayAction::Release { frame }),
            }
        }
        self.card_actions.clear();
    }

    /// Says when the processor is done with what it works on.
    fn announce(&mut self, now: Tick, actions: &mut Vec<RelayAction>) {
        tell(self.cpu.resume(now), actions);
    }

    /// The work for a job is done: now it happens.
    fn finish(&mut self, now: Tick, job: Job, frames: &mut Frames, actions: &mut Vec<RelayAction>) {
        match job {
            Job::Interrupt(card) => self.serve_card(card, frames),
            Job::Receive(card, frame) => self.take_in(card, frame, frames),
            Job::Done(card) => self.feed_card(now, card, frames, actions),
            Job::Forward(card, frame) => {
                self.waiting -= 1;
                let decision = match &mut self.mind {
                    Mind::Router(router) => router.decide(card, frame, frames),
                    Mind::Bridge(bridge) => bridge.decide(card, frame, frames),
                };
                self.carry_out(now, card, frame, decision, frames, actions);
            }
        }
    }

    /// The driver looks what the card has to tell.
    fn serve_card(&mut self, card: u16, frames: &Frames) {
        let costs = &self.parameters.machine.costs;
        while let Some(completion) = self.cards[usize::from(card)].nic.poll_completion(FIRST_QUEUE)
        {
            match completion {
                Completion::Received(frame) => {
                    let copy = costs.card_copy * frames[frame].length() as u64;
                    self.cpu.add(
                        Level::Card,
                        costs.driver_receive + copy,
                        Job::Receive(card, frame),
                    );
                }
                Completion::Transmitted => {
                    self.cpu.add(Level::Card, costs.driver_done, Job::Done(card))
                }
            }
        }
    }

    /// The driver has taken a frame: it waits for the processor, if there is room.
    fn take_in(&mut self, card: u16, frame: FrameId, frames: &mut Frames) {
        let length = frames[frame].length();
        self.cards[usize::from(card)].nic.give_back(FIRST_QUEUE, length);
        if self.waiting == self.parameters.input {
            self.counted.overrun += 1;
            frames.release(frame);
            return;
        }
        self.waiting += 1;
        let costs = &self.parameters.machine.costs;
        let work =
            self.parameters.forward + costs.driver_transmit + costs.card_copy * length as u64;
        self.cpu.add(Level::Network, work, Job::Forward(card, frame));
    }

    fn carry_out(
        &mut self,
        now: Tick,
        came_by: u16,
        frame: FrameId,
        decision: Decision,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        match decision {
            Decision::Forward { card, frame } => {
                self.counted.forwarded += 1;
                self.queue(now, card, frame, frames, actions);
            }
            Decision::Flood => {
                for card in (0..).take(self.cards.len()).filter(|&card| card != came_by) {
                    self.counted.forwarded += 1;
                    // A frame of its own for each: a card may break its own off.
                    let copy = frames.copy(frame);
                    self.queue(now, card, copy, frames, actions);
                }
                frames.release(frame);
            }
            Decision::Answer { card, frame: answer, instead } => {
                self.counted.answered += 1;
                self.count(instead);
                frames.release(frame);
                self.queue(now, card, answer, frames, actions);
            }
            Decision::Drop(reason) => {
                self.count(reason);
                frames.release(frame);
            }
        }
    }

    const fn count(&mut self, reason: Reason) {
        match reason {
            Reason::OurOwn => {}
            Reason::Expired => self.counted.expired += 1,
            Reason::Unreachable => self.counted.unreachable += 1,
            Reason::TooLong => self.counted.too_long += 1,
            Reason::Ignored => self.counted.ignored += 1,
        }
    }

    fn queue(
        &mut self,
        now: Tick,
        card: u16,
        frame: FrameId,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        let length = on_wire(frames[frame].length());
        self.cards[usize::from(card)].outlet.handle_frame(now, frame, length, frames);
        self.feed_card(now, card, frames, actions);
    }

    /// Gives a card what waits for it, as far as its ring has room.
    fn feed_card(
        &mut self,
        now: Tick,
        card: u16,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        let RelayCard { nic, outlet } = &mut self.cards[usize::from(card)];
        while nic.has_room(FIRST_QUEUE) {
            let Some((frame, _)) = outlet.poll(now, frames) else { break };
            let piece = Piece { frame, length: frames[frame].length(), is_last: true };
            nic.transmit(now, FIRST_QUEUE, piece, &mut self.card_actions);
        }
        self.act_for_card(now, card, actions);
    }

    /// What it looks like from outside.
    pub(crate) fn look(&self) -> RelayLook {
        let held = |card: &RelayCard| {
            let [to_send, received] = card.nic.held(FIRST_QUEUE);
            [card.outlet.len(), to_send, received]
        };
        RelayLook {
            works: self.cpu.works(),
            bus: self.cpu.bus_taken(),
            input: self.waiting,
            cards: self.cards.iter().map(held).collect(),
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.cpu.check();
        assert!(self.waiting <= self.parameters.input, "no more wait for the processor than may");
        for card in &self.cards {
            card.nic.check();
            card.outlet.check();
        }
    }
}

fn tell(due: Option<Due>, actions: &mut Vec<RelayAction>) {
    if let Some(due) = due {
        actions.push(RelayAction::Later { at: due.at, event: RelayEvent::Job { plan: due.plan } });
    }
}
