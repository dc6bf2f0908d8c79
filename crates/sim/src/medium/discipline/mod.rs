//! Queue disciplines of switches and relays. A discipline decides which frames to queue, which one
//! to send next, and which to drop or mark. It returns these decisions; its caller drops and marks
//! the frames.

mod codel;
mod fair;
mod parameters;
mod red;

pub(crate) use parameters::QueueParameters;

use crate::frame::FrameId;
use crate::rng::Stream;
use codel::CoDel;
use fair::Fair;
use linerate_units::{Span, Tick};
use parameters::Law;
use red::Red;
use std::collections::VecDeque;

/// A queued frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedFrame {
    pub(crate) frame: FrameId,
    /// Length in bytes on the wire.
    pub(crate) length: usize,
    /// Flow hash, which is equal for all segments of a connection in one direction.
    pub(crate) flow: u64,
    /// Whether the frame can be marked instead of dropped (RFC 3168).
    pub(crate) markable: bool,
    /// Time at which the frame was queued.
    pub(crate) since: Tick,
}

/// A decision to drop or to mark a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Drop this frame.
    Drop(FrameId),
    /// Mark this frame with ECN. It stays in the queue or is sent.
    Mark(FrameId),
}

/// The queue in front of an outgoing cable, with its discipline.
#[derive(Debug)]
pub(crate) struct Queue {
    limit: usize,
    marks: bool,
    law: Discipline,
}

/// A FIFO queue of frames, with the sum of their bytes.
#[derive(Debug, Default)]
struct Fifo {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
}

#[derive(Debug)]
enum Discipline {
    /// Drop-tail: an arriving frame is dropped if the queue is full.
    TailDrop(Fifo),
    Red(Fifo, Red),
    CoDel(Fifo, CoDel),
    Fair(Fair),
}

impl Fifo {
    fn len(&self) -> usize {
        self.frames.len()
    }

    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn push(&mut self, frame: QueuedFrame) {
        self.bytes += frame.length;
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<QueuedFrame> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.length;
        Some(frame)
    }
}

impl Queue {
    /// Creates an empty queue.
    pub(crate) fn new(parameters: &QueueParameters, random: Stream) -> Self {
        let none = Fifo::default;
        let law = match &parameters.law {
            Law::TailDrop => Discipline::TailDrop(none()),
            Law::Red(red) => Discipline::Red(none(), Red::new(*red, random)),
            Law::CoDel(codel) => Discipline::CoDel(none(), CoDel::new(*codel)),
            Law::Fair(fair) => Discipline::Fair(Fair::new(*fair)),
        };
        Self { limit: parameters.limit, marks: parameters.marks, law }
    }

    /// Returns the number of queued frames.
    pub(crate) fn len(&self) -> usize {
        match &self.law {
            Discipline::TailDrop(line) | Discipline::Red(line, _) | Discipline::CoDel(line, _) => {
                line.len()
            }
            Discipline::Fair(fair) => fair.len(),
        }
    }

    /// Queues a frame, or drops it. Appends all frames to drop or mark because of this arrival to
    /// `verdicts`.
    pub(crate) fn handle_frame(
        &mut self,
        now: Tick,
        frame: QueuedFrame,
        verdicts: &mut Vec<Verdict>,
    ) {
        let frame = QueuedFrame { markable: frame.markable && self.marks, ..frame };
        let is_full = self.len() >= self.limit;
        match &mut self.law {
            Discipline::Fair(fair) => {
                fair.push(frame);
                if is_full {
                    verdicts.extend(fair.drop_from_largest().map(Verdict::Drop));
                }
            }
            Discipline::Red(line, red) if !is_full => {
                if red.chooses(now, line.len()) {
                    if !frame.markable || red.is_beyond() {
                        return verdicts.push(Verdict::Drop(frame.frame));
                    }
                    verdicts.push(Verdict::Mark(frame.frame));
                }
                line.push(frame);
            }
            Discipline::TailDrop(line) | Discipline::CoDel(line, _) if !is_full => line.push(frame),
            Discipline::TailDrop(_) | Discipline::Red(..) | Discipline::CoDel(..) => {
                verdicts.push(Verdict::Drop(frame.frame));
            }
        }
    }

    /// Removes and returns the next frame to send; `None` if the queue is empty. Appends the frames
    /// to drop or mark on this occasion to `verdicts`.
    pub(crate) fn poll(&mut self, now: Tick, verdicts: &mut Vec<Verdict>) -> Option<QueuedFrame> {
        match &mut self.law {
            Discipline::TailDrop(line) => line.pop(),
            Discipline::Red(line, red) => {
                let next = line.pop();
                if line.is_empty() {
                    red.handle_empty(now);
                }
                next
            }
            Discipline::CoDel(line, codel) => codel.poll(now, line, verdicts),
            Discipline::Fair(fair) => fair.poll(now, verdicts),
        }
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        assert!(self.len() <= self.limit, "no queue passes its limit");
    }
}

/// Returns the queueing delay of a frame.
fn waited(now: Tick, frame: &QueuedFrame) -> Span {
    now.since(frame.since)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::frame::Frames;

    pub(super) fn at(millis: u64) -> Tick {
        Tick::from_picos(millis * 1_000_000_000)
    }

    /// Creates `count` queued frames of 1,000 bytes that belong to one flow and arrived at `millis`
    /// milliseconds.
    pub(super) fn frames(
        frames: &mut Frames,
        count: usize,
        flow: u64,
        millis: u64,
    ) -> Vec<QueuedFrame> {
        let mut one = || QueuedFrame {
            frame: frames.take(),
            length: 1_000,
            flow,
            markable: false,
            since: at(millis),
        };
        (0..count).map(|_| one()).collect()
    }

    pub(super) fn line(frames: Vec<QueuedFrame>) -> Fifo {
        let mut line = Fifo::default();
        frames.into_iter().for_each(|frame| line.push(frame));
        line
    }

    fn parameters(law: Law, limit: usize) -> QueueParameters {
        QueueParameters { law, limit, marks: true }
    }

    #[test]
    fn a_full_queue_drops_new_frames_and_keeps_its_order() {
        let mut pool = Frames::new(64);
        let mut queue = Queue::new(&parameters(Law::TailDrop, 2), Stream::new(1, 1));
        let mut verdicts = Vec::new();
        let come = frames(&mut pool, 3, 1, 0);
        come.iter().for_each(|&frame| queue.handle_frame(at(0), frame, &mut verdicts));
        queue.check();
        assert_eq!(verdicts, [Verdict::Drop(come[2].frame)]);
        let next =
            |queue: &mut Queue| queue.poll(at(1), &mut Vec::new()).map(|waiting| waiting.frame);
        assert_eq!(
            (next(&mut queue), next(&mut queue)),
            (Some(come[0].frame), Some(come[1].frame))
        );
        assert_eq!((next(&mut queue), queue.len()), (None, 0));
    }
}
