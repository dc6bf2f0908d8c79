//! Descriptor rings: the memory through which a driver and a NIC exchange frames. Each queue has a
//! transmit ring and a receive ring.

use crate::frame::FrameId;
use std::collections::VecDeque;

/// A frame for the NIC to send. Without TSO, it contains all data of a descriptor. With TSO, it
/// contains one of the segments into which the data of a descriptor are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransmitFrame {
    pub(crate) frame: FrameId,
    pub(crate) length: usize,
    /// Whether this is the final frame of its descriptor; without TSO, it always is.
    pub(crate) is_last: bool,
}

/// The transmit ring of a queue.
#[derive(Debug)]
pub(super) struct TransmitRing {
    /// Frames that wait to be sent, in their order.
    frames: VecDeque<TransmitFrame>,
    /// Number of descriptors to which the waiting frames belong.
    descriptors: usize,
    /// Number of descriptors whose frames have all been sent, but which the NIC has not yet
    /// reported as complete.
    completing: usize,
}

impl TransmitRing {
    /// Creates an empty ring with `size` descriptors.
    pub(super) fn new(size: usize) -> Self {
        Self { frames: VecDeque::with_capacity(size), descriptors: 0, completing: 0 }
    }

    /// Returns the number of descriptors in use. It includes those whose frames have been sent and
    /// whose completion is due.
    pub(super) const fn used(&self) -> usize {
        self.descriptors + self.completing
    }

    /// Returns whether no frame waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Appends a frame to be sent.
    pub(super) fn push(&mut self, frame: TransmitFrame) {
        self.descriptors += usize::from(frame.is_last);
        self.frames.push_back(frame);
    }

    /// Returns the next frame to send; `None` if there is none.
    pub(super) fn front(&self) -> Option<&TransmitFrame> {
        self.frames.front()
    }

    /// Removes the frame that has been sent, and returns it; `None` if the ring is empty. A
    /// descriptor stays in use after its final frame, until [`TransmitRing::complete`] is called.
    pub(super) fn pop(&mut self) -> Option<TransmitFrame> {
        let sent = self.frames.pop_front()?;
        if sent.is_last {
            self.descriptors -= 1;
            self.completing += 1;
        }
        Some(sent)
    }

    /// Frees the oldest descriptor whose frames have been sent.
    pub(super) const fn complete(&mut self) {
        self.completing -= 1;
    }

    /// Prepares a test: adds this many descriptors whose frames have been sent and whose completion
    /// is due.
    #[cfg(test)]
    pub(super) const fn expect_completions(&mut self, descriptors: usize) {
        self.completing += descriptors;
    }

    /// Checks the invariants of a ring that has `size` descriptors.
    pub(super) fn check(&self, size: usize) {
        assert!(self.used() <= size, "a transmit ring does not exceed its size");
        let descriptors = self.frames.iter().filter(|frame| frame.is_last).count();
        assert_eq!(descriptors, self.descriptors, "each descriptor has one last frame");
    }
}

/// The receive ring of a queue. Its slots are descriptors, of which a frame takes one. In an 8390
/// they are pages of NIC memory, of which a frame takes several.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    /// Frames that are being written into memory.
    storing: VecDeque<FrameId>,
    /// Number of slots that hold frames, or parts of frames, that the driver has not taken.
    used: usize,
}

impl ReceiveRing {
    /// Creates an empty ring with `size` slots.
    pub(super) fn new(size: usize) -> Self {
        Self { storing: VecDeque::with_capacity(size), used: 0 }
    }

    /// Returns the number of used slots.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Begins to write a frame into memory. The frame takes `slots` slots.
    pub(super) fn store(&mut self, frame: FrameId, slots: usize) {
        self.used += slots;
        self.storing.push_back(frame);
    }

    /// Removes and returns the oldest frame of `storing`, which is now completely in memory; `None`
    /// if no frame is being stored.
    pub(super) fn take_stored(&mut self) -> Option<FrameId> {
        self.storing.pop_front()
    }

    /// Frees the slots of a frame that the driver has taken.
    pub(super) const fn free(&mut self, slots: usize) {
        self.used -= slots;
    }

    /// Checks the invariants of a ring that has `size` slots.
    pub(super) fn check(&self, size: usize) {
        assert!(self.used <= size, "a receive ring does not exceed its size");
        assert!(self.storing.len() <= self.used, "every frame being stored has a slot");
    }
}
