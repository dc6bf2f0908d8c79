//! The receive half of a NIC: one ring for each queue, and dead times during which frames are not
//! received.

use super::descriptor_ring::ReceiveRing;
use super::parameters::ReceiveParameters;
use crate::frame::FrameId;
use linerate_units::Tick;

#[derive(Debug)]
pub(super) struct Receiver {
    parameters: ReceiveParameters,
    /// One ring for each queue.
    rings: Vec<ReceiveRing>,
    /// Number of frames being received: on a bus, two stations may begin before either senses the
    /// other.
    receiving: u32,
    /// End of the last frame received.
    ended: Tick,
    deaf_until: Tick,
}

impl Receiver {
    pub(super) fn new(parameters: ReceiveParameters, queues: u16) -> Self {
        let ring = || ReceiveRing::new(parameters.ring);
        let rings = std::iter::repeat_with(ring).take(queues.into()).collect();
        Self { parameters, rings, receiving: 0, ended: Tick::ZERO, deaf_until: Tick::ZERO }
    }

    /// Returns the end of the last frame received.
    pub(super) const fn ended(&self) -> Tick {
        self.ended
    }

    /// Notes the begin of a frame. Returns whether the NIC receives it.
    pub(super) fn handle_begin(&mut self, now: Tick) -> bool {
        let is_received = now >= self.deaf_until;
        self.receiving += u32::from(is_received);
        is_received
    }

    /// Notes the end of a fragment. Returns whether the NIC was receiving it.
    pub(super) const fn handle_fragment(&mut self) -> bool {
        let is_received = self.receiving > 0;
        self.receiving = self.receiving.saturating_sub(1);
        is_received
    }

    /// Records the end of a frame. Returns whether the NIC has received the whole frame.
    pub(super) fn handle_end(&mut self, now: Tick) -> bool {
        self.ended = now;
        let is_received = self.handle_fragment();
        if is_received {
            self.deaf_until = now + self.parameters.deaf;
        }
        is_received
    }

    /// Starts the dead time after a sent frame.
    pub(super) fn handle_own_frame(&mut self, now: Tick) {
        self.deaf_until = now + self.parameters.deaf;
    }

    /// Returns whether the ring has room for a frame. Without room the receiver stops for its
    /// restart time.
    pub(super) fn has_room(&mut self, now: Tick, queue: u16, length: usize) -> bool {
        let has_room = self.used(queue) + self.parameters.slots(length) <= self.parameters.ring;
        if !has_room {
            self.deaf_until = now + self.parameters.restart;
        }
        has_room
    }

    /// Stores a frame. Returns the time at which it is in memory.
    pub(super) fn store(&mut self, now: Tick, queue: u16, frame: FrameId, length: usize) -> Tick {
        self.rings[usize::from(queue)].store(frame, self.parameters.slots(length));
        now + self.parameters.done
    }

    pub(super) fn take_stored(&mut self, queue: u16) -> Option<FrameId> {
        self.rings[usize::from(queue)].take_stored()
    }

    /// Frees the slots of a frame of this length, which the driver has taken.
    pub(super) fn free(&mut self, queue: u16, length: usize) {
        self.rings[usize::from(queue)].free(self.parameters.slots(length));
    }

    /// Returns the number of frames of this length that a ring holds.
    pub(super) const fn room(&self, length: usize) -> usize {
        self.parameters.ring / self.parameters.slots(length)
    }

    /// Returns the used slots of a queue's ring.
    pub(super) fn used(&self, queue: u16) -> usize {
        self.rings[usize::from(queue)].used()
    }

    pub(super) fn check(&self) {
        self.rings.iter().for_each(|ring| ring.check(self.parameters.ring));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use linerate_units::Span;

    /// The receive ring of an 8390 with 8 kB, of which 3 kB are reserved for sending.
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
        assert!(!receiver.handle_begin(Tick::ZERO), "the receiver is stopped after an overflow");
        receiver.free(0, 1_514);
        assert!(receiver.has_room(Tick::ZERO, 0, 1_514));
        receiver.check();
    }
}
