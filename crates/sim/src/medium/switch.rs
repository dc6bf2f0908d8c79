//! A switch: a cable of its own for each station, a queue in front of each cable towards it. It knows from the start
//! who is where. A frame is passed on when it has come in as a whole.

use super::discipline::{Queue, QueueParameters, Verdict, Waiting};
use super::label::{flow_of, is_markable, mark};
use super::{Audience, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port};
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
        let rate = section.rate("rate")?;
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
    verdicts: Vec<Verdict>,
}

/// A station's cable, and what waits for it.
#[derive(Debug)]
struct Station {
    cable: Cable,
    /// When the gap behind the last frame from the station is over.
    free: Tick,
    outgoing: Option<(FrameId, usize, Audience)>,
    /// Frames on their way to the switch.
    coming: VecDeque<(FrameId, usize, Audience)>,
    queue: Queue,
    /// A frame is on its way out; which one.
    sends: Option<Waiting>,
    /// Frames that have left the queue, and how long they waited, together.
    passed: u64,
    waited: Span,
}

impl Switch {
    /// A switch with these cables.
    pub(crate) fn new(parameters: &SwitchParameters, cables: &[Cable], seed: u64) -> Self {
        let station = |(number, &cable)| Station {
            cable,
            free: Tick::ZERO,
            outgoing: None,
            coming: VecDeque::new(),
            queue: Queue::new(&parameters.queue, Stream::new(seed, number)),
            sends: None,
            passed: 0,
            waited: Span::ZERO,
        };
        Self {
            gap: parameters.gap,
            ports: (0..).zip(cables).map(station).collect(),
            counted: MediumStatistics::default(),
            verdicts: Vec::new(),
        }
    }

    pub(crate) const fn statistics(&self) -> &MediumStatistics {
        &self.counted
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
            MediumEvent::Start { port, plan } => self.start(now, port, plan, actions),
            MediumEvent::End { port, .. } => self.end(now, port, frames, actions),
            MediumEvent::Reached { port } => self.pass_on(now, port, frames, actions),
            MediumEvent::Passed { port } => self.finish(now, port, frames, actions),
        }
    }

    /// A station begins to send.
    fn start(&mut self, now: Tick, port: Port, plan: u32, actions: &mut Vec<MediumAction>) {
        let station = &self.ports[port];
        let Some((frame, length, _)) = station.outgoing else { return };
        let time = station.cable.bit * (PREAMBLE_BITS + 8 * length as u64);
        actions.push(MediumAction::Sending { port, frame });
        actions.push(MediumAction::Later { at: now + time, event: MediumEvent::End { port, plan } });
        self.counted.busy += time;
    }

    /// It has sent.
    fn end(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
        let station = &mut self.ports[port];
        let Some((frame, length, to)) = station.outgoing.take() else { return };
        station.free = now + station.cable.bit * self.gap;
        station.coming.push_back((frame, length, to));
        frames.share(frame);
        let at = now + station.cable.delay;
        self.counted.frames += 1;
        self.counted.bytes += length as u64;
        actions.push(MediumAction::Later { at, event: MediumEvent::Reached { port } });
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Its frame is in the switch.
    fn pass_on(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
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
        let bytes = frames[frame].bytes();
        let waiting =
            Waiting { frame, length, flow: flow_of(bytes), markable: is_markable(bytes), since: now };
        frames.share(frame);
        self.ports[to].queue.handle_frame(now, waiting, &mut self.verdicts);
        self.carry_out(frames);
        self.send(now, to, frames, actions);
    }

    /// Sends the next frame to a station, if its cable is free.
    fn send(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
        let station = &mut self.ports[port];
        if station.sends.is_some() {
            return;
        }
        station.sends = station.queue.poll(now, &mut self.verdicts);
        if let Some(next) = station.sends {
            let waited = now.since(next.since);
            station.passed += 1;
            station.waited += waited;
            if station.waited >= self.counted.waited {
                (self.counted.passed, self.counted.waited) = (station.passed, station.waited);
            }
            self.counted.longest_wait = self.counted.longest_wait.max(waited);
            let preamble = station.cable.bit * PREAMBLE_BITS;
            let time = preamble + station.cable.bit * (8 * next.length as u64);
            actions.push(MediumAction::Arriving { port, at: now + preamble + station.cable.delay });
            let at = now + time + station.cable.bit * self.gap;
            actions.push(MediumAction::Later { at, event: MediumEvent::Passed { port } });
            let at = now + time + station.cable.delay;
            actions.push(MediumAction::Arrived { port, at, frame: next.frame, intact: true });
        }
        self.carry_out(frames);
    }

    /// A frame, and the gap behind it, has left towards a station.
    fn finish(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
        if let Some(sent) = self.ports[port].sends.take() {
            frames.release(sent.frame);
        }
        self.send(now, port, frames, actions);
    }

    fn carry_out(&mut self, frames: &mut Frames) {
        for verdict in self.verdicts.drain(..) {
            match verdict {
                Verdict::Drop(frame) => {
                    self.counted.dropped += 1;
                    frames.release(frame);
                }
                Verdict::Mark(frame) => {
                    self.counted.marked += 1;
                    mark(frames[frame].written());
                }
            }
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        for station in &self.ports {
            station.queue.check();
            let idle = station.sends.is_some() || station.queue.len() == 0;
            assert!(idle, "nobody waits for a cable that is free");
        }
    }
}
