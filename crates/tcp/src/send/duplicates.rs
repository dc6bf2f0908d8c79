//! Loss recovery with a peer without SACK: three duplicate ACKs (RFC 5681 §3.2), NewReno (RFC
//! 6582), limited transmit (RFC 3042), and spurious timeouts (RFC 5682 §2).

use super::frto::{Frto, FrtoVerdict};
use super::loss::{Phase, TimerVerdict};
use crate::Connection;
use crate::congestion::{Acknowledged, FastRecovery};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// DupThresh (RFC 6675): the number of duplicate ACKs, or of segments SACKed after a hole, from
/// which a loss is assumed. Fewer of them may result from reordering.
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

    /// Returns the number of bytes by which data in flight may exceed the congestion window. It is
    /// one segment for each of the first two duplicate ACKs (limited transmit, RFC 3042 §2). With
    /// SACK, the result is zero, because each SACKed segment reduces the data in flight and thus
    /// permits a new segment.
    pub(crate) fn limited_transmit(&self) -> u32 {
        let loss = &self.sender.loss;
        let applies = self.config.limited_transmit
            && loss.phase == Phase::Open
            && loss.duplicates < DUPLICATE_THRESHOLD;
        if applies { loss.duplicates * self.full_segment() } else { 0 }
    }

    fn retransmit_fast(&mut self) {
        self.statistics.fast_retransmissions += 1;
        // `loss.flight` is from the time of the first duplicate ACK. It therefore excludes segments
        // that limited transmit has sent since then (RFC 5681 §3.2 step 2).
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
                // The three duplicate ACKs show that three segments have left the network, so the
                // window is inflated by them.
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

    /// Decides whether a timeout was spurious, after an ACK from a peer without SACK. `advanced` is
    /// true if the ACK has moved SND.UNA, and false if it is a duplicate (RFC 5682 §2.1 steps 2 and
    /// 3).
    pub(crate) fn judge_timeout_in_order(&mut self, now: Instant, advanced: bool) {
        let frto = self.sender.loss.frto;
        if self.agreement.selective_acks || !frto.is_on() {
            return;
        }
        // In the state `SentNew`, F-RTO permits new data beyond the congestion window. This state
        // is set before the decision, so that `has_sendable` below considers this permission.
        self.sender.loss.frto = Frto::SentNew;
        let (una, loss) = (self.snd.una, &self.sender.loss);
        let may_ask =
            una.before(loss.recover) && !una.before(loss.repeated_to) && self.has_sendable();
        match frto.judge_in_order(advanced, may_ask) {
            FrtoVerdict::AskOn | FrtoVerdict::Wait => {}
            FrtoVerdict::Spurious => {
                // `undo_timeout` turns F-RTO off only during a recovery. An acknowledgement beyond
                // `recover` has already ended the recovery, so F-RTO is turned off here. Otherwise,
                // the next acknowledgement would show a spurious timeout once more.
                self.sender.loss.frto = Frto::Off;
                self.undo_timeout(now);
            }
            FrtoVerdict::Lost => self.confirm_timeout(),
        }
    }

    /// Goes on with the retransmission of all data after the segment that was retransmitted first,
    /// because the timeout was not spurious.
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
