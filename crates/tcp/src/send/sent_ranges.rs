//! A queue of sent ranges. If there is only one range, it is stored without an allocation. This is
//! always so in connections with small requests and responses, which thus need no allocation.

use super::scoreboard::SentRange;
use alloc::collections::VecDeque;
use linerate_wire::SeqNum;

/// The sent ranges of a connection, in sequence order.
///
/// Invariant: if `single` contains a range, `queue` is empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SentRanges {
    single: Option<SentRange>,
    queue: VecDeque<SentRange>,
}

impl SentRanges {
    pub(super) const fn new() -> Self {
        Self { single: None, queue: VecDeque::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.single.is_some() { 1 } else { self.queue.len() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.single.is_none() && self.queue.is_empty()
    }

    pub(super) fn front(&self) -> Option<&SentRange> {
        self.single.as_ref().or_else(|| self.queue.front())
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut SentRange> {
        self.single.as_mut().or_else(|| self.queue.front_mut())
    }

    pub(super) fn back(&self) -> Option<&SentRange> {
        self.single.as_ref().or_else(|| self.queue.back())
    }

    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut SentRange> {
        self.single.as_mut().or_else(|| self.queue.back_mut())
    }

    #[inline]
    pub(super) fn push_back(&mut self, range: SentRange) {
        if self.is_empty() {
            self.single = Some(range);
        } else {
            self.all().push_back(range);
        }
    }

    /// Adds the first range to an empty queue.
    #[inline(always)]
    pub(super) fn begin(&mut self, range: SentRange) {
        debug_assert!(self.is_empty(), "the queue is not empty");
        self.single = Some(range);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<SentRange> {
        self.single.take().or_else(|| self.queue.pop_front())
    }

    /// Returns the range in `single`, which is then the only range.
    #[inline]
    pub(super) const fn single(&self) -> Option<&SentRange> {
        self.single.as_ref()
    }

    /// Removes the range in `single`.
    #[inline]
    pub(super) fn remove_single(&mut self) {
        self.single = None;
    }

    /// Removes all data before `seq`.
    pub(super) fn forget_until(&mut self, seq: SeqNum) {
        while let Some(first) = self.front_mut() {
            if first.right.after(seq) {
                first.left = first.left.later(seq);
                return;
            }
            self.pop_front();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SentRange> {
        self.single.iter().chain(&self.queue)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SentRange> {
        self.single.iter_mut().chain(&mut self.queue)
    }

    /// Iterates over the ranges whose ends lie after `seq`.
    pub(super) fn ending_after(&self, seq: SeqNum) -> impl Iterator<Item = &SentRange> {
        let from = self.queue.partition_point(|range| !range.right.after(seq));
        let single = self.single.iter().filter(move |range| range.right.after(seq));
        single.chain(self.queue.range(from..))
    }

    /// Returns the queue after moving a range in `single` to it, so that ranges can be split and
    /// merged.
    // This method is not inlined, because it would occupy registers even in callers that only
    // append a range.
    #[inline(never)]
    pub(super) fn all(&mut self) -> &mut VecDeque<SentRange> {
        if self.single.is_some() {
            self.queue.extend(self.single.take());
        }
        &mut self.queue
    }
}
