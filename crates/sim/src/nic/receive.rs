//! The half of a card that receives: an area for some frames, one for each queue, and times at which it is deaf.

use super::parameters::ReceiveParameters;
use crate::frame::FrameId;
use linerate_units::Tick;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Receiver {
    parameters: ReceiveParameters,
    /// By queue.
    areas: Vec<Area>,
    /// What is being received: on a bus two stations may begin before either knows of the other.
    hears: u32,
    /// When the last frame, or the last one of its own, was over.
    ended: Tick,
    deaf_until: Tick,
}

/// The receive area of a queue.
#[derive(Debug)]
struct Area {
    /// Frames on their way into memory.
    storing: VecDeque<FrameId>,
    /// Places that hold frames that the driver has not given back.
    taken: usize,
}

impl Receiver {
    pub(super) fn new(parameters: ReceiveParameters, queues: u16) -> Self {
        let area = || Area { storing: VecDeque::with_capacity(parameters.ring), taken: 0 };
        let areas = std::iter::repeat_with(area).take(queues.into()).collect();
        Self { parameters, areas, hears: 0, ended: Tick::ZERO, deaf_until: Tick::ZERO }
    }

    /// When the card last ended receiving.
    pub(super) const fn ended(&self) -> Tick {
        self.ended
    }

    /// A frame begins; is it heard?
    pub(super) fn handle_begin(&mut self, now: Tick) -> bool {
        let heard = now >= self.deaf_until;
        self.hears += u32::from(heard);
        heard
    }

    /// What began was no frame; was it heard?
    pub(super) const fn handle_fragment(&mut self) -> bool {
        let heard = self.hears > 0;
        self.hears = self.hears.saturating_sub(1);
        heard
    }

    /// A frame ends; was it heard?
    pub(super) fn handle_end(&mut self, now: Tick) -> bool {
        self.ended = now;
        let heard = self.handle_fragment();
        if heard {
            self.deaf_until = now + self.parameters.deaf;
        }
        heard
    }

    /// The card has sent a frame: it needs as long to listen again.
    pub(super) fn handle_own_frame(&mut self, now: Tick) {
        self.deaf_until = now + self.parameters.deaf;
    }

    /// Is there room for a frame of this queue? If not, the card has lost its place for a while.
    pub(super) fn has_room(&mut self, now: Tick, queue: u16, length: usize) -> bool {
        let has_room = self.taken(queue) + self.parameters.places(length) <= self.parameters.ring;
        if !has_room {
            self.deaf_until = now + self.parameters.restart;
        }
        has_room
    }

    /// Keeps a frame, which is in memory at the time returned.
    pub(super) fn store(&mut self, now: Tick, queue: u16, frame: FrameId, length: usize) -> Tick {
        let area = &mut self.areas[usize::from(queue)];
        area.taken += self.parameters.places(length);
        area.storing.push_back(frame);
        now + self.parameters.done
    }

    pub(super) fn take_stored(&mut self, queue: u16) -> Option<FrameId> {
        self.areas[usize::from(queue)].storing.pop_front()
    }

    /// The driver has taken a frame of this length.
    pub(super) fn give_back(&mut self, queue: u16, length: usize) {
        self.areas[usize::from(queue)].taken -= self.parameters.places(length);
    }

    /// How many frames of this length a queue holds.
    pub(super) const fn room(&self, length: usize) -> usize {
        self.parameters.ring / self.parameters.places(length)
    }

    /// Places of a queue's area that are taken.
    pub(super) fn taken(&self, queue: u16) -> usize {
        self.areas[usize::from(queue)].taken
    }

    pub(super) fn check(&self) {
        for area in &self.areas {
            assert!(area.taken <= self.parameters.ring, "the receive area holds what it holds");
            assert!(area.storing.len() <= area.taken, "what is on its way has a place");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use linerate_units::Span;

    /// The receive area of an 8390 with 8 kB, of which 3 kB are for sending.
    fn pages() -> Receiver {
        let (done, deaf, restart) = (Span::ZERO, Span::ZERO, Span::from_picos(1_000_000));
        Receiver::new(ReceiveParameters { ring: 20, page: 256, done, deaf, restart, fifo: None }, 1)
    }

    #[test]
    fn twenty_pages_hold_three_full_frames_and_a_short_one() {
        let (mut receiver, mut frames) = (pages(), Frames::new(1_514));
        assert_eq!((receiver.room(1_514), receiver.room(60)), (3, 20));
        for _ in 0..3 {
            assert!(receiver.has_room(Tick::ZERO, 0, 1_514));
            receiver.store(Tick::ZERO, 0, frames.take(), 1_514);
        }
        assert!(receiver.has_room(Tick::ZERO, 0, 60));
        assert!(
            !receiver.has_room(Tick::ZERO, 0, 1_514),
            "18 pages are taken, and a frame needs 6"
        );
        assert!(
            !receiver.handle_begin(Tick::ZERO),
            "who overflows is deaf until it is started anew"
        );
        receiver.give_back(0, 1_514);
        assert!(receiver.has_room(Tick::ZERO, 0, 1_514));
        receiver.check();
    }
}
