//! A NIC with receive-side scaling (RSS). Each processor serves one queue of the NIC and runs one
//! shard of the host. The NIC and the shards use one hash function of addresses and ports, so all
//! packets of a flow are processed by one processor.
//!
//! The NIC selects the queue only after it has received the whole frame. Therefore all queues share
//! the wire, the FIFO, the DMA and the bus. A frame that every shard needs (ARP) arrives on the
//! first queue, whose processor copies it for the others.

use crate::nic::{Nic, NicAction};
use linerate_stack::{FIRST_SHARD, Medium, Steered, Steering};

/// A NIC, and the RSS hash that assigns frames to its queues.
#[derive(Debug)]
pub(super) struct RssNic {
    pub(super) nic: Nic,
    steering: Steering,
    medium: Medium,
    /// Actions of the NIC that the machine has not handled yet.
    pub(super) actions: Vec<NicAction>,
}

impl RssNic {
    pub(super) fn new(nic: Nic, steering: Steering, medium: Medium) -> Self {
        Self { nic, steering, medium, actions: Vec::with_capacity(16) }
    }

    /// Returns the rule that assigns flows to queues and shards.
    pub(super) const fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Returns the shards of the host for which a frame is intended: one, or all of them.
    pub(super) fn steer(&mut self, frame: &[u8]) -> Steered {
        self.steering.steer(self.medium, frame)
    }

    /// Returns the queue on which a frame arrives.
    pub(super) fn queue_of(&mut self, frame: &[u8]) -> u16 {
        match self.steer(frame) {
            Steered::To(queue) => queue,
            Steered::ToAll => FIRST_SHARD,
        }
    }
}
