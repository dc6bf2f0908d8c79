//! A program that speaks in frames, as a machine has it: when it was promised to be told of the time, and whether
//! the processor makes a frame for it.

use super::cost::Costs;
use crate::frame::{FrameId, Frames};
use crate::speaker::Speaker;
use linerate_units::{Span, Tick};

#[derive(Debug)]
pub(super) struct Voice {
    pub(super) speaker: Box<dyn Speaker>,
    /// The earliest time for which its event is announced.
    alarm: Tick,
    /// The processor makes a frame.
    speaks: bool,
}

impl Voice {
    pub(super) fn new(speaker: Box<dyn Speaker>) -> Self {
        Self { speaker, alarm: Tick::NEVER, speaks: false }
    }

    /// Makes its next frame, if it has one and is not busy with another: what that costs.
    pub(super) fn poll(
        &mut self,
        now: Tick,
        frames: &mut Frames,
        costs: &Costs,
    ) -> Option<(Span, FrameId)> {
        if self.speaks {
            return None;
        }
        let id = frames.take();
        let frame = &mut frames[id];
        let Some(length) = self.speaker.poll_transmit(now, frame.room()) else {
            frames.release(id);
            return None;
        };
        frame.set_length(length);
        self.speaks = true;
        let labour = self.speaker.labour();
        let bytes = (labour.byte + costs.card_copy) * length as u64;
        Some((labour.output + costs.driver_transmit + bytes, id))
    }

    /// The frame is made.
    pub(super) const fn handle_made(&mut self) {
        self.speaks = false;
    }

    /// Is a frame of this machine's card for the program? If so, what it costs to take it in.
    pub(super) fn cost_of(&self, frame: &[u8]) -> Option<Span> {
        let labour = self.speaker.labour();
        self.speaker.wants(frame).then(|| labour.input + labour.byte * frame.len() as u64)
    }

    /// The time has come that it waited for, or that it waited for before it changed its mind.
    pub(super) fn handle_time(&mut self, now: Tick) {
        self.alarm = Tick::NEVER;
        if self.speaker.poll_timeout() <= now {
            self.speaker.handle_time(now);
        }
    }

    /// When it must be told, if that is earlier than what is announced.
    pub(super) fn poll_alarm(&mut self, now: Tick) -> Option<Tick> {
        let wanted = self.speaker.poll_timeout().max(now);
        (wanted < self.alarm && wanted != Tick::NEVER).then(|| {
            self.alarm = wanted;
            wanted
        })
    }
}
