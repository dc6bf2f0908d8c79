//! What SYNs do to a connection that expects them (RFC 9293 §3.10.7.3).

use super::Disposition;
use super::validate::Valid;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::TcpFlags;

impl Connection {
    /// The peer's SYN has come in SYN-SENT.
    #[inline(always)]
    pub(super) fn apply_syn(&mut self, now: Instant, segment: Valid<'_>) -> Disposition {
        self.heard = now;
        self.learn_from_syn(&segment, now);
        if segment.flags().contains(TcpFlags::ACK) {
            if self.fast_open.is_some() {
                self.learn_from_syn_ack(&segment);
            }
            self.establish(now, segment.ack);
            if self.ecn.is_accurate() {
                self.end_accurate_handshake(&segment);
            }
            let is_short = self.agreement.selective_acks && self.is_untroubled();
            if !is_short || !self.acknowledge_control_alone(now, segment) {
                self.process_ack(now, segment, 1, None, true);
            }
        } else {
            // Both ends open at the same time (§3.5, figure 7).
            self.state = State::SynReceived;
            self.first_due = true;
            self.output_due = true;
        }
        Disposition::Accepted
    }

    /// The peer's SYN has come again in SYN-RECEIVED, so the SYN-ACK leaves again.
    #[cold]
    pub(super) fn apply_repeated_syn(&mut self, segment: Valid<'_>) -> Disposition {
        self.ecn.note_heard_syn(segment.flags());
        self.first_due = true;
        self.output_due = true;
        Disposition::Accepted
    }
}
