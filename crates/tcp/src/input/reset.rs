//! What a reset does, and the budget of challenge ACKs (RFC 9293 §3.10.7.4, RFC 5961).

use super::Disposition;
use super::validate::Valid;
use crate::{Connection, Error, State};
use linerate_units::Instant;

impl Connection {
    /// A reset ends the connection.
    #[cold]
    pub(super) fn apply_reset(&mut self, _: Valid<'_>) -> Disposition {
        self.end(match self.state {
            State::SynSent => Some(Error::Refused),
            State::SynReceived if self.active => Some(Error::Refused),
            State::Closing | State::LastAck | State::TimeWait => None,
            _ => Some(Error::Reset),
        });
        Disposition::Accepted
    }

    /// Owes an acknowledgement that may be withheld. One that has another reason stays due.
    pub(crate) const fn owe_challenge(&mut self) {
        self.challenge_due |= !self.ack_due && !self.first_due;
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

    /// Takes one challenge ACK from their budget: at most one in a while. An attacker must not learn from
    /// their rhythm, nor use us as an amplifier (RFC 5961 §7).
    pub(crate) fn may_challenge(&mut self, now: Instant) -> bool {
        let may = now >= self.next_challenge;
        if may {
            self.next_challenge = now + self.config.challenge_interval;
        }
        may
    }
}
