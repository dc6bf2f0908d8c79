//! A raw-frame generator attached to a machine: its scheduled timeout, and whether the processor is
//! building a frame for it.

use super::cost::Costs;
use crate::frame::{FrameId, Frames};
use crate::generator::FrameGenerator;
use linerate_units::{Span, Tick};

#[derive(Debug)]
pub(super) struct AttachedGenerator {
    pub(super) generator: Box<dyn FrameGenerator>,
    /// Time of the timeout event that the machine has scheduled; `Tick::NEVER` if none is
    /// scheduled. If there are several, it is the earliest.
    scheduled: Tick,
    /// Whether the processor is building a frame.
    is_building: bool,
}

impl AttachedGenerator {
    pub(super) fn new(generator: Box<dyn FrameGenerator>) -> Self {
        Self { generator, scheduled: Tick::NEVER, is_building: false }
    }

    /// Takes the next frame from the generator. Returns the frame, and the processor time to build
    /// it. Returns `None` if the generator has no frame, or the processor is still building the
    /// previous one.
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

    /// Handles a timeout event. The generator is not called if it has postponed its timeout since
    /// the event was scheduled.
    pub(super) fn handle_time(&mut self, now: Tick) {
        self.scheduled = Tick::NEVER;
        if self.generator.poll_timeout() <= now {
            self.generator.handle_time(now);
        }
    }

    /// Returns the time of the generator's next timeout if the machine must schedule an event for
    /// it. Returns `None` if there is no timeout, or an event is already scheduled for that time or
    /// an earlier one.
    pub(super) fn poll_timeout(&mut self, now: Tick) -> Option<Tick> {
        let wanted = self.generator.poll_timeout().max(now);
        (wanted < self.scheduled && wanted != Tick::NEVER).then(|| {
            self.scheduled = wanted;
            wanted
        })
    }
}
