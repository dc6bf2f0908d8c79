//! What is in flight: for every range of sequence space when it left, and whether it has arrived,
//! was found lost, or is still on its way (the scoreboard of RFC 6675 §3, with the times that RFC 8985
//! §5.2 wants).
//!
//! Segments that leave at the same instant make one range: a range is a burst, not a segment, and is
//! only cut where a selective acknowledgement cuts it. It never knows why something counts as lost.

use super::delivery::{Delivery, SendRecord};
use super::sent_ranges::SentRanges;
use crate::compact::pack::packed;
use linerate_wire::{SackBlock, SeqNum};

/// SentRanges that are remembered. A peer that names single bytes, or a window of millions of bursts,
/// gets no more: blocks that would need more are not believed, and later bursts join the last one.
const MOST_RANGES: usize = 4_096;

/// What is known of a range.
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
pub(crate) struct SentRange {
    pub(crate) left: SeqNum,
    /// The number after the last.
    pub(crate) right: SeqNum,
    pub(crate) fate: Fate,
    /// How things stood when it last left.
    pub(crate) send_record: SendRecord,
}

impl SentRange {
    pub(crate) fn length(&self) -> u32 {
        self.right - self.left
    }
}

/// What arrives with one acknowledgement, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Landing<'a> {
    /// The range that left first.
    pub(crate) oldest: &'a SentRange,
    /// The one that left last.
    pub(crate) newest: &'a SentRange,
}

/// The sent_ranges from `snd.una` to `snd.nxt`, in order and without gaps.
///
/// Invariant: `sacked` and `lost` are the sums of the sent_ranges of that fate.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Scoreboard {
    sent_ranges: SentRanges,
    /// No range before this is lost: where to look for the next.
    search_from: SeqNum,
    /// Blocks that were not believed, for want of room.
    pub(crate) refused_blocks: u64,
    /// Bursts that have left in the connection's life.
    send_records: u64,
    /// Where they begin and end.
    span: (SeqNum, SeqNum),
    sacked: u32,
    lost: u32,
}

packed!(Scoreboard {
    span, sacked, lost, send_records, search_from, refused_blocks
} known {
    sent_ranges: |_config| SentRanges::new()
});

impl Scoreboard {
    pub(crate) const fn new(start: SeqNum) -> Self {
        Self {
            sent_ranges: SentRanges::new(),
            span: (start, start),
            sacked: 0,
            lost: 0,
            send_records: 0,
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

    /// Bytes that were sent more than once and are believed to be in the network. Looks at each range.
    pub(crate) fn repeated_in_flight(&self) -> u32 {
        let repeated = |range: &&SentRange| range.fate == Fate::InFlight && range.send_record.again;
        self.sent_ranges.iter().filter(repeated).map(SentRange::length).sum()
    }

    /// The order of the last transmission.
    pub(crate) const fn last_order(&self) -> u64 {
        self.send_records
    }

    /// The last range, if the peer has not named it.
    pub(crate) fn last_unacknowledged(&self) -> Option<&SentRange> {
        self.sent_ranges.back().filter(|range| range.fate != Fate::Sacked)
    }

    /// `left` up to `right` leaves: at the end of what was sent, or once more, or both.
    #[inline(always)]
    pub(crate) fn note_sent(&mut self, left: SeqNum, right: SeqNum, send_record: SendRecord) {
        if self.sent_ranges.is_empty() {
            self.span = (left, left);
        }
        let end = self.span.1;
        if left.before(end) {
            self.note_sent_again(left, right.earlier(end), send_record);
        }
        let left = left.later(end);
        if right.after(left) {
            self.append(left, right, send_record);
        }
    }

    /// The same where nothing is in flight.
    #[inline(always)]
    pub(crate) fn note_first(&mut self, left: SeqNum, right: SeqNum, mut send_record: SendRecord) {
        self.span = (left, right);
        self.send_records += 1;
        send_record.order = self.send_records;
        self.sent_ranges.begin(SentRange { left, right, fate: Fate::InFlight, send_record });
    }

    /// What leaves next is a range of its own, even if it leaves at the same time.
    pub(crate) const fn end_burst(&mut self) {
        self.send_records += 1;
    }

    /// `length` bytes more leave with what has left last, at the end of it.
    pub(crate) fn extend_burst(&mut self, length: u32) {
        if let Some(last) = self.sent_ranges.back_mut() {
            self.span.1 += length;
            last.right = self.span.1;
            last.send_record.grow(length);
        }
    }

    #[inline]
    fn append(&mut self, left: SeqNum, right: SeqNum, mut send_record: SendRecord) {
        self.span.1 = right;
        let full = self.sent_ranges.len() >= MOST_RANGES;
        if let Some(last) = self.sent_ranges.back_mut()
            && last.fate == Fate::InFlight
            && last.send_record.again == send_record.again
            && (full
                || (last.send_record.order == self.send_records
                    && last.send_record.is_same_burst(&send_record)))
        {
            last.right = right;
            // Taken for as late as the latest of them, none is found lost too early.
            send_record.order = self.send_records;
            last.send_record = send_record;
            return;
        }
        self.send_records += 1;
        send_record.order = self.send_records;
        self.sent_ranges.push_back(SentRange { left, right, fate: Fate::InFlight, send_record });
    }

    #[cold]
    fn note_sent_again(&mut self, left: SeqNum, right: SeqNum, mut send_record: SendRecord) {
        self.send_records += 1;
        send_record.order = self.send_records;
        for index in self.cut_out(left, right) {
            let range = &mut self.sent_ranges.all()[index];
            if range.fate == Fate::Lost {
                self.lost -= range.length();
                range.fate = Fate::InFlight;
            }
            if range.fate == Fate::InFlight {
                range.send_record = send_record;
            }
        }
    }

    /// The whole flight, if that ends at `ack` and left at one time.
    #[inline]
    pub(crate) fn flight_until(&self, ack: SeqNum) -> Option<&SentRange> {
        self.sent_ranges.single().filter(|_| self.span.1 == ack)
    }

    /// What an acknowledgement of everything before `ack` tells of, if nothing is missing, and if nothing of that was sent
    /// again: then all of it left in the order of its numbers.
    #[inline]
    pub(crate) fn landing_until(&self, ack: SeqNum) -> Option<Landing<'_>> {
        debug_assert!(self.is_clean(), "a landing while something is missing");
        if ack.after(self.span.1) {
            return None;
        }
        let mut landed = self.sent_ranges.iter().take_while(|range| range.left.before(ack));
        let oldest = landed.next().filter(|first| !first.send_record.again)?;
        let newest =
            landed.try_fold(oldest, |_, next| (!next.send_record.again).then_some(next))?;
        Some(Landing { oldest, newest })
    }

    /// It has arrived, and leaves the scoreboard.
    #[inline]
    pub(crate) fn note_landing_until(&mut self, ack: SeqNum) {
        self.sent_ranges.forget_until(ack);
        self.span.0 = ack;
    }

    /// [The whole flight](Self::flight_until) has arrived, and leaves the scoreboard.
    #[inline]
    pub(crate) fn on_in_order_arrival(&mut self) {
        self.sent_ranges.remove_single();
        self.span.0 = self.span.1;
    }

    /// Everything before `ack` has arrived: it leaves the scoreboard, and `delivery` learns what of it
    /// is news.
    pub(crate) fn acknowledge(&mut self, ack: SeqNum, delivery: &mut Delivery) {
        while let Some(first) = self.sent_ranges.front_mut()
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
                self.sent_ranges.pop_front();
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
        if self.sent_ranges.len() + 2 > MOST_RANGES {
            self.refused_blocks += 1;
            return;
        }
        let indices = self.cut_out(block.left, block.right);
        for index in indices.clone() {
            let range = &mut self.sent_ranges.all()[index];
            if range.fate == Fate::Sacked {
                continue;
            }
            let length = range.length();
            delivery.take(range, range.right, length);
            if range.fate == Fate::Lost {
                self.lost -= length;
            }
            range.fate = Fate::Sacked;
            self.sacked += length;
        }
        self.join_sacked(indices);
    }

    /// Cuts sent_ranges so that some of them are just `left` to `right`: which. Both must lie in the span.
    fn cut_out(&mut self, left: SeqNum, right: SeqNum) -> core::ops::Range<usize> {
        let from = self.cut_at(left);
        let sent_ranges = self.sent_ranges.all();
        let mut to = from;
        while to < sent_ranges.len() && !sent_ranges[to].right.after(right) {
            to += 1;
        }
        if to < sent_ranges.len() && sent_ranges[to].left.before(right) {
            self.cut_at(right);
            to += 1;
        }
        from..to
    }

    /// Cuts the range that `seq` lies in, so that one begins there: which.
    fn cut_at(&mut self, seq: SeqNum) -> usize {
        let sent_ranges = self.sent_ranges.all();
        let index = sent_ranges.partition_point(|range| !range.right.after(seq));
        let Some(range) = sent_ranges.get_mut(index) else { return index };
        if !range.left.before(seq) {
            return index;
        }
        let after = SentRange { left: seq, ..range.clone() };
        range.right = seq;
        sent_ranges.insert(index + 1, after);
        index + 1
    }

    /// What arrived has no history that matters: neighbours become one, so that a window with a few holes
    /// is a few sent_ranges.
    fn join_sacked(&mut self, indices: core::ops::Range<usize>) {
        let sacked =
            |range: Option<&SentRange>| range.is_some_and(|range| range.fate == Fate::Sacked);
        let sent_ranges = self.sent_ranges.all();
        let first = indices.start
            - usize::from(indices.start > 0 && sacked(sent_ranges.get(indices.start - 1)));
        let last = indices.end - 1 + usize::from(sacked(sent_ranges.get(indices.end)));
        if first < last {
            sent_ranges[first].right = sent_ranges[last].right;
            sent_ranges.drain(first + 1..=last);
        }
    }

    /// Marks as lost what `is_lost` says so of, from the first range on, until it says that nothing
    /// later can be: how many bytes.
    pub(crate) fn mark_lost(&mut self, mut is_lost: impl FnMut(&SentRange) -> Verdict) -> u32 {
        let mut found = 0;
        for range in self.sent_ranges.iter_mut() {
            if range.fate != Fate::InFlight {
                continue;
            }
            match is_lost(range) {
                Verdict::Lost => {
                    range.fate = Fate::Lost;
                    found += range.length();
                    self.search_from = self.search_from.earlier(range.left);
                }
                Verdict::Keep => {}
                Verdict::KeepAllFurther => break,
            }
        }
        self.lost += found;
        found
    }

    /// The first range that must be sent again.
    pub(crate) fn next_lost(&self) -> Option<&SentRange> {
        if self.lost == 0 {
            return None;
        }
        self.sent_ranges.ending_after(self.search_from).find(|range| range.fate == Fate::Lost)
    }

    /// What was sent again up to `seq` need not be looked at for the next.
    pub(crate) fn search_after(&mut self, seq: SeqNum) {
        self.search_from = seq;
    }

    /// Nothing was lost after all: what counted so is on its way.
    pub(crate) fn forgive(&mut self) {
        for range in self.sent_ranges.iter_mut() {
            if range.fate == Fate::Lost {
                range.fate = Fate::InFlight;
            }
        }
        self.lost = 0;
    }

    /// The range that `seq` lies in.
    pub(crate) fn range_at(&self, seq: SeqNum) -> Option<&SentRange> {
        self.sent_ranges.ending_after(seq).next().filter(|range| !range.left.after(seq))
    }

    /// Has the peer acknowledged up to a range that it had named, without taking it? It has thrown
    /// data away that it had (RFC 2018 §8).
    pub(crate) fn is_reneged(&self) -> bool {
        self.sent_ranges.front().is_some_and(|first| first.fate == Fate::Sacked)
    }

    /// Has the peer named so many bytes in a row?
    pub(crate) fn has_sacked(&self, bytes: u32) -> bool {
        self.sent_ranges.iter().any(|range| range.fate == Fate::Sacked && range.length() >= bytes)
    }

    /// The peer's selective acknowledgements no longer hold: what they named counts as lost.
    pub(crate) fn forget_sacks(&mut self) {
        for range in self.sent_ranges.iter_mut() {
            if range.fate == Fate::Sacked {
                range.fate = Fate::Lost;
                self.lost += range.right - range.left;
                self.search_from = self.search_from.earlier(range.left);
            }
        }
        self.sacked = 0;
    }

    /// Forgets everything, and gives the memory back.
    pub(crate) fn clear(&mut self, start: SeqNum) {
        let (refused_blocks, send_records) = (self.refused_blocks, self.send_records);
        *self = Self { refused_blocks, send_records, ..Self::new(start) };
    }

    pub(crate) fn check(&self, una: SeqNum, nxt: SeqNum) {
        let (start, end) = self.span;
        if self.sent_ranges.is_empty() {
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
        assert!(self.sent_ranges.len() <= MOST_RANGES, "{} sent_ranges", self.sent_ranges.len());
        let mut at = start;
        for range in self.sent_ranges.iter() {
            assert!(range.left == at && range.right.after(at), "a gap before {range:?}");
            at = range.right;
        }
        assert!(at == end, "the last range ends at {at}, the scoreboard at {end}");
        for (fate, sum) in [(Fate::Sacked, self.sacked), (Fate::Lost, self.lost)] {
            let of_fate = self.sent_ranges.iter().filter(|range| range.fate == fate);
            assert_eq!(of_fate.map(SentRange::length).sum::<u32>(), sum, "bytes of fate {fate:?}");
        }
        let hidden =
            |range: &SentRange| range.fate == Fate::Lost && !range.right.after(self.search_from);
        assert!(!self.sent_ranges.iter().any(hidden), "a lost range that the search would miss");
    }
}

/// What [`Scoreboard::mark_lost`] is told of a range that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lost,
    Keep,
    /// Keep it, and everything after it.
    KeepAllFurther,
}

#[cfg(test)]
mod tests;
