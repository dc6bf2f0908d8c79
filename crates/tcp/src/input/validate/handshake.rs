//! The checks of segments in the handshake: answers to our SYN (RFC 9293 §3.10.7.3), and SYNs that
//! the peer retransmits.

use super::sequence::Text;
use super::{InWindow, Refused, Valid, Verdict};
use crate::input::Refusal;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags, Timestamps};

impl Connection {
    /// Checks a segment in SYN-SENT.
    #[inline(always)]
    pub(in crate::input) fn validate_in_syn_sent<'a>(
        &self,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        let flags = segment.flags();
        let acks = flags.contains(TcpFlags::ACK);
        if acks && (!segment.ack.after(self.snd.iss) || segment.ack.after(self.snd.max)) {
            let is_reset = flags.contains(TcpFlags::RST);
            let refused = if is_reset { Refused::silently } else { Refused::reset };
            return Err(refused(Refusal::BadAck));
        }
        if flags.contains(TcpFlags::RST) {
            // A reset without an acknowledgement is ignored. It may come from an attacker, who has
            // not received our SYN and thus does not know its sequence number.
            return if acks {
                Ok(Verdict::Resets(Valid(segment)))
            } else {
                Err(Refused::silently(Refusal::NoAck))
            };
        }
        if !flags.contains(TcpFlags::SYN) {
            return Err(Refused::silently(Refusal::NoSyn));
        }
        Ok(Verdict::Synchronizes(Valid(segment)))
    }

    /// Checks a SYN that repeats the sequence number of the peer's first SYN. Returns `None` if the
    /// segment is not a repeated SYN or SYN-ACK, so that it must pass the checks for other
    /// segments.
    #[cold]
    pub(super) fn validate_repeated_syn<'a>(
        &self,
        segment: &'a Segment<'a>,
        timestamps: Option<Timestamps>,
    ) -> Option<Result<Verdict<'a>, Refused>> {
        let flags = segment.flags();
        if self.state != State::SynReceived {
            let is_syn_ack = self.ends_handshake_again(flags) && self.check_ack(segment).is_ok();
            return is_syn_ack.then_some(Ok(Verdict::RepeatsSynAck(Valid(segment))));
        }
        if self.ecn.is_contradicted_by(flags) {
            return Some(Ok(Verdict::Contradicts(Valid(segment))));
        }
        if !flags.contains(TcpFlags::ACK) {
            return Some(Ok(Verdict::RepeatsSyn(Valid(segment))));
        }
        // This is the peer's SYN-ACK in a simultaneous open (RFC 9293 §3.5, figure 7). Its data, if
        // any, is ignored, so the peer will retransmit that data.
        let text = Text::empty(self.rcv.nxt);
        let verdict = || Verdict::InWindow(InWindow { segment: Valid(segment), text, timestamps });
        Some(self.check_ack(segment).map(|()| verdict()))
    }
}
