//! What is in flight: for every stretch of sequence space when it left, and whether it has arrived,
//! was found lost, or is still on its way (the scoreboard of RFC 6675 §3, with the times that RFC 8985
//! §5.2 wants).
//!
//! Segments that leave at the same instant make one stretch: a stretch is a burst, not a segment, and is
//! only cut where a selective acknowledgement cuts it. It never knows why something counts as lost.

use super::delivery::{Delivery, Departure};
use super::stretches::Stretches;
use crate::rest::pack::packed;
use linerate_wire::{SackBlock, SeqNum};

/// Stretches that are remembered. A peer that names single bytes, or a window of millions of bursts,
/// gets no more: blocks that would need more are not believed, and later bursts join the last one.
const MOST_STRETCHES: usize = 4_096;

/// What is known of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is on its way, as far as we know.
    InFlight,
    /// The peer has named it as arrived beyond a hole. It may still forget it (RFC 2018 §8).
    Sacked,
    /// It is believed to be lost, and was not sent again since.
    Lost,
}

/// A part of the sequence space that has one history.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) left: SeqNum,
    /// The number after the last.
    pub(crate) right: SeqNum,
    pub(crate) fate: Fate,
    /// How things stood when it last left.
    pub(crate) departure: Departure,
}

impl Stretch {
    pub(crate) fn length(&self) -> u32 {
        self.right - self.left
    }
}

/// What arrives with one acknowledgement, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Landing<'a> {
    /// The stretch that left first.
    pub(crate) oldest: &'a Stretch,
    /// The one that left last.
    pub(crate) newest: &'a Stretch,
}

/// The stretches from `snd.una` to `snd.nxt`, in order and without gaps.
///
/// Invariant: `sacked` and `lost` are the sums of the stretches of that fate.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Scoreboard {
    stretches: Stretches,
    /// No stretch before this is lost: where to look for the next.
    search_from: SeqNum,
    /// Blocks that were not believed, for want of room.
    pub(crate) refused_blocks: u64,
    /// Bursts that have left in the connection's life.
    departures: u64,
    /// Where they begin and end.
    span: (SeqNum, SeqNum),
    sacked: u32,
    lost: u32,
}

packed!(Scoreboard {
    span, sacked, lost, departures, search_from, refused_blocks
} known {
    stretches: |_config| Stretches::new()
});

impl Scoreboard {
    pub(crate) const fn new(start: SeqNum) -> Self {
        Self {
            stretches: Stretches::new(),
            span: (start, start),
            sacked: 0,
            lost: 0,
            departures: 0,
            search_from: start,
            refused_blocks: 0,
        }
    }

    /// Bytes that the peer has named beyond holes.
    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Bytes that must be sent again.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// Is everything that was sent on its way, as far as we know?
    pub(crate) const fn is_clean(&self) -> bool {
        self.sacked == 0 && self.lost == 0
    }

    /// Pipe (RFC 6675 §4): bytes that are believed to be in the network.
    pub(crate) fn in_flight(&self) -> u32 {
        self.span.1 - self.span.0 - self.sacked - self.lost
    }

    /// Bytes that were sent more than once and are believed to be in the network. Looks at each stretch.
    pub(crate) fn repeated_in_flight(&self) -> u32 {
        let repeated =
            |stretch: &&Stretch| stretch.fate == Fate::InFlight && stretch.departure.again;
        self.stretches.iter().filter(repeated).map(Stretch::length).sum()
    }

    /// The order of the last departure.
    pub(crate) const fn last_order(&self) -> u64 {
        self.departures
    }

    /// The last stretch, if the peer has not named it.
    pub(crate) fn last_unacknowledged(&self) -> Option<&Stretch> {
        self.stretches.back().filter(|stretch| stretch.fate != Fate::Sacked)
    }

    /// `left` up to `right` leaves: at the end of what was sent, or once more, or both.
    #[inline(always)]
    pub(crate) fn note_sent(&mut self, left: SeqNum, right: SeqNum, departure: Departure) {
        if self.stretches.is_empty() {
            self.span = (left, left);
        }
        let end = self.span.1;
        if left.before(end) {
            self.note_sent_again(left, right.earlier(end), departure);
        }
        let left = left.later(end);
        if right.after(left) {
            self.append(left, right, departure);
        }
    }

    /// The same where nothing is in flight.
    #[inline(always)]
    pub(crate) fn note_first(&mut self, left: SeqNum, right: SeqNum, mut departure: Departure) {
        self.span = (left, right);
        self.departures += 1;
        departure.order = self.departures;
        self.stretches.begin(Stretch { left, right, fate: Fate::InFlight, departure });
    }

    /// What leaves next is a stretch of its own, even if it leaves at the same time.
    pub(crate) const fn end_burst(&mut self) {
        self.departures += 1;
    }

    /// `length` bytes more leave with what has left last, at the end of it.
    pub(crate) fn extend_burst(&mut self, length: u32) {
        if let Some(last) = self.stretches.back_mut() {
            self.span.1 += length;
            last.right = self.span.1;
            last.departure.grow(length);
        }
    }

    #[inline]
    fn append(&mut self, left: SeqNum, right: SeqNum, mut departure: Departure) {
        self.span.1 = right;
        let full = self.stretches.len() >= MOST_STRETCHES;
        if let Some(last) = self.stretches.back_mut()
            && last.fate == Fate::InFlight
            && last.departure.again == departure.again
            && (full
                || (last.departure.order == self.departures
                    && last.departure.is_same_burst(&departure)))
        {
            last.right = right;
            // Taken for as late as the latest of them, none is found lost too early.
            departure.order = self.departures;
            last.departure = departure;
            return;
        }
        self.departures += 1;
        departure.order = self.departures;
        self.stretches.push_back(Stretch { left, right, fate: Fate::InFlight, departure });
    }

    #[cold]
    fn note_sent_again(&mut self, left: SeqNum, right: SeqNum, mut departure: Departure) {
        self.departures += 1;
        departure.order = self.departures;
        for index in self.cut_out(left, right) {
            let stretch = &mut self.stretches.all()[index];
            if stretch.fate == Fate::Lost {
                self.lost -= stretch.length();
                stretch.fate = Fate::InFlight;
            }
            if stretch.fate == Fate::InFlight {
                stretch.departure = departure;
            }
        }
    }

    /// The whole flight, if that ends at `ack` and left at one time.
    #[inline]
    pub(crate) fn flight_until(&self, ack: SeqNum) -> Option<&Stretch> {
        self.stretches.alone().filter(|_| self.span.1 == ack)
    }

    /// What an acknowledgement of everything before `ack` tells of, if nothing is missing, and if nothing of that was sent
    /// again: then all of it left in the order of its numbers.
    #[inline]
    pub(crate) fn landing_until(&self, ack: SeqNum) -> Option<Landing<'_>> {
        debug_assert!(self.is_clean(), "a landing while something is missing");
        if ack.after(self.span.1) {
            return None;
        }
        let mut landed = self.stretches.iter().take_while(|stretch| stretch.left.before(ack));
        let oldest = landed.next().filter(|first| !first.departure.again)?;
        let newest = landed.try_fold(oldest, |_, next| (!next.departure.again).then_some(next))?;
        Some(Landing { oldest, newest })
    }

    /// It has arrived, and leaves the scoreboard.
    #[inline]
    pub(crate) fn note_landing_until(&mut self, ack: SeqNum) {
        self.stretches.forget_until(ack);
        self.span.0 = ack;
    }

    /// [The whole flight](Self::flight_until) has arrived, and leaves the scoreboard.
    #[inline]
    pub(crate) fn note_landing(&mut self) {
        self.stretches.forget_alone();
        self.span.0 = self.span.1;
    }

    /// Everything before `ack` has arrived: it leaves the scoreboard, and `delivery` learns what of it
    /// is news.
    pub(crate) fn acknowledge(&mut self, ack: SeqNum, delivery: &mut Delivery) {
        while let Some(first) = self.stretches.front_mut()
            && first.left.before(ack)
        {
            let right = first.right.earlier(ack);
            let length = right - first.left;
            match first.fate {
                Fate::Sacked => self.sacked -= length,
                Fate::Lost => self.lost -= length,
                Fate::InFlight => {}
            }
            if first.fate != Fate::Sacked {
                delivery.take(first, right, length);
            }
            if right == first.right {
                self.stretches.pop_front();
            } else {
                first.left = right;
            }
            self.span.0 = right;
        }
    }

    /// The peer has named `block`: what of it is news, `delivery` learns. What lies outside the flight
    /// means nothing.
    pub(crate) fn sack(&mut self, block: SackBlock, delivery: &mut Delivery) {
        let (start, end) = self.span;
        if !block.left.all_within(block.right - block.left, start, end - start) {
            return;
        }
        if self.stretches.len() + 2 > MOST_STRETCHES {
            self.refused_blocks += 1;
            return;
        }
        let range = self.cut_out(block.left, block.right);
        for index in range.clone() {
            let stretch = &mut self.stretches.all()[index];
            if stretch.fate == Fate::Sacked {
                continue;
            }
            let length = stretch.length();
            delivery.take(stretch, stretch.right, length);
            if stretch.fate == Fate::Lost {
                self.lost -= length;
            }
            stretch.fate = Fate::Sacked;
            self.sacked += length;
        }
        self.join_sacked(range);
    }

    /// Cuts stretches so that some of them are just `left` to `right`: which. Both must lie in the span.
    fn cut_out(&mut self, left: SeqNum, right: SeqNum) -> core::ops::Range<usize> {
        let from = self.cut_at(left);
        let stretches = self.stretches.all();
        let mut to = from;
        while to < stretches.len() && !stretches[to].right.after(right) {
            to += 1;
        }
        if to < stretches.len() && stretches[to].left.before(right) {
            self.cut_at(right);
            to += 1;
        }
        from..to
    }

    /// Cuts the stretch that `seq` lies in, so that one begins there: which.
    fn cut_at(&mut self, seq: SeqNum) -> usize {
        let stretches = self.stretches.all();
        let index = stretches.partition_point(|stretch| !stretch.right.after(seq));
        let Some(stretch) = stretches.get_mut(index) else { return index };
        if !stretch.left.before(seq) {
            return index;
        }
        let after = Stretch { left: seq, ..stretch.clone() };
        stretch.right = seq;
        stretches.insert(index + 1, after);
        index + 1
    }

    /// What arrived has no history that matters: neighbours become one, so that a window with a few holes
    /// is a few stretches.
    fn join_sacked(&mut self, range: core::ops::Range<usize>) {
        let sacked =
            |stretch: Option<&Stretch>| stretch.is_some_and(|stretch| stretch.fate == Fate::Sacked);
        let stretches = self.stretches.all();
        let first =
            range.start - usize::from(range.start > 0 && sacked(stretches.get(range.start - 1)));
        let last = range.end - 1 + usize::from(sacked(stretches.get(range.end)));
        if first < last {
            stretches[first].right = stretches[last].right;
            stretches.drain(first + 1..=last);
        }
    }

    /// Marks as lost what `is_lost` says so of, from the first stretch on, until it says that nothing
    /// later can be: how many bytes.
    pub(crate) fn mark_lost(&mut self, mut is_lost: impl FnMut(&Stretch) -> Verdict) -> u32 {
        let mut found = 0;
        for stretch in self.stretches.iter_mut() {
            if stretch.fate != Fate::InFlight {
                continue;
            }
            match is_lost(stretch) {
                Verdict::Lost => {
                    stretch.fate = Fate::Lost;
                    found += stretch.length();
                    self.search_from = self.search_from.earlier(stretch.left);
                }
                Verdict::Keep => {}
                Verdict::KeepAllFurther => break,
            }
        }
        self.lost += found;
        found
    }

    /// The first stretch that must be sent again.
    pub(crate) fn next_lost(&self) -> Option<&Stretch> {
        if self.lost == 0 {
            return None;
        }
        self.stretches.ending_after(self.search_from).find(|stretch| stretch.fate == Fate::Lost)
    }

    /// What was sent again up to `seq` need not be looked at for the next.
    pub(crate) fn search_after(&mut self, seq: SeqNum) {
        self.search_from = seq;
    }

    /// Nothing was lost after all: what counted so is on its way.
    pub(crate) fn forgive(&mut self) {
        for stretch in self.stretches.iter_mut() {
            if stretch.fate == Fate::Lost {
                stretch.fate = Fate::InFlight;
            }
        }
        self.lost = 0;
    }

    /// The stretch that `seq` lies in.
    pub(crate) fn stretch_at(&self, seq: SeqNum) -> Option<&Stretch> {
        self.stretches.ending_after(seq).next().filter(|stretch| !stretch.left.after(seq))
    }

    /// Has the peer acknowledged up to a stretch that it had named, without taking it? It has thrown
    /// data away that it had (RFC 2018 §8).
    pub(crate) fn is_reneged(&self) -> bool {
        self.stretches.front().is_some_and(|first| first.fate == Fate::Sacked)
    }

    /// Has the peer named so many bytes in a row?
    pub(crate) fn has_sacked(&self, bytes: u32) -> bool {
        self.stretches
            .iter()
            .any(|stretch| stretch.fate == Fate::Sacked && stretch.length() >= bytes)
    }

    /// The peer's selective acknowledgements no longer hold: what they named counts as lost.
    pub(crate) fn forget_sacks(&mut self) {
        for stretch in self.stretches.iter_mut() {
            if stretch.fate == Fate::Sacked {
                stretch.fate = Fate::Lost;
                self.lost += stretch.right - stretch.left;
                self.search_from = self.search_from.earlier(stretch.left);
            }
        }
        self.sacked = 0;
    }

    /// Forgets everything, and gives the memory back.
    pub(crate) fn clear(&mut self, start: SeqNum) {
        let (refused_blocks, departures) = (self.refused_blocks, self.departures);
        *self = Self { refused_blocks, departures, ..Self::new(start) };
    }

    pub(crate) fn check(&self, una: SeqNum, nxt: SeqNum) {
        let (start, end) = self.span;
        if self.stretches.is_empty() {
            assert!(
                start == end && una == nxt,
                "{} bytes are in flight and not on the scoreboard",
                nxt - una
            );
            return;
        }
        assert!(
            (start, end) == (una, nxt),
            "the scoreboard has {start}..{end}, in flight is {una}..{nxt}"
        );
        assert!(self.stretches.len() <= MOST_STRETCHES, "{} stretches", self.stretches.len());
        let mut at = start;
        for stretch in self.stretches.iter() {
            assert!(stretch.left == at && stretch.right.after(at), "a gap before {stretch:?}");
            at = stretch.right;
        }
        assert!(at == end, "the last stretch ends at {at}, the scoreboard at {end}");
        for (fate, sum) in [(Fate::Sacked, self.sacked), (Fate::Lost, self.lost)] {
            let of_fate = self.stretches.iter().filter(|stretch| stretch.fate == fate);
            assert_eq!(of_fate.map(Stretch::length).sum::<u32>(), sum, "bytes of fate {fate:?}");
        }
        let hidden = |stretch: &Stretch| {
            stretch.fate == Fate::Lost && !stretch.right.after(self.search_from)
        };
        assert!(!self.stretches.iter().any(hidden), "a lost stretch that the search would miss");
    }
}

/// What [`Scoreboard::mark_lost`] is told of a stretch that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lost,
    Keep,
    /// Keep it, and everything after it.
    KeepAllFurther,
}

#[cfg(test)]
mod tests;
