//! What is believed of routers' reports that a packet was too large (RFC 1191, RFC 5927 §7.2).
//!
//! A report may be forged. One that contradicts what has arrived waits for evidence: it is applied when
//! the segment that it quotes is found lost, and discarded when that segment, or a larger one that left
//! after it, arrives.

use super::{PathMtu, PathSearch, Search};
use crate::compact::pack::packed;
use crate::options::before;
use crate::send::delivery::Newest;
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// A report that waits until its segment is found lost, or is disproved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    quoted: SeqNum,
    size: u32,
    /// The record of the quoted segment, and where that segment ends at most.
    order: u64,
    end: SeqNum,
}

packed!(Held { quoted, size, order, end });

/// A report that was believed at once, until the quoted number is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Believed {
    quoted: SeqNum,
    /// Size of packets, and end of the first full segment, before the report.
    size: u32,
    first_full: Option<SeqNum>,
    /// TSval of what left after the report, and whether the quoted segment had left with an earlier one.
    stamp: u32,
    is_stamp_newer: bool,
}

packed!(Believed { quoted, size, first_full, stamp, is_stamp_newer });

/// What a report of a router is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// Nothing: the quoted packet would have fitted, or another report waits already.
    None,
    /// Nothing larger has ever arrived: the path is being found out, and the router knows.
    Now,
    /// Larger packets have arrived: it waits until the quoted segment is found lost.
    Later,
    /// It is about the probe, whose loss has to be seen first.
    OfProbe,
}

/// The result of the acknowledgement of a segment about which a report was believed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The segment has arrived after it had become smaller.
    Confirmed,
    /// The segment has arrived as it was.
    Disproved,
    /// It is not known whether it had become smaller.
    Open,
}

impl PathMtu {
    /// The largest size that is known to have arrived, or that a report has brought it down to
    /// (maxsizeacked).
    fn largest_passed(&self, una: SeqNum) -> u32 {
        if self.is_proven(una) { self.passed.max(self.effective) } else { self.passed }
    }

    /// Judges a report that of the packet that began with `quoted`, and had `sent` bytes at most, only
    /// `size` bytes would pass.
    pub(crate) fn judge_report(&self, quoted: SeqNum, sent: u32, size: u32, una: SeqNum) -> Belief {
        if let Some(trial) = self.trial().filter(|trial| quoted == trial.left) {
            let is_plausible = self.effective <= size && size < trial.size;
            return if is_plausible { Belief::OfProbe } else { Belief::None };
        }
        if size >= sent.min(self.effective) || self.held().is_some() {
            Belief::None
        } else if size < self.largest_passed(una) {
            Belief::Later
        } else {
            Belief::Now
        }
    }

    fn held(&self) -> Option<&Held> {
        self.search.as_deref()?.held.as_ref()
    }

    /// The size that the waiting report names.
    pub(crate) fn held_size(&self) -> Option<u32> {
        self.held().map(|held| held.size)
    }

    /// The number that the waiting report quotes.
    pub(crate) fn held_quote(&self) -> Option<SeqNum> {
        self.held().map(|held| held.quoted)
    }

    /// The report waits. The segment that it quotes left as `order`, and ends at `end` at most.
    pub(crate) fn hold(&mut self, quoted: SeqNum, size: u32, order: u64, end: SeqNum) {
        self.search().held = Some(Held { quoted, size, order, end });
    }

    /// A report about the probe waits until the probe is found lost.
    pub(crate) fn hold_of_probe(&mut self, size: u32) {
        if let Some(trial) = &mut self.search().trial {
            trial.reported = Some(size);
        }
    }

    /// Discards the waiting report if its segment has arrived, or larger ones that left after it:
    /// `newest` left last of `bytes` that have arrived at once. Returns whether it was discarded.
    pub(crate) fn disprove(&mut self, una: SeqNum, newest: Option<&Newest>, bytes: u32) -> bool {
        let Some(held) = self.held() else { return false };
        let left_later =
            |newest: &Newest| newest.send_record.is_after(newest.end, held.order, held.end);
        let is_disproved =
            una.after(held.quoted) || (bytes > held.size && newest.is_some_and(left_later));
        if is_disproved {
            self.discard_report();
        }
        is_disproved
    }

    /// The segment that the waiting report quotes has arrived.
    pub(crate) fn discard_report(&mut self) {
        self.search().held = None;
        self.settle();
    }

    /// Forgets the search of a path that shows nothing odd any more.
    fn settle(&mut self) {
        let limit = self.limit;
        let is_settled = |search: &Search| {
            let is_low_known = search.low > 0 && search.low < limit;
            !is_low_known && *search == Search { low: search.low, ..Search::new(limit) }
        };
        if self.is_widest() && self.search.as_deref().is_some_and(is_settled) {
            self.search = None;
        }
    }

    /// No larger packet than `size` leaves for the next ten minutes (RFC 1191 §6.3). But if larger ones
    /// had arrived before, the report may be forged although a segment was lost: then one probe of
    /// their size leaves as soon as it may.
    fn shrink(&mut self, size: u32, una: SeqNum, now: Instant) {
        let passed = self.largest_passed(una).min(self.limit);
        self.use_size(size);
        let search = self.search();
        *search = Search { low: search.low.min(size), ..Search::new(size) };
        if self.rule != PathSearch::Off {
            self.rest(now);
        }
        if passed > size {
            self.ask_for(passed, now);
        }
    }

    /// The segment that the waiting report quotes was found lost: packets become as small as the report
    /// says. Returns whether there was one.
    pub(crate) fn apply_held(&mut self, una: SeqNum, now: Instant) -> bool {
        let Some(size) = self.held_size() else { return false };
        self.shrink(size, una, now);
        self.passed = size;
        true
    }

    /// The report is believed at once. TSval was `stamps.0` when the quoted segment left, and is `stamps.1`
    /// now.
    pub(crate) fn believe(
        &mut self,
        (quoted, size): (SeqNum, u32),
        una: SeqNum,
        stamps: (u32, u32),
        now: Instant,
    ) {
        let believed = Believed {
            quoted,
            size: self.effective,
            first_full: self.first_full,
            stamp: stamps.1,
            is_stamp_newer: before(stamps.0, stamps.1),
        };
        self.shrink(size, una, now);
        self.search().believed = Some(believed);
    }

    /// Judges a report that was believed at once when an acknowledgement, which echoes `echo`, moves
    /// SND.UNA from `from` to `una` beyond the quoted number (RFC 3522 §3.2). If it answers the original,
    /// that was not too large, and packets are as large again. If it answers a smaller segment, the
    /// report is true.
    ///
    /// The echo may be that of an earlier segment whose acknowledgement was delayed, and the clock may be
    /// too coarse to tell. Then one probe asks.
    pub(crate) fn judge_believed(
        &mut self,
        (from, una): (SeqNum, SeqNum),
        echo: Option<u32>,
        now: Instant,
    ) -> Option<Finding> {
        let search = self.search.as_deref_mut()?;
        let believed = search.believed.take_if(|believed| una.after(believed.quoted))?;
        let echo = echo.filter(|&echo| echo != 0);
        let is_old = echo.is_some_and(|echo| before(echo, believed.stamp));
        if is_old && from == believed.quoted {
            self.restore(&believed, now);
            return Some(Finding::Disproved);
        }
        if echo.is_some() && !is_old && believed.is_stamp_newer {
            return Some(Finding::Confirmed);
        }
        let size = believed.size.min(self.limit);
        if size > self.effective {
            self.ask_for(size, now);
        }
        Some(Finding::Open)
    }

    /// Packets are as large again as before the report.
    fn restore(&mut self, believed: &Believed, now: Instant) {
        self.search = Some(Box::new(Search::new(self.limit)));
        self.use_size(believed.size.min(self.limit));
        self.first_full = believed.first_full;
        if self.rule == PathSearch::Always {
            self.search_from(now);
        } else if !self.is_widest() && self.rule != PathSearch::Off {
            self.rest(now);
        }
        self.settle();
    }

    /// It is not known whether `size` would pass. If it can be found out, one probe of that size leaves as
    /// soon as it may.
    fn ask_for(&mut self, size: u32, now: Instant) {
        let (limit, can_ask) = (self.limit, self.can_probe && self.rule != PathSearch::Off);
        let search = self.search();
        search.contradicted = true;
        if can_ask {
            (search.high, search.suspect) = (limit, Some(size));
            self.search_from(now);
        }
    }
}
