//! Second and fourth step: RST and SYN, told from forgeries (RFC 9293 §3.10.7.4, RFC 5961).

use super::Refusal;
use crate::options::before;
use crate::output::reset::Reset;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    /// Was it a reset that has ended the connection? It counts only at exactly `rcv.nxt`; elsewhere
    /// in the window it is challenged, and outside not heard at all.
    pub(super) fn check_reset(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Result<bool, Refusal> {
        if !segment.flags().contains(TcpFlags::RST) {
            return Ok(false);
        }
        // An old segment that we answer makes a peer that has forgotten the connection send just this
        // reset; TIME-WAIT must outlive it, or the next old segment meets a new connection (RFC 1337).
        if self.state == State::TimeWait && self.config.time_wait_outlives_resets {
            return Err(Refusal::ResetInTimeWait);
        }
        if segment.seq != self.rcv.nxt {
            if !segment.seq.within(self.rcv.nxt, self.rcv.window()) {
                return Err(Refusal::OutsideWindow);
            }
            self.challenge(now);
            return Err(Refusal::Challenged);
        }
        self.end(match self.state {
            State::SynReceived if self.active => Some(Error::Refused),
            State::Closing | State::LastAck | State::TimeWait => None,
            _ => Some(Error::Reset),
        });
        Ok(true)
    }

    /// A SYN inside a connection: a peer that has restarted answers the challenge with a reset, a
    /// forger does not see it.
    pub(super) fn check_syn(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), Refusal> {
        if !segment.flags().contains(TcpFlags::SYN) {
            return Ok(());
        }
        if self.state != State::SynReceived || segment.seq != self.rcv.irs {
            self.challenge(now);
            return Err(Refusal::Challenged);
        }
        if self.ecn.is_contradicted_by(segment.flags()) {
            // Nobody could know which of the modes each end is in (RFC 9768 §3.1.5).
            self.abort_with(Error::Contradiction, Reset::echo(segment));
            return Err(Refusal::Closed);
        }
        self.ecn.note_heard_syn(segment.flags());
        if !segment.flags().contains(TcpFlags::ACK) {
            self.first_due = true;
            self.output_due = true;
        }
        Ok(())
    }

    /// Owes an acknowledgement that tells an honest peer where we are, unless one has just left.
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.may_challenge(now) {
            self.statistics.challenge_acks += 1;
            self.owe_challenge();
        }
    }

    fn owe_challenge(&mut self) {
        self.challenge_due |= !self.ack_due;
        self.ack_due = true;
        self.output_due = true;
    }

    /// Does an acknowledgement wait that answers what may be a forgery, and says nothing else? A host
    /// that has sent too many of these calls [`Connection::withhold_challenge`].
    #[must_use]
    pub const fn owes_challenge(&self) -> bool {
        self.ack_due && self.challenge_due
    }

    /// Leaves out the challenge that waits, if one does (RFC 5961 §7).
    pub fn withhold_challenge(&mut self) {
        if self.owes_challenge() {
            self.ack_due = false;
            self.first_due &= !self.state.is_synchronized();
            self.statistics.challenges_withheld += 1;
        }
    }

    /// Owes the acknowledgement that answers a segment which is not acceptable. An empty one may be
    /// such an answer itself: if each were answered, two ends that have lost each other would never
    /// fall silent.
    pub(super) fn answer_unacceptable(&mut self, now: Instant, segment: &Segment<'_>) {
        let says_something = !segment.payload.is_empty() || segment.flags().contains(TcpFlags::FIN);
        if says_something {
            self.owe_ack();
        } else if self.may_challenge(now) {
            self.owe_challenge();
            self.repeat_end_of_handshake(segment);
        }
    }

    /// At most one in a while: an attacker must not learn from their rhythm, nor use us as an amplifier
    /// (RFC 5961 §7).
    fn may_challenge(&mut self, now: Instant) -> bool {
        let may = now >= self.next_challenge;
        if may {
            self.next_challenge = now + self.config.challenge_interval;
        }
        may
    }

    /// A SYN that may begin the next incarnation while this one is in TIME-WAIT: its numbers lie
    /// beyond all that we have seen (RFC 9293 MAY-2), or its timestamp does (RFC 6191 §2).
    pub(super) fn opens_again(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags() & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST);
        if flags != TcpFlags::SYN {
            return false;
        }
        let is_beyond = segment.seq.after(self.rcv.nxt);
        match segment.timestamps().filter(|_| self.config.timestamps) {
            Some(stamp) if self.timestamps.on && stamp.value == self.timestamps.recent => is_beyond,
            Some(stamp) if self.timestamps.on => before(self.timestamps.recent, stamp.value),
            // The one that is in TIME-WAIT had no timestamps, so this SYN is none of its own.
            Some(_) => true,
            None => is_beyond,
        }
    }
}
