//! The receive half of a NIC: one ring for each queue, and dead times in which it misses frames.

use super::descriptor_ring::ReceiveRing;
use super::parameters::ReceiveParameters;
use crate::frame::FrameId;
use linerate_units::Tick;

#[derive(Debug)]
pub(super) struct Receiver {
    parameters: ReceiveParameters,
    /// The receive ring of each queue.
    rings: Vec<ReceiveRing>,
    /// Number of frames that are arriving. On a bus there can be two, because a station may begin
    /// to send before it senses the transmission of another station.
    receiving: u32,
    /// Time at which the most recent frame from the wire ended.
    ended: Tick,
    deaf_until: Tick,
}

impl Receiver {
    pub(super) fn new(parameters: ReceiveParameters, queues: u16) -> Self {
        let ring = || ReceiveRing::new(parameters.ring);
        let rings = std::iter::repeat_with(ring).take(queues.into()).collect();
        Self { parameters, rings, receiving: 0, ended: Tick::ZERO, deaf_until: Tick::ZERO }
    }

    /// Returns the time at which the most recent frame from the wire ended.
    pub(super) const fn ended(&self) -> Tick {
        self.ended
    }

    /// Notes that a frame begins to arrive. Returns whether the NIC receives it. Returns false in a
    /// dead time, so that the frame is lost.
    pub(super) fn handle_begin(&mut self, now: Tick) -> bool {
        let is_received = now >= self.deaf_until;
        self.receiving += u32::from(is_received);
        is_received
    }

    /// Notes that an arriving signal ended as a fragment: an incomplete frame. Returns whether the
    /// NIC was receiving this signal; otherwise it had begun in a dead time.
    pub(super) const fn handle_fragment(&mut self) -> bool {
        let is_received = self.receiving > 0;
        self.receiving = self.receiving.saturating_sub(1);
        is_received
    }

    /// Notes that a complete frame has arrived. Returns whether the NIC has received it; otherwise
    /// it had begun in a dead time.
    pub(super) fn handle_end(&mut self, now: Tick) -> bool {
        self.ended = now;
        let is_received = self.handle_fragment();
        if is_received {
            self.deaf_until = now + self.parameters.deaf;
        }
        is_received
    }

    /// Starts the dead time after a frame that this NIC sent.
    pub(super) fn handle_own_frame(&mut self, now: Tick) {
        self.deaf_until = now + self.parameters.deaf;
    }

    /// Returns whether a queue's ring has room for a frame. If it has no room, the restart of the
    /// NIC begins, during which it receives nothing.
    pub(super) fn has_room(&mut self, now: Tick, queue: u16, length: usize) -> bool {
        let has_room = self.used(queue) + self.parameters.slots(length) <= self.parameters.ring;
        if !has_room {
            self.deaf_until = now + self.parameters.restart;
        }
        has_room
    }

    /// Begins to write a frame into memory. Returns the time at which the frame is completely in
    /// memory.
    pub(super) fn store(&mut self, now: Tick, queue: u16, frame: FrameId, length: usize) -> Tick {
        self.rings[usize::from(queue)].store(frame, self.parameters.slots(length));
        now + self.parameters.done
    }

    pub(super) fn take_stored(&mut self, queue: u16) -> Option<FrameId> {
        self.rings[usize::from(queue)].take_stored()
    }

    /// Frees the slots that a frame of this length occupied, after the driver has taken the frame.
    pub(super) fn free(&mut self, queue: u16, length: usize) {
        self.rings[usize::from(queue)].free(self.parameters.slots(length));
    }

    /// Returns the number of frames of this length that fit a ring.
    pub(super) const fn room(&self, length: usize) -> usize {
        self.parameters.ring / self.parameters.slots(length)
    }

    /// Returns the number of used slots in the ring of a queue.
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

    /// Creates the receiver of an 8390 with 8 kB of NIC memory. Its receive ring has 5 kB; the rest
    /// is for frames to be sent.
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
