//! The counters of a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of frames that passed between shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handovers {
    /// Frames that arrived on this queue and were handed over. A frame for all shards counts once
    /// for each other shard.
    pub given: u64,
    /// Frames that arrived on other queues and were taken over.
    pub taken: u64,
    /// Frames that arrived on this queue and were lost because the ring of their shard was full.
    pub dropped: u64,
}

/// A view of a shard's counters for another thread, as of the end of the shard's last batch.
#[derive(Clone, Debug, Default)]
pub struct HandoverWatch {
    given: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

impl HandoverWatch {
    /// Returns the counters.
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
