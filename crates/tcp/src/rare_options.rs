//! Options that few applications set, out of line so that connections without them are no larger.
//!
//! Corking (`TCP_CORK`, `MSG_MORE`) and record boundaries (`MSG_EOR`) decide where segments end, the
//! low-water mark (`TCP_NOTSENT_LOWAT`) how much unsent data a write may leave. A connection with one of
//! the three predicts no output: each segment is chosen.

use crate::event::Events;
use crate::rest::pack::packed;
use crate::send::Writes;
use crate::{Connection, State};
use alloc::collections::VecDeque;
use linerate_units::Duration;
use linerate_wire::SeqNum;

/// Record boundaries that one connection remembers. Records in flight beyond that may be joined.
const MOST_RECORDS: usize = 1_024;

/// The options, of a connection that has set at least one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RareOptions {
    /// Segments that are not full are held back.
    cork: bool,
    /// SND.UNA, and the end of what was written, when the application last said that more follows.
    more: Option<(SeqNum, SeqNum)>,
    /// The end of what was written when everything held back was last let go.
    flushed: Option<SeqNum>,
    /// Ends of records, in order.
    ///
    /// Invariant: at most [`MOST_RECORDS`]; before anything is chosen to leave, all are after SND.UNA.
    records: VecDeque<SeqNum>,
    records_joined: u64,
    low_water: Option<u32>,
    /// In place of that of the configuration.
    linger: Option<Option<Duration>>,
    orphan_patience: Option<Duration>,
    handshake_patience: Option<Duration>,
}

packed!(RareOptions {
    cork, more, flushed, records_joined, low_water, linger, orphan_patience, handshake_patience
} known {
    records: |_config| VecDeque::new()
});

impl RareOptions {
    /// Do segments leave at other moments, or end elsewhere, than without the options?
    pub(crate) fn shape_output(&self) -> bool {
        self.cork || self.more.is_some() || !self.records.is_empty() || self.low_water.is_some()
    }
}

impl Connection {
    /// Holds back segments that are not full (`TCP_CORK`) until this is switched off, the application
    /// closes, or nothing has been in flight for a retransmission timeout (at least 200 ms by
    /// [`crate::Config::modern`]). It goes before [`Connection::set_no_delay`], which lets go once what is
    /// held back when it is called.
    pub fn set_cork(&mut self, cork: bool) {
        if cork || self.rare.is_some() {
            self.change_rare(|rare| (rare.cork, rare.flushed) = (cork, None));
        }
    }

    /// Are segments that are not full held back?
    #[must_use]
    pub fn cork(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.cork)
    }

    /// Says that more follows what was written last (`MSG_MORE`): a segment that is not full waits for it.
    /// The wait ends with the next write that does not say so, with an acknowledgement of new data, and as
    /// that of [`Connection::set_cork`] does. PSH is not set on what was written so.
    pub fn expect_more(&mut self) {
        let at = (self.snd.una, self.sender.buffer.end());
        self.change_rare(|rare| (rare.more, rare.flushed) = (Some(at), None));
    }

    /// Ends a record with what was written last (`MSG_EOR`): no segment has data from both sides of the
    /// boundary, also when it leaves again. Of more than 1,024 boundaries that are not acknowledged the
    /// oldest are forgotten; [`Connection::records_joined`] counts them.
    pub fn end_record(&mut self) {
        self.tidy_rare_options();
        let (una, end) = (self.snd.una, self.sender.buffer.end());
        self.change_rare(|rare| {
            if !end.after(una) || rare.records.back() == Some(&end) {
                return;
            }
            if rare.records.len() == MOST_RECORDS {
                rare.records.pop_front();
                rare.records_joined += 1;
            }
            rare.records.push_back(end);
        });
    }

    /// Record boundaries that were forgotten because there were too many.
    #[must_use]
    pub fn records_joined(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.records_joined)
    }

    /// Lets the application write only while fewer than `bytes` of what it has written are unsent
    /// (`TCP_NOTSENT_LOWAT`), so that it decides late what to send next. What the windows would let go at
    /// once does not count. `None`, the rule, leaves it to the size of the send buffer.
    pub fn set_unsent_low_water(&mut self, bytes: Option<u32>) {
        if bytes.is_none() && self.rare.is_none() {
            return;
        }
        self.change_rare(|rare| rare.low_water = bytes);
        if !self.sender.fin() {
            self.sender.writes = if bytes.is_some() { Writes::Limited } else { Writes::Taken };
        }
        self.events |= Events::WRITABLE;
    }

    /// The most that may be unsent for a write to be taken, if that was set.
    #[must_use]
    pub fn unsent_low_water(&self) -> Option<u32> {
        self.rare.as_ref()?.low_water
    }

    /// Says how long unsent data is cared for after [`Connection::close`] (`SO_LINGER`): `None` without limit, zero
    /// resets at once.
    pub fn set_linger(&mut self, linger: Option<Duration>) {
        if linger != self.linger() {
            self.change_rare(|rare| rare.linger = Some(linger));
        }
    }

    /// How long unsent data is cared for after [`Connection::close`].
    #[must_use]
    pub fn linger(&self) -> Option<Duration> {
        let own = self.rare.as_ref().and_then(|rare| rare.linger);
        own.unwrap_or(self.config.linger)
    }

    /// Says how long the connection waits in FIN-WAIT-2 once no application holds it (`TCP_LINGER2`);
    /// `None` for [`crate::Config::orphan_patience`].
    pub fn set_orphan_patience(&mut self, patience: Option<Duration>) {
        if patience.is_some() || self.rare.is_some() {
            self.change_rare(|rare| rare.orphan_patience = patience);
        }
    }

    /// How long the connection waits in FIN-WAIT-2 once no application holds it, and how long one that no
    /// application holds probes a closed window.
    #[must_use]
    pub fn orphan_patience(&self) -> Duration {
        let own = self.rare.as_ref().and_then(|rare| rare.orphan_patience);
        own.unwrap_or(self.config.orphan_patience)
    }

    /// Says how long the handshake may take (`TCP_SYNCNT` counts in retransmissions), counted from the first
    /// time that the SYN is sent again; `None` for [`crate::Config::give_up_syn_after`].
    pub fn set_handshake_patience(&mut self, patience: Option<Duration>) {
        if patience.is_some() || self.rare.is_some() {
            self.change_rare(|rare| rare.handshake_patience = patience);
        }
    }

    /// How long the handshake may take.
    #[must_use]
    pub fn handshake_patience(&self) -> Duration {
        let own = self.rare.as_ref().and_then(|rare| rare.handshake_patience);
        own.unwrap_or(self.config.give_up_syn_after)
    }

    /// Changes the options. The next segment is chosen anew.
    fn change_rare(&mut self, change: impl FnOnce(&mut RareOptions)) {
        self.slow(|connection| {
            connection.output_due |= connection.state != State::Closed;
            change(connection.rare.get_or_insert_default());
        });
    }

    /// Lets go what corking holds back now, but not what is written later.
    pub(crate) fn flush_cork(&mut self) {
        let (end, is_corked) = (self.sender.buffer.end(), self.is_corked());
        if let Some(rare) = self.rare.as_mut().filter(|_| is_corked) {
            rare.flushed = Some(end);
        }
    }

    /// The application has waited for long enough with what it announced.
    pub(crate) fn forget_more(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.more = None;
        }
    }

    /// Forgets what the application has said of data that is acknowledged, or that it has added to since. Old
    /// sequence numbers would seem to lie ahead after half the circle.
    #[cold]
    pub(crate) fn tidy_rare_options(&mut self) {
        let (una, end) = (self.snd.una, self.sender.buffer.end());
        let Some(rare) = &mut self.rare else { return };
        while rare.records.front().is_some_and(|boundary| !boundary.after(una)) {
            rare.records.pop_front();
        }
        rare.more = rare.more.filter(|&(_, written)| written == end && end != una);
        rare.flushed = rare.flushed.filter(|&flushed| flushed == end && end != una);
    }

    /// Is a segment at the end of what was written held back, although it would leave otherwise?
    pub(crate) fn is_corked(&self) -> bool {
        let at = (self.snd.una, self.sender.buffer.end());
        self.rare
            .as_ref()
            .is_some_and(|rare| (rare.cork || rare.more == Some(at)) && rare.flushed != Some(at.1))
    }

    /// Has the application said that more follows what was written up to `end`?
    fn is_more_expected(&self, end: SeqNum) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.more.is_some_and(|(_, written)| written == end))
    }

    /// Does a record, or what the application wants to be pushed, end at `end`?
    pub(crate) fn is_pushed(&self, end: SeqNum) -> bool {
        let is_last = end == self.sender.buffer.end();
        (is_last && !self.is_more_expected(end)) || self.ends_record(end)
    }

    /// Does a record end at `end`?
    pub(crate) fn ends_record(&self, end: SeqNum) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.first_boundary_after(end - 1) == Some(end))
    }

    /// Is any record boundary remembered?
    pub(crate) fn has_records(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.records.is_empty())
    }

    /// Bytes of `room` from `seq` on that are in one record.
    pub(crate) fn room_in_record(&self, seq: SeqNum, room: u32) -> u32 {
        let boundary = self.rare.as_ref().and_then(|rare| rare.first_boundary_after(seq));
        boundary.map_or(room, |boundary| room.min(boundary - seq))
    }

    /// Where the last record before `right` begins, if not before `left`.
    pub(crate) fn start_of_last_record(&self, left: SeqNum, right: SeqNum) -> SeqNum {
        let before = self.rare.as_ref().and_then(|rare| rare.last_boundary_before(right));
        before.map_or(left, |boundary| boundary.later(left))
    }

    /// Bytes that may be written below the low-water mark `low`.
    pub(crate) fn room_below(&self, low: u32) -> usize {
        let end = self.sender.buffer.end();
        let unsent = end - self.snd.nxt.earlier(end);
        let leaves = if self.may_send() { self.usable_window() } else { 0 };
        low.saturating_add(leaves).saturating_sub(unsent) as usize
    }

    /// Nothing more can leave for now: a writer that found too little room below the low-water mark may
    /// find some now.
    #[cold]
    pub(crate) fn tell_of_low_water(&mut self) {
        let Some(low) = self.unsent_low_water() else { return };
        if self.sender.room_awaited && self.room_below(low) > 0 {
            self.events |= Events::WRITABLE;
        }
    }
}

impl RareOptions {
    /// Checks the invariants.
    pub(crate) fn check(&self) {
        assert!(self.records.len() <= MOST_RECORDS, "record boundaries are limited");
        let is_in_order = self
            .records
            .iter()
            .zip(self.records.iter().skip(1))
            .all(|(one, next)| one.before(*next));
        assert!(is_in_order, "record boundaries are in order");
    }

    fn first_boundary_after(&self, seq: SeqNum) -> Option<SeqNum> {
        let at = self.records.partition_point(|boundary| !boundary.after(seq));
        self.records.get(at).copied()
    }

    fn last_boundary_before(&self, seq: SeqNum) -> Option<SeqNum> {
        let count = self.records.partition_point(|boundary| boundary.before(seq));
        self.records.get(count.checked_sub(1)?).copied()
    }
}
