//! A full-duplex cable, whose two directions do not affect each other. At random, frames are lost,
//! damaged or delayed.

use super::{
    DuplexParameters, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port,
    time_on_wire,
};
use crate::frame::FrameId;
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// A full-duplex cable between two NICs.
#[derive(Debug)]
pub(crate) struct Duplex {
    parameters: DuplexParameters,
    directions: [Direction; 2],
    counted: MediumStatistics,
}

/// One direction of a full-duplex cable.
#[derive(Debug)]
struct Direction {
    random: Stream,
    /// End of the inter-frame gap after the previous frame, before which no frame may begin.
    free: Tick,
    outgoing: Option<Outgoing>,
    /// Version of the scheduled end of the frame being sent. An event with an older version is
    /// stale.
    plan: u32,
}

/// A frame that is being sent, and its impairment.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    frame: FrameId,
    length: usize,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The cable cuts the frame off, so that the receiver gets a fragment: an incomplete frame.
    Lost,
    /// The frame arrives later than usual by the time `behind`. Its bytes are damaged unless
    /// `intact`.
    Arrives { behind: Span, intact: bool },
}

impl Duplex {
    /// Creates a full-duplex cable.
    pub(crate) fn new(parameters: DuplexParameters, seed: u64) -> Self {
        let direction = |number| Direction {
            random: Stream::new(seed, number),
            free: Tick::ZERO,
            outgoing: None,
            plan: 0,
        };
        Self {
            parameters,
            directions: [direction(0), direction(1)],
            counted: MediumStatistics::default(),
        }
    }

    pub(crate) const fn statistics(&self) -> &MediumStatistics {
        &self.counted
    }

    /// Handles a NIC's request to send a frame, see [`super::Medium::handle_request`].
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        length: usize,
        actions: &mut Vec<MediumAction>,
    ) {
        assert!(self.directions[port].outgoing.is_none(), "a station sends one frame at a time");
        let fate = self.fate(port);
        let direction = &mut self.directions[port];
        direction.outgoing = Some(Outgoing { frame, length, fate });
        let at = now.max(direction.free);
        actions.push(MediumAction::Later { at, event: MediumEvent::Start { port, plan: 0 } });
    }

    /// Handles an expired timer, see [`super::Medium::handle_event`].
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        actions: &mut Vec<MediumAction>,
    ) {
        match event {
            MediumEvent::Start { port, .. } => self.start(now, port, actions),
            MediumEvent::End { port, plan } if self.directions[port].plan == plan => {
                self.end(now, port, actions);
            }
            MediumEvent::End { .. } | MediumEvent::Reached { .. } | MediumEvent::Passed { .. } => {}
        }
    }

    /// Changes the length of a frame being sent, see [`super::Medium::handle_truncation`].
    pub(crate) fn handle_truncation(
        &mut self,
        now: Tick,
        port: Port,
        length: usize,
        actions: &mut Vec<MediumAction>,
    ) {
        let (direction, bit) = (&mut self.directions[port], self.parameters.bit);
        let Some(outgoing) = &mut direction.outgoing else { return };
        let before = time_on_wire(bit, std::mem::replace(&mut outgoing.length, length));
        let time = time_on_wire(bit, length);
        direction.plan = direction.plan.wrapping_add(1);
        actions.push(MediumAction::Later {
            at: now + time,
            event: MediumEvent::End { port, plan: direction.plan },
        });
        self.counted.busy = self.counted.busy + time - before;
    }

    fn start(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let Direction { outgoing, plan, .. } = self.directions[port];
        let Some(Outgoing { frame, length, fate }) = outgoing else { return };
        let preamble = self.parameters.bit * PREAMBLE_BITS;
        let time = time_on_wire(self.parameters.bit, length);
        let at = now + preamble + self.parameters.delay + fate.behind();
        actions.push(MediumAction::Sending { port, frame });
        actions
            .push(MediumAction::Later { at: now + time, event: MediumEvent::End { port, plan } });
        actions.push(MediumAction::Arriving { port: 1 - port, at });
        self.counted.busy += time;
    }

    fn end(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let Some(Outgoing { frame, length, fate }) = self.directions[port].outgoing.take() else {
            return;
        };
        self.directions[port].free = now + self.parameters.gap;
        self.counted.frames += 1;
        self.counted.bytes += length as u64;
        let at = now + self.parameters.delay + fate.behind();
        actions.push(match fate {
            Fate::Lost => MediumAction::Fragment { port: 1 - port, at },
            Fate::Arrives { intact, .. } => {
                MediumAction::Arrived { port: 1 - port, at, frame, intact }
            }
        });
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Draws the impairment of the next frame. It must be known when the frame begins, because an
    /// additional delay applies to the arrival of both its start and its end.
    fn fate(&mut self, from: Port) -> Fate {
        let (random, parameters) = (&mut self.directions[from].random, &self.parameters);
        if random.happens(parameters.loss) {
            self.counted.impaired += 1;
            return Fate::Lost;
        }
        let intact = !random.happens(parameters.corruption);
        let late = random.happens(parameters.reorder);
        self.counted.impaired += u64::from(!intact || late);
        Fate::Arrives { behind: if late { parameters.reorder_delay } else { Span::ZERO }, intact }
    }
}

impl Fate {
    const fn behind(self) -> Span {
        match self {
            Self::Lost => Span::ZERO,
            Self::Arrives { behind, .. } => behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use linerate_units::Rate;

    const MICRO: u64 = 1_000_000;

    /// Returns the times at which the start and the end of a frame of 1,000 bytes reach the
    /// receiver, on a cable of 10 Mb/s. With the probability `reorder`, the frame is delayed by 3
    /// ms.
    fn arrival(reorder: f64) -> (Tick, Tick) {
        let rate = Rate::from_bits_per_second(10_000_000);
        let bit = Span::of_bits(1, rate);
        let (gap, delay) = (bit * 96, Span::from_picos(5 * MICRO));
        let reorder_delay = Span::from_picos(3_000 * MICRO);
        let parameters = DuplexParameters {
            rate,
            bit,
            gap,
            delay,
            loss: 0.0,
            corruption: 0.0,
            reorder,
            reorder_delay,
        };
        let (mut cable, mut actions) = (Duplex::new(parameters, 1), Vec::new());
        cable.handle_request(Tick::ZERO, 0, Frames::new(64).take(), 1_000, &mut actions);
        let (mut begins, mut ends) = (None, None);
        while let Some(action) = actions.pop() {
            match action {
                MediumAction::Later { at, event } => cable.handle_event(at, event, &mut actions),
                MediumAction::Arriving { at, .. } => begins = Some(at),
                MediumAction::Arrived { at, .. } => ends = Some(at),
                _ => {}
            }
        }
        (begins.unwrap(), ends.unwrap())
    }

    #[test]
    fn the_begin_and_the_end_of_a_frame_are_delayed_equally() {
        let (on_time, late) = (arrival(0.0), arrival(1.0));
        assert_eq!(on_time.1.since(on_time.0), Span::from_picos(800 * MICRO));
        assert_eq!(late.1.since(late.0), on_time.1.since(on_time.0));
        assert_eq!(late.0.since(on_time.0), Span::from_picos(3_000 * MICRO));
    }
}
