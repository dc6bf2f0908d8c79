//! The processing of resets, and the limit of challenge ACKs (RFC 9293 §3.10.7.4, RFC 5961).

use super::Disposition;
use super::validate::Valid;
use crate::{Connection, Error, State};
use linerate_units::Instant;

impl Connection {
    /// Ends the connection, because the peer has reset it.
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

    /// Schedules a challenge ACK, which the host may suppress. If an acknowledgement is due already
    /// for another reason, it serves as the challenge ACK as well. The host must not suppress that
    /// one.
    pub(crate) const fn owe_challenge(&mut self) {
        self.challenge_due |= !self.ack_due && !self.first_due;
        self.ack_due = true;
        self.output_due = true;
    }

    /// Whether the acknowledgement that is due is only a challenge ACK. If so, a host that has sent
    /// too many challenge ACKs calls [`crate::Driver::withhold_challenge`].
    #[must_use]
    pub const fn owes_challenge(&self) -> bool {
        self.ack_due && self.challenge_due
    }

    pub(crate) fn withhold_challenge(&mut self) {
        if self.owes_challenge() {
            self.ack_due = false;
            self.first_due &= !self.state.is_synchronized();
            self.statistics.challenges_withheld += 1;
        }
    }

    /// Returns whether a challenge ACK may be sent at `now`. If so, the next one may be sent only
    /// after [`challenge_interval`](crate::Config::challenge_interval). The rate is limited so that
    /// an attacker can neither infer the connection's state from challenge ACKs nor use them for
    /// amplification (RFC 5961 §7).
    pub(crate) fn may_challenge(&mut self, now: Instant) -> bool {
        let may = now >= self.next_challenge;
        if may {
            self.next_challenge = now + self.config.challenge_interval;
        }
        may
    }
}
