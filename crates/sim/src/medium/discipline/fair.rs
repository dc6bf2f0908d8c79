//! FQ-CoDel (RFC 8290): each flow hash selects one of many CoDel queues. The queues are served by
//! deficit round robin, and queues of new flows are served before the others.

use super::codel::{CoDel, CoDelParameters};
use super::{Fifo, QueuedFrame, Verdict};
use crate::frame::FrameId;
use linerate_units::Tick;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FairParameters {
    pub(crate) codel: CoDelParameters,
    /// Number of queues. Flows whose hashes are equal modulo this number share a queue.
    pub(crate) queues: usize,
    /// Number of bytes that each queue may send per round of the round robin.
    pub(crate) quantum: u64,
}

#[derive(Debug)]
struct Flow {
    line: Fifo,
    codel: CoDel,
    credit: i64,
    /// Whether the queue is in one of the two lists: that of new or that of old queues.
    listed: bool,
}

#[derive(Debug)]
pub(super) struct Fair {
    flows: Vec<Flow>,
    quantum: i64,
    /// The lists of new and of old queues, by index (RFC 8290 §4.2).
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    waiting: usize,
}

impl Fair {
    pub(super) fn new(parameters: FairParameters) -> Self {
        let flow = |_| Flow {
            line: Fifo::default(),
            codel: CoDel::new(parameters.codel),
            credit: 0,
            listed: false,
        };
        Self {
            flows: (0..parameters.queues).map(flow).collect(),
            quantum: i64::try_from(parameters.quantum).unwrap_or(i64::MAX),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.waiting
    }

    pub(super) fn push(&mut self, frame: QueuedFrame) {
        let count = self.flows.len() as u64;
        let index = usize::try_from(frame.flow % count).unwrap_or(0);
        let flow = &mut self.flows[index];
        flow.line.push(frame);
        self.waiting += 1;
        if !std::mem::replace(&mut flow.listed, true) {
            flow.credit = self.quantum;
            self.new.push_back(index);
        }
    }

    /// Drops the oldest frame of the queue with the most bytes (RFC 8290 §4.1). Returns the frame;
    /// `None` if all queues are empty.
    pub(super) fn drop_from_largest(&mut self) -> Option<FrameId> {
        let listed = self.new.iter().chain(&self.old);
        let largest = listed.max_by_key(|&&index| self.flows[index].line.bytes).copied()?;
        let flow = &mut self.flows[largest];
        let frame = flow.line.pop()?;
        self.waiting -= 1;
        Some(frame.frame)
    }

    /// Removes the next frame to send. It is from the first queue of the two lists that has credit
    /// (RFC 8290 §4.2). Returns `None` if all queues are empty.
    pub(super) fn poll(&mut self, now: Tick, verdicts: &mut Vec<Verdict>) -> Option<QueuedFrame> {
        loop {
            let is_new = !self.new.is_empty();
            let index = *self.new.front().or_else(|| self.old.front())?;
            if self.flows[index].credit <= 0 {
                self.flows[index].credit += self.quantum;
                self.leave(is_new);
                self.old.push_back(index);
                continue;
            }
            if let Some(frame) = self.take(index, now, verdicts) {
                return Some(frame);
            }
            self.leave(is_new);
            if is_new && !self.old.is_empty() {
                // A queue that becomes empty usually leaves its list. A new queue moves to the list
                // of old queues instead, if that list is not empty. Otherwise the next frame of its
                // flow would make the queue new again, and new queues are served first. A flow of
                // single frames could thus starve all others.
                self.old.push_back(index);
            } else {
                self.flows[index].listed = false;
            }
        }
    }

    fn leave(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }

    fn take(
        &mut self,
        index: usize,
        now: Tick,
        verdicts: &mut Vec<Verdict>,
    ) -> Option<QueuedFrame> {
        let flow = &mut self.flows[index];
        let before = flow.line.len();
        let frame = flow.codel.poll(now, &mut flow.line, verdicts);
        self.waiting -= before - flow.line.len();
        let frame = frame?;
        flow.credit -= i64::try_from(frame.length).unwrap_or(i64::MAX);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, frames};
    use super::*;
    use crate::frame::Frames;
    use linerate_units::Span;

    fn fair() -> Fair {
        let millis = |millis: u64| Span::from_picos(millis * 1_000_000_000);
        let codel = CoDelParameters { target: millis(5), interval: millis(100) };
        Fair::new(FairParameters { codel, queues: 16, quantum: 1_514 })
    }

    #[test]
    fn flows_are_served_round_robin() {
        let (mut fair, mut pool) = (fair(), Frames::new(64));
        frames(&mut pool, 100, 1, 0).into_iter().for_each(|frame| fair.push(frame));
        frames(&mut pool, 10, 2, 0).into_iter().for_each(|frame| fair.push(frame));
        let first: Vec<u64> = std::iter::from_fn(|| fair.poll(at(1), &mut Vec::new()))
            .take(20)
            .map(|frame| frame.flow)
            .collect();
        let thin = first.iter().filter(|&&flow| flow == 2).count();
        assert!((9..=10).contains(&thin), "{first:?}");
    }

    #[test]
    fn a_new_flow_is_served_before_the_old_ones() {
        let (mut fair, mut pool) = (fair(), Frames::new(64));
        frames(&mut pool, 50, 1, 0).into_iter().for_each(|frame| fair.push(frame));
        for _ in 0..10 {
            fair.poll(at(1), &mut Vec::new());
        }
        frames(&mut pool, 1, 2, 1).into_iter().for_each(|frame| fair.push(frame));
        let next: Vec<u64> = std::iter::from_fn(|| fair.poll(at(1), &mut Vec::new()))
            .take(2)
            .map(|frame| frame.flow)
            .collect();
        assert!(next.contains(&2), "{next:?}");
    }

    /// RFC 8290 §4.1: a flow that becomes active again gets a credit of exactly one quantum. Credit
    /// from its previous activity is lost.
    #[test]
    fn a_flow_keeps_no_credit_while_it_is_idle() {
        let (mut fair, mut pool) = (fair(), Frames::new(64));
        let poll = |fair: &mut Fair| fair.poll(at(1), &mut Vec::new()).map(|frame| frame.flow);
        frames(&mut pool, 1, 1, 0).into_iter().for_each(|frame| fair.push(frame));
        assert_eq!((poll(&mut fair), poll(&mut fair)), (Some(1), None));
        frames(&mut pool, 5, 1, 1).into_iter().for_each(|frame| fair.push(frame));
        frames(&mut pool, 5, 2, 1).into_iter().for_each(|frame| fair.push(frame));
        let next: Vec<_> = (0..4).map(|_| poll(&mut fair)).collect();
        assert_eq!(next, [1, 1, 2, 2].map(Some), "1,514 bytes let two frames of 1,000 go");
    }

    #[test]
    fn an_overflow_drops_from_the_largest_queue() {
        let (mut fair, mut pool) = (fair(), Frames::new(64));
        let fat = frames(&mut pool, 5, 1, 0);
        fat.iter().for_each(|&frame| fair.push(frame));
        frames(&mut pool, 2, 2, 0).into_iter().for_each(|frame| fair.push(frame));
        assert_eq!((fair.drop_from_largest(), fair.len()), (Some(fat[0].frame), 6));
        let left = std::iter::from_fn(|| fair.poll(at(1), &mut Vec::new())).count();
        assert_eq!((left, fair.len(), fair.drop_from_largest()), (6, 0, None));
    }
}
