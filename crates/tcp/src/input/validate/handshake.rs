//! The checks of two kinds of segments in the handshake: answers to our SYN (RFC 9293 §3.10.7.3),
//! and copies of the peer's SYN.

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
            // A reset that does not acknowledge our SYN is ignored. An attacker who has not
            // received our SYN could send it, but could not acknowledge the SYN, whose sequence
            // number the attacker does not know.
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
    /// segment is neither a repeated SYN nor a repeated SYN-ACK. In that case, the checks for all
    /// other segments apply.
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
        // In SYN-RECEIVED, a SYN-ACK comes from a peer that has opened the connection at the same
        // time (RFC 9293 §3.5, figure 7). Data on it is ignored, so the peer will retransmit the
        // data.
        let text = Text::empty(self.rcv.nxt);
        let verdict = || Verdict::InWindow(InWindow { segment: Valid(segment), text, timestamps });
        Some(self.check_ack(segment).map(|()| verdict()))
    }
}
