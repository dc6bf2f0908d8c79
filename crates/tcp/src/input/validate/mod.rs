//! Validation of an arriving segment (RFC 9293 §3.10.7).
//!
//! All functions of this module are pure functions of a connection and a segment. Every function
//! that applies a segment to a connection takes a [`Valid`] segment, and only this module and its
//! children can create one. A refused segment therefore cannot change timestamps, windows or
//! options (RFC 5961 §5.2). [`Refused`] contains the answer to it.

mod ack;
pub(crate) mod control;
mod handshake;
pub(crate) mod predict;
mod reset;
pub(super) mod sequence;

use super::{Disposition, Refusal};
use crate::{Connection, State};
use core::ops::Deref;
use linerate_units::Instant;
use linerate_wire::{Segment, TcpFlags, Timestamps};
use sequence::{Place, Text};

/// A segment that has passed every check of its connection.
///
/// The type is only a reference, so it costs nothing on the fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Valid<'a>(&'a Segment<'a>);

impl<'a> Deref for Valid<'a> {
    type Target = Segment<'a>;

    #[inline(always)]
    fn deref(&self) -> &Segment<'a> {
        self.0
    }
}

impl<'a> Valid<'a> {
    /// Returns `segment` as a valid segment, if the connection has processed it with the result
    /// `disposition`. `None` if `disposition` shows that it was refused.
    pub(crate) const fn of_disposition(
        segment: &'a Segment<'a>,
        disposition: Disposition,
    ) -> Option<Self> {
        match disposition {
            Disposition::Accepted
            | Disposition::Duplicate
            | Disposition::NoMemory
            | Disposition::DataRefused => Some(Self(segment)),
            Disposition::Refused(_) | Disposition::OpenAgain => None,
        }
    }
}

/// The meaning of a valid segment in the present state of the connection.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// In SYN-SENT: the peer's SYN, which may also acknowledge our SYN.
    Synchronizes(Valid<'a>),
    /// A reset that ends the connection.
    Resets(Valid<'a>),
    /// In SYN-RECEIVED: the peer repeats its SYN, because our SYN-ACK was lost.
    RepeatsSyn(Valid<'a>),
    /// In SYN-RECEIVED: the peer repeats its SYN, but requests another ECN mode (RFC 9768 §3.1.5).
    Contradicts(Valid<'a>),
    /// The peer repeats its SYN-ACK, which a connection in AccECN mode answers by another copy of
    /// the ACK that completes the handshake (RFC 9768 §3.2.2.1).
    RepeatsSynAck(Valid<'a>),
    /// At least a part of the segment lies in the receive window.
    InWindow(InWindow<'a>),
    /// All data of the segment had arrived before. Its acknowledgement may still be new.
    Duplicates(Valid<'a>, Option<Timestamps>),
    /// A SYN for the next incarnation of a connection in TIME-WAIT.
    OpensAgain,
}

/// A valid segment that lies at least partly in the receive window.
#[derive(Debug)]
pub(super) struct InWindow<'a> {
    pub(super) segment: Valid<'a>,
    /// The part of the segment that lies in the receive window.
    pub(super) text: Text<'a>,
    /// The timestamps of the segment, if both endpoints use them.
    pub(super) timestamps: Option<Timestamps>,
}

/// A segment that has failed a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    pub(super) answer: Answer,
}

/// The answer to a refused segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The segment is dropped without an answer.
    Nothing,
    /// An acknowledgement, which shows the present sequence numbers and window to the peer.
    Acknowledgement,
    /// An acknowledgement, if the limit for challenge ACKs allows one. It is the answer to a
    /// segment without data and FIN, which may itself be such an answer. Without the limit, two
    /// endpoints that disagree about sequence numbers would answer each other's answers for ever.
    LimitedAcknowledgement,
    /// A challenge ACK, if the limit for challenge ACKs allows one (RFC 5961 §7).
    Challenge,
    /// A reset with the sequence number SEG.ACK: `<SEQ=SEG.ACK><CTL=RST>`.
    Reset,
}

impl Refused {
    /// Creates the refusal of a segment that gets no answer.
    const fn silently(why: Refusal) -> Self {
        Self { why, answer: Answer::Nothing }
    }

    /// Creates the refusal of a segment whose acknowledgement number the connection cannot have
    /// caused. The answer is a reset.
    const fn reset(why: Refusal) -> Self {
        Self { why, answer: Answer::Reset }
    }

    /// Creates the refusal of a segment that an attacker may have forged. It is answered by a
    /// challenge ACK (RFC 5961).
    const fn challenged(why: Refusal) -> Self {
        Self { why, answer: Answer::Challenge }
    }

    /// Creates the refusal of an unacceptable segment: outside the receive window, or with an
    /// acknowledgement of data that was never sent.
    fn unacceptable(why: Refusal, segment: &Segment<'_>) -> Self {
        Self { why, answer: Answer::to_unacceptable(segment) }
    }
}

impl Answer {
    /// Returns the answer to an unacceptable segment (RFC 9293 §3.10.7.4, first step). Answers to
    /// segments with neither data nor a FIN are limited in number.
    pub(super) fn to_unacceptable(segment: &Segment<'_>) -> Self {
        let says_something = !segment.payload.is_empty() || segment.flags().contains(TcpFlags::FIN);
        if says_something { Self::Acknowledgement } else { Self::LimitedAcknowledgement }
    }
}

impl Connection {
    /// Validates a segment in any state of the connection.
    #[inline(always)]
    pub(super) fn validate<'a>(
        &self,
        now: Instant,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        match self.state {
            State::Closed => Err(Refused::silently(Refusal::Closed)),
            State::SynSent => self.validate_in_syn_sent(segment),
            State::TimeWait if self.opens_again(segment) => Ok(Verdict::OpensAgain),
            _ => self.validate_in_sequence(now, segment),
        }
    }

    /// Performs the checks of RFC 9293 §3.10.7.4 for all states after SYN-SENT, in the order of the
    /// RFC.
    #[inline(always)]
    fn validate_in_sequence<'a>(
        &self,
        now: Instant,
        segment: &'a Segment<'a>,
    ) -> Result<Verdict<'a>, Refused> {
        let timestamps = self.check_timestamps(now, segment)?;
        let flags = segment.flags();
        if flags.contains(TcpFlags::RST) {
            return self.validate_reset(segment);
        }
        let is_first_syn_again = flags.contains(TcpFlags::SYN) && segment.seq == self.rcv.irs;
        if is_first_syn_again && let Some(verdict) = self.validate_repeated_syn(segment, timestamps)
        {
            return verdict;
        }
        let text = match Place::of(&self.rcv, segment) {
            Place::InWindow(text) => text,
            Place::Before if self.is_duplicate(segment) => {
                return Ok(Verdict::Duplicates(Valid(segment), timestamps));
            }
            Place::Before | Place::Beyond => {
                return Err(Refused::unacceptable(Refusal::OutsideWindow, segment));
            }
        };
        if flags.contains(TcpFlags::SYN) {
            // This SYN comes from a peer that has restarted, or from an attacker. In both cases,
            // the challenge ACK goes to the peer. The peer answers it by a reset only if it has
            // restarted.
            return Err(Refused::challenged(Refusal::Challenged));
        }
        self.check_ack(segment)?;
        // In TIME-WAIT, the peer has sent its FIN, after which no data can follow. Either this
        // segment is old, or the peer has lost its state. The answer is an acknowledgement, which
        // shows our sequence numbers to the peer (RFC 9293 §3.10.7.4, first step).
        if self.state == State::TimeWait && !text.is_empty_at(self.rcv.nxt) {
            return Err(Refused::unacceptable(Refusal::OutsideWindow, segment));
        }
        Ok(Verdict::InWindow(InWindow { segment: Valid(segment), text, timestamps }))
    }

    /// Whether a segment before the receive window is a duplicate of data of this connection. If it
    /// is, its sequence number precedes RCV.NXT by at most the largest window that we can announce
    /// with the negotiated scale, and its acknowledgement number is acceptable.
    fn is_duplicate(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags() & (TcpFlags::ACK | TcpFlags::SYN);
        let window = self.receiver.largest_window;
        flags == TcpFlags::ACK
            && self.state.is_synchronized()
            && segment.seq.within(self.rcv.nxt - window, window)
            && self.check_ack(segment).is_ok()
    }
}
