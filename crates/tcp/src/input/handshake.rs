//! A segment for a connection that has sent its SYN (RFC 9293 §3.10.7.3).

use super::{Disposition, Refusal};
use crate::output::reset::Reset;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    #[inline(always)]
    pub(super) fn handle_in_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Disposition {
        let flags = segment.flags();
        let acks = flags.contains(TcpFlags::ACK);
        if acks && (!segment.ack.after(self.snd.iss) || segment.ack.after(self.snd.max)) {
            if !flags.contains(TcpFlags::RST) {
                self.owe_reset(Reset::answering_ack(segment));
            }
            return Disposition::Refused(Refusal::BadAck);
        }
        if flags.contains(TcpFlags::RST) {
            // A reset without an ACK could be anybody's.
            if acks {
                self.end(Some(Error::Refused));
            }
            return Disposition::Refused(Refusal::Closed);
        }
        if !flags.contains(TcpFlags::SYN) {
            return Disposition::Refused(Refusal::NoAck);
        }
        self.heard = now;
        self.learn_from_syn(segment, now);
        if acks {
            if self.fast_open.is_some() {
                self.learn_from_syn_ack(segment);
            }
            self.establish(now, segment.ack);
            if self.ecn.is_accurate() {
                self.end_accurate_handshake(segment);
            }
            if !self.acknowledge_control_alone(now, segment) {
                self.acknowledge(now, segment, 1, self.is_window_used());
            }
        } else {
            // Both ends open at the same time (§3.5, figure 7).
            self.state = State::SynReceived;
            self.first_due = true;
            self.output_due = true;
        }
        Disposition::Accepted
    }
}
