//! A ring of frames between two threads: a producer writes frames into its memory, and a consumer
//! reads them there.
//!
//! Producer and consumer share two free-running indices. `tail` belongs to the producer: every slot
//! before it has been filled. `head` belongs to the consumer: every slot before it is free again.
//! Each index has its own cache lines. Each endpoint keeps a copy of the other endpoint's index. It
//! reads the shared index only when the ring is full or empty according to the copy. A batch of
//! frames thus moves only two cache lines of bookkeeping.
//!
//! If one thread uses both endpoints, an empty ring [starts over](Producer::start_over) at its
//! first slot. The used memory is then only as large as the frames under way, and stays in the
//! cache.
//!
//! The ring itself never waits. [`Producer::publish`] and [`Consumer::release`] return whether the
//! other endpoint sleeps, so that the caller must wake it. Until the consumer has slept for the
//! first time, frames are published by a release store. Afterwards a sequentially consistent store
//! is necessary, which is slower.

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
