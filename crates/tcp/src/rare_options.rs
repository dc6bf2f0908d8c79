//! Options that few applications set. They are stored in a separate allocation, so that a
//! connection without them is small.
//!
//! Corking (`TCP_CORK`, `MSG_MORE`) and record boundaries (`MSG_EOR`) decide where segments end.
//! The low-water mark (`TCP_NOTSENT_LOWAT`) limits unsent data. A connection with any of these does
//! not use output prediction. The other options in this file, such as the maximum pacing rate,
//! permit output prediction.

use crate::compact::pack::packed;
use crate::event::Events;
use crate::send::Writes;
use crate::{Connection, State};
use alloc::collections::VecDeque;
use linerate_units::{Duration, Rate};
use linerate_wire::SeqNum;

/// The maximum number of record boundaries stored per connection. If the application sets more, the
/// oldest boundaries are dropped, so that a segment may contain data from both sides of them.
const MOST_RECORDS: usize = 1_024;

/// The options of a connection whose application has set at least one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RareOptions {
    /// Whether small segments at the end of the written data are held back (`TCP_CORK`).
    cork: bool,
    /// The values of SND.UNA and of the end of the written data at the most recent call of
    /// [`Connection::expect_more`]. A small segment is held back until one of the two changes.
    more: Option<(SeqNum, SeqNum)>,
    /// The end of the written data when [`Connection::flush_cork`] most recently released data.
    /// Until the application writes more, nothing is held back.
    flushed: Option<SeqNum>,
    /// The sequence numbers at which records end, in order.
    ///
    /// Invariant: there are at most [`MOST_RECORDS`] of them. When a segment is chosen, all of them
    /// are after SND.UNA.
    records: VecDeque<SeqNum>,
    records_joined: u64,
    low_water: Option<u32>,
    /// The maximum pacing rate that the application has set, in place of
    /// [`crate::Config::max_pacing_rate`]. `Some(None)` means no limit.
    max_pacing_rate: Option<Option<Rate>>,
    /// The linger time that the application has set, in place of [`crate::Config::linger`].
    /// `Some(None)` means no limit.
    linger: Option<Option<Duration>>,
    orphan_timeout: Option<Duration>,
    handshake_timeout: Option<Duration>,
}

packed!(RareOptions {
    cork, more, flushed, records_joined, low_water, max_pacing_rate, linger, orphan_timeout,
    handshake_timeout
} known {
    records: |_config| VecDeque::new()
});

impl RareOptions {
    /// Whether these options influence when segments are sent or where they end.
    pub(crate) fn shape_output(&self) -> bool {
        self.cork || self.more.is_some() || !self.records.is_empty() || self.low_water.is_some()
    }
}

/// # Application calls: options
impl Connection {
    /// Holds back small segments (`TCP_CORK`), until the option is cleared, the application closes,
    /// or nothing has been in flight for one RTO (with [`crate::Config::modern`], at least 200 ms).
    /// It holds back small segments even if [`Connection::set_no_delay`] is set. A call of that
    /// method only releases the data that is held back at the time of the call.
    pub fn set_cork(&mut self, cork: bool) {
        if cork || self.rare.is_some() {
            self.change_rare(|rare| (rare.cork, rare.flushed) = (cork, None));
        }
    }

    /// Whether small segments are held back by [`Connection::set_cork`].
    #[must_use]
    pub fn cork(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.cork)
    }

    /// Announces that another write will follow the most recent one soon (`MSG_MORE`). Until that
    /// write, a small segment is held back, and the end of the data gets no PSH. An acknowledgement
    /// of new data also ends the wait, as do the conditions that end it for
    /// [`Connection::set_cork`].
    pub fn expect_more(&mut self) {
        let at = (self.snd.una, self.sender.buffer.end());
        self.change_rare(|rare| (rare.more, rare.flushed) = (Some(at), None));
    }

    /// Sets a record boundary at the end of the data written so far (`MSG_EOR`). No segment, even
    /// if retransmitted, contains data from both sides of the boundary. At most 1,024
    /// unacknowledged boundaries are kept; older ones are dropped, and counted by
    /// [`Connection::records_joined`].
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

    /// Returns the number of record boundaries that were dropped because there were too many.
    #[must_use]
    pub fn records_joined(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.records_joined)
    }

    /// Limits the amount of unsent data (`TCP_NOTSENT_LOWAT`). The application can write only while
    /// fewer than `bytes` are unsent, so that it can decide what to send next shortly before it is
    /// sent. Data that the congestion window and the peer's window allow to be sent at once does
    /// not count as unsent. With `None`, the default, only the size of the send buffer limits
    /// writes.
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

    /// Returns the limit that [`Connection::set_unsent_low_water`] has set, in bytes.
    #[must_use]
    pub fn unsent_low_water(&self) -> Option<u32> {
        self.rare.as_ref()?.low_water
    }

    /// Limits the pacing rate (`SO_MAX_PACING_RATE`) from now on. Only data counts, without
    /// headers. A limit below two segments per RTO is exceeded: a burst has at least two segments,
    /// and waits for at most one RTO. `None` means no limit.
    pub fn set_max_pacing_rate(&mut self, rate: Option<Rate>) {
        if rate != self.max_pacing_rate() {
            self.change_rare(|rare| rare.max_pacing_rate = Some(rate));
            self.sender.pacer.end_burst();
        }
    }

    /// Returns the maximum pacing rate, if there is one.
    #[must_use]
    pub fn max_pacing_rate(&self) -> Option<Rate> {
        let own = self.rare.as_ref().and_then(|rare| rare.max_pacing_rate);
        own.unwrap_or(self.config.max_pacing_rate)
    }

    /// Sets the time for which unsent data is still delivered after [`Connection::close`]
    /// (`SO_LINGER`). `None` means no limit, and zero resets the connection at once.
    pub fn set_linger(&mut self, linger: Option<Duration>) {
        if linger != self.linger() {
            self.change_rare(|rare| rare.linger = Some(linger));
        }
    }

    /// Returns the time for which unsent data is still delivered after [`Connection::close`].
    #[must_use]
    pub fn linger(&self) -> Option<Duration> {
        let own = self.rare.as_ref().and_then(|rare| rare.linger);
        own.unwrap_or(self.config.linger)
    }

    /// Sets the time for which a connection that the application has closed may stay in FIN-WAIT-2
    /// (`TCP_LINGER2`). `None` selects [`crate::Config::orphan_timeout`].
    pub fn set_orphan_timeout(&mut self, timeout: Option<Duration>) {
        if timeout.is_some() || self.rare.is_some() {
            self.change_rare(|rare| rare.orphan_timeout = timeout);
        }
    }

    /// Returns the time for which a connection that the application has closed may stay in
    /// FIN-WAIT-2. It is also the time for which such a connection probes a closed window.
    #[must_use]
    pub fn orphan_timeout(&self) -> Duration {
        let own = self.rare.as_ref().and_then(|rare| rare.orphan_timeout);
        own.unwrap_or(self.config.orphan_timeout)
    }

    /// Sets the maximum duration of the handshake, counted from the first retransmission of the
    /// SYN. `TCP_SYNCNT` of Linux limits the number of retransmissions, and not the time. `None`
    /// selects [`crate::Config::give_up_syn_after`].
    pub fn set_handshake_timeout(&mut self, timeout: Option<Duration>) {
        if timeout.is_some() || self.rare.is_some() {
            self.change_rare(|rare| rare.handshake_timeout = timeout);
        }
    }

    /// Returns the maximum duration of the handshake, counted from the first retransmission of the
    /// SYN.
    #[must_use]
    pub fn handshake_timeout(&self) -> Duration {
        let own = self.rare.as_ref().and_then(|rare| rare.handshake_timeout);
        own.unwrap_or(self.config.give_up_syn_after)
    }

    /// Changes the options by `change`. It ends a burst in progress, so that the next segment is
    /// chosen by a function that considers the options.
    fn change_rare(&mut self, change: impl FnOnce(&mut RareOptions)) {
        self.slow(|connection| {
            connection.output_due |= connection.state != State::Closed;
            change(connection.rare.get_or_insert_default());
        });
    }

    /// Releases the data that corking holds back at present. After the next write, corking holds
    /// back small segments again.
    pub(crate) fn flush_cork(&mut self) {
        let (end, is_corked) = (self.sender.buffer.end(), self.is_corked());
        if let Some(rare) = self.rare.as_mut().filter(|_| is_corked) {
            rare.flushed = Some(end);
        }
    }

    /// Ends the wait that [`Connection::expect_more`] has begun. Called at a timeout, when the
    /// announced data was not written in time.
    pub(crate) fn cancel_more(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.more = None;
        }
    }

    /// Removes record boundaries that are acknowledged, and announcements that a later write has
    /// ended. If these old sequence numbers were kept until half the sequence space has passed,
    /// comparisons would take them for numbers after SND.UNA.
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

    /// Whether [`Connection::set_cork`] or [`Connection::expect_more`] holds back a small segment
    /// at the end of the written data.
    pub(crate) fn is_corked(&self) -> bool {
        let at = (self.snd.una, self.sender.buffer.end());
        self.rare
            .as_ref()
            .is_some_and(|rare| (rare.cork || rare.more == Some(at)) && rare.flushed != Some(at.1))
    }

    /// Whether [`Connection::expect_more`] has announced more data after `end`.
    fn is_more_expected(&self, end: SeqNum) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.more.is_some_and(|(_, written)| written == end))
    }

    /// Whether a segment that ends at `end` needs PSH: it ends a record, or it ends the written
    /// data and [`Connection::expect_more`] has announced no more.
    pub(crate) fn is_pushed(&self, end: SeqNum) -> bool {
        let is_last = end == self.sender.buffer.end();
        (is_last && !self.is_more_expected(end)) || self.ends_record(end)
    }

    /// Whether a record ends at `end`.
    pub(crate) fn ends_record(&self, end: SeqNum) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.first_boundary_after(end - 1) == Some(end))
    }

    /// Whether any record boundary is stored.
    pub(crate) fn has_records(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.records.is_empty())
    }

    /// Returns the number of bytes from `seq` to the end of its record, but at most `room`.
    pub(crate) fn room_in_record(&self, seq: SeqNum, room: u32) -> u32 {
        let boundary = self.rare.as_ref().and_then(|rare| rare.first_boundary_after(seq));
        boundary.map_or(room, |boundary| room.min(boundary - seq))
    }

    /// Returns the sequence number of the highest record boundary before `right`, but at least
    /// `left`.
    pub(crate) fn start_of_last_record(&self, left: SeqNum, right: SeqNum) -> SeqNum {
        let before = self.rare.as_ref().and_then(|rare| rare.last_boundary_before(right));
        before.map_or(left, |boundary| boundary.later(left))
    }

    /// Returns the number of bytes that may be written until unsent data reaches `low`. Data that
    /// the windows allow to be sent at once does not count as unsent.
    pub(crate) fn room_below(&self, low: u32) -> usize {
        let end = self.sender.buffer.end();
        let unsent = end - self.snd.nxt.earlier(end);
        let leaves = if self.may_send() { self.usable_window() } else { 0 };
        low.saturating_add(leaves).saturating_sub(unsent) as usize
    }

    /// Reports [`crate::Event::Writable`] if the application waits for room and the low-water mark
    /// permits a write. Called when output has ended.
    #[cold]
    pub(crate) fn report_low_water(&mut self) {
        let Some(low) = self.unsent_low_water() else { return };
        if self.sender.room_awaited && self.room_below(low) > 0 {
            self.events |= Events::WRITABLE;
        }
    }
}

impl RareOptions {
    /// Checks the invariants of the record boundaries.
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
