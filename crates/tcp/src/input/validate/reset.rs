//! The checks of RST, and of SYNs in TIME-WAIT (RFC 9293 §3.10.7.4 second and fourth, RFC 5961 §3).

use super::{Refused, Valid, Verdict};
use crate::input::Refusal;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    /// Checks a reset. It counts only at exactly RCV.NXT; elsewhere in the window it is challenged, and
    /// outside it is dropped.
    #[cold]
    pub(super) fn validate_reset<'a>(
        &self,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        // An old segment that we answer makes a peer that has forgotten the connection send just this
        // reset. TIME-WAIT must outlive it, or the next old segment meets a new connection (RFC 1337).
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

    /// Whether a SYN in TIME-WAIT may begin the next incarnation: its number lies beyond all that was
    /// received (RFC 9293 MAY-2), or its timestamp does (RFC 6191 §2).
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
