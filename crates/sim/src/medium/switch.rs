//! A switch: a cable of its own for each station, a queue in front of each cable towards it. It knows from the start
//! who is where. A frame is passed on when it has come in as a whole; one whose check sequence is wrong, because its
//! card broke it off, goes no further.

use super::outlet::{Outlet, OutletStatistics};
use super::{
    Audience, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port, QueueParameters,
    time_on_wire,
};
use crate::frame::{FrameId, Frames};
use crate::parameter::{ParameterError, Section};
use crate::rng::Stream;
use linerate_units::{Rate, Span, Tick};
use std::collections::VecDeque;

/// The cable of a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cable {
    pub(crate) rate: Rate,
    bit: Span,
    delay: Span,
}

/// A switch.
#[derive(Clone, Debug)]
pub(crate) struct SwitchParameters {
    /// The cables of stations that the scenario does not give another one.
    pub(crate) cable: Cable,
    /// Bits of silence between frames.
    gap: u64,
    queue: QueueParameters,
}

impl Cable {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let rate = section.wire_rate("rate")?;
        Ok(Self { rate, bit: Span::of_bits(1, rate), delay: section.span("delay")? })
    }
}

impl SwitchParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            cable: Cable::read(section)?,
            gap: section.count("gap")?,
            queue: QueueParameters::read(&section.below("queue"))?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Switch {
    gap: u64,
    ports: Vec<Station>,
    counted: MediumStatistics,
}

/// A station's cable, and what waits for it.
#[derive(Debug)]
struct Station {
    cable: Cable,
    /// When the gap behind the last frame from the station is over.
    free: Tick,
    outgoing: Option<(FrameId, usize, Audience)>,
    /// Changes with the end of that, so that what was planned before is known to be void.
    plan: u32,
    /// Frames on their way to the switch.
    coming: VecDeque<(FrameId, usize, Audience)>,
    outlet: Outlet,
    /// The frame that is on its way out.
    sends: Option<FrameId>,
}

impl Switch {
    /// A switch with these cables.
    pub(crate) fn new(parameters: &SwitchParameters, cables: &[Cable], seed: u64) -> Self {
        let station = |(number, &cable)| Station {
            cable,
            free: Tick::ZERO,
            outgoing: None,
            plan: 0,
            coming: VecDeque::new(),
            outlet: Outlet::new(&parameters.queue, Stream::new(seed, number)),
            sends: None,
        };
        Self {
            gap: parameters.gap,
            ports: (0..).zip(cables).map(station).collect(),
            counted: MediumStatistics::default(),
        }
    }

    pub(crate) fn statistics(&self) -> MediumStatistics {
        let OutletStatistics { passed, waited, longest_wait, dropped, marked } =
            OutletStatistics::of_all(self.ports.iter().map(|station| *station.outlet.statistics()));
        MediumStatistics { passed, waited, longest_wait, dropped, marked, ..self.counted }
    }

    /// See [`super::Medium::handle_request`].
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        length: usize,
        to: Audience,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.ports[port];
        assert!(station.outgoing.is_none(), "a station sends one frame at a time");
        station.outgoing = Some((frame, length, to));
        let at = now.max(station.free);
        actions.push(MediumAction::Later { at, event: MediumEvent::Start { port, plan: 0 } });
    }

    /// See [`super::Medium::handle_event`].
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        match event {
            MediumEvent::Start { port, .. } => self.start(now, port, actions),
            MediumEvent::End { port, plan } if self.ports[port].plan == plan => {
                self.end(now, port, frames, actions);
            }
            MediumEvent::End { .. } => {}
            MediumEvent::Reached { port } => self.pass_on(now, port, frames, actions),
            MediumEvent::Passed { port } => self.finish(now, port, frames, actions),
        }
    }

    /// A station begins to send.
    fn start(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let station = &self.ports[port];
        let (Some((frame, length, _)), plan) = (station.outgoing, station.plan) else { return };
        let time = time_on_wire(station.cable.bit, length);
        actions.push(MediumAction::Sending { port, frame });
        actions
            .push(MediumAction::Later { at: now + time, event: MediumEvent::End { port, plan } });
        self.counted.busy += time;
    }

    /// See [`super::Medium::handle_cut`].
    pub(crate) fn handle_cut(
        &mut self,
        now: Tick,
        port: Port,
        length: usize,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.ports[port];
        let Some((_, before, _)) = &mut station.outgoing else { return };
        let bit = station.cable.bit;
        let before = time_on_wire(bit, std::mem::replace(before, length));
        let time = time_on_wire(bit, length);
        station.plan = station.plan.wrapping_add(1);
        actions.push(MediumAction::Later {
            at: now + time,
            event: MediumEvent::End { port, plan: station.plan },
        });
        self.counted.busy = self.counted.busy + time - before;
    }

    /// It has sent.
    fn end(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
        let station = &mut self.ports[port];
        let Some((frame, length, to)) = station.outgoing.take() else { return };
        station.free = now + station.cable.bit * self.gap;
        self.counted.frames += 1;
        self.counted.bytes += length as u64;
        if frames[frame].is_cut() {
            self.counted.discarded += 1;
        } else {
            station.coming.push_back((frame, length, to));
            frames.share(frame);
            let at = now + station.cable.delay;
            actions.push(MediumAction::Later { at, event: MediumEvent::Reached { port } });
        }
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Its frame is in the switch.
    fn pass_on(
        &mut self,
        now: Tick,
        port: Port,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let Some((frame, length, to)) = self.ports[port].coming.pop_front() else { return };
        match to {
            Audience::Nobody => {}
            Audience::One(to) => self.queue(now, to, frame, length, frames, actions),
            Audience::All => {
                for to in (0..self.ports.len()).filter(|&to| to != port) {
                    self.queue(now, to, frame, length, frames, actions);
                }
            }
        }
        frames.release(frame);
    }

    fn queue(
        &mut self,
        now: Tick,
        to: Port,
        frame: FrameId,
        length: usize,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        frames.share(frame);
        self.ports[to].outlet.handle_frame(now, frame, length, frames);
        self.send(now, to, frames, actions);
    }

    /// Sends the next frame to a station, if its cable is free.
    fn send(
        &mut self,
        now: Tick,
        port: Port,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.ports[port];
        if station.sends.is_some() {
            return;
        }
        let Some((frame, length)) = station.outlet.poll(now, frames) else { return };
        station.sends = Some(frame);
        let preamble = station.cable.bit * PREAMBLE_BITS;
        let time = time_on_wire(station.cable.bit, length);
        actions.push(MediumAction::Arriving { port, at: now + preamble + station.cable.delay });
        let at = now + time + station.cable.bit * self.gap;
        actions.push(MediumAction::Later { at, event: MediumEvent::Passed { port } });
        let at = now + time + station.cable.delay;
        actions.push(MediumAction::Arrived { port, at, frame, intact: true });
    }

    /// A frame, and the gap behind it, has left towards a station.
    fn finish(
        &mut self,
        now: Tick,
        port: Port,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        if let Some(sent) = self.ports[port].sends.take() {
            frames.release(sent);
        }
        self.send(now, port, frames, actions);
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        for station in &self.ports {
            station.outlet.check();
            let idle = station.sends.is_some() || station.outlet.is_empty();
            assert!(idle, "nobody waits for a cable that is free");
        }
    }
}
