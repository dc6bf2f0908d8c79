//! A raw-frame generator attached to a machine: its scheduled timeout, and whether the processor is
//! building a frame for it.

use super::cost::Costs;
use crate::frame::{FrameId, Frames};
use crate::generator::FrameGenerator;
use linerate_units::{Span, Tick};

#[derive(Debug)]
pub(super) struct AttachedGenerator {
    pub(super) generator: Box<dyn FrameGenerator>,
    /// Earliest time for which the machine has scheduled a timeout event; `Tick::NEVER` if no event
    /// is scheduled.
    scheduled: Tick,
    /// Whether the processor is building a frame.
    is_building: bool,
}

impl AttachedGenerator {
    pub(super) fn new(generator: Box<dyn FrameGenerator>) -> Self {
        Self { generator, scheduled: Tick::NEVER, is_building: false }
    }

    /// Takes the generator's next frame, unless the processor is still building the previous one.
    /// Returns the processor time to build the frame, and the frame.
    pub(super) fn poll(
        &mut self,
        now: Tick,
        frames: &mut Frames,
        costs: &Costs,
    ) -> Option<(Span, FrameId)> {
        if self.is_building {
            return None;
        }
        let id = frames.take();
        let frame = &mut frames[id];
        let Some(length) = self.generator.poll_transmit(now, frame.room()) else {
            frames.release(id);
            return None;
        };
        frame.set_length(length);
        self.is_building = true;
        let own = self.generator.costs();
        let bytes = (own.byte + costs.nic_copy) * length as u64;
        Some((own.output + costs.driver_transmit + bytes, id))
    }

    /// Notes that the processor has finished building the generator's frame.
    pub(super) const fn handle_built(&mut self) {
        self.is_building = false;
    }

    /// Returns the processor time to receive a frame, or `None` if the frame is not for the
    /// generator.
    pub(super) fn cost_of(&self, frame: &[u8]) -> Option<Span> {
        let own = self.generator.costs();
        self.generator.wants(frame).then(|| own.input + own.byte * frame.len() as u64)
    }

    /// Handles a timeout event. Does nothing if the generator has postponed its timeout.
    pub(super) fn handle_time(&mut self, now: Tick) {
        self.scheduled = Tick::NEVER;
        if self.generator.poll_timeout() <= now {
            self.generator.handle_time(now);
        }
    }

    /// Returns the time for which the machine must schedule a timeout event. Returns `None` if the
    /// generator has no timeout, or an event is scheduled early enough.
    pub(super) fn poll_timeout(&mut self, now: Tick) -> Option<Tick> {
        let wanted = self.generator.poll_timeout().max(now);
        (wanted < self.scheduled && wanted != Tick::NEVER).then(|| {
            self.scheduled = wanted;
            wanted
        })
    }
}
