//! The feedback of RFC 3168 at both endpoints, and the reduction of the congestion window after
//! marks, which AccECN also uses.

use super::EcnSignals;
use crate::input::validate::Valid;
use crate::send::loss::Phase;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags};

impl Connection {
    /// Returns the ECN flags of the next SYN or SYN-ACK.
    pub(crate) fn ecn_flags_of_syn(&self) -> TcpFlags {
        // `sent` counts our SYNs without an answer. If a SYN was sent before, it counts as one,
        // even if its timeout has not expired yet.
        let sent = self.sender.expiries.max(u32::from(self.snd.max != self.snd.iss));
        if self.state == State::SynSent {
            self.ecn.flags_of_syn(sent)
        } else {
            self.ecn.flags_of_syn_ack(self.sender.expiries)
        }
    }

    /// Handles a CE mark on data inside the receive window (RFC 3168 §6.1.3).
    pub(super) fn on_ce_mark(&mut self) {
        if !self.ecn.must_echo_marks() {
            return;
        }
        self.statistics.marked_segments += 1;
        // The first ECE flag is sent at once, and not with a delayed acknowledgement. If the
        // congestion window of the peer is one segment, the peer would wait for that
        // acknowledgement.
        if self.ecn.echo.is_empty() {
            self.owe_ack();
        }
        self.ecn.echo = TcpFlags::ECE;
    }

    /// Stops echoing marks when the peer reports by CWR that it has reduced its window.
    pub(crate) fn check_window_reduced(&mut self, segment: Valid<'_>) {
        let echoes = self.ecn.echo == TcpFlags::ECE && self.ecn.accurate.is_none();
        if !segment.flags().contains(TcpFlags::CWR) || !echoes {
            return;
        }
        self.ecn.echo = TcpFlags::empty();
        // This data is acknowledged at once. The peer may have reduced its congestion window to one
        // segment, and would then have to wait for a delayed ACK.
        if !segment.payload.is_empty() {
            self.owe_ack();
        }
    }

    /// Returns the number of marks that the segment reports by the rules of RFC 3168: one if it has
    /// ECE, otherwise zero.
    pub(super) fn echoes(&self, segment: &Segment<'_>) -> u32 {
        u32::from(segment.flags().contains(TcpFlags::ECE) && self.ecn.is_on())
    }

    /// Whether a mark has already reduced the congestion window for the flight that contains the
    /// sequence number `end`. `end` must not be after SND.UNA.
    pub(crate) fn is_reduced_by_mark(&self, end: SeqNum) -> bool {
        let since = u64::from(self.snd.una - end);
        self.ecn.has_reduced_for(self.statistics.bytes_acknowledged.saturating_sub(since))
    }

    /// Handles `marks` marks that a valid ACK reports. The congestion window is reduced as after a
    /// loss, but only once for all marks and losses in one flight (RFC 3168 §6.1.2). RFC 9768
    /// §3.1.5 keeps this rule for AccECN.
    pub(crate) fn on_marks(&mut self, now: Instant, segment: Valid<'_>, marks: u32) {
        self.statistics.mark_echoes += 1;
        // A mark is evidence of congestion. If a recovery in progress later proves spurious, its
        // reduction of the window must therefore not be undone (RFC 4015).
        self.sender.undo = None;
        let window = self.sender.congestion.window();
        if window.cwnd() < 2 * window.mss() {
            // The window is one segment and cannot become smaller. In place of a reduction, the
            // next segment is sent only after the time of an RTO, as after a timeout.
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

    /// Reduces the congestion window because routers have marked packets of a flight of `flight`
    /// bytes. In RFC 3168 mode, the next new data then carries CWR.
    pub(super) fn reduce_for_marks(&mut self, flight: u32) {
        self.statistics.mark_reductions += 1;
        self.sender.congestion.controller().on_mark(flight);
        self.ecn.reduced_before = self.statistics.bytes_sent + 1;
        self.on_window_reduced();
    }

    /// Schedules CWR for the next new data. Called after every reduction of the window, by losses
    /// as well as marks. AccECN does not use CWR (RFC 9768 §3.1.5).
    pub(crate) fn on_window_reduced(&mut self) {
        let needs_cwr = self.ecn.is_on() && self.ecn.accurate.is_none();
        self.ecn.past.set(EcnSignals::CWR_DUE, needs_cwr);
    }

    /// Disables AccECN options after a loss, if the first data with an option was lost (RFC 9768
    /// §3.2.3.2.2).
    pub(crate) fn on_option_lost(&mut self) {
        let Some(accurate) = self.ecn.accurate.as_deref() else { return };
        let acknowledged = self.statistics.bytes_acknowledged;
        if accurate.first_option.is_some_and(|start| acknowledged <= start) {
            self.disable_options();
        }
    }

    fn disable_options(&mut self) {
        self.ecn.past.remove(EcnSignals::OPTION_DUE.union(EcnSignals::TEST_OPTION));
        if let Some(accurate) = self.ecn.accurate.as_deref_mut() {
            (accurate.options_disabled, accurate.first_option) = (true, None);
        }
    }
}
