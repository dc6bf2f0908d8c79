//! A switch: a full-duplex cable for each port, and a queue in front of each outgoing cable. The
//! switch receives a frame completely before it forwards the frame. Its table of MAC addresses is
//! complete from the start. Frames that their NIC has aborted have a wrong check sequence, and are
//! dropped.

use super::egress::{EgressQueue, EgressStatistics};
use super::{
    Audience, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port, QueueParameters,
    time_on_wire,
};
use crate::frame::{FrameId, Frames};
use crate::parameter::{ParameterError, Section};
use crate::rng::Stream;
use linerate_units::{Rate, Span, Tick};
use std::collections::VecDeque;

/// Parameters of the cable between a switch and a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cable {
    pub(crate) rate: Rate,
    bit: Span,
    delay: Span,
}

/// Parameters of a switch.
#[derive(Clone, Debug)]
pub(crate) struct SwitchParameters {
    /// The default cable, for ports for which the scenario specifies no other one.
    pub(crate) cable: Cable,
    /// Inter-frame gap in bit times.
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

/// A port: the cable to its station, and the queue in front of the cable.
#[derive(Debug)]
struct Station {
    cable: Cable,
    /// End of the inter-frame gap after the previous frame from the station, before which its next
    /// frame may not begin.
    free: Tick,
    outgoing: Option<(FrameId, usize, Audience)>,
    /// Version of the scheduled end of `outgoing`. An event with an older version is stale.
    plan: u32,
    /// Frames that are on the way from the station to the switch.
    coming: VecDeque<(FrameId, usize, Audience)>,
    egress: EgressQueue,
    /// The frame that is being sent to the station; `None` if no frame is being sent.
    sends: Option<FrameId>,
}

impl Switch {
    /// Creates a switch with one port for each of these cables.
    pub(crate) fn new(parameters: &SwitchParameters, cables: &[Cable], seed: u64) -> Self {
        let station = |(number, &cable)| Station {
            cable,
            free: Tick::ZERO,
            outgoing: None,
            plan: 0,
            coming: VecDeque::new(),
            egress: EgressQueue::new(&parameters.queue, Stream::new(seed, number)),
            sends: None,
        };
        Self {
            gap: parameters.gap,
            ports: (0..).zip(cables).map(station).collect(),
            counted: MediumStatistics::default(),
        }
    }

    pub(crate) fn statistics(&self) -> MediumStatistics {
        let EgressStatistics { passed, waited, longest_wait, dropped, marked } =
            EgressStatistics::of_all(self.ports.iter().map(|station| *station.egress.statistics()));
        MediumStatistics { passed, waited, longest_wait, dropped, marked, ..self.counted }
    }

    /// Handles a NIC's request to send a frame, see [`super::Medium::handle_request`].
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

    /// Handles an expired timer, see [`super::Medium::handle_event`].
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

    /// Begins the transmission of a station's frame to the switch.
    fn start(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let station = &self.ports[port];
        let (Some((frame, length, _)), plan) = (station.outgoing, station.plan) else { return };
        let time = time_on_wire(station.cable.bit, length);
        actions.push(MediumAction::Sending { port, frame });
        actions
            .push(MediumAction::Later { at: now + time, event: MediumEvent::End { port, plan } });
        self.counted.busy += time;
    }

    /// Changes the length of a frame being sent, see [`super::Medium::handle_truncation`].
    pub(crate) fn handle_truncation(
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

    /// Ends the transmission of a station's frame to the switch.
    fn end(&mut self, now: Tick, port: Port, frames: &mut Frames, actions: &mut Vec<MediumAction>) {
        let station = &mut self.ports[port];
        let Some((frame, length, to)) = station.outgoing.take() else { return };
        station.free = now + station.cable.bit * self.gap;
        self.counted.frames += 1;
        self.counted.bytes += length as u64;
        if frames[frame].is_truncated() {
            self.counted.discarded += 1;
        } else {
            station.coming.push_back((frame, length, to));
            frames.share(frame);
            let at = now + station.cable.delay;
            actions.push(MediumAction::Later { at, event: MediumEvent::Reached { port } });
        }
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Forwards the oldest frame that has reached the switch from this port.
    fn pass_on(
        &mut self,
        now: Tick,
        port: Port,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let Some((frame, length, to)) = self.ports[port].coming.pop_front() else { return };
        match to {
            Audience::None => {}
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
        self.ports[to].egress.handle_frame(now, frame, length, frames);
        self.send(now, to, frames, actions);
    }

    /// Sends the next queued frame to a station, unless its cable is busy.
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
        let Some((frame, length)) = station.egress.poll(now, frames) else { return };
        station.sends = Some(frame);
        let preamble = station.cable.bit * PREAMBLE_BITS;
        let time = time_on_wire(station.cable.bit, length);
        actions.push(MediumAction::Arriving { port, at: now + preamble + station.cable.delay });
        let at = now + time + station.cable.bit * self.gap;
        actions.push(MediumAction::Later { at, event: MediumEvent::Passed { port } });
        let at = now + time + station.cable.delay;
        actions.push(MediumAction::Arrived { port, at, frame, intact: true });
    }

    /// Ends the transmission of a frame to a station, and the inter-frame gap after it.
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

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        for station in &self.ports {
            station.egress.check();
            let idle = station.sends.is_some() || station.egress.is_empty();
            assert!(idle, "no frame waits for an idle cable");
        }
    }
}
