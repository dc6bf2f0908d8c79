//! The search for the largest packet that the path takes, from what becomes of packets (RFC 4821 §7), and
//! what is believed of routers that report one (RFC 1191, RFC 5927 §7.2).
//!
//! Sizes are bytes of IP packets, headers counted (RFC 4821 §5.1). Nothing is sent and no window is changed
//! here: `path_probe.rs` does what is decided.

mod report;

pub(crate) use report::{Belief, Finding};

use crate::compact::pack::{packed, packed_enum};
use alloc::boxed::Box;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;
use report::{Believed, Held};

/// When a connection looks for the largest packet by itself, without the routers' help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathSearch {
    /// Never: where routers keep silent, segments that are too large are lost until the connection is given
    /// up.
    Off,
    /// Once the path has shown itself narrower than its first link: large segments time out again and again
    /// although nobody reports anything, or somebody did report it and ten minutes have passed. Until then
    /// segments are as large as the first link takes, so that a path like any other costs nothing (the
    /// conservative way of RFC 4821 §7.2).
    WhenNarrow,
    /// From the first segment on, which is small ([`crate::Config::path_base`]): for networks where routers
    /// are known to keep silent.
    Always,
}

packed_enum!(PathSearch { Off, WhenNarrow, Always });

/// How long after a search has ended a larger packet is tried again (RFC 4821 §7.3: ten minutes, and no
/// less than five).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// The sizes that paths have: IPv6's least, tunnels of their usual widths (a round number, WireGuard, VXLAN,
/// IP in IP, PPPoE), Ethernet, FDDI, jumbo frames, token ring, HIPPI, IPv4's most.
const COMMON: [u32; 12] =
    [1_280, 1_400, 1_420, 1_450, 1_480, 1_492, 1_500, 4_352, 9_000, 17_914, 32_000, 65_535];

/// What is left to be found is not worth a probe when it is less than this, or than this part of what
/// passes.
const LEAST_GAIN: u32 = 8;
const LEAST_SHARE: u32 = 64;

/// After a probe that was found lost by a timeout the next waits so many times as long (RFC 4821 §7.6.3).
const TIMEOUT_PENALTY: u64 = 5;

/// A raised size is judged whenever so many timeouts' time has passed (RFC 4821 §7.8), and is too much if
/// more than a tenth of what was sent meanwhile is lost.
const VERIFIED_AFTER: u64 = 4;
const LOSS_SHARE: u64 = 10;

/// What a search may range over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest packet that could be: what the first link takes and the peer does.
    pub(crate) limit: u32,
    /// What nearly every path takes.
    pub(crate) base: u32,
    /// What every path takes.
    pub(crate) floor: u32,
    /// Headers of a segment with data.
    pub(crate) headers: u32,
}

/// A probe that has left: a segment that is larger than what is known to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    left: SeqNum,
    right: SeqNum,
    size: u32,
    /// What a report says would pass in its place. It counts only if the probe is found lost.
    reported: Option<u32>,
    /// It is lost, and nothing else is so far. If nothing is until something beyond this number has arrived,
    /// which left after what the probe carried had left again, its size was the reason.
    missing_until: Option<SeqNum>,
}

packed!(Trial { left, right, size, reported, missing_until });

/// What has become of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has arrived: so much passes.
    Passed,
    /// It alone was lost: so much does not pass.
    Failed,
}

/// Bytes delivered and lost in the connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
}

packed!(Tally { delivered, lost });

/// A size that was raised (RFC 4821 §7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raised {
    /// What it was before, and is again if it is too much.
    before: u32,
    /// When it was raised, or judged last, and what had been lost by then.
    at: Instant,
    tally: Tally,
    /// It was judged, and found good.
    is_good: bool,
}

packed!(Raised { before, at, tally, is_good });

/// What is known of the path's width.
///
/// Invariant: `effective ≤ limit`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathMtu {
    /// The largest packet that is no probe (eff_pmtu).
    effective: u32,
    /// What the first link takes, and the peer: the first search_high.
    limit: u32,
    rule: PathSearch,
    /// Can the loss of a probe be told from any other?
    can_probe: bool,
    /// The end of the first full segment of the present size, and whether it is known to have arrived.
    first_full: Option<SeqNum>,
    proven: bool,
    /// The largest size before the present one that is known to have arrived, or that a report has
    /// brought it down to (maxsizeacked of RFC 5927 §7.2).
    passed: u32,
    /// Something is odd about the path, or may be. Most paths never need it.
    search: Option<Box<Search>>,
}

packed!(PathMtu { effective, limit, rule, can_probe, first_full, proven, passed, search });

/// A search, and what else is not certain of a path.
///
/// Invariant: `low ≤ effective ≤ high ≤ limit`.
#[derive(Clone, Debug, PartialEq)]
struct Search {
    /// What is known to pass (search_low); zero while nothing is.
    low: u32,
    /// What may pass at most (search_high).
    high: u32,
    /// From when on a probe may leave; never while nothing is searched for.
    next_probe: Instant,
    /// The search has ended; at that time it begins anew.
    complete: bool,
    /// The size of the probe that may leave now.
    ready: Option<u32>,
    trial: Option<Trial>,
    raised: Option<Raised>,
    held: Option<Held>,
    believed: Option<Believed>,
    /// Segments are smaller by a report, although larger ones had arrived before: a probe of that size
    /// asks whether they still do.
    contradicted: bool,
    /// Segments are smaller since the path let none through, and nothing is acknowledged yet: whether their
    /// size was the reason is not known.
    unconfirmed: bool,
    /// What segments were like before that. It is tried first: if it passes, it was an outage.
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
    believed,
    contradicted,
    unconfirmed,
    suspect
});

impl PathMtu {
    /// A path whose first link takes `limit`, and which is said to take `effective`.
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

    /// The handshake has told what the peer takes. What was believed until now was `estimated` if a search
    /// has found it that had not ended.
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
            // A router has spoken of the SYN, but the peer takes less than the path.
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

    /// eff_pmtu.
    pub(crate) const fn effective(&self) -> u32 {
        self.effective
    }

    /// Is more than that out of the question, for want of a link or a peer that would take it?
    pub(crate) const fn is_widest(&self) -> bool {
        self.effective == self.limit
    }

    /// Is it not known yet whether more would pass?
    pub(crate) fn is_estimated(&self) -> bool {
        let searches = |search: &Search| !search.complete && search.next_probe != Instant::NEVER;
        self.search.as_deref().is_some_and(searches)
    }

    /// Is there no doubt that packets have to be as small as they are? Otherwise they are smaller by a
    /// report, or after a full stop, and no evidence was seen yet that their size was the reason.
    pub(crate) fn is_confirmed(&self) -> bool {
        let is_doubtful = |search: &Search| {
            search.unconfirmed || search.contradicted || search.believed.is_some()
        };
        !self.search.as_deref().is_some_and(is_doubtful)
    }

    /// Does an answer to come tell something of the path?
    pub(crate) fn is_asking(&self) -> bool {
        self.search.as_deref().is_some_and(|search| {
            search.trial.is_some() || search.unconfirmed || search.believed.is_some()
        })
    }

    /// Is there anything that time or acknowledgements may change?
    pub(crate) const fn is_awake(&self) -> bool {
        self.search.is_some()
    }

    /// The size of the probe that may leave now, if one may.
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

    /// The search is over for now (§7.3).
    fn rest(&mut self, now: Instant) {
        self.search_from(now + RAISE_AFTER);
        let search = self.search();
        (search.complete, search.ready) = (true, None);
    }

    /// A burst has left, or an acknowledgement has come and let nothing go: may the next segment be a probe?
    /// True if this ends the search.
    pub(crate) fn watch(&mut self, now: Instant, una: SeqNum) -> bool {
        let (limit, effective, is_proven) = (self.limit, self.effective, self.is_proven(una));
        let Some(search) = self.search.as_deref_mut() else { return false };
        // What has arrived by chance tells as much as a probe (§7.1).
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

    /// The probe leaves.
    pub(crate) fn record_sent(&mut self, left: SeqNum, right: SeqNum) {
        let search = self.search();
        if let Some(size) = search.ready.take() {
            search.trial = Some(Trial { left, right, size, reported: None, missing_until: None });
        }
    }

    fn trial(&self) -> Option<&Trial> {
        self.search.as_deref()?.trial.as_ref()
    }

    /// Is `left` to `right` the probe, and not known to be lost?
    pub(crate) fn is_probe(&self, left: SeqNum, right: SeqNum) -> bool {
        self.trial().is_some_and(|trial| trial.missing_until.is_none() && trial.holds(left, right))
    }

    /// The probe was found lost when everything up to `nxt` had left.
    pub(crate) fn miss_probe(&mut self, nxt: SeqNum) {
        if let Some(trial) = &mut self.search().trial {
            trial.missing_until = Some(nxt);
        }
    }

    /// Something else was found lost: what becomes of the probe now says nothing, and it is tried again
    /// (§7.6.4).
    pub(crate) fn note_other_loss(&mut self) {
        if let Some(search) = &mut self.search {
            search.trial = None;
        }
    }

    /// The peer has received `left` to `right` twice. If that is the probe, it was only late.
    pub(crate) fn note_duplicate(&mut self, left: SeqNum, right: SeqNum) {
        if let Some(search) = &mut self.search
            && let Some(trial) = search.trial.as_mut().filter(|trial| trial.holds(left, right))
        {
            trial.missing_until = None;
        }
    }

    /// What an acknowledgement up to `una` says of the probe. What passed is used from now on (§7.6.1); after a
    /// failure the next probe waits for `pause`.
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
                // One that was raised and not judged since may be too much, too.
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

    /// The probe was lost for its size (§7.6.2). What a report says would have passed is tried next.
    fn fail(&mut self, trial: &Trial, now: Instant, next: Instant) {
        let effective = self.effective;
        let search = self.search();
        let was_contradicted = core::mem::take(&mut search.contradicted);
        search.high = trial.reported.unwrap_or(trial.size - 1).max(effective);
        search.trial = None;
        search.suspect = trial.reported.filter(|&size| is_worth_a_probe(effective, size));
        if was_contradicted {
            // The report was true: no larger packet leaves for ten minutes (RFC 1191 §6.3).
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
        (search.ready, search.held, search.believed) = (None, None, None);
    }

    /// Something was lost. If much was since the size was raised, or judged last, the path has parts of different
    /// width, and the size is taken back (§7.8): true. What is found good may be too much later, when other parts
    /// take their turns.
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

    /// The retransmission timer has expired with `una` as the first that is missing: true if that was the
    /// probe (§7.6.3).
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

    /// Nothing comes through any more, and nobody says why (§7.7). What is repeated has `data` bytes: true if
    /// it will have fewer, because smaller packets may pass.
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

    /// Something was acknowledged. If it is the first since segments are smaller, their size was the reason:
    /// true.
    pub(crate) fn confirm(&mut self, advanced: bool) -> bool {
        advanced && core::mem::take(&mut self.search().unconfirmed)
    }

    /// A full segment leaves, up to `end`.
    pub(crate) fn note_full(&mut self, end: SeqNum, una: SeqNum) {
        if !self.proven {
            self.proven = self.is_proven(una);
            self.first_full.get_or_insert(end);
        }
    }

    /// Has a segment of the present size arrived?
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
            believed: None,
            contradicted: false,
            unconfirmed: false,
            suspect: None,
        }
    }

    /// The next size to try: what is suspected of being too large; the common ones upwards, because a probe
    /// that passes costs nothing and one that fails a long wait; then what the first link takes, or halves of
    /// what is left below a size that has failed. None if that is not worth a probe (§7.3).
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

/// Would packets of up to `to` bytes, in place of `from`, be worth a probe?
fn is_worth_a_probe(from: u32, to: u32) -> bool {
    to.saturating_sub(from) >= LEAST_GAIN.max(from / LEAST_SHARE)
}

impl Trial {
    /// Is `left` to `right` a part of it?
    fn holds(&self, left: SeqNum, right: SeqNum) -> bool {
        !left.before(self.left) && !right.after(self.right)
    }
}

impl Bounds {
    fn base(&self) -> u32 {
        self.base.max(self.floor).min(self.limit)
    }

    /// What is `known` to pass, what nearly every path takes, and then half the data each time.
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
