//! What a connection does about routers' reports that a packet was too large (RFC 1191, RFC 5927 §7.2).
//! Whether they are believed is decided in `path_mtu/report.rs`.

use super::delivery::Delivery;
use super::loss::Phase;
use super::path_mtu::{Belief, Finding};
use super::path_probe::LEAST_IPV6;
use super::scoreboard::{Fate, Verdict};
use crate::Connection;
use crate::event::Events;
use crate::path::IPV4_HEADER;
use crate::receive::saturated;
use linerate_units::Instant;
use linerate_wire::{SeqNum, TcpOptions};

/// The least path MTU that is believed of a report over IPv4: every host can reassemble as much.
const LEAST_IPV4: u32 = 576;

/// Counts a report. Four counters of 32 bits keep half-open connections within their memory.
fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

impl Connection {
    /// A router says that the packet that began with `quoted` was too large, and that `mtu_payload` bytes
    /// behind the IP header would have passed. Forged reports can make segments no smaller than every
    /// path takes.
    pub(crate) fn judge_size_report(&mut self, now: Instant, quoted: SeqNum, mtu_payload: usize) {
        self.look_for_arrival_of_reported(None);
        let least = if self.path.ip_header > IPV4_HEADER { LEAST_IPV6 } else { LEAST_IPV4 };
        let size = saturated(mtu_payload.saturating_add(self.path.ip_header.into())).max(least);
        let (una, sent) = (self.snd.una, self.largest_packet_at(quoted));
        match self.sender.path.judge_report(quoted, sent, size, una) {
            Belief::None => count(&mut self.statistics.reports_ignored),
            Belief::Now => {
                count(&mut self.statistics.reports_applied);
                let range = self.sender.scoreboard.stretch_at(quoted);
                let left = range.map_or(now, |range| range.send_record.sent);
                let stamps = (self.timestamps.clock(left), self.timestamps.clock(now));
                self.sender.path.believe((quoted, size), una, stamps, now);
                self.send_again_in_smaller_segments();
            }
            Belief::Later => self.hold_report(quoted, size),
            Belief::OfProbe => {
                count(&mut self.statistics.reports_held);
                self.sender.path.hold_of_probe(size);
            }
        }
    }

    /// The report waits, unless something that left after the segment that it quotes has arrived already, and
    /// was larger than it says would pass.
    fn hold_report(&mut self, quoted: SeqNum, size: u32) {
        let range = self.sender.scoreboard.stretch_at(quoted);
        let order = range.map_or(u64::MAX, |range| range.send_record.order);
        let end = quoted + self.full_segment();
        if self.sender.rack.has_arrived_after(order, end) && self.sender.scoreboard.has_sacked(size)
        {
            count(&mut self.statistics.reports_disproved);
            return;
        }
        count(&mut self.statistics.reports_held);
        self.sender.path.hold(quoted, size, order, end);
    }

    /// Bytes of the packet that began with `quoted`, at most, as far as what left with it tells.
    fn largest_packet_at(&self, quoted: SeqNum) -> u32 {
        let range = self.sender.scoreboard.stretch_at(quoted);
        let end = range.map_or(self.snd.max, |range| range.right);
        (end - quoted) + self.fixed_headers() + saturated(TcpOptions::MAX_LENGTH)
    }

    /// Bytes by which full packets are larger than a report that waits says would pass.
    pub(crate) fn excess_by_report(&self) -> u32 {
        let path = &self.sender.path;
        path.held_size().map_or(0, |size| path.effective().saturating_sub(size))
    }

    /// Has the segment with the number that a waiting report quotes this fate?
    pub(super) fn is_reported(&self, fate: Fate) -> bool {
        let Some(quoted) = self.sender.path.held_quote() else { return false };
        self.sender.scoreboard.stretch_at(quoted).is_some_and(|range| range.fate == fate)
    }

    /// Discards the report that waits if what it quotes has arrived, or something larger that left later:
    /// then it was false (RFC 5927 §7.2). `delivery` is what has just arrived.
    pub(crate) fn look_for_arrival_of_reported(&mut self, delivery: Option<&Delivery>) {
        let (newest, bytes) =
            delivery.map_or((None, 0), |delivery| (delivery.newest.as_ref(), delivery.bytes));
        if self.sender.path.disprove(self.snd.una, newest, bytes) {
            count(&mut self.statistics.reports_disproved);
        } else if self.is_reported(Fate::Sacked) {
            count(&mut self.statistics.reports_disproved);
            self.sender.path.discard_report();
        }
    }

    /// The retransmission timer has expired: a report that quotes the oldest segment is true, as far as is
    /// known. Returns whether there was one; then all that was sent goes again in segments that fit.
    pub(super) fn apply_report_of_oldest(&mut self, now: Instant) -> bool {
        self.sender.path.held_quote() == Some(self.snd.una) && self.apply_held_report(now)
    }

    /// The segment that a waiting report quotes was found lost.
    pub(super) fn apply_held_report(&mut self, now: Instant) -> bool {
        let is_applied = self.sender.path.apply_held(self.snd.una, now);
        if is_applied {
            count(&mut self.statistics.reports_applied);
            self.send_again_in_smaller_segments();
        }
        is_applied
    }

    /// What is in flight was too large and is lost: it is sent again, cut anew. No congestion caused this,
    /// so the window stays (RFC 1191 §6.5), in segments (RFC 5681 §3.1).
    fn send_again_in_smaller_segments(&mut self) {
        self.resize_segments();
        if self.state.sends_data() {
            if self.agreement.selective_acks {
                self.sender.scoreboard.mark_lost(|_| Verdict::Lost);
            } else {
                self.snd.nxt = self.snd.una;
            }
        }
    }

    /// An acknowledgement has moved SND.UNA on from `from`, and echoes `echo`: does it show whether a
    /// report was true that was believed at once?
    pub(super) fn judge_believed_report(&mut self, now: Instant, from: SeqNum, echo: Option<u32>) {
        match self.sender.path.judge_believed((from, self.snd.una), echo, now) {
            None | Some(Finding::Open) => {}
            Some(Finding::Confirmed) => self.events |= Events::PATH_MTU,
            Some(Finding::Disproved) => {
                count(&mut self.statistics.reports_disproved);
                if self.agreement.selective_acks && self.sender.loss.phase == Phase::Open {
                    // Nothing else was found lost, and what was taken for lost may still arrive.
                    self.sender.scoreboard.forgive();
                }
                self.resize_segments();
            }
        }
    }
}
