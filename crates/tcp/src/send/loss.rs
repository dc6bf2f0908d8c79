//! The state of loss recovery, and the retransmission timer (RFC 6298 §5). `recovery.rs` detects
//! losses by SACK, and `duplicates.rs` by duplicate ACKs.

use super::frto::Frto;
use super::probe::TailProbe;
use crate::compact::pack::{packed, packed_enum};
use crate::event::Events;
use crate::{Connection, Error, RecoveryState, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// R1 (RFC 9293 §3.8.3): after this number of retransmissions of a segment, the path is assumed to
/// have a problem.
pub(crate) const R1: u32 = 3;

/// The phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is being recovered.
    Open,
    /// The arrival of later segments has revealed a loss. Each acknowledgement that shows delivered
    /// data permits retransmissions.
    FastRecovery,
    /// Lost data is retransmitted in slow start. This follows a timeout, and with Tahoe any loss.
    /// Duplicate ACKs that the retransmissions cause must not be taken for another loss (RFC 6582
    /// §3.2 step 2).
    AfterTimeout,
}

packed_enum!(Phase { Open, FastRecovery, AfterTimeout });

/// The state of loss detection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) phase: Phase,
    /// The sequence number whose acknowledgement ends recovery (recover in RFC 6582, RecoveryPoint
    /// in RFC 6675).
    pub(crate) recover: SeqNum,
    /// Whether a segment must be retransmitted now, even if the windows do not permit it. With
    /// SACK, it is the first lost segment, otherwise the segment at SND.UNA.
    pub(crate) retransmit_due: bool,
    /// The number of consecutive duplicate ACKs.
    pub(crate) duplicates: u32,
    /// The number of bytes in flight when the first of the present series of duplicate ACKs
    /// arrived.
    pub(super) flight: u32,
    /// Whether a partial ACK has restarted the retransmission timer in this recovery. Further
    /// partial ACKs do not restart it. A recovery with many holes would take a round trip for each
    /// of them. Without restarts, a timeout ends it sooner (the "impatient" variant of RFC 6582
    /// §4).
    pub(super) timer_restarted: bool,
    /// Whether the retransmission timer is set for a tail loss probe, and not for a timeout.
    pub(crate) probes_tail: bool,
    /// Whether the timer was set for a single segment in flight. The peer may delay the
    /// acknowledgement of such a segment, so a tail loss probe waits longer.
    pub(crate) probes_single: bool,
    /// Whether a tail loss probe must be sent now.
    pub(crate) tail_probe_due: bool,
    /// The most recent tail loss probe that was sent.
    pub(crate) tail_probe: Option<TailProbe>,
    /// The progress of F-RTO, which detects spurious timeouts.
    pub(crate) frto: Frto,
    /// The end of the most recently retransmitted data.
    pub(crate) repeated_to: SeqNum,
}

packed!(Loss {
    phase,
    recover,
    retransmit_due,
    duplicates,
    flight,
    timer_restarted,
    probes_tail,
    probes_single,
    tail_probe_due,
    tail_probe,
    frto,
    repeated_to
});

impl Loss {
    /// Creates the state outside recovery, with the given sequence number `recover`. A caller that
    /// begins a recovery overrides some of the other fields.
    pub(crate) const fn new(recover: SeqNum) -> Self {
        Self {
            phase: Phase::Open,
            recover,
            retransmit_due: false,
            duplicates: 0,
            flight: 0,
            timer_restarted: false,
            probes_tail: false,
            probes_single: false,
            tail_probe_due: false,
            tail_probe: None,
            frto: Frto::Off,
            repeated_to: recover,
        }
    }
}

/// The effect of an acknowledgement of new data on the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerVerdict {
    Restart,
    LeaveRunning,
}

impl Connection {
    /// Returns the state of recovery, with the values of Linux's `tcpi_ca_state`.
    pub(crate) fn recovery_state(&self) -> RecoveryState {
        match self.sender.loss.phase {
            Phase::FastRecovery => RecoveryState::Recovery,
            Phase::AfterTimeout => RecoveryState::Loss,
            Phase::Open if self.snd.flight() > 0 && self.is_reduced_by_mark(self.snd.una) => {
                RecoveryState::Reduced
            }
            Phase::Open
                if self.sender.scoreboard.sacked() > 0 || self.sender.loss.duplicates > 0 =>
            {
                RecoveryState::Disorder
            }
            Phase::Open => RecoveryState::Open,
        }
    }

    /// Handles the expiry of the retransmission timer.
    pub(crate) fn on_retransmission_timer(&mut self, now: Instant) {
        if self.sender.loss.probes_tail {
            self.probe_tail(now);
        } else {
            self.on_retransmission_timeout(now);
        }
    }

    /// Handles a retransmission timeout (RFC 6298 (5.4) to (5.7), RFC 5681 §3.1).
    fn on_retransmission_timeout(&mut self, now: Instant) {
        // Only the first timeout of a segment reduces SSTHRESH. If the retransmission times out
        // again, SSTHRESH stays unchanged (RFC 5681 §3.1, after equation (4)).
        let first = self.sender.expiries == 0;
        if self.has_been_silent_too_long(now) {
            self.end(Some(self.reason_for_silence()));
            return;
        }
        self.statistics.retransmission_timeouts += 1;
        self.sender.expiries = self.sender.expiries.saturating_add(1);
        if self.sender.expiries >= R1 {
            self.events |= Events::SOFT_ERROR;
        }
        self.output_due = true;
        self.sender.rtt.back_off(now);
        self.sender.pacer.let_go();
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.first_due = true;
            self.withdraw_early_data();
            return;
        }
        if !self.apply_report_of_oldest(now) {
            self.judge_path_at_timeout(now);
        }
        if self.agreement.selective_acks {
            self.recover_from_timeout(now, first);
        } else {
            self.go_back(first);
        }
        self.on_loss_noticed();
    }

    /// Updates counters and ECN state after a loss has reduced the congestion window.
    pub(super) fn on_loss_noticed(&mut self) {
        self.on_window_reduced();
        self.on_option_lost();
        self.judge_first_flight();
    }

    /// Handles a timeout with a peer without SACK, by retransmitting all data from SND.UNA on. With
    /// F-RTO, retransmits only the first segment until it is decided whether the rest was lost (RFC
    /// 5682 §2.1 step 1). F-RTO is used only for a timeout outside recovery, or for a repeated
    /// timeout of the first segment. In all other cases, other segments were retransmitted already,
    /// so acknowledgements of them would look like evidence of a spurious timeout.
    fn go_back(&mut self, first: bool) {
        let flight = self.snd.flight();
        let (phase, frto) = (self.sender.loss.phase, self.sender.loss.frto);
        let is_whole = self.snd.nxt == self.snd.max && self.snd.wnd >= flight;
        let begins = phase == Phase::Open;
        let asks = self.config.frto && is_whole && (begins || frto == Frto::Retransmitted);
        if asks && begins {
            self.remember_for_undo();
        }
        let controller = self.sender.congestion.controller();
        if first {
            controller.on_timeout(flight);
        } else {
            controller.restart();
        }
        self.sender.loss = Loss {
            phase: Phase::AfterTimeout,
            retransmit_due: asks,
            frto: if asks { Frto::Retransmitted } else { Frto::Off },
            repeated_to: self.snd.una,
            ..Loss::new(self.snd.max)
        };
        if !asks {
            self.sender.undo = None;
            self.snd.nxt = self.snd.una;
        }
    }

    /// Whether data has remained unacknowledged for too long: longer than the limit that applies.
    /// During the handshake, this is the handshake timeout. After it, this is the user timeout, or
    /// R2 if there is none (RFC 9293 §3.8.3). The time counts from the first call of this method
    /// after an acknowledgement.
    pub(crate) fn has_been_silent_too_long(&mut self, now: Instant) -> bool {
        if self.sender.silent_since == Instant::NEVER {
            self.sender.silent_since = now;
        }
        let limit = if self.state.is_synchronized() {
            self.unacknowledged_timeout()
        } else {
            self.handshake_timeout()
        };
        now.since(self.sender.silent_since) >= limit
    }

    /// Returns the reason for the end of a connection whose peer has not answered in time (RFC 1122
    /// §4.2.3.9).
    pub(crate) const fn reason_for_silence(&self) -> Error {
        if self.sender.unreachable { Error::Unreachable } else { Error::TimedOut }
    }
}
