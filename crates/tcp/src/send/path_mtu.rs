//! Packetization-layer path MTU discovery (RFC 4821 §7): a search by probes for the largest packet
//! that the path carries. This module also checks Packet Too Big reports from routers (RFC 1191,
//! RFC 5927 §7.2).
//!
//! Sizes are lengths of IP packets in bytes, including headers (RFC 4821 §5.1). This module only
//! decides; `path_probe.rs` sends the probes and changes the segment size.

mod report;

pub(crate) use report::{Finding, ReportVerdict};

use crate::compact::pack::{packed, packed_enum};
use alloc::boxed::Box;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;
use report::{AppliedReport, Held};

/// The rule that decides when a connection searches for the path MTU by probes, without reports
/// from routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathSearch {
    /// The connection does not search. If segments are too large and routers send no reports, the
    /// segments are lost until the connection times out.
    Off,
    /// Segments have the size of the first link's MTU, until the path has proved narrower. The
    /// connection searches after large segments have timed out repeatedly without a report, and ten
    /// minutes after a report has reduced the size. On paths that are not narrower, this costs
    /// nothing (the conservative strategy of RFC 4821 §7.2).
    WhenNarrow,
    /// A search begins with the first segment, which has the small size
    /// [`crate::Config::path_base`]. Use this for networks whose routers are known to send no
    /// reports.
    Always,
}

packed_enum!(PathSearch { Off, WhenNarrow, Always });

/// The time from the end of a search until a larger packet is tried again: ten minutes (RFC 4821
/// §7.3, which requires at least five).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// Common path MTUs in bytes. The first is the IPv6 minimum. The next five belong to tunnels: a
/// round number, WireGuard, VXLAN, IP in IP and PPPoE. Then come Ethernet, FDDI, jumbo frames,
/// token ring, HIPPI, and the IPv4 maximum.
const COMMON: [u32; 12] =
    [1_280, 1_400, 1_420, 1_450, 1_480, 1_492, 1_500, 4_352, 9_000, 17_914, 32_000, 65_535];

/// The smallest gain that justifies a probe. The gain must be at least `LEAST_GAIN` bytes, and also
/// at least 1/`LEAST_SHARE` of the present size.
const LEAST_GAIN: u32 = 8;
const LEAST_SHARE: u32 = 64;

/// The factor by which the pause before the next probe is longer if the loss of a probe was
/// detected by a timeout (RFC 4821 §7.6.3).
const TIMEOUT_PENALTY: u64 = 5;

/// The time after which a raised size is verified, in multiples of the retransmission timeout (RFC
/// 4821 §7.8). The size is too large if more than 1/`LOSS_SHARE` of the data sent in that time was
/// lost.
const VERIFIED_AFTER: u64 = 4;
const LOSS_SHARE: u64 = 10;

/// The limits of the packet sizes that a search tries, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest packet that both the first link and the peer accept.
    pub(crate) limit: u32,
    /// The size with which a search begins. Nearly every path carries it.
    pub(crate) base: u32,
    /// A size that every path carries. Repeated timeouts never reduce packets below it.
    pub(crate) floor: u32,
    /// The length in bytes of the headers of a segment with data.
    pub(crate) headers: u32,
}

/// A probe in flight: a segment larger than the sizes that are known to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    left: SeqNum,
    right: SeqNum,
    size: u32,
    /// The size in a router's report about the probe, if there was one. It is used only if the
    /// probe is lost.
    reported: Option<u32>,
    /// The value of SND.NXT when the probe, but no other segment, was found lost. The data of the
    /// probe is retransmitted before any data beyond this number is sent. If data beyond it is
    /// acknowledged and nothing else was lost, the size of the probe has caused its loss.
    missing_until: Option<SeqNum>,
}

packed!(Trial { left, right, size, reported, missing_until });

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The probe has arrived: packets of its size pass.
    Passed,
    /// Only the probe was lost: packets of its size do not pass.
    Failed,
}

/// The numbers of bytes delivered and lost since the connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
}

packed!(Tally { delivered, lost });

/// A packet size that was raised recently, and may be withdrawn (RFC 4821 §7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raised {
    /// The size to restore if the raised size proves too large.
    before: u32,
    /// The time when the size was raised or most recently verified. `tally` contains the counters
    /// at that time.
    at: Instant,
    tally: Tally,
    /// Whether the raised size has been verified.
    is_good: bool,
}

packed!(Raised { before, at, tally, is_good });

/// The state of path MTU discovery.
///
/// Invariant: `effective ≤ limit`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathMtu {
    /// eff_pmtu (RFC 4821): the maximum size of packets other than probes.
    effective: u32,
    /// The size of the largest packet that both the first link and the peer accept. It is the
    /// initial value of search_high (RFC 4821).
    limit: u32,
    rule: PathSearch,
    /// Whether the connection can send probes. This requires SACK, which distinguishes the loss of
    /// a probe from other losses.
    can_probe: bool,
    /// The end of the first full segment that was sent at the present size. `proven` is true if
    /// that segment has arrived.
    first_full: Option<SeqNum>,
    proven: bool,
    /// maxsizeacked (RFC 5927 §7.2): the largest packet size that has arrived. If a report has
    /// reduced packets, it is the size in the report. The present size is included only after
    /// `proven` has become true.
    passed: u32,
    /// The state of a search, allocated on demand because most paths never need a search.
    search: Option<Box<Search>>,
}

packed!(PathMtu { effective, limit, rule, can_probe, first_full, proven, passed, search });

/// The state of a search, and of reports that were neither confirmed nor disproved yet.
///
/// Invariant: `low ≤ effective ≤ high ≤ limit`.
#[derive(Clone, Debug, PartialEq)]
struct Search {
    /// search_low (RFC 4821): the largest packet size that is known to pass; zero if none is known.
    low: u32,
    /// search_high (RFC 4821): the largest packet size that is not known to fail.
    high: u32,
    /// The earliest time of the next probe; `NEVER` if no search is planned.
    next_probe: Instant,
    /// Whether the search has ended. It is repeated from `next_probe` on.
    complete: bool,
    /// The size of the probe that may be sent now, if any.
    ready: Option<u32>,
    trial: Option<Trial>,
    raised: Option<Raised>,
    held: Option<Held>,
    applied: Option<AppliedReport>,
    /// Whether a report has reduced the packet size although larger segments had arrived before. If
    /// so, a probe of the earlier size tests the report.
    contradicted: bool,
    /// Whether repeated timeouts have reduced the packet size, and no data was acknowledged since
    /// then. Only an acknowledgement can show that the packet size was the cause of the timeouts.
    unconfirmed: bool,
    /// The packet size to probe before others. After a reduction by repeated timeouts or a doubtful
    /// report, it is the size before the reduction: if that probe arrives, the reduction was wrong.
    /// After a report about a lost probe, it is the size in the report.
    suspect: Option<u32>,
}

packed!(Search {
    low,
    high,
    next_probe,
    complete,
    ready,
    trial,
    raised,
    held,
    applied,
    contradicted,
    unconfirmed,
    suspect
});

impl PathMtu {
    /// Creates the state for a path with an assumed MTU of `effective` bytes, whose first link has
    /// an MTU of `limit` bytes.
    pub(crate) const fn new(effective: u32, limit: u32) -> Self {
        Self {
            effective,
            limit,
            rule: PathSearch::Off,
            can_probe: false,
            first_full: None,
            proven: false,
            passed: 0,
            search: None,
        }
    }

    /// Starts discovery when the handshake has determined the peer's MSS. `estimated` is true if
    /// the assumed path MTU comes from an earlier connection whose search had not ended.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        rule: PathSearch,
        bounds: &Bounds,
        estimated: bool,
        can_probe: bool,
        now: Instant,
    ) {
        self.limit = self.limit.min(bounds.limit);
        self.effective = self.effective.min(self.limit);
        if let Some(search) = &mut self.search {
            // A report about the SYN has already started a search. Its upper limit may exceed the
            // size that the peer's MSS allows.
            search.high = search.high.min(self.limit);
        }
        (self.rule, self.can_probe) = (rule, can_probe);
        match rule {
            PathSearch::Off => {}
            PathSearch::Always => {
                self.effective = self.effective.min(bounds.base());
                self.search_from(now);
            }
            PathSearch::WhenNarrow if self.is_widest() => {}
            PathSearch::WhenNarrow if estimated => {
                self.search().low = self.effective;
                self.search_from(now);
            }
            PathSearch::WhenNarrow => self.rest(now),
        }
    }

    /// Returns eff_pmtu (RFC 4821), the maximum size of packets other than probes.
    pub(crate) const fn effective(&self) -> u32 {
        self.effective
    }

    /// Whether the packet size in use is the largest that both the first link and the peer accept.
    pub(crate) const fn is_widest(&self) -> bool {
        self.effective == self.limit
    }

    /// Whether a search is in progress: packets larger than the present size may pass, and will be
    /// probed.
    pub(crate) fn is_estimated(&self) -> bool {
        let searches = |search: &Search| !search.complete && search.next_probe != Instant::NEVER;
        self.search.as_deref().is_some_and(searches)
    }

    /// Whether the present packet size is supported by evidence. It is not if a report or repeated
    /// timeouts have reduced it and no evidence shows that larger packets do not pass.
    pub(crate) fn is_confirmed(&self) -> bool {
        let is_doubtful =
            |search: &Search| search.unconfirmed || search.contradicted || search.applied.is_some();
        !self.search.as_deref().is_some_and(is_doubtful)
    }

    /// Whether the next acknowledgements must be examined for evidence about the packet size. They
    /// must while the result of a probe, of a reduction after timeouts, or of a report that was
    /// applied at once is unknown.
    pub(crate) fn is_asking(&self) -> bool {
        self.search.as_deref().is_some_and(|search| {
            search.trial.is_some() || search.unconfirmed || search.applied.is_some()
        })
    }

    /// Whether a search state is allocated, so that timeouts and acknowledgements may change it.
    pub(crate) const fn is_awake(&self) -> bool {
        self.search.is_some()
    }

    /// Returns the size of the probe that may be sent now, if any.
    pub(crate) fn ready(&self) -> Option<u32> {
        self.search.as_deref()?.ready
    }

    fn search(&mut self) -> &mut Search {
        let high = self.limit;
        self.search.get_or_insert_with(|| Box::new(Search::new(high)))
    }

    fn search_from(&mut self, when: Instant) {
        let next_probe = if self.can_probe { when } else { Instant::NEVER };
        let search = self.search();
        (search.complete, search.next_probe) = (false, next_probe);
    }

    /// Ends the search until it is repeated after ten minutes ([`RAISE_AFTER`], RFC 4821 §7.3).
    fn rest(&mut self, now: Instant) {
        self.search_from(now + RAISE_AFTER);
        let search = self.search();
        (search.complete, search.ready) = (true, None);
    }

    /// Decides whether the next segment may be a probe, and of which size. Called when output ends.
    /// Returns true if this call has ended the search, because no further probe is worthwhile.
    pub(crate) fn watch(&mut self, now: Instant, una: SeqNum) -> bool {
        let (limit, effective, is_proven) = (self.limit, self.effective, self.is_proven(una));
        let Some(search) = self.search.as_deref_mut() else { return false };
        // Ordinary segments of the present size have been acknowledged. Like a probe that has
        // arrived, they show that this size passes (RFC 4821 §7.1).
        if is_proven {
            search.low = search.low.max(effective);
        }
        search.ready = None;
        if search.trial.is_some() || now < search.next_probe {
            return false;
        }
        if search.complete {
            (search.complete, search.high) = (false, limit);
        }
        search.ready = search.next_size(effective, limit);
        if search.ready.is_none() {
            self.rest(now);
            return true;
        }
        false
    }

    /// Records that the probe was sent, as the range from `left` to `right`.
    pub(crate) fn record_sent(&mut self, left: SeqNum, right: SeqNum) {
        let search = self.search();
        if let Some(size) = search.ready.take() {
            search.trial = Some(Trial { left, right, size, reported: None, missing_until: None });
        }
    }

    fn trial(&self) -> Option<&Trial> {
        self.search.as_deref()?.trial.as_ref()
    }

    /// Whether the range from `left` to `right` lies in the probe in flight, and the probe was not
    /// found lost.
    pub(crate) fn is_probe(&self, left: SeqNum, right: SeqNum) -> bool {
        self.trial().is_some_and(|trial| trial.missing_until.is_none() && trial.holds(left, right))
    }

    /// Records that the probe is lost. `nxt` is the present value of SND.NXT.
    pub(crate) fn miss_probe(&mut self, nxt: SeqNum) {
        if let Some(trial) = &mut self.search().trial {
            trial.missing_until = Some(nxt);
        }
    }

    /// Abandons the probe in flight, because other data was lost. Congestion may then be the cause
    /// of a loss of the probe, so nothing follows about its size. A later probe tries this size
    /// again (RFC 4821 §7.6.4).
    pub(crate) fn note_other_loss(&mut self) {
        if let Some(search) = &mut self.search {
            search.trial = None;
        }
    }

    /// Handles a report that the peer has received the range from `left` to `right` twice. If the
    /// range lies in the probe, the probe was only delayed, so it does not count as lost any more.
    pub(crate) fn note_duplicate(&mut self, left: SeqNum, right: SeqNum) {
        if let Some(search) = &mut self.search
            && let Some(trial) = search.trial.as_mut().filter(|trial| trial.holds(left, right))
        {
            trial.missing_until = None;
        }
    }

    /// Returns the result of the probe, if an acknowledgement of `una` determines it. If the probe
    /// has passed, packets of its size are used from now on (RFC 4821 §7.6.1). After a failure, the
    /// next probe waits for `pause`.
    pub(crate) fn judge_probe(
        &mut self,
        una: SeqNum,
        now: Instant,
        pause: Duration,
        tally: Tally,
    ) -> Option<Outcome> {
        let trial = *self.trial()?;
        let before = self.effective;
        match trial.missing_until {
            None if !una.before(trial.right) => {
                let search = self.search();
                (search.trial, search.suspect, search.contradicted) = (None, None, false);
                // `before` is the size to restore if the probed size proves too large. If an
                // earlier probe has raised the present size, and this raise is not verified yet,
                // the present size may also be too large. The size before that raise is then
                // restored.
                let doubtful = search.raised.filter(|raised| !raised.is_good);
                let before = doubtful.map_or(before, |raised| raised.before);
                search.raised = Some(Raised { before, at: now, tally, is_good: false });
                search.low = trial.size;
                self.passed = self.passed.max(trial.size);
                self.use_size(trial.size);
                self.search_from(now);
                Some(Outcome::Passed)
            }
            Some(until) if una.after(until) => {
                self.fail(&trial, now, now + pause);
                Some(Outcome::Failed)
            }
            _ => None,
        }
    }

    /// Handles a probe that was lost because of its size (RFC 4821 §7.6.2). If a router has
    /// reported a size for the probe, a probe of this size is next.
    fn fail(&mut self, trial: &Trial, now: Instant, next: Instant) {
        let effective = self.effective;
        let search = self.search();
        let was_contradicted = core::mem::take(&mut search.contradicted);
        search.high = trial.reported.unwrap_or(trial.size - 1).max(effective);
        search.trial = None;
        search.suspect = trial.reported.filter(|&size| is_worth_a_probe(effective, size));
        if was_contradicted {
            // An earlier report of a router seemed doubtful, so this probe had the size from before
            // the report. Its loss confirms the report. Packets therefore keep the reported size
            // for ten minutes (RFC 1191 §6.3).
            self.search().suspect = None;
            self.rest(now);
        } else {
            self.search_from(next);
        }
    }

    fn use_size(&mut self, size: u32) {
        if self.proven {
            self.passed = self.passed.max(self.effective);
        }
        (self.effective, self.first_full, self.proven) = (size, None, false);
        let search = self.search();
        (search.ready, search.held, search.applied) = (None, None, None);
    }

    /// Verifies a raised size after a loss, and returns whether it was withdrawn. It is withdrawn
    /// if too much data was lost since it was raised, or since its most recent verification. Such
    /// losses suggest parallel paths with different MTUs (RFC 4821 §7.8). A size that was verified
    /// can still be withdrawn later, because routing may change to a narrower path.
    pub(crate) fn verify(&mut self, now: Instant, timeout: Duration, tally: Tally) -> bool {
        let due = |raised: &Raised| now.since(raised.at) >= timeout * VERIFIED_AFTER;
        let effective = self.effective;
        let Some(search) = &mut self.search else { return false };
        let Some(raised) = search.raised.filter(due) else { return false };
        search.raised = Some(Raised { at: now, tally, is_good: true, ..raised });
        let lost = tally.lost - raised.tally.lost;
        let is_too_much = lost * LOSS_SHARE > tally.delivered - raised.tally.delivered + lost;
        if is_too_much {
            search.raised = None;
            search.high = (effective - 1).max(raised.before);
            search.low = raised.before;
            self.use_size(raised.before);
        }
        is_too_much
    }

    /// Handles a retransmission timeout while a probe is in flight. `una` is the first missing
    /// sequence number. If the probe begins there, its size has caused the timeout, and the result
    /// is true (RFC 4821 §7.6.3). If not, the probe is abandoned.
    pub(crate) fn on_timeout(&mut self, una: SeqNum, now: Instant, pause: Duration) -> bool {
        let next = now + pause * TIMEOUT_PENALTY;
        let Some(trial) = self.trial().copied() else { return false };
        let is_first = trial.missing_until.is_none() && una == trial.left;
        if is_first {
            self.fail(&trial, now, next);
        } else {
            let search = self.search();
            (search.trial, search.next_probe) = (None, next);
        }
        is_first
    }

    /// Handles a full-stop timeout: repeated timeouts without a report, which suggest a black hole
    /// (RFC 4821 §7.7). The segment to be retransmitted has `data` bytes. Reduces the packet size
    /// so far that this segment becomes smaller. Returns false if this is impossible.
    pub(crate) fn on_full_stop(&mut self, data: u32, bounds: &Bounds, now: Instant) -> bool {
        if self.rule == PathSearch::Off {
            return false;
        }
        let before = self.effective;
        let packet = data.saturating_add(bounds.headers).min(before);
        let known = self.search.as_deref().map_or(0, |search| search.low);
        let mut size = before;
        while size >= packet {
            let smaller = bounds.next_below(size, known);
            if smaller >= size {
                return false;
            }
            size = smaller;
        }
        self.use_size(size);
        let search = self.search();
        search.low = size;
        search.suspect = search.suspect.max(Some(before));
        (search.raised, search.contradicted) = (None, false);
        search.unconfirmed = true;
        self.search_from(now);
        true
    }

    /// Handles an acknowledgement, which has moved SND.UNA if `advanced` is true. Returns whether
    /// it is the first acknowledgement of data since repeated timeouts have reduced the packet
    /// size. If it is, the packet size before the reduction is assumed to have caused the timeouts.
    pub(crate) fn confirm(&mut self, advanced: bool) -> bool {
        advanced && core::mem::take(&mut self.search().unconfirmed)
    }

    /// Records that a full segment is sent, which ends at `end`.
    pub(crate) fn note_full(&mut self, end: SeqNum, una: SeqNum) {
        if !self.proven {
            self.proven = self.is_proven(una);
            self.first_full.get_or_insert(end);
        }
    }

    /// Whether a full segment of the present size has arrived.
    fn is_proven(&self, una: SeqNum) -> bool {
        self.proven || self.first_full.is_some_and(|end| !end.after(una))
    }

    pub(crate) fn check(&self) {
        let Self { effective, limit, .. } = *self;
        assert!(effective <= limit, "packets of {effective}, where {limit} is the most");
        let Some(Search { low, high, ready, trial, .. }) = self.search.as_deref() else { return };
        let (low, high) = (*low, *high);
        assert!(
            low <= effective && effective <= high && high <= limit,
            "{low}..{effective}..{high}..{limit}"
        );
        assert!(ready.is_none_or(|size| effective < size && size <= high), "a probe of {ready:?}");
        assert!(ready.is_none() || trial.is_none(), "one probe at a time");
    }
}

impl Search {
    const fn new(high: u32) -> Self {
        Self {
            low: 0,
            high,
            next_probe: Instant::NEVER,
            complete: false,
            ready: None,
            trial: None,
            raised: None,
            held: None,
            applied: None,
            contradicted: false,
            unconfirmed: false,
            suspect: None,
        }
    }

    /// Returns the next size above `from` to probe, or `None` if no gain justifies a probe (RFC
    /// 4821 §7.3).
    ///
    /// The size in [`Search::suspect`] comes first. Then come the common path MTUs, in ascending
    /// order: a probe that passes costs nothing, while a probe that fails costs a long pause. If no
    /// common size is left and no size has failed, the limit is next. If a size has failed, the
    /// middle between `from` and the smallest failed size is next.
    fn next_size(&self, from: u32, limit: u32) -> Option<u32> {
        let to = self.high;
        let is_left = |size: &u32| from < *size && *size <= to;
        if let Some(size) =
            self.suspect.filter(is_left).or_else(|| COMMON.into_iter().find(is_left))
        {
            return Some(size);
        }
        if to == limit {
            return (from < to).then_some(to);
        }
        is_worth_a_probe(from, to).then_some(from + (to - from).div_ceil(2))
    }
}

/// Whether the gain from packets of `from` bytes to packets of `to` bytes justifies a probe.
fn is_worth_a_probe(from: u32, to: u32) -> bool {
    to.saturating_sub(from) >= LEAST_GAIN.max(from / LEAST_SHARE)
}

impl Trial {
    /// Whether the range from `left` to `right` lies in the probe.
    fn holds(&self, left: SeqNum, right: SeqNum) -> bool {
        !left.before(self.left) && !right.after(self.right)
    }
}

impl Bounds {
    fn base(&self) -> u32 {
        self.base.max(self.floor).min(self.limit)
    }

    /// Returns the next size to try below `size`. This is `known`, the size that is known to pass,
    /// as long as it is below `size` and not below the base. Otherwise it is the base, as long as
    /// that is below `size`. Below the base, the data in a packet is halved each time.
    fn next_below(&self, size: u32, known: u32) -> u32 {
        let base = self.base();
        if size > known && known >= base {
            known
        } else if size > base {
            base
        } else {
            (size.saturating_sub(self.headers) / 2 + self.headers).max(self.floor.min(self.limit))
        }
    }
}

#[cfg(test)]
mod tests;
