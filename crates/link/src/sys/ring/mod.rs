//! A ring of frames between two threads: a producer writes frames into its memory, and a consumer
//! reads them there.
//!
//! Producer and consumer share two free-running indices. The producer advances `tail`: all slots
//! before it have been filled. The consumer advances `head`: all slots before it are free again.
//! Each index has cache lines of its own. Each endpoint also has a private copy of the other
//! endpoint's index. It reads the shared index only if, by the copy, the ring is full (producer) or
//! empty (consumer). So besides its frames, a batch moves only the two cache lines with the indices
//! between the CPUs.
//!
//! If a single thread uses both endpoints, an empty ring [starts over](Producer::start_over) at its
//! first slot. The ring then uses only as much memory as the frames under way need, and this memory
//! stays in the cache.
//!
//! The ring itself never waits. [`Producer::publish`] and [`Consumer::release`] return whether the
//! other endpoint sleeps and must be woken by the caller. As long as the consumer has never slept,
//! a release store suffices to publish frames. After its first sleep, the producer needs a
//! sequentially consistent store, which is slower.

mod consumer;
mod producer;
mod shared;
mod sleep;

pub(crate) use consumer::Consumer;
pub(crate) use producer::Producer;

use shared::Shared;
use std::sync::Arc;

/// Creates a ring of at least `capacity` slots, each with room for a frame of `room` bytes.
pub(crate) fn ring(capacity: usize, room: usize) -> (Producer, Consumer) {
    let shared = Arc::new(Shared::new(capacity, room));
    (Producer::new(Arc::clone(&shared)), Consumer::new(shared))
}

#[cfg(test)]
mod tests;
