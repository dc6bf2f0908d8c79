//! What a port of a switch does with frames that must wait: which may, which is next, and which are dropped or marked
//! to tell their senders. Pure decisions: the switch carries them out.

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

/// A frame that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) frame: FrameId,
    /// Bytes on the wire.
    pub(crate) length: usize,
    /// Whose it is: equal for the segments of a connection.
    pub(crate) flow: u64,
    /// May it be marked in place of being dropped (RFC 3168)?
    pub(crate) markable: bool,
    /// Since when.
    pub(crate) since: Tick,
}

/// What has been decided of a frame that does not simply wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is dropped.
    Drop(FrameId),
    /// It goes on, with a mark.
    Mark(FrameId),
}

/// Frames that wait for a port.
#[derive(Debug)]
pub(crate) struct Queue {
    limit: usize,
    marks: bool,
    law: Discipline,
}

/// Frames in the order in which they came, and how many bytes they are.
#[derive(Debug, Default)]
struct Line {
    frames: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
enum Discipline {
    /// What does not fit is dropped.
    TailDrop(Line),
    Red(Line, Red),
    CoDel(Line, CoDel),
    Fair(Fair),
}

impl Line {
    fn len(&self) -> usize {
        self.frames.len()
    }

    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn push(&mut self, frame: Waiting) {
        self.bytes += frame.length;
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.length;
        Some(frame)
    }
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new(parameters: &QueueParameters, random: Stream) -> Self {
        let none = Line::default;
        let law = match &parameters.law {
            Law::TailDrop => Discipline::TailDrop(none()),
            Law::Red(red) => Discipline::Red(none(), Red::new(*red, random)),
            Law::CoDel(codel) => Discipline::CoDel(none(), CoDel::new(*codel)),
            Law::Fair(fair) => Discipline::Fair(Fair::new(*fair)),
        };
        Self { limit: parameters.limit, marks: parameters.marks, law }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        match &self.law {
            Discipline::TailDrop(line) | Discipline::Red(line, _) | Discipline::CoDel(line, _) => {
                line.len()
            }
            Discipline::Fair(fair) => fair.len(),
        }
    }

    /// A frame comes.
    pub(crate) fn handle_frame(&mut self, now: Tick, frame: Waiting, verdicts: &mut Vec<Verdict>) {
        let frame = Waiting { markable: frame.markable && self.marks, ..frame };
        let is_full = self.len() >= self.limit;
        match &mut self.law {
            Discipline::Fair(fair) => {
                fair.push(frame);
                if is_full {
                    verdicts.extend(fair.drop_from_fattest().map(Verdict::Drop));
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

    /// The port is free: who is next?
    pub(crate) fn poll(&mut self, now: Tick, verdicts: &mut Vec<Verdict>) -> Option<Waiting> {
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

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        assert!(self.len() <= self.limit, "no queue passes its limit");
    }
}

/// How long a frame has waited.
fn waited(now: Tick, frame: &Waiting) -> Span {
    now.since(frame.since)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::frame::Frames;

    pub(super) fn at(millis: u64) -> Tick {
        Tick::from_picos(millis * 1_000_000_000)
    }

    /// So many frames of 1,000 bytes, of one flow, that come at that time.
    pub(super) fn frames(
        frames: &mut Frames,
        count: usize,
        flow: u64,
        millis: u64,
    ) -> Vec<Waiting> {
        let mut one = || Waiting {
            frame: frames.take(),
            length: 1_000,
            flow,
            markable: false,
            since: at(millis),
        };
        (0..count).map(|_| one()).collect()
    }

    pub(super) fn line(frames: Vec<Waiting>) -> Line {
        let mut line = Line::default();
        frames.into_iter().for_each(|frame| line.push(frame));
        line
    }

    fn parameters(law: Law, limit: usize) -> QueueParameters {
        QueueParameters { law, limit, marks: true }
    }

    #[test]
    fn a_full_queue_drops_what_comes_and_keeps_the_order_of_what_it_has() {
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
