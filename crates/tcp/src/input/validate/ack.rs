//! The check of the acknowledgement number (RFC 9293 §3.10.7.4, fifth step; RFC 5961 §5).

use super::Refused;
use crate::input::Refusal;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    /// Checks that SND.UNA − MAX.SND.WND ≤ SEG.ACK ≤ SND.MAX. In SYN-RECEIVED, an acknowledgement
    /// that does not cover our SYN is answered by a reset.
    #[inline(always)]
    pub(super) fn check_ack(&self, segment: &Segment<'_>) -> Result<(), Refused> {
        if !segment.flags().contains(TcpFlags::ACK) {
            return Err(Refused::silently(Refusal::NoAck));
        }
        let ack = segment.ack;
        if self.state == State::SynReceived {
            let is_of_syn = ack.after(self.snd.una) && !ack.after(self.snd.max);
            return if is_of_syn { Ok(()) } else { Err(Refused::reset(Refusal::BadAck)) };
        }
        if ack.after(self.snd.max) {
            return Err(Refused::unacceptable(Refusal::BadAck, segment));
        }
        if ack.before(self.snd.una - self.snd.max_wnd) {
            return Err(Refused::challenged(Refusal::BadAck));
        }
        Ok(())
    }
}
