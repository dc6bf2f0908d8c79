//! The queue in front of an outgoing cable, with counters of its drops, marks and queueing delays.

use super::classify::{flow_of, is_markable, mark};
use super::discipline::{Queue, QueueParameters, QueuedFrame, Verdict};
use crate::frame::{FrameId, Frames};
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// The queue in front of an outgoing cable, with its counters.
#[derive(Debug)]
pub(crate) struct EgressQueue {
    queue: Queue,
    counted: EgressStatistics,
    verdicts: Vec<Verdict>,
}

/// Counters of an egress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressStatistics {
    /// Number of frames that have left the queue for the cable.
    pub passed: u64,
    /// Total queueing delay of the frames that have left.
    pub waited: Span,
    /// Longest queueing delay of a frame that has left.
    pub longest_wait: Span,
    /// Number of frames that the queue discipline dropped.
    pub dropped: u64,
    /// Number of frames that the queue discipline marked with ECN.
    pub marked: u64,
}

impl EgressQueue {
    /// Creates an empty queue.
    pub(crate) fn new(parameters: &QueueParameters, random: Stream) -> Self {
        Self {
            queue: Queue::new(parameters, random),
            counted: EgressStatistics::default(),
            verdicts: Vec::new(),
        }
    }

    /// Returns the counters of the queue.
    pub(crate) const fn statistics(&self) -> &EgressStatistics {
        &self.counted
    }

    /// Returns the number of queued frames.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues a frame that takes `length` bytes on the wire, and takes a reference to it.
    pub(crate) fn handle_frame(
        &mut self,
        now: Tick,
        frame: FrameId,
        length: usize,
        frames: &mut Frames,
    ) {
        let bytes = frames[frame].bytes();
        let (flow, markable) = (flow_of(bytes), is_markable(bytes));
        let waiting = QueuedFrame { frame, length, flow, markable, since: now };
        self.queue.handle_frame(now, waiting, &mut self.verdicts);
        self.carry_out(frames);
    }

    /// Removes the next frame to send, and returns it with its length on the wire in bytes; `None`
    /// if the queue is empty. The reference that the queue had to the frame passes to the caller.
    pub(crate) fn poll(&mut self, now: Tick, frames: &mut Frames) -> Option<(FrameId, usize)> {
        let next = self.queue.poll(now, &mut self.verdicts);
        self.carry_out(frames);
        let next = next?;
        let waited = now.since(next.since);
        self.counted.passed += 1;
        self.counted.waited += waited;
        self.counted.longest_wait = self.counted.longest_wait.max(waited);
        Some((next.frame, next.length))
    }

    fn carry_out(&mut self, frames: &mut Frames) {
        for verdict in self.verdicts.drain(..) {
            match verdict {
                Verdict::Drop(frame) => {
                    self.counted.dropped += 1;
                    frames.release(frame);
                }
                Verdict::Mark(frame) => {
                    self.counted.marked += 1;
                    mark(frames[frame].written());
                }
            }
        }
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        self.queue.check();
    }
}

impl EgressStatistics {
    /// Combines the counters of several ports. Drops and marks are sums, and the longest delay is
    /// the maximum. The number of frames passed and their total delay cannot be combined usefully;
    /// they are those of the port with the largest total delay.
    pub(crate) fn of_all(outlets: impl Iterator<Item = Self>) -> Self {
        outlets.fold(Self::default(), |all, one| {
            let longest =
                if (one.waited, one.passed) >= (all.waited, all.passed) { one } else { all };
            Self {
                passed: longest.passed,
                waited: longest.waited,
                longest_wait: all.longest_wait.max(one.longest_wait),
                dropped: all.dropped + one.dropped,
                marked: all.marked + one.marked,
            }
        })
    }
}
