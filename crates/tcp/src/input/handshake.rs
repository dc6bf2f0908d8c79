//! Processing of SYNs that belong to the handshake (RFC 9293 §3.10.7.3).

use super::Disposition;
use super::validate::Valid;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::TcpFlags;

impl Connection {
    /// Handles the peer's SYN or SYN-ACK in SYN-SENT.
    #[inline(always)]
    pub(super) fn apply_syn(&mut self, now: Instant, segment: Valid<'_>) -> Disposition {
        self.last_received = now;
        self.learn_from_syn(&segment, now);
        if segment.flags().contains(TcpFlags::ACK) {
            if self.fast_open.is_some() {
                self.evaluate_fast_open(&segment);
            }
            self.establish(now, segment.ack);
            if self.ecn.is_accurate() {
                self.finish_accurate_handshake(&segment);
            }
            let is_short = self.agreement.selective_acks && self.is_outside_recovery();
            if !is_short || !self.acknowledge_control_alone(now, segment) {
                self.process_ack(now, segment, 1, None, true);
            }
        } else {
            // The peer's SYN does not acknowledge our SYN, so both endpoints have sent a SYN at the
            // same time: a simultaneous open (RFC 9293 §3.5, figure 7).
            self.state = State::SynReceived;
            self.first_due = true;
            self.output_due = true;
        }
        Disposition::Accepted
    }

    /// Handles the peer's repeated SYN in SYN-RECEIVED, by sending the SYN-ACK again.
    #[cold]
    pub(super) fn apply_repeated_syn(&mut self, segment: Valid<'_>) -> Disposition {
        self.ecn.on_syn_received(segment.flags());
        self.first_due = true;
        self.output_due = true;
        Disposition::Accepted
    }
}
