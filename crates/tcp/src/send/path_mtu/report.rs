//! The validation of Packet Too Big reports from routers (RFC 1191, RFC 5927 §7.2).
//!
//! A report may be forged. If packets larger than the reported size have arrived before, the report
//! is doubtful and is held: it is neither applied nor discarded at first. It is applied if the
//! quoted segment is lost. It is discarded if the quoted segment arrives, or if a segment larger
//! than the reported size arrives that was sent after the quoted one.

use super::{PathMtu, PathSearch, Search};
use crate::compact::pack::packed;
use crate::options::before;
use crate::send::delivery::Newest;
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// A report that waits until the segment that it quotes arrives or is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    quoted: SeqNum,
    size: u32,
    /// The transmission number of the quoted segment, for comparison with segments that arrive.
    /// `end` is an upper bound for the sequence number at which the quoted segment ends.
    order: u64,
    end: SeqNum,
}

packed!(Held { quoted, size, order, end });

/// A report that was applied at once. When the quoted data is acknowledged, it is tested whether
/// the report was true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppliedReport {
    quoted: SeqNum,
    /// The packet size before the report, which is restored if the report is false. `first_full` is
    /// the end of the first full segment of that size.
    size: u32,
    first_full: Option<SeqNum>,
    /// The value of our timestamp clock when the report arrived. Segments sent after the report
    /// carry this TSval or a newer one. `is_stamp_newer` is true if it is newer than the TSval of
    /// the quoted segment, so that an echo distinguishes the two.
    stamp: u32,
    is_stamp_newer: bool,
}

packed!(AppliedReport { quoted, size, first_full, stamp, is_stamp_newer });

/// The decision about a Packet Too Big report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportVerdict {
    /// The report is ignored, because the quoted packet would fit, or another report is held.
    Ignore,
    /// The report is applied at once, because no larger packet has ever arrived.
    Apply,
    /// The report waits until the quoted segment is lost, because packets larger than the reported
    /// size have arrived before.
    Hold,
    /// The report quotes the path MTU probe in flight. It waits with the probe, and is used only if
    /// the probe is lost.
    HoldForProbe,
}

/// The conclusion from an acknowledgement about a report that was applied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The report is true: the acknowledgement was caused by the retransmission in a smaller
    /// segment.
    Confirmed,
    /// The report is false: the acknowledgement was caused by the original segment.
    Disproved,
    /// It remains unknown whether the report is true. The acknowledgement may have been caused by
    /// the original segment or by its retransmission.
    Open,
}

impl PathMtu {
    /// Returns maxsizeacked (RFC 5927 §7.2): the largest packet size that has arrived. If a report
    /// has reduced packets, it is the size in the report.
    fn largest_passed(&self, una: SeqNum) -> u32 {
        if self.is_proven(una) { self.passed.max(self.effective) } else { self.passed }
    }

    /// Decides about a report that the path carries only packets of `size` bytes. The packet that
    /// it quotes begins at `quoted` and has at most `sent` bytes.
    pub(crate) fn judge_report(
        &self,
        quoted: SeqNum,
        sent: u32,
        size: u32,
        una: SeqNum,
    ) -> ReportVerdict {
        if let Some(trial) = self.trial().filter(|trial| quoted == trial.left) {
            let is_plausible = self.effective <= size && size < trial.size;
            return if is_plausible { ReportVerdict::HoldForProbe } else { ReportVerdict::Ignore };
        }
        if size >= sent.min(self.effective) || self.held().is_some() {
            ReportVerdict::Ignore
        } else if size < self.largest_passed(una) {
            ReportVerdict::Hold
        } else {
            ReportVerdict::Apply
        }
    }

    fn held(&self) -> Option<&Held> {
        self.search.as_deref()?.held.as_ref()
    }

    /// Returns the packet size in the held report, if there is one.
    pub(crate) fn held_size(&self) -> Option<u32> {
        self.held().map(|held| held.size)
    }

    /// Returns the sequence number that the held report quotes, if there is one.
    pub(crate) fn held_quote(&self) -> Option<SeqNum> {
        self.held().map(|held| held.quoted)
    }

    /// Holds a report. The quoted segment has the transmission number `order`, and ends at or
    /// before `end`.
    pub(crate) fn hold(&mut self, quoted: SeqNum, size: u32, order: u64, end: SeqNum) {
        self.search().held = Some(Held { quoted, size, order, end });
    }

    /// Stores the size in a report that quotes the probe. It is used if the probe is lost.
    pub(crate) fn hold_of_probe(&mut self, size: u32) {
        if let Some(trial) = &mut self.search().trial {
            trial.reported = Some(size);
        }
    }

    /// Discards the held report if an acknowledgement shows that it is false. The acknowledgement
    /// has delivered `bytes` bytes, of which the segment `newest` was sent most recently. The
    /// report is false if the quoted segment has arrived. It is also false if `newest` was sent
    /// after the quoted segment and `bytes` exceeds the reported size. Returns whether the report
    /// was discarded.
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

    /// Discards the held report, because the segment that it quotes has arrived.
    pub(crate) fn discard_report(&mut self) {
        self.search().held = None;
        self.free_unused_search();
    }

    /// Frees the search state if it contains no more information than a new search state.
    fn free_unused_search(&mut self) {
        let limit = self.limit;
        let is_unused = |search: &Search| {
            let is_low_known = search.low > 0 && search.low < limit;
            !is_low_known && *search == Search { low: search.low, ..Search::new(limit) }
        };
        if self.is_widest() && self.search.as_deref().is_some_and(is_unused) {
            self.search = None;
        }
    }

    /// Reduces the packet size to `size` for the next ten minutes (RFC 1191 §6.3). If packets
    /// larger than `size` had arrived before, the report may be forged, even if the quoted segment
    /// was lost. In this case, a probe of the size that had arrived is sent as soon as possible.
    fn shrink(&mut self, size: u32, una: SeqNum, now: Instant) {
        let passed = self.largest_passed(una).min(self.limit);
        self.use_size(size);
        let search = self.search();
        *search = Search { low: search.low.min(size), ..Search::new(size) };
        if self.rule != PathSearch::Off {
            self.rest(now);
        }
        if passed > size {
            self.plan_probe(passed, now);
        }
    }

    /// Applies the held report, because the quoted segment is lost. Returns whether a report was
    /// held.
    pub(crate) fn apply_held(&mut self, una: SeqNum, now: Instant) -> bool {
        let Some(size) = self.held_size() else { return false };
        self.shrink(size, una, now);
        self.passed = size;
        true
    }

    /// Applies a report at once. `stamps` are the TSval of the segment `quoted` and the current
    /// value of the timestamp clock.
    pub(crate) fn apply_at_once(
        &mut self,
        (quoted, size): (SeqNum, u32),
        una: SeqNum,
        stamps: (u32, u32),
        now: Instant,
    ) {
        let applied = AppliedReport {
            quoted,
            size: self.effective,
            first_full: self.first_full,
            stamp: stamps.1,
            is_stamp_newer: before(stamps.0, stamps.1),
        };
        self.shrink(size, una, now);
        self.search().applied = Some(applied);
    }

    /// Tests a report that was applied at once. The test needs an acknowledgement that has moved
    /// SND.UNA from `from` to `una`, beyond the quoted number. Its timestamp echo `echo` shows
    /// which segment has caused it (RFC 3522 §3.2). If this is the original segment, the report is
    /// false, and the size from before the report is restored. If it is the smaller segment sent
    /// after the report, the report is true.
    ///
    /// Often the echo does not distinguish the two cases. It may be missing, or belong to a segment
    /// before the quoted one, or the timestamp clock may be too coarse. In these cases, a probe of
    /// the size from before the report decides.
    pub(crate) fn judge_applied(
        &mut self,
        (from, una): (SeqNum, SeqNum),
        echo: Option<u32>,
        now: Instant,
    ) -> Option<Finding> {
        let search = self.search.as_deref_mut()?;
        let applied = search.applied.take_if(|applied| una.after(applied.quoted))?;
        let echo = echo.filter(|&echo| echo != 0);
        let is_old = echo.is_some_and(|echo| before(echo, applied.stamp));
        if is_old && from == applied.quoted {
            self.restore(&applied, now);
            return Some(Finding::Disproved);
        }
        if echo.is_some() && !is_old && applied.is_stamp_newer {
            return Some(Finding::Confirmed);
        }
        let size = applied.size.min(self.limit);
        if size > self.effective {
            self.plan_probe(size, now);
        }
        Some(Finding::Open)
    }

    /// Restores the packet size from before a report that has proved false.
    fn restore(&mut self, applied: &AppliedReport, now: Instant) {
        self.search = Some(Box::new(Search::new(self.limit)));
        self.use_size(applied.size.min(self.limit));
        self.first_full = applied.first_full;
        if self.rule == PathSearch::Always {
            self.search_from(now);
        } else if !self.is_widest() && self.rule != PathSearch::Off {
            self.rest(now);
        }
        self.free_unused_search();
    }

    /// Records that the report which has reduced packets is doubtful. If the connection can send
    /// probes, a probe of `size` bytes tests the report as soon as possible.
    fn plan_probe(&mut self, size: u32, now: Instant) {
        let (limit, may_probe) = (self.limit, self.can_probe && self.rule != PathSearch::Off);
        let search = self.search();
        search.contradicted = true;
        if may_probe {
            (search.high, search.suspect) = (limit, Some(size));
            self.search_from(now);
        }
    }
}
