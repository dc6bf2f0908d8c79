//! A cable with a pair for each direction: nobody waits for anybody, and what is lost is lost by chance.

use super::{DuplexParameters, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port};
use crate::frame::FrameId;
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// The cable between two cards.
#[derive(Debug)]
pub(crate) struct Duplex {
    parameters: DuplexParameters,
    ways: [Way; 2],
    counted: MediumStatistics,
}

/// One direction.
#[derive(Debug)]
struct Way {
    random: Stream,
    /// When the gap behind the last frame is over.
    free: Tick,
    outgoing: Option<(FrameId, usize)>,
}

impl Duplex {
    /// A cable.
    pub(crate) fn new(parameters: DuplexParameters, seed: u64) -> Self {
        let way = |number| Way { random: Stream::new(seed, number), free: Tick::ZERO, outgoing: None };
        Self { parameters, ways: [way(0), way(1)], counted: MediumStatistics::default() }
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
        actions: &mut Vec<MediumAction>,
    ) {
        let way = &mut self.ways[port];
        assert!(way.outgoing.is_none(), "a station sends one frame at a time");
        way.outgoing = Some((frame, length));
        let at = now.max(way.free);
        actions.push(MediumAction::Later { at, event: MediumEvent::Start { port, plan: 0 } });
    }

    /// See [`super::Medium::handle_event`].
    pub(crate) fn handle_event(&mut self, now: Tick, event: MediumEvent, actions: &mut Vec<MediumAction>) {
        match event {
            MediumEvent::Start { port, plan } => self.start(now, port, plan, actions),
            MediumEvent::End { port, .. } => self.end(now, port, actions),
            MediumEvent::Reached { .. } | MediumEvent::Passed { .. } => {}
        }
    }

    fn start(&mut self, now: Tick, port: Port, plan: u32, actions: &mut Vec<MediumAction>) {
        let Some((frame, length)) = self.ways[port].outgoing else { return };
        let preamble = self.parameters.bit * PREAMBLE_BITS;
        let end = now + preamble + self.parameters.bit * (8 * length as u64);
        let at = now + preamble + self.parameters.delay;
        actions.push(MediumAction::Sending { port, frame });
        actions.push(MediumAction::Later { at: end, event: MediumEvent::End { port, plan } });
        actions.push(MediumAction::Arriving { port: 1 - port, at });
        self.counted.busy += end.since(now);
    }

    fn end(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let Some((frame, length)) = self.ways[port].outgoing.take() else { return };
        self.ways[port].free = now + self.parameters.gap;
        self.counted.frames += 1;
        self.counted.bytes += length as u64;
        let arrival = self.arrival(now, port, frame);
        actions.push(arrival);
        actions.push(MediumAction::Sent { port, frame });
    }

    /// What becomes of a frame on its way.
    fn arrival(&mut self, now: Tick, from: Port, frame: FrameId) -> MediumAction {
        let (random, port, parameters) = (&mut self.ways[from].random, 1 - from, &self.parameters);
        let at = now + parameters.delay;
        if random.happens(parameters.loss) {
            self.counted.impaired += 1;
            return MediumAction::Fragment { port, at };
        }
        let intact = !random.happens(parameters.corruption);
        let late = random.happens(parameters.reorder);
        self.counted.impaired += u64::from(!intact || late);
        let behind = if late { parameters.reorder_delay } else { Span::ZERO };
        MediumAction::Arrived { port, at: at + behind, frame, intact }
    }
}
