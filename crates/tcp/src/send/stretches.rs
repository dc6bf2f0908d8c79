//! A queue of stretches: the only one lies in the queue itself, and memory is taken for the second. Who asks for
//! little at a time, or only closes, has never more than one in flight.

use super::scoreboard::Stretch;
use alloc::collections::VecDeque;
use linerate_wire::SeqNum;

/// Stretches in the order of their numbers.
///
/// Invariant: where one is `alone`, there is none in `queue`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretches {
    alone: Option<Stretch>,
    queue: VecDeque<Stretch>,
}

impl Stretches {
    pub(super) const fn new() -> Self {
        Self { alone: None, queue: VecDeque::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.alone.is_some() { 1 } else { self.queue.len() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none() && self.queue.is_empty()
    }

    pub(super) fn front(&self) -> Option<&Stretch> {
        self.alone.as_ref().or_else(|| self.queue.front())
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut Stretch> {
        self.alone.as_mut().or_else(|| self.queue.front_mut())
    }

    pub(super) fn back(&self) -> Option<&Stretch> {
        self.alone.as_ref().or_else(|| self.queue.back())
    }

    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut Stretch> {
        self.alone.as_mut().or_else(|| self.queue.back_mut())
    }

    #[inline]
    pub(super) fn push_back(&mut self, stretch: Stretch) {
        if self.is_empty() {
            self.alone = Some(stretch);
        } else {
            self.all().push_back(stretch);
        }
    }

    /// Puts the first one in, where there is none.
    #[inline(always)]
    pub(super) fn begin(&mut self, stretch: Stretch) {
        debug_assert!(self.is_empty(), "the first of a flight comes after all others");
        self.alone = Some(stretch);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Stretch> {
        self.alone.take().or_else(|| self.queue.pop_front())
    }

    /// The one that is alone, if there is such a one.
    #[inline]
    pub(super) const fn alone(&self) -> Option<&Stretch> {
        self.alone.as_ref()
    }

    /// There is none that is alone.
    #[inline]
    pub(super) fn forget_alone(&mut self) {
        self.alone = None;
    }

    /// Everything before `seq` leaves.
    pub(super) fn forget_until(&mut self, seq: SeqNum) {
        while let Some(first) = self.front_mut() {
            if first.right.after(seq) {
                first.left = first.left.later(seq);
                return;
            }
            self.pop_front();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stretch> {
        self.alone.iter().chain(&self.queue)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stretch> {
        self.alone.iter_mut().chain(&mut self.queue)
    }

    /// Those that end after `seq`.
    pub(super) fn ending_after(&self, seq: SeqNum) -> impl Iterator<Item = &Stretch> {
        let from = self.queue.partition_point(|stretch| !stretch.right.after(seq));
        let alone = self.alone.iter().filter(move |stretch| stretch.right.after(seq));
        alone.chain(self.queue.range(from..))
    }

    /// All of them, to be cut and joined.
    // Drawn in, it is paid for with registers by whoever only appends.
    #[inline(never)]
    pub(super) fn all(&mut self) -> &mut VecDeque<Stretch> {
        if self.alone.is_some() {
            self.queue.extend(self.alone.take());
        }
        &mut self.queue
    }
}
