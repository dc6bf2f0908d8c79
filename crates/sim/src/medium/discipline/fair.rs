//! FQ-CoDel: a queue of its own for each flow, as far as a hash tells them apart, served in turn by bytes, those that
//! have just begun first; CoDel in each (RFC 8290).

use super::codel::{CoDel, CoDelParameters};
use super::{Line, Verdict, Waiting};
use crate::frame::FrameId;
use linerate_units::Tick;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FairParameters {
    pub(crate) codel: CoDelParameters,
    /// Queues; flows with one hash share one.
    pub(crate) queues: usize,
    /// Bytes that a queue may send in its turn.
    pub(crate) quantum: u64,
}

#[derive(Debug)]
struct Flow {
    line: Line,
    codel: CoDel,
    credit: i64,
    /// Is it in one of the lists?
    listed: bool,
}

#[derive(Debug)]
pub(super) struct Fair {
    flows: Vec<Flow>,
    quantum: i64,
    /// Queues that have just begun, and those that have had their turn (§4.2).
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    waiting: usize,
}

impl Fair {
    pub(super) fn new(parameters: FairParameters) -> Self {
        let flow = |_| Flow {
            line: Line::default(),
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

    pub(super) fn push(&mut self, frame: Waiting) {
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

    /// There are too many: the oldest frame of the queue with the most bytes goes (§4.1).
    pub(super) fn drop_from_fattest(&mut self) -> Option<FrameId> {
        let listed = self.new.iter().chain(&self.old);
        let fattest = listed.max_by_key(|&&index| self.flows[index].line.bytes).copied()?;
        let flow = &mut self.flows[fattest];
        let frame = flow.line.pop()?;
        self.waiting -= 1;
        Some(frame.frame)
    }

    /// The next frame: of the queue whose turn it is, if its credit is not used up (§4.2).
    pub(super) fn poll(&mut self, now: Tick, verdicts: &mut Vec<Verdict>) -> Option<Waiting> {
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
                // Otherwise one that always has just begun could keep the others from their turn.
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

    fn take(&mut self, index: usize, now: Tick, verdicts: &mut Vec<Verdict>) -> Option<Waiting> {
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
    fn a_flow_with_a_hundred_frames_and_one_with_ten_take_turns() {
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
    fn a_flow_that_begins_goes_before_those_that_have_had_their_turn() {
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

    #[test]
    fn what_is_too_much_goes_at_the_cost_of_the_fattest() {
        let (mut fair, mut pool) = (fair(), Frames::new(64));
        let fat = frames(&mut pool, 5, 1, 0);
        fat.iter().for_each(|&frame| fair.push(frame));
        frames(&mut pool, 2, 2, 0).into_iter().for_each(|frame| fair.push(frame));
        assert_eq!((fair.drop_from_fattest(), fair.len()), (Some(fat[0].frame), 6));
        let left = std::iter::from_fn(|| fair.poll(at(1), &mut Vec::new())).count();
        assert_eq!((left, fair.len(), fair.drop_from_fattest()), (6, 0, None));
    }
}
