//! Validation of an arriving segment (RFC 9293 §3.10.7).
//!
//! Everything here is a pure function of a connection and a segment. A [`Valid`] segment can be
//! made only in this module and its children, and every function that changes a connection for what
//! a segment says takes one. So nothing of a refused segment can reach the connection: not its
//! timestamps, not its window, not its options (RFC 5961 §5.2). [`Refused`] says which answer it
//! gets.

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
/// A reference and nothing more, so that it costs the fast path nothing.
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
    /// The segment that led to `disposition`, if the connection has found it valid.
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

/// The meaning of a valid segment.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// In SYN-SENT: the peer's SYN, with or without an acknowledgement of ours.
    Synchronizes(Valid<'a>),
    /// A reset that ends the connection.
    Resets(Valid<'a>),
    /// In SYN-RECEIVED: the peer's SYN again, because our SYN-ACK was lost.
    RepeatsSyn(Valid<'a>),
    /// In SYN-RECEIVED: the peer's SYN again, which now asks for another mode of ECN (RFC 9768
    /// §3.1.5).
    Contradicts(Valid<'a>),
    /// The peer's SYN-ACK again, to which the accurate mode of ECN has an answer of its own (RFC
    /// 9768 §3.2.2.1).
    RepeatsSynAck(Valid<'a>),
    /// Part of it lies in the window.
    InWindow(InWindow<'a>),
    /// Everything in it had arrived before. Its acknowledgement may still be news.
    Duplicates(Valid<'a>, Option<Timestamps>),
    /// A SYN for the next incarnation of a connection in TIME-WAIT.
    OpensAgain,
}

/// A valid segment of which part lies in the window.
#[derive(Debug)]
pub(super) struct InWindow<'a> {
    pub(super) segment: Valid<'a>,
    /// The part in the window.
    pub(super) text: Text<'a>,
    /// The timestamps of the segment, if both ends use them.
    pub(super) timestamps: Option<Timestamps>,
}

/// A segment that fails a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    pub(super) answer: Answer,
}

/// The answer that a refused segment gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No answer.
    Nothing,
    /// An acknowledgement.
    Acknowledgement,
    /// An acknowledgement, if the budget of challenge ACKs allows one. The segment is empty, so it
    /// may be such an answer itself: were each answered, two ends that have lost each other would
    /// never fall silent.
    LimitedAcknowledgement,
    /// A challenge ACK, if their budget allows one (RFC 5961 §7).
    Challenge,
    /// `<SEQ=SEG.ACK><CTL=RST>`.
    Reset,
}

impl Refused {
    /// A segment that is dropped in silence.
    const fn silently(why: Refusal) -> Self {
        Self { why, answer: Answer::Nothing }
    }

    /// A segment that acknowledges what it cannot.
    const fn reset(why: Refusal) -> Self {
        Self { why, answer: Answer::Reset }
    }

    /// A segment that could be forged (RFC 5961).
    const fn challenged(why: Refusal) -> Self {
        Self { why, answer: Answer::Challenge }
    }

    /// A segment that is not acceptable.
    fn unacceptable(why: Refusal, segment: &Segment<'_>) -> Self {
        Self { why, answer: Answer::to_unacceptable(segment) }
    }
}

impl Answer {
    /// The answer to a segment that is not acceptable (RFC 9293 §3.10.7.4 first).
    pub(super) fn to_unacceptable(segment: &Segment<'_>) -> Self {
        let says_something = !segment.payload.is_empty() || segment.flags().contains(TcpFlags::FIN);
        if says_something { Self::Acknowledgement } else { Self::LimitedAcknowledgement }
    }
}

impl Connection {
    /// Checks a segment, whatever the state.
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

    /// The checks of §3.10.7.4, "otherwise", in their order.
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
            // A peer that has restarted answers the challenge with a reset; a forger does not see
            // it.
            return Err(Refused::challenged(Refusal::Challenged));
        }
        self.check_ack(segment)?;
        // Nothing follows the peer's FIN. An old duplicate, or a peer that has lost its state, gets
        // the acknowledgement that tells it where this end is (§3.10.7.4 first).
        if self.state == State::TimeWait && !text.is_empty_at(self.rcv.nxt) {
            return Err(Refused::unacceptable(Refusal::OutsideWindow, segment));
        }
        Ok(Verdict::InWindow(InWindow { segment: Valid(segment), text, timestamps }))
    }

    /// Whether a segment that lies before the window is a duplicate, and not one of another
    /// connection: it has been in the window, and its acknowledgement is acceptable.
    fn is_duplicate(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags() & (TcpFlags::ACK | TcpFlags::SYN);
        let window = self.receiver.largest_window;
        flags == TcpFlags::ACK
            && self.state.is_synchronized()
            && segment.seq.within(self.rcv.nxt - window, window)
            && self.check_ack(segment).is_ok()
    }
}
