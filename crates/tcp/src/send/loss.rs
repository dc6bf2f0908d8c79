//! Noticing that segments were lost, and sending them again: three duplicate acknowledgements (RFC
//! 5681 §3.2, RFC 6582) or the retransmission timer (RFC 6298 §5).

use crate::congestion::{Acknowledged, FastRecovery};
use crate::event::Events;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// Duplicate acknowledgements that mean a loss and no mere reordering.
const DUPLICATE_THRESHOLD: u32 = 3;

/// R1 (RFC 9293 §3.8.3): retransmissions of one segment after which something is wrong with the path.
pub(crate) const R1: u32 = 3;

/// What the sender believes about its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is missing.
    Open,
    /// A segment was sent again after three duplicates; later ones keep the pipe filled.
    FastRecovery,
    /// The timer expired: everything from `una` on is sent again, in slow start. Duplicates that
    /// answer these repetitions must not look like another loss (RFC 6582 §3.2 step 2).
    AfterTimeout,
}

/// The state of loss detection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) phase: Phase,
    /// Duplicate acknowledgements in a row.
    duplicates: u32,
    /// What was in flight at the first of them.
    flight: u32,
    /// Recovery is over when this is acknowledged (RFC 6582's recover).
    recover: SeqNum,
    /// The segment at `una` must be sent again now.
    pub(crate) retransmit_due: bool,
    /// A partial acknowledgement has restarted the timer already: later ones do not, so that a long
    /// recovery ends in a timeout rather than at a hole a round trip (RFC 6582 §4, "impatient").
    timer_restarted: bool,
}

impl Loss {
    pub(crate) const fn new(iss: SeqNum) -> Self {
        Self {
            phase: Phase::Open,
            duplicates: 0,
            flight: 0,
            recover: iss,
            retransmit_due: false,
            timer_restarted: false,
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
    /// An acknowledgement that says nothing new, with data in flight (RFC 5681 §2).
    pub(crate) fn on_duplicate_ack(&mut self) {
        self.statistics.duplicate_acks += 1;
        let flight = self.snd.flight();
        let loss = &mut self.sender.loss;
        loss.duplicates = loss.duplicates.saturating_add(1);
        if loss.duplicates == 1 {
            loss.flight = flight;
        }
        if loss.phase == Phase::FastRecovery {
            self.sender.congestion.controller().on_duplicate();
            self.output_due = true;
        } else if loss.duplicates == DUPLICATE_THRESHOLD && loss.phase == Phase::Open {
            self.retransmit_fast();
        } else if self.limited_transmit() > 0 {
            self.output_due = true;
        }
    }

    /// What the first duplicates let go beyond the congestion window (RFC 3042 §2), in bytes.
    pub(crate) fn limited_transmit(&self) -> u32 {
        let loss = &self.sender.loss;
        let applies = self.config.limited_transmit
            && loss.phase == Phase::Open
            && loss.duplicates < DUPLICATE_THRESHOLD;
        if applies { loss.duplicates * self.full_segment() } else { 0 }
    }

    fn retransmit_fast(&mut self) {
        self.statistics.fast_retransmissions += 1;
        // What limited transmit has added does not count (RFC 5681 §3.2 step 2).
        let flight = self.sender.loss.flight;
        let controller = self.sender.congestion.controller();
        controller.on_loss(flight);
        self.ecn.on_reduced();
        let loss = &mut self.sender.loss;
        loss.recover = self.snd.max;
        loss.retransmit_due = true;
        loss.timer_restarted = false;
        loss.phase = match controller.fast_recovery() {
            FastRecovery::None => Phase::Open,
            FastRecovery::UntilNewAck | FastRecovery::UntilRecovered => Phase::FastRecovery,
        };
        self.sender.rtt.stop_timing();
        self.output_due = true;
    }

    /// New data was acknowledged; `limited` says whether the congestion window was what had held us
    /// back.
    pub(crate) fn judge_new_ack(&mut self, ack: &Acknowledged, limited: bool) -> TimerVerdict {
        self.sender.loss.duplicates = 0;
        match self.sender.loss.phase {
            Phase::FastRecovery => self.judge_ack_in_recovery(ack.number, ack.bytes),
            Phase::Open | Phase::AfterTimeout => {
                if ack.number.after(self.sender.loss.recover) {
                    self.sender.loss.phase = Phase::Open;
                }
                self.sender.loss.retransmit_due = false;
                let controller = self.sender.congestion.controller();
                if limited {
                    controller.on_acknowledged(ack);
                } else {
                    controller.on_acknowledged_unused(ack);
                }
                TimerVerdict::Restart
            }
        }
    }

    fn judge_ack_in_recovery(&mut self, ack: SeqNum, acked: u32) -> TimerVerdict {
        let recovered = !ack.before(self.sender.loss.recover);
        let controller = self.sender.congestion.controller();
        if recovered || controller.fast_recovery() == FastRecovery::UntilNewAck {
            controller.on_recovered(self.snd.max - ack);
            self.sender.loss.phase = Phase::Open;
            self.sender.loss.retransmit_due = false;
            return TimerVerdict::Restart;
        }
        controller.on_partial(acked);
        self.sender.loss.retransmit_due = true;
        if core::mem::replace(&mut self.sender.loss.timer_restarted, true) {
            TimerVerdict::LeaveRunning
        } else {
            TimerVerdict::Restart
        }
    }

    /// The retransmission timer has expired (RFC 6298 (5.4) to (5.7), RFC 5681 §3.1).
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        // RFC 5681 equation (4) counts a loss once, however often the timer finds it.
        let first = self.sender.silent_since == Instant::NEVER;
        if self.has_been_silent_too_long(now) {
            self.end(Some(self.reason_for_silence()));
            return;
        }
        self.statistics.retransmission_timeouts += 1;
        self.sender.expiries = self.sender.expiries.saturating_add(1);
        if self.sender.expiries >= R1 {
            self.events |= Events::TROUBLE;
        }
        self.output_due = true;
        self.sender.rtt.stop_timing();
        self.sender.rtt.back_off();
        self.sender.pacer.let_go();
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.syn_due = true;
            return;
        }
        let flight = self.snd.flight();
        if first {
            self.sender.congestion.controller().on_timeout(flight);
        } else {
            self.sender.congestion.controller().window_mut().restart();
        }
        self.ecn.on_reduced();
        self.sender.loss = Loss {
            phase: Phase::AfterTimeout,
            duplicates: 0,
            flight: 0,
            recover: self.snd.max,
            retransmit_due: false,
            timer_restarted: false,
        };
        self.snd.nxt = self.snd.una;
    }

    /// Has the peer owed an answer for longer than R2 (RFC 9293 §3.8.3)? The first question starts
    /// the clock.
    pub(crate) fn has_been_silent_too_long(&mut self, now: Instant) -> bool {
        if self.sender.silent_since == Instant::NEVER {
            self.sender.silent_since = now;
        }
        let patience =
            if self.state.is_synchronized() { self.patience() } else { self.config.give_up_syn_after };
        now.since(self.sender.silent_since) >= patience
    }

    /// What the application is told of a peer that is given up (RFC 1122 §4.2.3.9).
    pub(crate) const fn reason_for_silence(&self) -> Error {
        if self.sender.unreachable { Error::Unreachable } else { Error::TimedOut }
    }
}
