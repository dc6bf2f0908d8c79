//! Path MTU probes (RFC 4821 §10.1), and the changes of the segment size that follow from their
//! results. `path_mtu.rs` contains the state of the search.
//!
//! A probe is a data segment that is larger than the segments in use. It has a range of its own in
//! the scoreboard, which distinguishes its loss from other losses. If the probe is lost, its data
//! is retransmitted in segments of the usual size.

use super::duplicates::DUPLICATE_THRESHOLD;
use super::loss::R1;
use super::path_mtu::{Bounds, Outcome, Tally};
use crate::Connection;
use crate::ecn::EcnSignals;
use crate::event::Events;
use crate::path::{IPV4_HEADER, SMALLEST_PEER_MSS};
use crate::receive::saturated;
use linerate_units::{Duration, Instant};
use linerate_wire::{SeqNum, TcpHeader};

/// The minimum MTU of an IPv6 link in bytes (RFC 8200 §5).
pub(super) const LEAST_IPV6: u32 = 1_280;

/// Whether the next segment with new data may be a path MTU probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probing {
    No,
    /// The segment is a probe, with this number of data bytes.
    Send(u32),
    /// The segment will be a probe when acknowledgements have made room for it. Until then, no
    /// other new data is sent. The data in flight limits this delay: its acknowledgements arrive
    /// within a round trip (RFC 4821 §7.4).
    Wait,
}

impl Connection {
    /// Starts the search for the path MTU. `peer_mss` limits the size of packets.
    pub(crate) fn begin_path_search(&mut self, peer_mss: u32, now: Instant) {
        let limit = peer_mss + self.fixed_headers();
        let (rule, can_probe) = (self.config.path_search, self.agreement.selective_acks);
        let bounds = self.bounds_of_search(limit);
        self.sender.path.begin(rule, &bounds, self.path.is_estimated, can_probe, now);
        self.sender.full = self.full_of_path();
    }

    fn bounds_of_search(&self, limit: u32) -> Bounds {
        let headers = self.fixed_headers() + self.constant_options();
        let least = if self.path.ip_header > IPV4_HEADER { LEAST_IPV6 } else { 0 };
        let of_data = |bytes: u32| bytes.saturating_add(headers).max(least);
        let (base, floor) = (of_data(self.config.path_base), of_data(self.config.path_floor));
        Bounds { limit, base, floor, headers }
    }

    /// Returns the length in bytes of the IP and TCP headers without options.
    pub(super) fn fixed_headers(&self) -> u32 {
        u32::from(self.path.ip_header) + saturated(TcpHeader::LENGTH)
    }

    fn full_of_path(&self) -> u32 {
        let segment = self.sender.path.effective().saturating_sub(self.fixed_headers());
        segment.max(SMALLEST_PEER_MSS) - self.constant_options()
    }

    /// Sets the segment size to the size that the path is assumed to carry. If segments become
    /// larger, the congestion window keeps its bytes. If they become smaller, it keeps its number
    /// of segments (RFC 4821 §4).
    pub(crate) fn resize_segments(&mut self) {
        let full = self.full_of_path();
        self.sender.full = full;
        self.sender.congestion.controller().window_mut().set_mss(full);
        self.events |= Events::PATH_MTU;
        self.output_due = true;
    }

    /// Decides whether the next segment may be a probe (RFC 4821 §7.4). It may not if data is
    /// missing or if the segment would carry further options, which would enlarge the packet. There
    /// must be enough data and window for the probe, and for the segments after it that reveal its
    /// loss.
    pub(crate) fn path_probe(&self) -> Probing {
        let Some(size) = self.sender.path.ready() else { return Probing::No };
        let mss = self.full_segment();
        let length = size - self.sender.path.effective() + mss;
        let needed = length + DUPLICATE_THRESHOLD * mss;
        let window = self.sender.congestion.window().cwnd().min(self.snd.wnd);
        let can_compact = self.is_outside_recovery()
            && self.sender.urgent.is_none()
            && !self.has_records()
            && self.sender.probes == 0
            && !self.receiver.has_blocks()
            && !self.user_timeouts.due
            && !self.ecn.is_option_due(EcnSignals::OPTION_WITH_DATA);
        if !can_compact || window < needed {
            return Probing::No;
        }
        let in_flight = self.sender.scoreboard.in_flight();
        let unsent = self.sender.buffer.end() - self.snd.nxt.earlier(self.sender.buffer.end());
        let has_data = unsent >= needed;
        let has_room = in_flight + length <= window && self.snd.wnd - in_flight >= needed;
        if has_data && has_room {
            Probing::Send(length)
        } else if in_flight < 2 * mss || !(has_data || self.is_more_to_come(needed, mss)) {
            Probing::No
        } else {
            Probing::Wait
        }
    }

    /// Whether the application may write more data when acknowledgements make room. It is expected
    /// to if the buffer has no room for `needed` bytes now, but is large enough for them. If the
    /// buffer has such room, the application seems to have no more data.
    fn is_more_to_come(&self, needed: u32, mss: u32) -> bool {
        let (free, taken) = (self.sender.buffer.free(), self.sender.buffer.len());
        free < needed as usize && free + taken >= (needed + 2 * mss) as usize
    }

    /// Whether output waits until acknowledgements have made room for a probe.
    pub(crate) fn waits_for_path_probe(&self) -> bool {
        self.sender.path.ready().is_some()
            && self.state.sends_data()
            && self.path_probe() == Probing::Wait
    }

    /// Records that a probe was sent. Its data is the range from `left` to `right`.
    pub(crate) fn remember_path_probe(&mut self, left: SeqNum, right: SeqNum) {
        self.statistics.path_probes += 1;
        self.sender.scoreboard.end_burst();
        self.sender.path.record_sent(left, right);
    }

    /// Decides whether the next segment may be a probe, and reports the end of a search. Called
    /// when output ends.
    pub(crate) fn watch_path(&mut self, now: Instant) {
        let una = self.snd.una;
        self.look_for_arrival_of_reported(None);
        if self.sender.path.watch(now, una) && !self.sender.path.is_widest() {
            // The search has ended. The host learns the result by this event, and uses it for later
            // connections to this peer.
            self.events |= Events::PATH_MTU;
        }
    }

    /// Handles an acknowledgement, which may change the state of the path MTU search. `before` is
    /// SND.UNA from before the acknowledgement, and `echo` is the timestamp that the
    /// acknowledgement echoes.
    pub(crate) fn judge_path(&mut self, now: Instant, before: SeqNum, echo: Option<u32>) {
        if self.sender.path.confirm(self.snd.una.after(before)) {
            self.events |= Events::PATH_MTU;
        }
        self.judge_applied_report(now, before, echo);
        let was_confirmed = self.sender.path.is_confirmed();
        let pause = self.pause_after_failure();
        match self.sender.path.judge_probe(self.snd.una, now, pause, self.tally()) {
            Some(Outcome::Passed) => {
                self.statistics.path_probes_passed += 1;
                self.resize_segments();
            }
            Some(Outcome::Failed) => {
                self.statistics.path_probes_failed += 1;
                self.tell_of_confirmation(was_confirmed);
            }
            None => {}
        }
    }

    /// Reports a change to the host if a Packet Too Big report was just confirmed. The host then
    /// uses the reduced size for later connections to this peer.
    fn tell_of_confirmation(&mut self, was_confirmed: bool) {
        if !was_confirmed && self.sender.path.is_confirmed() {
            self.events |= Events::PATH_MTU;
        }
    }

    const fn tally(&self) -> Tally {
        Tally { delivered: self.sender.account.delivered(), lost: self.sender.account.lost() }
    }

    /// Returns the pause after a failed probe: as many round trips as the congestion window has
    /// segments. Congestion control does not respond to the loss of a probe. The losses of probes
    /// must therefore be rarer than losses by congestion (RFC 4821 §7.6.2).
    fn pause_after_failure(&self) -> Duration {
        let segments = self.sender.congestion.window().cwnd().div_ceil(self.full_segment());
        self.sender.rtt.smoothed().unwrap_or_else(|| self.sender.rtt.timeout(&self.config.rto))
            * u64::from(segments)
    }

    /// Handles the loss of other data than a probe. Abandons a probe in flight, and verifies a
    /// packet size that was raised recently, since that size may have caused the loss.
    pub(crate) fn doubt_path(&mut self, now: Instant) {
        self.sender.path.note_other_loss();
        if self.sender.path.verify(now, self.sender.rtt.timeout(&self.config.rto), self.tally()) {
            self.statistics.path_sizes_withdrawn += 1;
            self.resize_segments();
        }
    }

    /// Decides at a retransmission timeout, before anything is retransmitted, whether packets are
    /// too large for the path. They are assumed to be if a segment has timed out repeatedly (a
    /// full-stop timeout, RFC 4821 §7.7), unless an ICMP error has reported another cause.
    ///
    /// If the peer has SACKed as many contiguous bytes after this segment as the segment contains,
    /// large packets probably pass. In this case, twice as many timeouts are required. They may
    /// still not pass, if the SACKed data was sent in small segments.
    pub(crate) fn judge_path_at_timeout(&mut self, now: Instant) {
        let (una, pause) = (self.snd.una, self.pause_after_failure());
        let was_confirmed = self.sender.path.is_confirmed();
        if self.sender.path.on_timeout(una, now, pause) {
            self.statistics.path_probes_failed += 1;
            self.tell_of_confirmation(was_confirmed);
        }
        // A raised packet size is verified before the losses of this timeout are counted. They may
        // come from an outage, so only the next verification includes them.
        self.doubt_path(now);
        let repeated = (self.snd.max - una).min(self.full_segment());
        let full_stop_after = if self.sender.scoreboard.has_sacked(repeated) { 2 * R1 } else { R1 };
        let is_full_stop = self.sender.expiries >= full_stop_after;
        if !is_full_stop || self.sender.unreachable {
            return;
        }
        let bounds = self.bounds_of_search(u32::MAX);
        if self.sender.path.on_full_stop(repeated, &bounds, now) {
            self.statistics.black_holes += 1;
            // The connection ends if the peer does not answer for too long. Segments are smaller
            // from now on and may pass, so this time starts anew.
            self.sender.silent_since = now;
            self.resize_segments();
        }
    }
}
