//! Counters of the frames that pass between shards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the frames that one shard gives to other shards, or receives from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handovers {
    /// Frames that arrived on this shard's queue and were handed over to another shard. A frame
    /// that is for all shards counts once for each shard that it was handed to.
    pub given: u64,
    /// Frames that arrived on queues of other shards and were taken over by this shard.
    pub taken: u64,
    /// Frames that arrived on this shard's queue for another shard and were lost, because the ring
    /// to that shard was full.
    pub dropped: u64,
}

/// A handle by which other threads read a shard's counters. It shows the values that the counters
/// had at the end of the most recent batch of the shard.
#[derive(Clone, Debug, Default)]
pub struct HandoverWatch {
    given: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

impl HandoverWatch {
    /// Returns the counters as they were at the end of the shard's most recent batch.
    #[must_use]
    pub fn look(&self) -> Handovers {
        let [given, taken, dropped] = [&self.given, &self.taken, &self.dropped]
            .map(|counter| counter.load(Ordering::Relaxed));
        Handovers { given, taken, dropped }
    }

    pub(super) fn publish(&self, Handovers { given, taken, dropped }: Handovers) {
        for (counter, value) in
            [(&self.given, given), (&self.taken, taken), (&self.dropped, dropped)]
        {
            counter.store(value, Ordering::Relaxed);
        }
    }
}
