//! The checks of resets, and of SYNs in TIME-WAIT (RFC 9293 §3.10.7.4, second and fourth step; RFC
//! 5961 §3).

use super::{Refused, Valid, Verdict};
use crate::input::Refusal;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags};

impl Connection {
    /// Checks a reset (RFC 5961 §3). It is accepted if its sequence number is RCV.NXT, answered by
    /// a challenge ACK elsewhere in the receive window, and ignored outside it.
    #[cold]
    pub(super) fn validate_reset<'a>(
        &self,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        // In TIME-WAIT, we acknowledge old segments. A peer that has lost the connection's state
        // answers such an acknowledgement by a reset. If this reset ended TIME-WAIT, a new
        // connection with the same ports could accept another old segment (RFC 1337).
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

    /// Whether a SYN in TIME-WAIT may open a new incarnation of the connection. If the connection
    /// uses timestamps, the timestamp of the SYN must be newer than TS.Recent (RFC 6191 §2). If it
    /// is equal, or if the SYN has no timestamp, the sequence number must be after RCV.NXT (RFC
    /// 9293 MAY-2).
    pub(super) fn opens_again(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags() & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST);
        if flags != TcpFlags::SYN {
            return false;
        }
        let is_beyond = segment.seq.after(self.rcv.nxt);
        match segment.timestamps().filter(|_| self.config.timestamps) {
            Some(stamp) if self.timestamps.on && stamp.value == self.timestamps.recent => is_beyond,
            Some(stamp) if self.timestamps.on => before(self.timestamps.recent, stamp.value),
            // The connection in TIME-WAIT did not use timestamps, so this SYN cannot be one of its
            // old segments.
            Some(_) => true,
            None => is_beyond,
        }
    }
}
