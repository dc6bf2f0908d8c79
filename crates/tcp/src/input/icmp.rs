//! What a network error means that quotes one of our segments (RFC 5461, RFC 5927, RFC 1191).

use crate::event::Events;
use crate::send::scoreboard::Verdict;
use crate::{Connection, Error, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// An ICMP error, in the words that matter to a connection. `quoted` is the sequence number of the
/// segment that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpReport {
    /// The peer's host says that nothing is there: protocol or port unreachable.
    HardError {
        /// Sequence number of the quoted segment.
        quoted: SeqNum,
    },
    /// A path is broken now, and perhaps not later.
    SoftError {
        /// Sequence number of the quoted segment.
        quoted: SeqNum,
    },
    /// The segment was too large for a link of the path.
    PacketTooBig {
        /// Sequence number of the quoted segment.
        quoted: SeqNum,
        /// TCP header and data that do fit.
        mtu_payload: usize,
    },
}

/// The smallest path MTU believed, less the IP header: what every host of today can reassemble
/// (576), so that a forged report cannot shrink segments to nothing.
const SMALLEST_MTU_PAYLOAD: usize = 556;

impl Connection {
    /// Takes an ICMP error. A quoted number that is not in flight proves nothing and is ignored (RFC
    /// 5927 §4.1).
    pub fn handle_icmp(&mut self, now: Instant, report: IcmpReport) {
        let (IcmpReport::HardError { quoted }
        | IcmpReport::SoftError { quoted }
        | IcmpReport::PacketTooBig { quoted, .. }) = report;
        if !quoted.within(self.snd.una, self.snd.flight()) {
            return;
        }
        match report {
            // In a synchronized state a hard error is treated as a soft one (RFC 5927 §5.2).
            IcmpReport::HardError { .. } if !self.state.is_synchronized() => self.give_up_handshake(),
            // It may pass. If it does not, it is the reason why the peer was silent.
            IcmpReport::HardError { .. } | IcmpReport::SoftError { .. } => {
                self.sender.unreachable = true;
                self.events |= Events::TROUBLE;
            }
            IcmpReport::PacketTooBig { mtu_payload, .. } => self.shrink_segments(now, mtu_payload),
        }
    }

    fn give_up_handshake(&mut self) {
        match self.state {
            State::SynSent => self.end(Some(Error::Refused)),
            State::SynReceived => self.end(Some(Error::Unreachable)),
            _ => {}
        }
    }

    /// The path takes smaller segments: send what was lost again, cut anew. No congestion caused
    /// this, so the window stays (RFC 1191 §6.5), in segments (RFC 5681 §3.1).
    fn shrink_segments(&mut self, _now: Instant, mtu_payload: usize) {
        let mtu_payload = mtu_payload.max(SMALLEST_MTU_PAYLOAD);
        if mtu_payload >= self.path.mtu_payload {
            return;
        }
        self.path.mtu_payload = mtu_payload;
        self.sender.mss = self.sender.mss.min(self.path.mss());
        let full = self.full_segment();
        self.sender.congestion.controller().window_mut().set_mss(full);
        if self.state.sends_data() {
            self.sender.rtt.stop_timing();
            if self.agreement.selective_acks {
                self.sender.scoreboard.mark_lost(|_| Verdict::Lost);
            } else {
                self.snd.nxt = self.snd.una;
            }
            self.output_due = true;
        }
        self.refresh_prediction();
    }
}
