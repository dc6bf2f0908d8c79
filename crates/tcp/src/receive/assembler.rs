//! The sequence ranges of out-of-order data, which arrived after a hole. The data itself is already
//! in its place in the receive buffer.

use crate::compact::pack::packed;
use alloc::vec::Vec;
use linerate_wire::{SackBlock, SackBlocks, SeqNum};

/// The ranges of out-of-order data. The most recently changed range comes first, as in a SACK
/// option (RFC 2018 §4).
///
/// Invariant: no range is empty, and there is a hole between any two ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Assembler {
    ranges: Vec<SackBlock>,
    /// The number of ranges, counted from the front, that were added or changed after the most
    /// recent SACK option and are still to be reported.
    unreported: usize,
}

packed!(Assembler { unreported } known { ranges: |_config| Vec::new() });

impl Assembler {
    /// Adds the range from `left` up to but excluding `right`. Returns false, without any effect,
    /// if there would be more than `most` ranges; the caller must then drop the segment.
    pub(crate) fn insert(&mut self, left: SeqNum, right: SeqNum, most: usize) -> bool {
        let mut merged = SackBlock { left, right };
        let touches = |range: &SackBlock| !range.left.after(right) && !range.right.before(left);
        if self.ranges.len() >= most && !self.ranges.iter().any(touches) {
            return false;
        }
        let (mut index, mut merged_unreported) = (0, 0);
        self.ranges.retain(|range| {
            if touches(range) {
                merged.left = merged.left.earlier(range.left);
                merged.right = merged.right.later(range.right);
                merged_unreported += usize::from(index < self.unreported);
            }
            index += 1;
            !touches(range)
        });
        self.ranges.insert(0, merged);
        self.unreported = self.unreported - merged_unreported + 1;
        true
    }

    /// Removes the ranges that are contiguous with the data in order, which has arrived up to
    /// `next`. Returns the sequence number at which the first hole then begins.
    pub(crate) fn advance(&mut self, next: SeqNum) -> SeqNum {
        let mut reached = next;
        while let Some(at) = self.ranges.iter().position(|range| !range.left.after(reached)) {
            reached = reached.later(self.ranges.remove(at).right);
            self.unreported -= usize::from(at < self.unreported);
        }
        reached
    }

    /// Returns the sequence number after the out-of-order byte with the highest sequence number.
    /// `None` if there is no out-of-order data.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.ranges.iter().map(|range| range.right).reduce(SeqNum::later)
    }

    /// Returns the number of ranges that have changed since a SACK option reported them.
    pub(crate) fn unreported(&self) -> usize {
        self.unreported
    }

    /// Sets the number of ranges, counted from the front, that are still to be reported.
    pub(crate) fn set_unreported(&mut self, left: usize) {
        self.unreported = left;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether any range contains bytes beyond `seq`.
    pub(crate) fn reaches_beyond(&self, seq: SeqNum) -> bool {
        self.ranges.iter().any(|range| range.right.after(seq))
    }

    /// Returns ranges in the order from the most recently changed to the oldest, without the
    /// `newest` first ones. Returns at most [`SackBlocks::MOST`] ranges.
    pub(crate) fn ranges(&self, newest: usize) -> impl Iterator<Item = SackBlock> + '_ {
        self.ranges.iter().skip(newest).take(SackBlocks::MOST).copied()
    }

    /// Returns all ranges, from the most recently changed to the oldest.
    pub(crate) fn all(&self) -> &[SackBlock] {
        &self.ranges
    }

    /// Returns the overlap of the range from `left` to `right` with the first stored range that it
    /// overlaps. `None` if it overlaps none.
    pub(crate) fn overlap(&self, left: SeqNum, right: SeqNum) -> Option<SackBlock> {
        let common = |range: &SackBlock| {
            let (left, right) = (left.later(range.left), right.earlier(range.right));
            left.before(right).then_some(SackBlock { left, right })
        };
        self.ranges.iter().filter_map(common).min_by_key(|common| common.left - left)
    }

    /// Checks the invariant of the ranges, and that they lie between `next` and `edge`. Panics if
    /// any is violated.
    pub(crate) fn check(&self, next: SeqNum, edge: SeqNum) {
        assert!(self.unreported <= self.ranges.len(), "{} of {:?}", self.unreported, self.ranges);
        for (index, range) in self.ranges.iter().enumerate() {
            assert!(range.left.before(range.right), "an empty range {range:?}");
            assert!(range.left.after(next), "{range:?} begins no hole after {next}");
            assert!(!range.right.after(edge), "{range:?} ends beyond the window's edge {edge}");
            for other in &self.ranges[index + 1..] {
                let apart = range.right.before(other.left) || other.right.before(range.left);
                assert!(apart, "{range:?} touches {other:?}");
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
    fn ranges_merge_when_they_touch_and_the_latest_comes_first() {
        let mut assembler = Assembler::default();
        assert!(assembler.insert(seq(10), seq(20), 4));
        assert!(assembler.insert(seq(30), seq(40), 4));
        assert_eq!(assembler.ranges(0).next().unwrap().left, seq(30));
        assert!(assembler.insert(seq(20), seq(30), 4));
        assert!(assembler.ranges(0).eq([SackBlock { left: seq(10), right: seq(40) }]));
        assert_eq!(assembler.advance(seq(10)), seq(40));
        assert!(assembler.is_empty());
    }

    #[test]
    fn an_excess_range_is_refused_unless_it_joins_others() {
        let mut assembler = Assembler::default();
        assert!(assembler.insert(seq(10), seq(20), 2));
        assert!(assembler.insert(seq(30), seq(40), 2));
        assert!(!assembler.insert(seq(50), seq(60), 2));
        assert!(assembler.insert(seq(15), seq(35), 2));
        assert_eq!(assembler.ranges(0).count(), 1);
    }

    #[test]
    fn a_reported_and_unchanged_range_is_not_reported_again() {
        let mut assembler = Assembler::default();
        for left in [10, 30, 50, 70] {
            assert!(assembler.insert(seq(left), seq(left + 10), 9));
        }
        assert_eq!(assembler.unreported(), 4);
        assembler.set_unreported(1);
        assert!(assembler.insert(seq(40), seq(50), 9), "joins two reported ranges");
        assert_eq!(assembler.unreported(), 2);
        assert!(assembler.insert(seq(60), seq(70), 9), "joins two unreported ranges");
        assert_eq!((assembler.unreported(), assembler.ranges(0).count()), (1, 2));
        assert_eq!(assembler.advance(seq(30)), seq(80));
        assert_eq!(assembler.unreported(), 0);
    }

    proptest! {
        #[test]
        fn an_assembler_is_equal_to_a_set_of_numbers(
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
                let held: u32 = assembler.ranges.iter().map(|s| s.right - s.left).sum();
                let expected = naive[next as usize..].iter().filter(|&&held| held).count();
                prop_assert_eq!(held as usize, expected);
            }
        }
    }
}
