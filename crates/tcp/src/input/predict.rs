//! Header prediction.
//!
//! In the middle of a bulk transfer the next segment looks like the last one with one number
//! changed (Jacobson, 1988). The word of data offset and flags that it will have is kept ready; one
//! compare with it covers the connection's state, flags, options, holes and recovery, because
//! whatever spoils a prediction has set it to 0, which no segment has, at the end of the slow path.
//! Then the sequence number must be the next one, and the timestamp must stand where every stack
//! puts it and not be old.
//!
//! What is left is a pure acknowledgement, and we are the sender: the acknowledged bytes leave the
//! send buffer. Or it is data, and we are the receiver: it is appended to the receive buffer. Or it is
//! both, as in a dialogue. Everything else takes the slow path, which alone could do all of it.

use super::Disposition;
use crate::options::before;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags, Timestamps};

/// The bits of data offset and flags that are compared: all but PSH, which says nothing about how
/// to treat a segment. ECN's bits and the reserved ones count, so that they take the slow path.
pub(super) const COMPARED: u16 = !TcpFlags::PSH.bits();

/// What the fast path makes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// A pure acknowledgement in order: `acked` bytes leave the send buffer. Zero if it announces
    /// another window and nothing else.
    Ack {
        /// Newly acknowledged bytes.
        acked: u32,
    },
    /// Data in order that acknowledges nothing new: `length` bytes go to the receive buffer.
    Data {
        /// Bytes of data.
        length: u32,
    },
    /// Data in order that acknowledges something new as well.
    Both {
        /// Newly acknowledged bytes.
        acked: u32,
        /// Bytes of data.
        length: u32,
    },
    /// The slow path must look at it: [why](MissReason) is found out there.
    Miss,
}

/// Why a segment was not predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MissReason {
    /// Prediction is switched off.
    Disabled,
    /// The connection is not in ESTABLISHED: opening or closing; or nobody reads any more.
    State,
    /// SYN, FIN, RST, URG, an ECN bit, or no ACK.
    Flags,
    /// Its packet bore a congestion mark, or marks are being told of by a small counter alone.
    Mark,
    /// Options other than the agreed ones: SACK blocks, as a rule.
    Options,
    /// Not the next sequence number: a loss, a duplicate, or reordering.
    Sequence,
    /// Data beyond a hole waits for reassembly, or urgent data to be read.
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

/// What `segment` is predicted to mean. Changes nothing.
#[inline(always)]
pub(crate) fn predict(c: &Connection, segment: &Segment<'_>) -> Prediction {
    predict_stamped(c, segment).0
}

/// The same, and the timestamp of what is predicted; of no meaning where there are none.
#[inline(always)]
pub(super) fn predict_stamped(c: &Connection, segment: &Segment<'_>) -> (Prediction, u32) {
    if !is_header_predicted(c, segment.offset_and_flags) || segment.seq != c.rcv.nxt {
        return (Prediction::Miss, 0);
    }
    let Some(stamp) = stamp_as_agreed(c, segment) else { return (Prediction::Miss, 0) };
    let prediction =
        if segment.payload.is_empty() { predict_ack(c, segment) } else { predict_data(c, segment) };
    (prediction, stamp)
}

/// Is the first word of the header, of data offset and control bits, the one that the next segment is predicted to have?
#[inline(always)]
pub(super) const fn is_header_predicted(c: &Connection, offset_and_flags: u16) -> bool {
    offset_and_flags & COMPARED == c.predicted
}

/// We are the sender.
#[inline(always)]
fn predict_ack(c: &Connection, segment: &Segment<'_>) -> Prediction {
    let acked = segment.ack - c.snd.una;
    let window_only = acked == 0 && c.scaled(segment.window) != c.snd.wnd;
    if (acked > 0 && acked <= c.snd.flight()) || window_only {
        Prediction::Ack { acked }
    } else {
        Prediction::Miss
    }
}

/// We are the receiver, and perhaps a sender, too.
#[inline(always)]
fn predict_data(c: &Connection, segment: &Segment<'_>) -> Prediction {
    if segment.payload.len() > c.rcv.window() as usize {
        return Prediction::Miss;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a window has thirty-two bits")]
    let length = segment.payload.len() as u32;
    if segment.ack == c.snd.una {
        return Prediction::Data { length };
    }
    let acked = segment.ack - c.snd.una;
    if acked <= c.snd.flight() { Prediction::Both { acked, length } } else { Prediction::Miss }
}

/// The timestamp of a segment whose header is as predicted, if it is not old, or any number if none was agreed on. That
/// one was tells the room that its options have, for it and nothing else.
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
pub(super) fn why_it_missed(c: &Connection, segment: &Segment<'_>) -> MissReason {
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
pub(super) fn why_the_header_differs(c: &Connection, flags: TcpFlags) -> MissReason {
    if c.predicted == 0 {
        return spoiler(c).unwrap_or(MissReason::State);
    }
    let expected = TcpFlags::ACK | c.expected_ace();
    if flags - TcpFlags::PSH == expected { MissReason::Options } else { MissReason::Flags }
}

#[cold]
fn why_the_timestamp_differs(options: &[u8]) -> MissReason {
    if Timestamps::alone(options).is_some() { MissReason::Timestamp } else { MissReason::Options }
}

/// What forbids any prediction now.
fn spoiler(c: &Connection) -> Option<MissReason> {
    if !c.preferences.header_prediction {
        Some(MissReason::Disabled)
    } else if c.state != State::Established || c.receiver.shut {
        Some(MissReason::State)
    } else if !c.receiver.assembler.is_empty()
        || c.receiver.urgent.is_some()
        || c.receiver.fin.is_some()
    {
        Some(MissReason::Reassembly)
    } else if !c.is_untroubled() || c.sender.path.is_asking() {
        Some(MissReason::Recovery)
    } else if c.is_ace_ambiguous() {
        Some(MissReason::Mark)
    } else {
        None
    }
}

impl Connection {
    /// Keeps the word for the next segment ready. Called at the end of everything that could change
    /// the answer.
    pub(crate) fn refresh_prediction(&mut self) {
        self.predicted = self.expected_header();
        self.calm.0 = false;
    }

    /// The word that the next segment should have; 0 if there is no telling.
    #[inline]
    pub(crate) fn expected_header(&self) -> u16 {
        if self.state == State::Established { self.expected_when_established() } else { 0 }
    }

    #[inline(never)]
    fn expected_when_established(&self) -> u16 {
        if spoiler(self).is_some() {
            return 0;
        }
        self.plain_header() | self.expected_ace().bits()
    }

    /// The word of a segment that bears the options that every one does, and no control bit but ACK.
    #[inline(always)]
    pub(super) const fn plain_header(&self) -> u16 {
        let words: u16 = if self.timestamps.on { 8 } else { 5 };
        words << 12 | TcpFlags::ACK.bits()
    }

    /// The ACK arm, for an acknowledgement that stands for `count`.
    pub(super) fn take_predicted_ack(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        acked: u32,
        count: u32,
    ) -> Disposition {
        self.statistics.prediction.acks += u64::from(count);
        self.take_predicted_header(now, segment);
        if acked > 0 {
            self.acknowledge(now, segment, count, self.is_window_used());
        }
        self.update_window(segment);
        Disposition::Accepted
    }

    /// The data arm: `length` bytes, of which the largest segment that the peer has sent brought `piece`. It
    /// touches the receiver's state only. The copy comes last, so that nothing has to be kept across it: nobody
    /// reads the bytes before.
    #[inline(always)]
    pub(super) fn take_predicted_data(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        stamp: u32,
        length: u32,
        piece: u32,
    ) -> Disposition {
        self.take_stamp(now, segment.seq, stamp);
        self.statistics.prediction.data += 1;
        self.update_window(segment);
        if !self.receiver.buffer.has_place_for_next(segment.payload.len()) {
            return self.take_predicted_text(now, segment, length, piece);
        }
        self.receiver.buffer.take_in_place(length);
        self.note_delivery(now, segment, piece, self.rcv.nxt + length);
        if self.receiver.autotune.wants_echo() || !self.owes_in_full_flow() {
            return self.place_and_judge(now, segment, piece);
        }
        self.receiver.buffer.write_last(segment.payload);
        Disposition::Accepted
    }

    /// The end of that where an acknowledgement may be due, or a round trip measured.
    #[inline(never)]
    fn place_and_judge(&mut self, now: Instant, segment: &Segment<'_>, piece: u32) -> Disposition {
        self.receiver.buffer.write_last(segment.payload);
        self.measure_if_awaited(now, segment);
        if self.judge_delivery((1, piece), false) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    /// The same for `count` segments of `length` bytes each, which lie in their place already. `last` is the header of
    /// the last of them; only the first can cover what was acknowledged last.
    #[inline(always)]
    pub(super) fn take_predicted_data_in_place(
        &mut self,
        now: Instant,
        last: &Segment<'_>,
        length: u32,
        count: u32,
    ) {
        self.take_predicted_header(now, &Segment { seq: self.rcv.nxt, ..*last });
        self.statistics.prediction.data += u64::from(count);
        self.update_window(last);
        self.receiver.buffer.take_in_place(length * count);
        if self.deliver_predicted(now, last, length * count, (count, length)) {
            self.delay_ack(now);
        }
    }

    /// Both in turn.
    #[inline(never)]
    pub(super) fn take_predicted_both(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        stamp: u32,
        length: u32,
        piece: u32,
    ) -> Disposition {
        self.statistics.prediction.both += 1;
        self.take_stamp(now, self.rcv.nxt, stamp);
        // Who predicts misses nothing.
        if !self.agreement.selective_acks || !self.take_landing(now, segment.ack, 1) {
            self.acknowledge(now, segment, 1, self.is_window_used());
        }
        self.update_window(segment);
        if !self.receiver.buffer.has_place_for_next(segment.payload.len()) {
            return self.take_predicted_text(now, segment, length, piece);
        }
        self.receiver.buffer.take_in_place(length);
        self.receiver.buffer.write_last(segment.payload);
        if self.deliver_predicted(now, segment, length, (1, piece)) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    /// It was heard, and its timestamp, which is no older than the last, is echoed where the segment covers
    /// what was acknowledged last (RFC 7323 §4.3): where that is the next number, since nothing beyond it is
    /// acknowledged.
    #[inline(always)]
    fn take_predicted_header(&mut self, now: Instant, segment: &Segment<'_>) {
        let stamp = Timestamps::alone(segment.options).unwrap_or_default();
        self.take_stamp(now, segment.seq, stamp.value);
    }

    #[inline(always)]
    fn take_stamp(&mut self, now: Instant, seq: SeqNum, stamp: u32) {
        if seq == self.rcv.acked && self.timestamps.on {
            self.timestamps.take(stamp, now);
        }
        self.heard = now;
    }

    /// Data that are not to be copied to one place for which there is memory, too.
    #[inline(never)]
    fn take_predicted_text(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        length: u32,
        piece: u32,
    ) -> Disposition {
        if !self.receiver.buffer.append(segment.payload, &self.memory, &self.offered) {
            return Disposition::Refused(self.refuse_for_memory());
        }
        if self.deliver_predicted(now, segment, length, (1, piece)) {
            self.delay_ack(now);
        }
        Disposition::Accepted
    }

    #[inline(always)]
    #[must_use]
    fn deliver_predicted(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        length: u32,
        pieces: (u32, u32),
    ) -> bool {
        self.deliver(now, segment, pieces, self.rcv.nxt + length, false)
    }
}
