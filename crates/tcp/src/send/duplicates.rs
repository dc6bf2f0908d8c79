//! Loss recovery with a peer without SACK: three duplicate ACKs (RFC 5681 §3.2), NewReno (RFC
//! 6582), limited transmit (RFC 3042), and spurious timeouts (RFC 5682 §2).

use super::frto::{Frto, FrtoVerdict};
use super::loss::{Phase, TimerVerdict};
use crate::Connection;
use crate::congestion::{Acknowledged, FastRecovery};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// DupThresh (RFC 6675): with as many duplicate ACKs, or as many segments SACKed after a hole, a
/// loss is assumed instead of reordering.
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

impl Connection {
    /// Handles a duplicate ACK with data in flight (RFC 5681 §2).
    pub(crate) fn on_duplicate_ack(&mut self) {
        let flight = self.snd.flight();
        let loss = &mut self.sender.loss;
        loss.duplicates = loss.duplicates.saturating_add(1);
        if loss.duplicates == 1 {
            loss.flight = flight;
        }
        if loss.phase == Phase::FastRecovery {
            self.sender.congestion.controller().window_mut().inflate();
            self.output_due = true;
        } else if loss.duplicates == DUPLICATE_THRESHOLD && loss.phase == Phase::Open {
            self.retransmit_fast();
        } else if self.limited_transmit() > 0 {
            self.output_due = true;
        }
    }

    /// Returns the number of bytes by which data sent after the first duplicate ACKs may exceed the
    /// congestion window (limited transmit, RFC 3042 §2). The number is zero with SACK, because the
    /// data in flight decreases with each SACKed segment.
    pub(crate) fn limited_transmit(&self) -> u32 {
        let loss = &self.sender.loss;
        let applies = self.config.limited_transmit
            && loss.phase == Phase::Open
            && loss.duplicates < DUPLICATE_THRESHOLD;
        if applies { loss.duplicates * self.full_segment() } else { 0 }
    }

    fn retransmit_fast(&mut self) {
        self.statistics.fast_retransmissions += 1;
        // The value was stored at the first duplicate ACK, so it excludes segments of limited
        // transmit (RFC 5681 §3.2 step 2).
        let flight = self.sender.loss.flight;
        self.reduce_for_loss(flight, self.snd.una);
        let controller = self.sender.congestion.controller();
        let loss = &mut self.sender.loss;
        loss.recover = self.snd.max;
        loss.retransmit_due = true;
        loss.timer_restarted = false;
        loss.phase = match controller.fast_recovery() {
            FastRecovery::None => Phase::Open,
            FastRecovery::UntilNewAck | FastRecovery::UntilRecovered => {
                // Three duplicate ACKs mean that three segments have left the network.
                controller.window_mut().set_to_threshold_plus(3);
                Phase::FastRecovery
            }
        };
        self.output_due = true;
    }

    /// Handles an ACK of new data from a peer without SACK. `limited` is true if the sender was
    /// cwnd-limited.
    pub(crate) fn judge_new_ack(&mut self, ack: &Acknowledged, limited: bool) -> TimerVerdict {
        self.sender.loss.duplicates = 0;
        match self.sender.loss.phase {
            Phase::FastRecovery => self.judge_ack_in_recovery(ack.number, ack.bytes),
            Phase::Open | Phase::AfterTimeout => {
                if ack.number.after(self.sender.loss.recover) {
                    self.sender.loss.phase = Phase::Open;
                }
                self.sender.loss.retransmit_due = false;
                self.sender.congestion.controller().on_progress(ack, limited);
                TimerVerdict::Restart
            }
        }
    }

    fn judge_ack_in_recovery(&mut self, ack: SeqNum, acked: u32) -> TimerVerdict {
        let recovered = !ack.before(self.sender.loss.recover);
        let controller = self.sender.congestion.controller();
        let rule = controller.fast_recovery();
        if recovered || rule == FastRecovery::UntilNewAck {
            match rule {
                FastRecovery::UntilRecovered => {
                    controller.window_mut().end_recovery(self.snd.max - ack);
                }
                _ => controller.window_mut().set_to_threshold_plus(0),
            }
            self.sender.loss.phase = Phase::Open;
            self.sender.loss.retransmit_due = false;
            return TimerVerdict::Restart;
        }
        controller.window_mut().deflate(acked);
        self.sender.loss.retransmit_due = true;
        if core::mem::replace(&mut self.sender.loss.timer_restarted, true) {
            TimerVerdict::LeaveRunning
        } else {
            TimerVerdict::Restart
        }
    }

    /// Decides whether a timeout was spurious. The decision is based on an ACK that has either
    /// `advanced` SND.UNA or is a duplicate (RFC 5682 §2.1 steps 2 and 3).
    pub(crate) fn judge_timeout_in_order(&mut self, now: Instant, advanced: bool) {
        let frto = self.sender.loss.frto;
        if self.agreement.selective_acks || !frto.is_on() {
            return;
        }
        // With this state, `has_sendable` below returns whether new data can be sent.
        self.sender.loss.frto = Frto::SentNew;
        let (una, loss) = (self.snd.una, &self.sender.loss);
        let may_ask =
            una.before(loss.recover) && !una.before(loss.repeated_to) && self.has_sendable();
        match frto.judge_in_order(advanced, may_ask) {
            FrtoVerdict::AskOn | FrtoVerdict::Wait => {}
            FrtoVerdict::Spurious => {
                // If this acknowledgement is beyond `recover`, recovery has ended already, and the
                // undo leaves the F-RTO state unchanged. A later acknowledgement would then count
                // as another proof.
                self.sender.loss.frto = Frto::Off;
                self.undo_timeout(now);
            }
            FrtoVerdict::Lost => self.confirm_timeout(),
        }
    }

    /// Retransmits all data after the segment that was just retransmitted, because the timeout was
    /// not spurious.
    fn confirm_timeout(&mut self) {
        self.snd.nxt = self.snd.una.later(self.sender.loss.repeated_to);
        self.sender.undo = None;
        let loss = &mut self.sender.loss;
        loss.frto = Frto::Off;
        loss.retransmit_due = false;
        loss.recover = self.snd.max;
        self.output_due = true;
    }
}
