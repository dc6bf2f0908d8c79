//! Runs: consecutive predicted segments whose headers differ only in their sequence and
//! acknowledgement numbers. A connection handles all segments of a run together.
//!
//! A host recognises such segments by their headers. It asks the connection once, at the first
//! segment of a run, whether they are expected. It calls [`crate::Driver::handle_run`] once at the
//! end of the run. Between the two, the connection must not change.

use super::Disposition;
use super::validate::control::{self, ControlRun};
use super::validate::predict::{
    Prediction, is_header_predicted, predict, predicted_before, why_the_header_differs,
};
use crate::Connection;
use crate::ring::Following;
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum};

/// A GRO run: consecutive segments with equal amounts of data. While the checksum of each segment
/// is verified, its data is copied to the receive buffer. The application can read it after the run
/// has been handled.
#[derive(Clone, Copy, Debug)]
pub struct DataRun {
    /// The free memory in the receive buffer for the data of further segments.
    following: Following,
    /// The number of data bytes in each segment.
    length: u32,
    /// The number of segments whose data is stored in the receive buffer, but not yet processed by
    /// the connection.
    count: u32,
}

/// A batch of ACKs without data. Only the ACK with the highest acknowledgement number is processed.
#[derive(Clone, Copy, Debug)]
pub struct AckRun {
    /// SEG.ACK of the most recently added ACK, which is the highest of the batch.
    last: SeqNum,
    /// SND.MAX, the highest acceptable acknowledgement number.
    end: SeqNum,
    /// The number of ACKs in the batch.
    count: u32,
}

/// A run of one segment whose data is still in its frame. Used for short data, for which copying
/// and checksumming in one pass is not faster than in two passes.
#[derive(Clone, Copy, Debug)]
pub struct ShortRun {
    /// The TSval of the segment. Arbitrary if the connection does not use timestamps.
    stamp: u32,
    /// The number of data bytes.
    length: u32,
    /// Whether the segment also acknowledges new data.
    acknowledges: bool,
}

/// Segments that [`crate::Driver::handle_run`] handles together: [`DataRun`], [`AckRun`],
/// [`ShortRun`] or [`ControlRun`].
///
/// This is a trait and not an enum: a call then contains the code for a single kind of run.
pub trait Run {
    /// Processes the run on `connection`, for [`crate::Driver::handle_run`].
    fn give(self, connection: &mut Connection, now: Instant, last: &Segment<'_>) -> Disposition;
}

impl DataRun {
    /// Returns the place in the receive buffer for the data of `segment`, if the segment is
    /// predicted and carries data, but acknowledges no new data. The caller may write the data
    /// there before it has verified the checksum.
    #[inline(always)]
    pub fn place_of_first<'a>(
        connection: &'a mut Connection,
        segment: &Segment<'_>,
    ) -> Option<&'a mut [u8]> {
        let Prediction::Data { .. } = predict(connection, segment) else { return None };
        connection.receiver.buffer.room_for_next(segment.payload.len())
    }

    /// Begins a run with a segment whose `length` bytes of data are stored at
    /// [`place_of_first`](Self::place_of_first).
    #[inline(always)]
    #[must_use]
    pub fn begin(connection: &Connection, length: usize) -> Self {
        let window = connection.rcv.window() as usize - length;
        let following = connection.receiver.buffer.following(length).within(window);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        let length = length as u32;
        Self { following, length, count: 1 }
    }

    /// Continues a run whose segments were all handled. The next segment has the sequence number
    /// `seq`, and the word `offset_and_flags` in its header. Returns false, without any effect, if
    /// that segment is not predicted.
    #[inline(always)]
    #[must_use]
    pub fn resume(
        &mut self,
        connection: &Connection,
        (seq, offset_and_flags): (SeqNum, u16),
    ) -> bool {
        if !is_header_predicted(connection, offset_and_flags) || seq != connection.rcv.nxt {
            return false;
        }
        let Some(next) = connection.receiver.buffer.next() else { return false };
        self.following = next.within(connection.rcv.window() as usize);
        true
    }

    /// Returns the free part of the receive buffer for the data of the segments that may continue
    /// this run.
    #[inline(always)]
    pub fn place_of_next<'a>(&self, connection: &'a mut Connection) -> &'a mut [u8] {
        connection.receiver.buffer.room_for_following(self.following)
    }

    /// Adds `count` segments to the run. Their data must be stored at
    /// [`place_of_next`](Self::place_of_next).
    ///
    /// # Panics
    /// If that memory is too small for the data.
    #[inline(always)]
    pub const fn extend(&mut self, count: u32) {
        self.following.pass(self.length as usize * count as usize);
        self.count += count;
    }

    /// Returns the number of segments in the run that were not handled yet.
    #[inline(always)]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns this run with a count of zero, after all its segments were handled, so that
    /// [`resume`](Self::resume) can continue it.
    #[inline(always)]
    #[must_use]
    pub const fn handled(self) -> Self {
        Self { count: 0, ..self }
    }
}

impl AckRun {
    /// Begins a batch with `segment`. `None` unless the segment is predicted, acknowledges new data
    /// and carries no data.
    #[inline(always)]
    #[must_use]
    pub fn begin(connection: &Connection, segment: &Segment<'_>) -> Option<Self> {
        let Prediction::Ack { acked: 1.., .. } = predict(connection, segment) else { return None };
        Some(Self { last: segment.ack, end: connection.snd.max, count: 1 })
    }

    /// Adds an ACK with the acknowledgement number `ack`. The rest of its header must equal that of
    /// the first ACK, which was predicted. Returns false, without any effect, unless `ack` is
    /// higher than the number of the ACK before it and at most SND.MAX.
    #[inline(always)]
    #[must_use]
    pub fn extend(&mut self, ack: SeqNum) -> bool {
        let is_next = ack.after(self.last) && !ack.after(self.end);
        if is_next {
            self.last = ack;
            self.count += 1;
        }
        is_next
    }

    /// Returns the number of ACKs in the batch.
    #[inline(always)]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }
}

impl ShortRun {
    /// Creates a run of `segment`, if it is predicted and carries data.
    #[inline(always)]
    #[must_use]
    pub fn of(connection: &Connection, segment: &Segment<'_>) -> Option<Self> {
        match predict(connection, segment) {
            _ if segment.joined.is_some() => None,
            Prediction::Data { stamp, length, .. } => {
                Some(Self { stamp, length, acknowledges: false })
            }
            Prediction::Both { stamp, length, .. } => {
                Some(Self { stamp, length, acknowledges: true })
            }
            Prediction::Ack { .. } | Prediction::Miss => None,
        }
    }
}

impl Run for DataRun {
    #[inline(always)]
    fn give(self, connection: &mut Connection, now: Instant, last: &Segment<'_>) -> Disposition {
        connection.statistics.segments_received += u64::from(self.count);
        let last = predicted_before(connection, last);
        connection.take_predicted_data_in_place(now, last, self.length, self.count);
        Disposition::Accepted
    }
}

impl Run for AckRun {
    /// Handles only the last ACK of the batch, as if the network had lost the others. The growth of
    /// the congestion window, however, counts all ACKs.
    #[inline]
    fn give(self, connection: &mut Connection, now: Instant, last: &Segment<'_>) -> Disposition {
        let Prediction::Ack { segment, acked } = predict(connection, last) else {
            return connection.handle_segment(now, last);
        };
        connection.statistics.segments_received += u64::from(self.count);
        connection.statistics.acks_superseded += u64::from(self.count) - 1;
        connection.take_predicted_ack(now, segment, acked, self.count)
    }
}

impl Run for ShortRun {
    #[inline(always)]
    fn give(self, connection: &mut Connection, now: Instant, last: &Segment<'_>) -> Disposition {
        let Self { stamp, length, acknowledges } = self;
        connection.statistics.segments_received += 1;
        let segment = own(last);
        let segment = predicted_before(connection, &segment);
        if acknowledges {
            connection.take_predicted_both(now, segment, stamp, length, length)
        } else {
            connection.take_predicted_data_apart(now, segment, stamp, length, length)
        }
    }
}

impl Run for ControlRun {
    #[inline(always)]
    fn give(self, connection: &mut Connection, now: Instant, last: &Segment<'_>) -> Disposition {
        connection.statistics.segments_received += 1;
        let reason = why_the_header_differs(connection, last.flags());
        connection.statistics.prediction.count_miss(reason, last);
        let segment = own(last);
        let segment = control::predicted_before(connection, &self, &segment);
        connection.slow_control(now, segment, self);
        Disposition::Accepted
    }
}

/// Returns a copy of a predicted segment without the ports and the urgent pointer, which are not
/// read later. Only this copy is passed by reference, to functions that are not inlined. The
/// compiler can therefore keep the original in registers.
#[inline(always)]
const fn own<'a>(segment: &Segment<'a>) -> Segment<'a> {
    Segment { source_port: 0, destination_port: 0, urgent: 0, ..*segment }
}
