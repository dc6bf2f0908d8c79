//! What the sender believes about its segments, and the retransmission timer (RFC 6298 §5). How a loss
//! is noticed before it expires lies in `recovery.rs` (with selective acknowledgements) and
//! `duplicates.rs` (without).

use super::frto::Frto;
use super::probe::TailProbe;
use crate::compact::pack::{packed, packed_enum};
use crate::event::Events;
use crate::{Connection, Error, RecoveryState, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// R1 (RFC 9293 §3.8.3): retransmissions of one segment after which something is wrong with the path.
pub(crate) const R1: u32 = 3;

/// What the sender believes about its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is missing.
    Open,
    /// Something is lost, and the segments that arrive keep the pipe filled.
    FastRecovery,
    /// The timer expired, or Tahoe has noticed a loss: what is lost is sent again in slow start. Duplicates
    /// that answer these repetitions must not look like another loss (RFC 6582 §3.2 step 2).
    AfterTimeout,
}

packed_enum!(Phase { Open, FastRecovery, AfterTimeout });

/// The state of loss detection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) phase: Phase,
    /// Recovery is over when this is acknowledged (RFC 6582's recover, RFC 6675's RecoveryPoint).
    pub(crate) recover: SeqNum,
    /// The segment at `una`, or the first that is lost, must be sent again now, whatever the window.
    pub(crate) retransmit_due: bool,
    /// Duplicate acknowledgements in a row.
    pub(crate) duplicates: u32,
    /// What was in flight at the first of them.
    pub(super) flight: u32,
    /// A partial acknowledgement has restarted the timer already: later ones do not, so that a long
    /// recovery ends in a timeout rather than at a hole a round trip (RFC 6582 §4, "impatient").
    pub(super) timer_restarted: bool,
    /// The timer stands for a probe of the tail, and not for a timeout.
    pub(crate) probes_tail: bool,
    /// It was set for a single segment, whose acknowledgement the peer may hold back.
    pub(crate) probes_single: bool,
    /// The tail must be probed now.
    pub(crate) tail_probe_due: bool,
    /// The probe that was sent last, answered or not.
    pub(crate) tail_probe: Option<TailProbe>,
    /// Whether it is being found out that the timeout was spurious.
    pub(crate) frto: Frto,
    /// The end of what was sent again last.
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
    /// Nothing is known to be missing; a recovery ends, or has ended, at `recover`.
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

/// What an acknowledgement of new data means for the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerVerdict {
    Restart,
    LeaveRunning,
}

impl Connection {
    /// What is told of losses.
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

    /// The retransmission timer has expired.
    pub(crate) fn on_retransmission_timer(&mut self, now: Instant) {
        if self.sender.loss.probes_tail {
            self.probe_tail(now);
        } else {
            self.on_retransmission_timeout(now);
        }
    }

    /// RFC 6298 (5.4) to (5.7), RFC 5681 §3.1.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        // RFC 5681 equation (4) counts a loss once, however often the timer finds it.
        let first = self.sender.silent_since == Instant::NEVER;
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

    /// Something was lost, and the window was reduced for it.
    pub(super) fn on_loss_noticed(&mut self) {
        self.on_window_reduced();
        self.on_option_lost();
        self.judge_first_flight();
    }

    /// Everything from `una` on is sent again, or only its first segment until it is known whether the
    /// rest was lost (RFC 5682 §2.1 step 1). That is asked where nothing is being recovered, or of the same
    /// segment once more: acknowledgements of what was sent again earlier would look like those of originals.
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

    /// Has the peer owed an answer for longer than R2 (RFC 9293 §3.8.3)? The first question starts
    /// the clock.
    pub(crate) fn has_been_silent_too_long(&mut self, now: Instant) -> bool {
        if self.sender.silent_since == Instant::NEVER {
            self.sender.silent_since = now;
        }
        let unacknowledged_timeout = if self.state.is_synchronized() {
            self.unacknowledged_timeout()
        } else {
            self.handshake_timeout()
        };
        now.since(self.sender.silent_since) >= unacknowledged_timeout
    }

    /// What the application is told of a peer that is given up (RFC 1122 §4.2.3.9).
    pub(crate) const fn reason_for_silence(&self) -> Error {
        if self.sender.unreachable { Error::Unreachable } else { Error::TimedOut }
    }
}
