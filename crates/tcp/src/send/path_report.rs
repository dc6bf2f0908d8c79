//! The handling of Packet Too Big reports from routers (RFC 1191, RFC 5927 §7.2).
//! `path_mtu/report.rs` decides whether a report is applied.

use super::delivery::Delivery;
use super::loss::Phase;
use super::path_mtu::{Finding, ReportVerdict};
use super::path_probe::LEAST_IPV6;
use super::scoreboard::{Fate, Verdict};
use crate::Connection;
use crate::event::Events;
use crate::path::IPV4_HEADER;
use crate::receive::saturated;
use linerate_units::Instant;
use linerate_wire::{SeqNum, TcpOptions};

/// The smallest path MTU that a report may set for IPv4, in bytes: every host can reassemble
/// packets of this size.
const LEAST_IPV4: u32 = 576;

/// Increments one of the four counters of reports. To keep half-open connections small, the
/// counters have only 32 bits, so they saturate.
fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

impl Connection {
    /// Handles a Packet Too Big report about the segment at `quoted`. According to the report,
    /// `mtu_payload` bytes after the IP header fit the link. Smaller sizes than the minimum for the
    /// version of IP are raised to that minimum, so that a forged report does limited harm.
    pub(crate) fn judge_size_report(&mut self, now: Instant, quoted: SeqNum, mtu_payload: usize) {
        self.look_for_arrival_of_reported(None);
        let least = if self.path.ip_header > IPV4_HEADER { LEAST_IPV6 } else { LEAST_IPV4 };
        let size = saturated(mtu_payload.saturating_add(self.path.ip_header.into())).max(least);
        let (una, sent) = (self.snd.una, self.largest_packet_at(quoted));
        match self.sender.path.judge_report(quoted, sent, size, una) {
            ReportVerdict::Ignore => count(&mut self.statistics.reports_ignored),
            ReportVerdict::Apply => {
                count(&mut self.statistics.reports_applied);
                let range = self.sender.scoreboard.range_at(quoted);
                let left = range.map_or(now, |range| range.send_record.sent);
                let stamps = (self.timestamps.clock(left), self.timestamps.clock(now));
                self.sender.path.apply_at_once((quoted, size), una, stamps, now);
                self.send_again_in_smaller_segments();
            }
            ReportVerdict::Hold => self.hold_report(quoted, size),
            ReportVerdict::HoldForProbe => {
                count(&mut self.statistics.reports_held);
                self.sender.path.hold_of_probe(size);
            }
        }
    }

    /// Holds a report until it is confirmed or disproved. It is disproved already, and not held, if
    /// data that is larger than the reported size and was sent after the quoted segment has
    /// arrived.
    fn hold_report(&mut self, quoted: SeqNum, size: u32) {
        let range = self.sender.scoreboard.range_at(quoted);
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

    /// Returns an upper bound in bytes for the size of the packet that began at `quoted`. Its data
    /// is assumed to extend to the end of the scoreboard range that contains `quoted`, and its
    /// options to have the maximum length.
    fn largest_packet_at(&self, quoted: SeqNum) -> u32 {
        let range = self.sender.scoreboard.range_at(quoted);
        let end = range.map_or(self.snd.max, |range| range.right);
        (end - quoted) + self.fixed_headers() + saturated(TcpOptions::MAX_LENGTH)
    }

    /// Returns the number of bytes by which full packets exceed the size in the held report. Zero
    /// if no report is held.
    pub(crate) fn excess_by_report(&self) -> u32 {
        let path = &self.sender.path;
        path.held_size().map_or(0, |size| path.effective().saturating_sub(size))
    }

    /// Whether the scoreboard gives the fate `fate` for the segment that the held report quotes.
    pub(super) fn is_reported(&self, fate: Fate) -> bool {
        let Some(quoted) = self.sender.path.held_quote() else { return false };
        self.sender.scoreboard.range_at(quoted).is_some_and(|range| range.fate == fate)
    }

    /// Discards the held report as false if larger packets have passed: the quoted segment has
    /// arrived, or a larger one that was sent after it (RFC 5927 §7.2). `delivery` is the data that
    /// an acknowledgement has just reported.
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

    /// Applies the held report if it quotes the oldest segment in flight, whose retransmission
    /// timer has expired. All data in flight is then retransmitted in smaller segments. Returns
    /// whether the report was applied.
    pub(super) fn apply_report_of_oldest(&mut self, now: Instant) -> bool {
        self.sender.path.held_quote() == Some(self.snd.una) && self.apply_held_report(now)
    }

    /// Applies the held report, because the quoted segment is lost. Returns whether a report was
    /// held.
    pub(super) fn apply_held_report(&mut self, now: Instant) -> bool {
        let is_applied = self.sender.path.apply_held(self.snd.una, now);
        if is_applied {
            count(&mut self.statistics.reports_applied);
            self.send_again_in_smaller_segments();
        }
        is_applied
    }

    /// Retransmits the data in flight in smaller segments, because the earlier segments were too
    /// large for the path. Congestion was not the cause, so the congestion window keeps its number
    /// of segments (RFC 1191 §6.5, RFC 5681 §3.1).
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

    /// Tests a report that was applied at once. The test uses an acknowledgement that has moved
    /// SND.UNA from `from` and echoes the timestamp `echo`.
    pub(super) fn judge_applied_report(&mut self, now: Instant, from: SeqNum, echo: Option<u32>) {
        match self.sender.path.judge_applied((from, self.snd.una), echo, now) {
            None | Some(Finding::Open) => {}
            Some(Finding::Confirmed) => self.events |= Events::PATH_MTU,
            Some(Finding::Disproved) => {
                count(&mut self.statistics.reports_disproved);
                if self.agreement.selective_acks && self.sender.loss.phase == Phase::Open {
                    // The report was false, but it has caused all segments in flight to be marked
                    // lost. They may still arrive, so these marks are removed.
                    self.sender.scoreboard.forgive();
                }
                self.resize_segments();
            }
        }
    }
}
