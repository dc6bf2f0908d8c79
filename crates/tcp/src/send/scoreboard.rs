//! The SACK scoreboard (RFC 6675 §3) with transmission times (RFC 8985 §5.2). For every range in
//! flight it stores when the range was sent, and whether it is in the network, SACKed or lost.
//!
//! Segments sent at the same instant form one range. Only SACK blocks and retransmissions split it.
//! The scoreboard stores losses, but other modules detect them.

use super::delivery::{Delivery, SendRecord};
use super::sent_ranges::SentRanges;
use crate::compact::pack::packed;
use linerate_wire::{SackBlock, SeqNum};

/// The maximum number of ranges. It limits the memory if a peer SACKs single bytes, or if very many
/// bursts are in flight. At the limit, SACK blocks that would need more ranges are ignored, and new
/// bursts are joined with the final range.
const MOST_RANGES: usize = 4_096;

/// The state of a range of sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The range is assumed to be in the network.
    InFlight,
    /// The peer has SACKed the range, but may still discard the data (RFC 2018 §8).
    Sacked,
    /// The range is assumed to be lost, and has not been retransmitted since it was found lost.
    Lost,
}

/// A range of sequence numbers that were sent together and have the same state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentRange {
    pub(crate) left: SeqNum,
    /// The sequence number after the range.
    pub(crate) right: SeqNum,
    pub(crate) fate: Fate,
    /// The record of the most recent transmission of the range.
    pub(crate) send_record: SendRecord,
}

impl SentRange {
    pub(crate) fn length(&self) -> u32 {
        self.right - self.left
    }
}

/// The first and the final range that an acknowledgement newly covers, if the data of all covered
/// ranges has arrived in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InOrderArrival<'a> {
    /// The first of the ranges, which was sent before the others.
    pub(crate) oldest: &'a SentRange,
    /// The final range, which was sent after the others.
    pub(crate) newest: &'a SentRange,
}

/// The ranges of sent data from SND.UNA to SND.NXT, in the order of sequence numbers and without
/// gaps.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Scoreboard {
    sent_ranges: SentRanges,
    /// The sequence number at which the search for lost ranges starts. No range before it is marked
    /// lost.
    search_from: SeqNum,
    /// The number of SACK blocks that were ignored because there were too many ranges.
    pub(crate) refused_blocks: u64,
    /// The number of transmissions since the connection was opened. After each transmission, its
    /// value is the number of that transmission.
    send_records: u64,
    /// The start of the first range and the end of the final range.
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

    /// Returns the number of bytes that the peer has SACKed.
    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of bytes that are marked lost and must be retransmitted.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// Whether no range is SACKed or lost.
    pub(crate) const fn is_clean(&self) -> bool {
        self.sacked == 0 && self.lost == 0
    }

    /// Returns the estimated number of bytes in the network (the pipe of RFC 6675 §4).
    pub(crate) fn in_flight(&self) -> u32 {
        self.span.1 - self.span.0 - self.sacked - self.lost
    }

    /// Returns the estimated number of retransmitted bytes in the network. Visits every range.
    pub(crate) fn repeated_in_flight(&self) -> u32 {
        let repeated = |range: &&SentRange| range.fate == Fate::InFlight && range.send_record.again;
        self.sent_ranges.iter().filter(repeated).map(SentRange::length).sum()
    }

    /// Returns the number of the most recent transmission, which is the largest
    /// [`SendRecord::order`] so far.
    pub(crate) const fn last_order(&self) -> u64 {
        self.send_records
    }

    /// Returns the range with the highest sequence numbers. `None` if the peer has SACKed it.
    pub(crate) fn last_unacknowledged(&self) -> Option<&SentRange> {
        self.sent_ranges.back().filter(|range| range.fate != Fate::Sacked)
    }

    /// Records that the range from `left` to `right` is sent: new data, a retransmission, or both.
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

    /// Records that new data is sent while nothing is in flight.
    #[inline(always)]
    pub(crate) fn note_first(&mut self, left: SeqNum, right: SeqNum, mut send_record: SendRecord) {
        self.span = (left, right);
        self.send_records += 1;
        send_record.order = self.send_records;
        self.sent_ranges.begin(SentRange { left, right, fate: Fate::InFlight, send_record });
    }

    /// Ends the current burst: the data that is sent next forms a new range, even if it is sent at
    /// the same time.
    pub(crate) const fn end_burst(&mut self) {
        self.send_records += 1;
    }

    /// Adds `length` bytes, which are sent now, to the range of the most recent burst.
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
            // The new data joins the final range, which takes the send record of the new data. With
            // its older record, the new data would count as lost too early.
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

    /// Returns the range that contains all data in flight, if there is only one range and it ends
    /// at `ack`.
    #[inline]
    pub(crate) fn flight_until(&self, ack: SeqNum) -> Option<&SentRange> {
        self.sent_ranges.single().filter(|_| self.span.1 == ack)
    }

    /// Returns the first and the final range that an acknowledgement of all data before `ack`
    /// covers. `None` if it covers none, or if one of them was retransmitted. Without
    /// retransmissions, ranges are in the order of their transmission. The caller has made sure
    /// that no range is SACKed or lost.
    #[inline]
    pub(crate) fn in_order_arrival_until(&self, ack: SeqNum) -> Option<InOrderArrival<'_>> {
        debug_assert!(self.is_clean(), "data arrived in order while data is missing");
        if ack.after(self.span.1) {
            return None;
        }
        let mut acknowledged = self.sent_ranges.iter().take_while(|range| range.left.before(ack));
        let oldest = acknowledged.next().filter(|first| !first.send_record.again)?;
        let newest =
            acknowledged.try_fold(oldest, |_, next| (!next.send_record.again).then_some(next))?;
        Some(InOrderArrival { oldest, newest })
    }

    /// Removes all data before `ack`. The caller knows from
    /// [`in_order_arrival_until`](Self::in_order_arrival_until) that it has arrived in order.
    #[inline]
    pub(crate) fn remove_until(&mut self, ack: SeqNum) {
        self.sent_ranges.forget_until(ack);
        self.span.0 = ack;
    }

    /// Removes the [single range in flight](Self::flight_until), which has arrived.
    #[inline]
    pub(crate) fn on_in_order_arrival(&mut self) {
        self.sent_ranges.remove_single();
        self.span.0 = self.span.1;
    }

    /// Removes all data before `ack`, which has arrived. Adds the part of this data that was not
    /// SACKed before to `delivery`.
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

    /// Processes a SACK block, and adds the newly delivered data to `delivery`. Ignores a block
    /// that does not lie within the data in flight.
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

    /// Splits ranges at `left` and `right`, and returns the indices of the ranges between the two.
    /// Both numbers must lie within the data in flight.
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

    /// Splits the range that contains `seq`, so that a range begins at `seq`. Returns the index of
    /// that range.
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

    /// Joins the ranges at `indices`, which are SACKed, and their neighbours if these are SACKed
    /// too. Their send records are not needed any more. Thus there are only a few ranges if there
    /// are only a few holes.
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

    /// Calls `is_lost` for each range in flight, in the order of sequence numbers, and marks the
    /// range as lost if the result is [`Verdict::Lost`]. Stops if the result is
    /// [`Verdict::KeepAllFurther`]. Returns the number of bytes marked.
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

    /// Returns the first range that is marked lost and must be retransmitted.
    pub(crate) fn next_lost(&self) -> Option<&SentRange> {
        if self.lost == 0 {
            return None;
        }
        self.sent_ranges.ending_after(self.search_from).find(|range| range.fate == Fate::Lost)
    }

    /// Records that all lost ranges before `seq` were retransmitted, so that
    /// [`next_lost`](Self::next_lost) starts its search at `seq`.
    pub(crate) fn search_after(&mut self, seq: SeqNum) {
        self.search_from = seq;
    }

    /// Marks all lost ranges as in flight, because the reason for marking them lost has proved
    /// false.
    pub(crate) fn forgive(&mut self) {
        for range in self.sent_ranges.iter_mut() {
            if range.fate == Fate::Lost {
                range.fate = Fate::InFlight;
            }
        }
        self.lost = 0;
    }

    /// Returns the range that contains `seq`.
    pub(crate) fn range_at(&self, seq: SeqNum) -> Option<&SentRange> {
        self.sent_ranges.ending_after(seq).next().filter(|range| !range.left.after(seq))
    }

    /// Whether the peer has discarded SACKed data (RFC 2018 §8). The evidence is that the first
    /// unacknowledged range is SACKed: the peer has acknowledged all data before this range, but
    /// not the range itself.
    pub(crate) fn is_reneged(&self) -> bool {
        self.sent_ranges.front().is_some_and(|first| first.fate == Fate::Sacked)
    }

    /// Whether the peer has SACKed a contiguous range of at least `bytes` bytes.
    pub(crate) fn has_sacked(&self, bytes: u32) -> bool {
        self.sent_ranges.iter().any(|range| range.fate == Fate::Sacked && range.length() >= bytes)
    }

    /// Marks all SACKed ranges as lost, because the peer has discarded SACKed data.
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

    /// Removes all ranges, and frees the memory.
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
        assert!(!self.sent_ranges.iter().any(hidden), "the search would miss a lost range");
    }
}

/// The decision about a range in flight, which the function passed to [`Scoreboard::mark_lost`]
/// makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lost,
    Keep,
    /// Neither this range nor any range after it is lost.
    KeepAllFurther,
}

#[cfg(test)]
mod tests;
