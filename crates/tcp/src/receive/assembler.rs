//! Which stretches of sequence space have arrived beyond a hole. The bytes themselves lie in the
//! receive buffer already, at their places.

use crate::rest::pack::packed;
use alloc::vec::Vec;
use linerate_wire::{SackBlock, SackBlocks, SeqNum};

/// Disjoint stretches, the one that changed last in front: the order that a SACK option wants (RFC
/// 2018 §4).
///
/// Invariant: no two stretches touch, and none is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Assembler {
    stretches: Vec<SackBlock>,
    /// How many in front have changed since they were named.
    unnamed: usize,
}

packed!(Assembler { unnamed } known { stretches: |_config| Vec::new() });

impl Assembler {
    /// Notes that `left` up to, not including, `right` has arrived. False when there are `most`
    /// stretches already and this would be one more: then the segment must not be kept.
    pub(crate) fn insert(&mut self, left: SeqNum, right: SeqNum, most: usize) -> bool {
        let mut merged = SackBlock { left, right };
        let touches =
            |stretch: &SackBlock| !stretch.left.after(right) && !stretch.right.before(left);
        if self.stretches.len() >= most && !self.stretches.iter().any(touches) {
            return false;
        }
        let (mut index, mut merged_unnamed) = (0, 0);
        self.stretches.retain(|stretch| {
            if touches(stretch) {
                merged.left = merged.left.earlier(stretch.left);
                merged.right = merged.right.later(stretch.right);
                merged_unnamed += usize::from(index < self.unnamed);
            }
            index += 1;
            !touches(stretch)
        });
        self.stretches.insert(0, merged);
        self.unnamed = self.unnamed - merged_unnamed + 1;
        true
    }

    /// Everything before `next` has arrived in order: the point up to which there is no hole now.
    /// Stretches that were reached are forgotten.
    pub(crate) fn advance(&mut self, next: SeqNum) -> SeqNum {
        let mut reached = next;
        while let Some(at) = self.stretches.iter().position(|stretch| !stretch.left.after(reached))
        {
            reached = reached.later(self.stretches.remove(at).right);
            self.unnamed -= usize::from(at < self.unnamed);
        }
        reached
    }

    /// The number after the last that has arrived.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.stretches.iter().map(|stretch| stretch.right).reduce(SeqNum::later)
    }

    /// How many stretches no acknowledgement has named as they are.
    pub(crate) fn unnamed(&self) -> usize {
        self.unnamed
    }

    /// Of those, `left` are left.
    pub(crate) fn leave_unnamed(&mut self, left: usize) {
        self.unnamed = left;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Does any stretch hold numbers from `seq` on?
    pub(crate) fn reaches_beyond(&self, seq: SeqNum) -> bool {
        self.stretches.iter().any(|stretch| stretch.right.after(seq))
    }

    /// The stretches, the most recent first, without the `newest`.
    pub(crate) fn stretches(&self, newest: usize) -> impl Iterator<Item = SackBlock> + '_ {
        self.stretches.iter().skip(newest).take(SackBlocks::MOST).copied()
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[SackBlock] {
        &self.stretches
    }

    /// The first part of `left` up to `right` that has arrived already.
    pub(crate) fn overlap(&self, left: SeqNum, right: SeqNum) -> Option<SackBlock> {
        let common = |stretch: &SackBlock| {
            let (left, right) = (left.later(stretch.left), right.earlier(stretch.right));
            left.before(right).then_some(SackBlock { left, right })
        };
        self.stretches.iter().filter_map(common).min_by_key(|common| common.left - left)
    }

    /// Panics if stretches touch, are empty, begin before `next` or end after `edge`.
    pub(crate) fn check(&self, next: SeqNum, edge: SeqNum) {
        assert!(self.unnamed <= self.stretches.len(), "{} of {:?}", self.unnamed, self.stretches);
        for (index, stretch) in self.stretches.iter().enumerate() {
            assert!(stretch.left.before(stretch.right), "an empty stretch {stretch:?}");
            assert!(stretch.left.after(next), "{stretch:?} begins no hole after {next}");
            assert!(!stretch.right.after(edge), "{stretch:?} ends beyond the window's edge {edge}");
            for other in &self.stretches[index + 1..] {
                let apart = stretch.right.before(other.left) || other.right.before(stretch.left);
                assert!(apart, "{stretch:?} touches {other:?}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn seq(number: u32) -> SeqNum {
        SeqNum::new(number)
    }

    #[test]
    fn stretches_merge_when_they_touch_and_the_latest_comes_first() {
        let mut assembler = Assembler::default();
        assert!(assembler.insert(seq(10), seq(20), 4));
        assert!(assembler.insert(seq(30), seq(40), 4));
        assert_eq!(assembler.stretches(0).next().unwrap().left, seq(30));
        assert!(assembler.insert(seq(20), seq(30), 4));
        assert!(assembler.stretches(0).eq([SackBlock { left: seq(10), right: seq(40) }]));
        assert_eq!(assembler.advance(seq(10)), seq(40));
        assert!(assembler.is_empty());
    }

    #[test]
    fn a_stretch_too_many_is_refused_unless_it_joins_others() {
        let mut assembler = Assembler::default();
        assert!(assembler.insert(seq(10), seq(20), 2));
        assert!(assembler.insert(seq(30), seq(40), 2));
        assert!(!assembler.insert(seq(50), seq(60), 2));
        assert!(assembler.insert(seq(15), seq(35), 2));
        assert_eq!(assembler.stretches(0).count(), 1);
    }

    #[test]
    fn what_was_named_and_has_not_changed_is_not_named_again() {
        let mut assembler = Assembler::default();
        for left in [10, 30, 50, 70] {
            assert!(assembler.insert(seq(left), seq(left + 10), 9));
        }
        assert_eq!(assembler.unnamed(), 4);
        assembler.leave_unnamed(1);
        assert!(assembler.insert(seq(40), seq(50), 9), "joins two that were named");
        assert_eq!(assembler.unnamed(), 2);
        assert!(assembler.insert(seq(60), seq(70), 9), "joins both that were not");
        assert_eq!((assembler.unnamed(), assembler.stretches(0).count()), (1, 2));
        assert_eq!(assembler.advance(seq(30)), seq(80));
        assert_eq!(assembler.unnamed(), 0);
    }

    proptest! {
        #[test]
        fn an_assembler_is_a_set_of_numbers(
            start in any::<u32>(),
            pieces in prop::collection::vec((1_u32..200, 1_u32..40), 1..60),
        ) {
            let mut assembler = Assembler::default();
            let mut naive = vec![false; 256];
            naive[0] = false;
            let mut next = 0_u32;
            for (offset, length) in pieces {
                let (left, right) = (offset.max(next), (offset + length).max(next + 1));
                if left == right {
                    continue;
                }
                assembler.insert(seq(start) + left, seq(start) + right, usize::MAX);
                naive[left as usize..right as usize].fill(true);
                let reached = assembler.advance(seq(start) + next) - seq(start);
                while naive[next as usize] {
                    next += 1;
                }
                prop_assert_eq!(reached, next);
                assembler.check(seq(start) + next, seq(start) + 256);
                let held: u32 = assembler.stretches.iter().map(|s| s.right - s.left).sum();
                let expected = naive[next as usize..].iter().filter(|&&held| held).count();
                prop_assert_eq!(held as usize, expected);
            }
        }
    }
}
