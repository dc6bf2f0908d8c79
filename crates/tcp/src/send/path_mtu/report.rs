//! Validation of Packet Too Big reports from routers (RFC 1191, RFC 5927 §7.2).
//!
//! A report may be forged. A report that contradicts data that have arrived is therefore held. It
//! is applied when the segment that it quotes is lost, and discarded when that segment, or a larger
//! one sent after it, arrives.

use super::{PathMtu, PathSearch, Search};
use crate::compact::pack::packed;
use crate::options::before;
use crate::send::delivery::Newest;
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// A report that is held until the segment that it quotes is lost or arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    quoted: SeqNum,
    size: u32,
    /// Order of the quoted segment in the send records, and the largest number at which it may end.
    order: u64,
    end: SeqNum,
}

packed!(Held { quoted, size, order, end });

/// A report that was applied at once and is tested when the quoted number is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppliedReport {
    quoted: SeqNum,
    /// Packet size before the report, and the end of the first full segment sent with that size.
    size: u32,
    first_full: Option<SeqNum>,
    /// TSval of segments sent after the report, and whether it is newer than that of the quoted
    /// segment.
    stamp: u32,
    is_stamp_newer: bool,
}

packed!(AppliedReport { quoted, size, first_full, stamp, is_stamp_newer });

/// The decision about a Packet Too Big report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportVerdict {
    /// The report is ignored: the quoted packet would have fitted, or another report is held.
    Ignore,
    /// The report is applied at once: no larger packet has ever arrived.
    Apply,
    /// The report is held until the quoted segment is lost: larger packets have arrived before.
    Hold,
    /// The report is about the probe. It counts if the probe is lost.
    HoldForProbe,
}

/// The evidence in an acknowledgement about a report that was applied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The segment was acknowledged after it was retransmitted in a smaller size.
    Confirmed,
    /// The original segment was acknowledged.
    Disproved,
    /// The acknowledgement may be for the original segment or for its retransmission.
    Open,
}

impl PathMtu {
    /// Returns maxsizeacked: the largest size that has arrived, or to which a report has reduced
    /// the size.
    fn largest_passed(&self, una: SeqNum) -> u32 {
        if self.is_proven(una) { self.passed.max(self.effective) } else { self.passed }
    }

    /// Judges a report that the path carries only `size` bytes of the packet that begins with
    /// `quoted` and has at most `sent` bytes.
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

    /// Returns the size that the held report names.
    pub(crate) fn held_size(&self) -> Option<u32> {
        self.held().map(|held| held.size)
    }

    /// Returns the sequence number that the held report quotes.
    pub(crate) fn held_quote(&self) -> Option<SeqNum> {
        self.held().map(|held| held.quoted)
    }

    /// Holds the report. The quoted segment has the order `order` in the send records, and ends at
    /// `end` or before.
    pub(crate) fn hold(&mut self, quoted: SeqNum, size: u32, order: u64, end: SeqNum) {
        self.search().held = Some(Held { quoted, size, order, end });
    }

    /// Holds a report about the probe until the probe is lost.
    pub(crate) fn hold_of_probe(&mut self, size: u32) {
        if let Some(trial) = &mut self.search().trial {
            trial.reported = Some(size);
        }
    }

    /// Discards the held report if the quoted segment has arrived, or a larger one sent after it.
    /// `newest` is the segment that was sent last, of the `bytes` that an acknowledgement reports.
    /// Returns whether it was discarded.
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

    /// Frees the search state if it holds nothing that differs from a new one.
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

    /// Reduces the packet size to `size` for the next ten minutes (RFC 1191 §6.3). If larger
    /// packets had arrived before, the report may be forged even though a segment was lost. A probe
    /// of the earlier size is then sent as soon as possible.
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

    /// Applies the held report, because the quoted segment was lost. Returns whether there was one.
    pub(crate) fn apply_held(&mut self, una: SeqNum, now: Instant) -> bool {
        let Some(size) = self.held_size() else { return false };
        self.shrink(size, una, now);
        self.passed = size;
        true
    }

    /// Applies a report at once. `stamps` are the TSval of the quoted segment and the present
    /// TSval.
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

    /// Judges a report that was applied at once, when an acknowledgement that echoes `echo` moves
    /// SND.UNA from `from` to `una`, beyond the quoted number (RFC 3522 §3.2). An acknowledgement
    /// of the original segment disproves the report, and the earlier size is restored. An
    /// acknowledgement of a smaller segment confirms it.
    ///
    /// The echo may come from an earlier segment whose acknowledgement was delayed, and the clock
    /// may be too coarse to tell. In these cases a probe of the earlier size decides.
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

    /// Restores the packet size from before the report.
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

    /// Plans a probe of `size` as soon as possible, if probes are possible, because it is not known
    /// whether packets of that size pass.
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
