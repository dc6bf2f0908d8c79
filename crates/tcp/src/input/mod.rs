//! A segment arrives (RFC 9293 §3.10.7): predicted and answered at once, or taken through the
//! steps of the RFC in their order.

mod acceptable;
mod ack;
mod control;
mod data;
mod fin;
mod handshake;
mod hole;
pub(crate) mod icmp;
pub(crate) mod listen;
pub(crate) mod predict;
mod reset;
mod urgent;

use crate::receive::saturated;
use crate::ring::Following;
use crate::{Connection, State};
use alloc::boxed::Box;
use alloc::sync::Arc;
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment, SeqNum, TcpFlags};
use predict::{
    MissReason, Prediction, is_header_predicted, predict, predict_stamped, why_it_missed,
    why_the_header_differs,
};

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// It belonged to the connection and has had its effect.
    Accepted,
    /// It was not taken, for this reason. An answer, where one is due, waits in `poll_transmit`.
    Refused(Refusal),
    /// A SYN that may open the next incarnation of this connection, which is in TIME-WAIT: drop the
    /// connection and give the segment to the listener.
    OpenAgain,
}

/// Why a segment was not taken. The peer, or somebody who pretends to be it, is at fault, or the
/// network, which delivers late and twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no connection any more.
    Closed,
    /// It lies outside the receive window.
    OutsideWindow,
    /// Its timestamp is from the past (PAWS), or missing.
    OldTimestamp,
    /// It acknowledges something that was never sent, or long ago.
    BadAck,
    /// It has no ACK, where every segment must have one.
    NoAck,
    /// A reset or SYN that could be forged: it was answered by a challenge (RFC 5961).
    Challenged,
    /// The host has no memory for its data: see [`Connection::grant_memory`].
    NoMemory,
    /// A reset of a connection in TIME-WAIT (RFC 1337).
    ResetInTimeWait,
    /// Its data came after the application had closed, or found no room beyond the holes.
    DataRefused,
}

/// Did the segment pass the tests of RFC 9293 and RFC 5961, whatever became of its data? Then what was put on
/// its packet counts (RFC 9768 §1.3, §3.2).
pub(crate) fn was_acceptable(disposition: Disposition) -> bool {
    match disposition {
        Disposition::Accepted | Disposition::Refused(Refusal::NoMemory | Refusal::DataRefused) => {
            true
        }
        Disposition::Refused(
            Refusal::Closed
            | Refusal::OutsideWindow
            | Refusal::OldTimestamp
            | Refusal::BadAck
            | Refusal::NoAck
            | Refusal::Challenged
            | Refusal::ResetInTimeWait,
        )
        | Disposition::OpenAgain => false,
    }
}

impl Connection {
    /// Takes a segment whose checksum was found right and whose ports are this connection's.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        if segment.joined.is_some() {
            return self.handle_joined_segment(now, segment);
        }
        self.statistics.segments_received += 1;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        self.take_segment(now, segment, segment.payload.len() as u32)
    }

    /// The arms of [`handle_segment`](Self::handle_segment) that take data, for a segment that is none of several: drawn
    /// into the way that leads there, so that what the header says is read where it is used. `None`, and nothing has
    /// happened, if `segment` is anything else than data as predicted.
    #[inline(always)]
    pub fn handle_predicted_data(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Option<Disposition> {
        let (prediction, stamp) = predict_stamped(self, segment);
        let (Prediction::Data { length } | Prediction::Both { length, .. }) = prediction else {
            return None;
        };
        self.statistics.segments_received += 1;
        // One of its own, so that the one that was given needs no place in memory, nor is read any further.
        let segment = Segment { source_port: 0, destination_port: 0, urgent: 0, ..*segment };
        Some(if let Prediction::Both { .. } = prediction {
            self.take_predicted_both(now, &segment, stamp, length, length)
        } else {
            self.take_predicted_data_apart(now, &segment, stamp, length)
        })
    }

    #[inline(never)]
    fn take_predicted_data_apart(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        stamp: u32,
        length: u32,
    ) -> Disposition {
        self.take_predicted_data(now, segment, stamp, length, length)
    }

    /// Room for the data of `segment`, if it is data as predicted and nothing else: where they will lie if its checksum,
    /// at which nobody has looked, turns out to be right. Whoever sums them may write them there on the way, and nothing
    /// has happened if the sum is wrong: nobody reads what lies there before
    /// [`handle_data_in_place`](Self::handle_data_in_place).
    #[inline(always)]
    pub fn room_for_predicted(&mut self, segment: &Segment<'_>) -> Option<&mut [u8]> {
        match predict(self, segment) {
            Prediction::Data { .. } => self.receiver.buffer.room_for_next(segment.payload.len()),
            Prediction::Ack { .. } | Prediction::Both { .. } | Prediction::Miss => None,
        }
    }

    /// What follows the `length` bytes of data for which there was [room](Self::room_for_predicted): where the data of
    /// further segments lie, as many as the window has room for.
    #[inline(always)]
    #[must_use]
    pub fn following(&self, length: usize) -> Following {
        let window = self.rcv.window() as usize - length;
        self.receiver.buffer.following(length).within(window)
    }

    /// The same behind what the connection has been told of, for segments that go on where others have ended: the next one
    /// has this number, data offset and control bits, and what else it says has been predicted of the one before it, since
    /// which nothing has come. `None` if it is not predicted any more.
    #[inline(always)]
    #[must_use]
    pub fn going_on(&self, (seq, offset_and_flags): (SeqNum, u16)) -> Option<Following> {
        if !is_header_predicted(self, offset_and_flags) || seq != self.rcv.nxt {
            return None;
        }
        Some(self.receiver.buffer.next()?.within(self.rcv.window() as usize))
    }

    /// Room for the data of all of those, one behind the other, in which nothing differs from the one before them but the
    /// next number, the checksum, and PSH.
    #[inline(always)]
    pub fn room_for_following(&mut self, following: Following) -> &mut [u8] {
        self.receiver.buffer.room_for_following(following)
    }

    /// Takes `count` segments of `length` bytes of data each, which have come at the same time and are intact, and whose
    /// data lie where [`room_for_predicted`](Self::room_for_predicted) and
    /// [`room_for_following`](Self::room_for_following) have said. `last` is the header of the last of them. Nothing has
    /// happened in between.
    #[inline(always)]
    pub fn handle_data_in_place(
        &mut self,
        now: Instant,
        last: &Segment<'_>,
        length: usize,
        count: u32,
    ) {
        self.statistics.segments_received += u64::from(count);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the length of a packet has sixteen bits"
        )]
        let length = length as u32;
        self.take_predicted_data_in_place(now, last, length, count);
    }

    /// Is `segment` an acknowledgement of something new and nothing else, as predicted? Then one that
    /// follows at once may stand for it: [`handle_acks`](Self::handle_acks).
    #[inline(always)]
    #[must_use]
    pub fn predicts_ack(&self, segment: &Segment<'_>) -> bool {
        matches!(predict(self, segment), Prediction::Ack { acked: 1.. })
    }

    /// The end of all that was ever sent: beyond that no acknowledgement is predicted.
    #[inline(always)]
    #[must_use]
    pub const fn end_of_sent(&self) -> SeqNum {
        self.snd.max
    }

    /// Takes `segment`, which has no data and is none of several, if it is not predicted but one of those that open and
    /// close a connection: drawn into the way that leads there, as
    /// [`handle_predicted_data`](Self::handle_predicted_data) is. False, and nothing has happened, if it is anything else.
    #[inline(always)]
    pub fn handle_control(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if is_header_predicted(self, segment.offset_and_flags) {
            return false;
        }
        let Some(control) = self.find_control(segment) else { return false };
        self.statistics.segments_received += 1;
        self.statistics
            .prediction
            .count_miss(why_the_header_differs(self, segment.flags()), segment);
        // One of its own, so that the one that was given needs no place in memory.
        let segment = Segment { source_port: 0, destination_port: 0, urgent: 0, ..*segment };
        self.take_control(now, &segment, control);
        self.refresh_prediction();
        true
    }

    /// Takes `segment`, which is none of several, as [`handle_segment`](Self::handle_segment) would, for a connection that
    /// has sent its SYN: no header is predicted there, and no step but one asked.
    pub fn handle_answer(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        debug_assert!(self.state == State::SynSent && self.predicted == 0);
        self.statistics.segments_received += 1;
        self.statistics
            .prediction
            .count_miss(why_the_header_differs(self, segment.flags()), segment);
        self.end_burst();
        let disposition = self.handle_in_syn_sent(now, segment);
        self.refresh_prediction();
        disposition
    }

    /// The last of `count` acknowledgements that have come together, each of which was
    /// [predicted](Self::predicts_ack) and none of which was handed over before. It says all that the others
    /// did, so they are judged as one (as if the path had lost the others), and count for the growth of the
    /// congestion window.
    pub fn handle_acks(&mut self, now: Instant, segment: &Segment<'_>, count: u32) -> Disposition {
        let Prediction::Ack { acked } = predict(self, segment) else {
            return self.handle_segment(now, segment);
        };
        self.statistics.segments_received += u64::from(count);
        self.statistics.acks_superseded += u64::from(count) - 1;
        self.take_predicted_ack(now, segment, acked, count)
    }

    /// One that a link has made of several.
    #[inline(never)]
    fn handle_joined_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        self.count_joined(segment);
        self.take_segment(now, segment, saturated(segment.largest_piece()))
    }

    fn count_joined(&mut self, segment: &Segment<'_>) {
        let count = u64::from(segment.count());
        self.statistics.segments_received += count;
        self.statistics.segments_joined += count - 1;
    }

    /// `piece` bytes of data were in the largest of the segments that the peer has sent for it.
    #[inline(always)]
    fn take_segment(&mut self, now: Instant, segment: &Segment<'_>, piece: u32) -> Disposition {
        let (prediction, stamp) = predict_stamped(self, segment);
        match prediction {
            Prediction::Data { length } => {
                self.take_predicted_data(now, segment, stamp, length, piece)
            }
            Prediction::Ack { acked } => self.take_predicted_ack(now, segment, acked, 1),
            Prediction::Both { length, .. } => {
                self.take_predicted_both(now, segment, stamp, length, piece)
            }
            Prediction::Miss => self.take_unpredicted(now, segment),
        }
    }

    #[inline(never)]
    fn take_unpredicted(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        self.statistics.prediction.count_miss(why_it_missed(self, segment), segment);
        let disposition = if let Some(control) = self.find_control(segment) {
            self.take_control_apart(now, segment, control);
            Disposition::Accepted
        } else if let Some(disposition) = self.take_plain_data(now, segment) {
            disposition
        } else {
            self.handle_unpredicted(now, segment)
        };
        self.refresh_prediction();
        disposition
    }

    /// The same for a segment that lies in `memory`, which is not written to any more as long as somebody shares
    /// it: data that fill at least half of it stay there until the application has read them.
    pub fn handle_segment_in(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
        memory: &Arc<[u8]>,
    ) -> Disposition {
        self.offered = Some(Box::new(Arc::clone(memory)));
        let disposition = self.handle_segment_bearing(now, segment, ecn);
        self.offered = None;
        disposition
    }

    /// The same for a segment whose packet bore the codepoint `ecn`: the sender takes part in ECN (RFC 3168
    /// §5), or a congested router has marked it.
    pub fn handle_segment_bearing(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> Disposition {
        if ecn != Ecn::Ce {
            let disposition = self.handle_segment(now, segment);
            if ecn != Ecn::NotEct {
                self.take_codepoint(segment, ecn, disposition);
                self.calm.0 = false;
            }
            return disposition;
        }
        self.count_joined(segment);
        self.statistics.prediction.count_miss(MissReason::Mark, segment);
        let disposition = self.handle_unpredicted(now, segment);
        self.take_codepoint(segment, ecn, disposition);
        self.refresh_prediction();
        disposition
    }

    fn handle_unpredicted(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        self.end_burst();
        match self.state {
            State::Closed => Disposition::Refused(Refusal::Closed),
            State::SynSent => self.handle_in_syn_sent(now, segment),
            State::TimeWait if self.opens_again(segment) => Disposition::OpenAgain,
            _ => match self.handle_in_sequence(now, segment) {
                Ok(()) => Disposition::Accepted,
                Err(refusal) => Disposition::Refused(refusal),
            },
        }
    }

    /// The steps of §3.10.7.4, "otherwise". Each either lets the segment pass or says why not.
    fn handle_in_sequence(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), Refusal> {
        let timestamps = self.check_timestamp(now, segment)?;
        if self.check_reset(now, segment)? {
            return Ok(());
        }
        let text = self.check_sequence(now, segment)?;
        self.check_syn(now, segment)?;
        if !segment.flags().contains(TcpFlags::ACK) {
            return Err(Refusal::NoAck);
        }
        let is_news = self.brings_feedback(segment);
        self.note_timestamps(now, segment, timestamps);
        if self.config.user_timeout_option {
            self.note_user_timeout(now, &segment.options());
        }
        self.heard = now;
        self.check_window_reduced(segment);
        self.check_ack(now, segment, &text, is_news)?;
        self.check_urgent(segment);
        self.take_text(now, segment, &text)?;
        self.take_fin(now, &text);
        Ok(())
    }
}
