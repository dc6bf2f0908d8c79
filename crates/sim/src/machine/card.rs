//! The card among the processors of its machine: receive-side scaling (RSS). Each processor serves a queue of the card
//! that is its own, and turns a shard of the host that nobody else turns; a flow stays with one of them, because card
//! and shards choose by the same hash of its addresses and ports.
//!
//! The queue is known when a frame has come in as a whole. What is before that all queues share: the wire, the FIFO,
//! the DMA, the bus. What is for every shard (ARP) comes in by the first queue, whose driver hands it to the others.

use crate::nic::{Nic, NicAction};
use linerate_stack::{FIRST_SHARD, Medium, Steered, Steering};

/// A card, and whose frames are.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) nic: Nic,
    steering: Steering,
    medium: Medium,
    /// What the card wants.
    pub(super) actions: Vec<NicAction>,
}

impl Card {
    pub(super) fn new(nic: Nic, steering: Steering, medium: Medium) -> Self {
        Self { nic, steering, medium, actions: Vec::with_capacity(16) }
    }

    /// How flows are spread.
    pub(super) const fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Whose a frame is.
    pub(super) fn steer(&mut self, frame: &[u8]) -> Steered {
        self.steering.steer(self.medium, frame)
    }

    /// The queue that it comes in by.
    pub(super) fn queue_of(&mut self, frame: &[u8]) -> u16 {
        match self.steer(frame) {
            Steered::To(queue) => queue,
            Steered::ToAll => FIRST_SHARD,
        }
    }
}
