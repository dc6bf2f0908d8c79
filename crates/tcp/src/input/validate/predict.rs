//! Header prediction.
//!
//! In the middle of a bulk transfer the next segment looks like the last one with one number
//! changed (Jacobson, 1988). The word of data offset and flags that it will have is kept ready; one
//! compare with it covers the connection's state, flags, options, holes and recovery, because
//! whatever spoils a prediction has set it to 0, which no segment has, at the end of the slow path.
//! Then the sequence number must be the next one, and the timestamp must stand where every stack
//! puts it and not be old.
//!
//! A predicted segment is a pure acknowledgement (we are the sender, and the acknowledged bytes
//! leave the send buffer), or data (we are the receiver, and it is appended to the receive buffer),
//! or both, as in a dialogue. Everything else takes the slow path, which alone could do all of it.

use super::Valid;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags, Timestamps};

/// The bits of data offset and flags that are compared: all but PSH, which says nothing about how
/// to treat a segment. ECN's bits and the reserved ones count, so that they take the slow path.
pub(super) const COMPARED: u16 = !TcpFlags::PSH.bits();

/// The result of header prediction. It checks no less than the slow path, so a predicted segment is
/// valid.
#[derive(Clone, Copy, Debug)]
pub(in crate::input) enum Prediction<'a> {
    /// A pure acknowledgement in order: `acked` bytes leave the send buffer. Zero if it announces
    /// another window and nothing else.
    Ack {
        segment: Valid<'a>,
        /// Newly acknowledged bytes.
        acked: u32,
    },
    /// Data in order that acknowledges nothing new: `length` bytes go to the receive buffer.
    Data {
        segment: Valid<'a>,
        /// Timestamp of the segment; meaningless if the connection uses none.
        stamp: u32,
        /// Bytes of data.
        length: u32,
    },
    /// Data in order that acknowledges something new as well.
    Both {
        segment: Valid<'a>,
        /// Timestamp of the segment; meaningless if the connection uses none.
        stamp: u32,
        /// Bytes of data.
        length: u32,
    },
    /// The slow path must look at it: [why](MissReason) is found out there.
    Miss,
}

/// Why a segment was not predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum MissReason {
    /// Prediction is switched off.
    Disabled,
    /// The connection is not in ESTABLISHED (opening or closing), or the application has stopped
    /// reading.
    State,
    /// SYN, FIN, RST, URG, an ECN bit, or no ACK.
    Flags,
    /// The packet was marked by a router, or the peer reports marks in the ACE field alone.
    Mark,
    /// Options other than the agreed ones: SACK blocks, as a rule.
    Options,
    /// Not the next sequence number: a loss, a duplicate, or reordering.
    Sequence,
    /// Data beyond a hole waits for reassembly, or urgent data to be read or to be acknowledged.
    Reassembly,
    /// Lost segments are being sent again, or it is being found out what the path takes.
    Recovery,
    /// A timestamp from the past.
    Timestamp,
    /// A duplicate or impossible acknowledgement.
    Acknowledgement,
    /// More data than the window has room for.
    Room,
}

impl MissReason {
    /// All reasons.
    pub const ALL: [Self; 11] = [
        Self::Disabled,
        Self::State,
        Self::Flags,
        Self::Mark,
        Self::Options,
        Self::Sequence,
        Self::Reassembly,
        Self::Recovery,
        Self::Timestamp,
        Self::Acknowledgement,
        Self::Room,
    ];

    /// The reason in a word or two, for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::State => "state",
            Self::Flags => "flags",
            Self::Mark => "mark",
            Self::Options => "options",
            Self::Sequence => "sequence",
            Self::Reassembly => "reassembly",
            Self::Recovery => "recovery",
            Self::Timestamp => "timestamp",
            Self::Acknowledgement => "acknowledgement",
            Self::Room => "room",
        }
    }
}

/// Predicts the meaning of `segment`.
#[inline(always)]
pub(in crate::input) fn predict<'a>(c: &Connection, segment: &'a Segment<'a>) -> Prediction<'a> {
    if !is_header_predicted(c, segment.offset_and_flags) || segment.seq != c.rcv.nxt {
        return Prediction::Miss;
    }
    let Some(stamp) = stamp_as_agreed(c, segment) else { return Prediction::Miss };
    if segment.payload.is_empty() {
        predict_ack(c, segment)
    } else {
        predict_data(c, segment, stamp)
    }
}

/// The last of several segments of data, each of which is in its place and was predicted when it
/// came, by [`Connection::room_for_predicted`] or [`Connection::going_on`].
#[inline(always)]
pub(in crate::input) fn predicted_before<'a>(c: &Connection, last: &'a Segment<'a>) -> Valid<'a> {
    debug_assert!(
        is_header_predicted(c, last.offset_and_flags)
            && last.ack - c.snd.una <= c.snd.flight()
            && stamp_as_agreed(c, last).is_some(),
        "{last:?} was never predicted"
    );
    Valid(last)
}

/// Is the first word of the header, of data offset and control bits, the one that the next segment
/// is predicted to have?
#[inline(always)]
pub(in crate::input) const fn is_header_predicted(c: &Connection, offset_and_flags: u16) -> bool {
    offset_and_flags & COMPARED == c.expectation.header()
}

/// We are the sender.
#[inline(always)]
fn predict_ack<'a>(c: &Connection, segment: &'a Segment<'a>) -> Prediction<'a> {
    let acked = segment.ack - c.snd.una;
    let window_only = acked == 0 && c.scaled(segment.window) != c.snd.wnd;
    if (acked > 0 && acked <= c.snd.flight()) || window_only {
        Prediction::Ack { segment: Valid(segment), acked }
    } else {
        Prediction::Miss
    }
}

/// We are the receiver, and perhaps a sender, too.
#[inline(always)]
fn predict_data<'a>(c: &Connection, segment: &'a Segment<'a>, stamp: u32) -> Prediction<'a> {
    if segment.payload.len() > c.rcv.window() as usize {
        return Prediction::Miss;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a window has thirty-two bits")]
    let length = segment.payload.len() as u32;
    let predicted = Valid(segment);
    if segment.ack == c.snd.una {
        return Prediction::Data { segment: predicted, stamp, length };
    }
    let acked = segment.ack - c.snd.una;
    if acked <= c.snd.flight() {
        Prediction::Both { segment: predicted, stamp, length }
    } else {
        Prediction::Miss
    }
}

/// The timestamp of a segment whose header is as predicted, if it is not old, or any number if none
/// was agreed on. That one was tells the room that its options have, for it and nothing else.
#[inline(always)]
pub(super) fn stamp_as_agreed(c: &Connection, segment: &Segment<'_>) -> Option<u32> {
    match Timestamps::alone(segment.options) {
        Some(stamp) if before(stamp.value, c.timestamps.recent) => None,
        Some(stamp) => Some(stamp.value),
        None if c.timestamps.on => None,
        None => Some(0),
    }
}

/// Why `segment` was not predicted: the first of what [`predict`] asks that it fails.
pub(in crate::input) fn why_it_missed(c: &Connection, segment: &Segment<'_>) -> MissReason {
    if !is_header_predicted(c, segment.offset_and_flags) {
        why_the_header_differs(c, segment.flags())
    } else if segment.seq != c.rcv.nxt {
        MissReason::Sequence
    } else if stamp_as_agreed(c, segment).is_none() {
        why_the_timestamp_differs(segment.options)
    } else if segment.payload.len() > c.rcv.window() as usize {
        MissReason::Room
    } else {
        MissReason::Acknowledgement
    }
}

/// The compare of words failed: whatever made the prediction 0, or what is odd about the segment.
#[cold]
pub(in crate::input) fn why_the_header_differs(c: &Connection, flags: TcpFlags) -> MissReason {
    if c.expectation.header() == 0 {
        return spoiler(c).unwrap_or(MissReason::State);
    }
    let expected = TcpFlags::ACK | c.expected_ace();
    if flags - TcpFlags::PSH == expected { MissReason::Options } else { MissReason::Flags }
}

#[cold]
fn why_the_timestamp_differs(options: &[u8]) -> MissReason {
    if Timestamps::alone(options).is_some() { MissReason::Timestamp } else { MissReason::Options }
}

/// Returns the reason that currently forbids any prediction.
fn spoiler(c: &Connection) -> Option<MissReason> {
    if !c.preferences.header_prediction {
        Some(MissReason::Disabled)
    } else if c.state != State::Established || c.receiver.shut {
        Some(MissReason::State)
    } else if !c.receiver.assembler.is_empty()
        || c.receiver.urgent.is_some()
        || c.receiver.fin.is_some()
        || c.sender.urgent.is_some()
    {
        Some(MissReason::Reassembly)
    } else if !c.is_outside_recovery() || c.sender.path.is_asking() {
        Some(MissReason::Recovery)
    } else if c.is_ace_ambiguous() {
        Some(MissReason::Mark)
    } else {
        None
    }
}

/// Derives data offset and flags that the next segment of `c` should have, or 0 if nothing is
/// predicted.
#[inline]
pub(crate) fn expected_header(c: &Connection) -> u16 {
    if c.state != State::Established || spoiler(c).is_some() {
        return 0;
    }
    c.plain_header() | c.expected_ace().bits()
}

impl Connection {
    /// The word of a segment that bears the options that every one does, and no control bit but
    /// ACK.
    #[inline(always)]
    pub(super) const fn plain_header(&self) -> u16 {
        let words: u16 = if self.timestamps.on { 8 } else { 5 };
        words << 12 | TcpFlags::ACK.bits()
    }
}
