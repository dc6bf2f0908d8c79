//! The checks of RST, and of SYNs in TIME-WAIT (RFC 9293 §3.10.7.4, second and fourth step; RFC
//! 5961 §3).

use super::{Refused, Valid, Verdict};
use crate::input::Refusal;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    /// Checks a reset. It is accepted at exactly RCV.NXT, answered with a challenge acknowledgement
    /// elsewhere in the window, and dropped outside it.
    #[cold]
    pub(super) fn validate_reset<'a>(
        &self,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        // A peer that has closed and forgotten the connection answers our acknowledgement of an old
        // segment with such a reset. TIME-WAIT must survive the reset, or a later old segment could
        // reach a new connection (RFC 1337).
        if self.state == State::TimeWait && self.config.time_wait_outlives_resets {
            return Err(Refused::silently(Refusal::ResetInTimeWait));
        }
        if segment.seq == self.rcv.nxt {
            return Ok(Verdict::Resets(Valid(segment)));
        }
        let is_inside = segment.seq.within(self.rcv.nxt, self.rcv.window());
        Err(if is_inside {
            Refused::challenged(Refusal::Challenged)
        } else {
            Refused::silently(Refusal::OutsideWindow)
        })
    }

    /// May a SYN in TIME-WAIT begin a new incarnation of the connection? Its sequence number must
    /// be beyond all received ones (RFC 9293 MAY-2), or its timestamp must be newer (RFC 6191 §2).
    pub(super) fn opens_again(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags() & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST);
        if flags != TcpFlags::SYN {
            return false;
        }
        let is_beyond = segment.seq.after(self.rcv.nxt);
        match segment.timestamps().filter(|_| self.config.timestamps) {
            Some(stamp) if self.timestamps.on && stamp.value == self.timestamps.recent => is_beyond,
            Some(stamp) if self.timestamps.on => before(self.timestamps.recent, stamp.value),
            // The connection in TIME-WAIT had no timestamps, so this SYN is not part of it.
            Some(_) => true,
            None => is_beyond,
        }
    }
}
