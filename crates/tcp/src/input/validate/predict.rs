//! Header prediction (Jacobson, 1988).
//!
//! In a bulk transfer, a header usually equals the header before it, except for the sequence number
//! or the acknowledgement number. The connection therefore stores the expected value of one word of
//! the header, which contains data offset and flags. A comparison with that word covers the flags,
//! the options, the state of the connection, missing data and recovery. These conditions are
//! checked whenever the slow path ends. If one of them forbids prediction, the stored word becomes
//! zero, a value that no segment has. For each segment, two more checks remain. The sequence number
//! must be the next one. The timestamp must be at its usual place and must not be old.
//!
//! A predicted segment is an acknowledgement of data that we have sent, or data that we receive, or
//! both, as in a dialogue. All other segments take the slow path.

use super::Valid;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags, Timestamps};

/// The bits of data offset and flags that header prediction compares: all except PSH, which does
/// not affect processing. ECN bits and reserved bits are included, so a segment with unexpected
/// bits takes the slow path.
pub(super) const COMPARED: u16 = !TcpFlags::PSH.bits();

/// The result of header prediction. Its checks are at least as strict as those of the slow path, so
/// a predicted segment is valid.
#[derive(Clone, Copy, Debug)]
pub(in crate::input) enum Prediction<'a> {
    /// An acknowledgement in order, without data. If `acked` is zero, the segment acknowledges
    /// nothing new, but changes the window.
    Ack {
        segment: Valid<'a>,
        /// The number of newly acknowledged bytes, which leave the send buffer.
        acked: u32,
    },
    /// Data in order, without a new acknowledgement.
    Data {
        segment: Valid<'a>,
        /// The timestamp of the segment; arbitrary if the connection does not use timestamps.
        stamp: u32,
        /// The number of data bytes.
        length: u32,
    },
    /// Data in order, with an acknowledgement of new data.
    Both {
        segment: Valid<'a>,
        /// The timestamp of the segment; arbitrary if the connection does not use timestamps.
        stamp: u32,
        /// The number of data bytes.
        length: u32,
    },
    /// The segment is not predicted. The slow path handles it, and finds out the
    /// [reason](MissReason).
    Miss,
}

/// The reason why header prediction did not recognise a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum MissReason {
    /// Header prediction is disabled.
    Disabled,
    /// The connection is not in the state ESTABLISHED, because it is opening or closing, or the
    /// application has stopped reading.
    State,
    /// The segment has SYN, FIN, RST, URG or an unexpected ECN bit, or has no ACK.
    Flags,
    /// The packet has a CE mark. Also used after the peer has reported marks without AccECN
    /// options. For some time, the slow path must then examine the ACE field of every ACK.
    Mark,
    /// The segment has other options than those agreed on, usually SACK blocks.
    Options,
    /// The sequence number is not the expected one, because of a loss, a duplicate or reordering.
    Sequence,
    /// Prediction is suspended for one of three causes. Out-of-order data or the peer's FIN is
    /// waiting for the data before it, received urgent data is unread, or sent urgent data is
    /// unacknowledged.
    Reassembly,
    /// Loss recovery is in progress, or the path MTU is being probed.
    Recovery,
    /// The timestamp is older than the timestamp of an earlier segment.
    Timestamp,
    /// The segment is a duplicate ACK, or acknowledges data that was never sent.
    Acknowledgement,
    /// The segment has more data than the receive window has room for.
    Room,
}

impl MissReason {
    /// All reasons, in the order of their counters in [`crate::PredictionStatistics`].
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

    /// Returns the reason in one or two words, for tables.
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

/// Predicts the meaning of `segment`, an arriving segment, by header prediction.
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

/// Returns `last` as a valid segment, where `last` is the final one of several data segments in a
/// run. The caller has checked that all of them were predicted, and has stored their data.
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

/// Whether the segment has the predicted data offset and flags, which share a word of the header.
#[inline(always)]
pub(in crate::input) const fn is_header_predicted(c: &Connection, offset_and_flags: u16) -> bool {
    offset_and_flags & COMPARED == c.expectation.header()
}

/// Predicts a segment without data, which acknowledges data that we have sent.
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

/// Predicts a segment with data, which may also acknowledge data that we have sent.
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

/// Returns the timestamp of a segment with a predicted header, or `None` if it is older than
/// TS.Recent. If the connection does not use timestamps, the result is zero. The predicted data
/// offset ensures that the segment has no other option.
#[inline(always)]
pub(super) fn stamp_as_agreed(c: &Connection, segment: &Segment<'_>) -> Option<u32> {
    match Timestamps::alone(segment.options) {
        Some(stamp) if before(stamp.value, c.timestamps.recent) => None,
        Some(stamp) => Some(stamp.value),
        None if c.timestamps.on => None,
        None => Some(0),
    }
}

/// Returns the reason why `segment` was not predicted, which is the first check of [`predict`] that
/// it fails.
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

/// Returns the reason why data offset and flags were not predicted. It is the condition that
/// forbids prediction at present, if there is one. Otherwise it is that the flags or the options of
/// the segment differ from the expected ones.
#[cold]
pub(in crate::input) fn why_the_header_differs(c: &Connection, flags: TcpFlags) -> MissReason {
    if c.expectation.header() == 0 {
        let is_other_state = c.preferences.header_prediction && c.state != State::Established;
        return match () {
            // A state other than ESTABLISHED is the most frequent reason, because all segments that
            // open or close a connection meet it. So the state is compared first.
            () if is_other_state => MissReason::State,
            () => spoiler(c).unwrap_or(MissReason::State),
        };
    }
    let expected = TcpFlags::ACK | c.expected_ace();
    if flags - TcpFlags::PSH == expected { MissReason::Options } else { MissReason::Flags }
}

#[cold]
fn why_the_timestamp_differs(options: &[u8]) -> MissReason {
    if Timestamps::alone(options).is_some() { MissReason::Timestamp } else { MissReason::Options }
}

/// Returns the reason why no segment can be predicted at present. `None` if segments can be
/// predicted.
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

/// Derives the expected data offset and flags of the next received segment. Zero if no segment can
/// be predicted at present.
#[inline]
pub(crate) fn expected_header(c: &Connection) -> u16 {
    if spoiler(c).is_some() {
        return 0;
    }
    c.plain_header() | c.expected_ace().bits()
}

impl Connection {
    /// Returns data offset and flags of an ACK without other flags, whose only options are those
    /// that every segment carries.
    #[inline(always)]
    pub(super) const fn plain_header(&self) -> u16 {
        let words: u16 = if self.timestamps.on { 8 } else { 5 };
        words << 12 | TcpFlags::ACK.bits()
    }
}
