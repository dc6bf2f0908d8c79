//! The handling of ICMP errors that quote one of our segments (RFC 5461, RFC 5927, RFC 1191).

use crate::event::Events;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// An ICMP error about a segment of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpReport {
    /// The peer's host refuses the segment: protocol or port unreachable.
    HardError {
        /// The sequence number of the quoted segment.
        quoted: SeqNum,
    },
    /// The network cannot deliver the segment, perhaps only temporarily.
    SoftError {
        /// The sequence number of the quoted segment.
        quoted: SeqNum,
    },
    /// The packet exceeded the MTU of a link on the path.
    PacketTooBig {
        /// The sequence number of the quoted segment.
        quoted: SeqNum,
        /// The number of bytes of TCP header and data that fit a packet on that link.
        mtu_payload: usize,
    },
}

impl Connection {
    pub(crate) fn handle_icmp(&mut self, now: Instant, report: IcmpReport) {
        self.slow(|connection| connection.take_report(now, report));
    }

    fn take_report(&mut self, now: Instant, report: IcmpReport) {
        let (IcmpReport::HardError { quoted }
        | IcmpReport::SoftError { quoted }
        | IcmpReport::PacketTooBig { quoted, .. }) = report;
        if !quoted.within(self.snd.una, self.snd.flight()) {
            return;
        }
        match report {
            // During the handshake, a hard error ends the connection. After the handshake, the next
            // arm of this match treats it like a soft error (RFC 5927 §5.2).
            IcmpReport::HardError { .. } if !self.state.is_synchronized() => {
                self.give_up_handshake();
            }
            // These errors do not end the connection, because the problem may be temporary. If it
            // persists, the connection ends when its retransmissions time out. The ICMP error is
            // then reported as the reason.
            IcmpReport::HardError { .. } | IcmpReport::SoftError { .. } => {
                self.sender.unreachable = true;
                self.events |= Events::SOFT_ERROR;
            }
            IcmpReport::PacketTooBig { mtu_payload, .. } => {
                self.judge_size_report(now, quoted, mtu_payload);
            }
        }
    }

    fn give_up_handshake(&mut self) {
        match self.state {
            State::SynSent => self.end(Some(Error::Refused)),
            State::SynReceived => self.end(Some(Error::Unreachable)),
            _ => {}
        }
    }
}
