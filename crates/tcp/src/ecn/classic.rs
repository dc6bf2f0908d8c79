//! What a mark does at both ends in the way of RFC 3168, and what it means for the window in either mode.

use super::Past;
use crate::input::validate::Valid;
use crate::send::loss::Phase;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags};

impl Connection {
    /// The ECN bits of the SYN or SYN-ACK that is to leave.
    pub(crate) fn ecn_flags_of_syn(&self) -> TcpFlags {
        // One that has left has left in vain, if no timeout says so, too.
        let sent = self.sender.expiries.max(u32::from(self.snd.max != self.snd.iss));
        if self.state == State::SynSent {
            self.ecn.flags_of_syn(sent)
        } else {
            self.ecn.flags_of_syn_ack(self.sender.expiries)
        }
    }

    /// Data inside the window bore a mark (RFC 3168 §6.1.3).
    pub(super) fn take_mark(&mut self) {
        if !self.ecn.hears_marks() {
            return;
        }
        self.statistics.marked_segments += 1;
        // A sender whose window is down to one segment would wait for the delayed acknowledgement.
        if self.ecn.echo.is_empty() {
            self.owe_ack();
        }
        self.ecn.echo = TcpFlags::ECE;
    }

    /// The peer has reduced its window: what it marked itself by is echoed no longer.
    pub(crate) fn check_window_reduced(&mut self, segment: Valid<'_>) {
        let echoes = self.ecn.echo == TcpFlags::ECE && self.ecn.accurate.is_none();
        if !segment.flags().contains(TcpFlags::CWR) || !echoes {
            return;
        }
        self.ecn.echo = TcpFlags::empty();
        // Its window may be a single segment now.
        if !segment.payload.is_empty() {
            self.owe_ack();
        }
    }

    /// How many marks on data of ours the segment tells of, if that is RFC 3168's way: one, or none.
    pub(super) fn echoes(&self, segment: &Segment<'_>) -> u32 {
        u32::from(segment.flags().contains(TcpFlags::ECE) && self.ecn.is_on())
    }

    /// Has a mark reduced the window that was in use when what ends at `end`, acknowledged by now, was in
    /// flight?
    pub(crate) fn is_reduced_by_mark(&self, end: SeqNum) -> bool {
        let since = u64::from(self.snd.una - end);
        self.ecn.has_reduced_for(self.statistics.bytes_acknowledged.saturating_sub(since))
    }

    /// An acceptable acknowledgement tells of `marks` on what was sent: the window is reduced as for a loss,
    /// once for all the marks and losses of one window (RFC 3168 §6.1.2; RFC 9768 §3.1.5 leaves it so).
    pub(crate) fn on_marks(&mut self, now: Instant, segment: Valid<'_>, marks: u32) {
        self.statistics.mark_echoes += 1;
        // Congestion is certain, so a recovery under way is not undone (RFC 4015).
        self.sender.undo = None;
        let window = self.sender.congestion.window();
        if window.cwnd() < 2 * window.mss() {
            // The window cannot shrink any more, so the next segment waits as if this one were lost.
            self.sender.pacer.hold(now + self.sender.rtt.timeout(&self.config.rto));
        }
        let newly = if segment.ack.after(self.snd.una) { segment.ack - self.snd.una } else { 0 };
        let delivered = newly.div_ceil(self.full_segment().max(1));
        self.statistics.marked_deliveries +=
            u64::from(if self.ecn.accurate.is_some() { marks } else { delivered });
        let acknowledged = self.statistics.bytes_acknowledged + u64::from(newly);
        if !self.ecn.has_reduced_for(acknowledged) && self.sender.loss.phase == Phase::Open {
            self.reduce_for_marks(self.in_flight());
        }
    }

    /// Routers have marked packets of the `flight`: the window shrinks, and the peer is told where that is RFC
    /// 3168's way.
    pub(super) fn reduce_for_marks(&mut self, flight: u32) {
        self.statistics.mark_reductions += 1;
        self.sender.congestion.controller().on_mark(flight);
        self.ecn.reduced_before = self.statistics.bytes_sent + 1;
        self.on_window_reduced();
    }

    /// The window was reduced, for whatever reason: the peer is told with the next new data, unless it counts
    /// marks (RFC 9768 §3.1.5).
    pub(crate) fn on_window_reduced(&mut self) {
        let tells = self.ecn.is_on() && self.ecn.accurate.is_none();
        self.ecn.past.set(Past::CWR_DUE, tells);
    }

    /// Something was lost. If it is the first data that bore an option, that is not tried again (RFC 9768
    /// §3.2.3.2.2).
    pub(crate) fn doubt_options(&mut self) {
        let Some(accurate) = self.ecn.accurate.as_deref() else { return };
        let acknowledged = self.statistics.bytes_acknowledged;
        if accurate.first_option.is_some_and(|start| acknowledged <= start) {
            self.mute_options();
        }
    }

    fn mute_options(&mut self) {
        self.ecn.past.remove(Past::OPTION_DUE.union(Past::FIRST_DATA));
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            (accurate.muted, accurate.first_option) = (true, None);
        }
    }
}
