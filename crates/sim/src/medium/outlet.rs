//! What waits for a cable: the queue in front of it, what becomes of those that it drops or marks, and how long the
//! others have waited.

use super::discipline::{Queue, QueueParameters, Verdict, Waiting};
use super::label::{flow_of, is_markable, mark};
use crate::frame::{FrameId, Frames};
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// A queue with its counters.
#[derive(Debug)]
pub(crate) struct Outlet {
    queue: Queue,
    counted: OutletStatistics,
    verdicts: Vec<Verdict>,
}

/// What has happened in front of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutletStatistics {
    /// Frames that have left the queue towards the cable.
    pub passed: u64,
    /// How long they had waited, together.
    pub waited: Span,
    /// And the longest.
    pub longest_wait: Span,
    /// Frames that the queue dropped.
    pub dropped: u64,
    /// Frames that it marked.
    pub marked: u64,
}

impl Outlet {
    /// An empty queue.
    pub(crate) fn new(parameters: &QueueParameters, random: Stream) -> Self {
        Self {
            queue: Queue::new(parameters, random),
            counted: OutletStatistics::default(),
            verdicts: Vec::new(),
        }
    }

    /// What has happened to it.
    pub(crate) const fn statistics(&self) -> &OutletStatistics {
        &self.counted
    }

    /// How many wait?
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Does nobody wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame of `length` bytes on the wire comes; the queue holds it now.
    pub(crate) fn handle_frame(
        &mut self,
        now: Tick,
        frame: FrameId,
        length: usize,
        frames: &mut Frames,
    ) {
        let bytes = frames[frame].bytes();
        let (flow, markable) = (flow_of(bytes), is_markable(bytes));
        let waiting = Waiting { frame, length, flow, markable, since: now };
        self.queue.handle_frame(now, waiting, &mut self.verdicts);
        self.carry_out(frames);
    }

    /// The cable is free: who is next? The queue does not hold it any more.
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

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.queue.check();
    }
}

impl OutletStatistics {
    /// Of several cables: what was dropped and marked in front of any, and how long frames waited where they waited
    /// longest, together.
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
