//! The processing of arriving segments (RFC 9293 §3.10.7). `validate/` decides whether a segment is
//! valid, and the other files apply it to the connection.

mod ack;
mod apply;
mod data;
mod fin;
mod handshake;
pub(crate) mod icmp;
pub(crate) mod listen;
mod predict;
mod reset;
pub(crate) mod run;
mod urgent;
pub(crate) mod validate;

use crate::Connection;
use crate::receive::saturated;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment};
use validate::predict::{MissReason, Prediction, predict, why_it_missed};

/// The result of processing a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// The segment was valid and has taken effect.
    Accepted,
    /// The segment was valid, but all of its data had arrived before. The connection has scheduled
    /// an acknowledgement as the answer, and has processed the acknowledgement in the segment.
    Duplicate,
    /// The segment was valid and has taken effect, except that there is no memory for its data,
    /// which the peer must retransmit: see [`crate::Driver::grant_memory`].
    NoMemory,
    /// The segment was valid and has taken effect, except that its data was refused. The data
    /// arrived after the application's close, or would have needed too many ranges of out-of-order
    /// data.
    DataRefused,
    /// The segment was not valid; the [`Refusal`] is the reason. If an answer is due,
    /// `poll_transmit` returns it. Only counters and the budget of challenge ACKs have changed.
    Refused(Refusal),
    /// The segment is a SYN that may open the next incarnation of this connection, which is in
    /// TIME-WAIT. The connection is unchanged. The caller must drop it and pass the segment to the
    /// listener.
    OpenAgain,
}

/// The reason why a segment was refused. A refused segment may come from the peer itself, or from
/// an attacker that spoofs the peer. It may also be an old segment that the network has delayed or
/// duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The connection is closed, so the segment cannot belong to it.
    Closed,
    /// The segment lies outside the receive window. Also used for a segment in TIME-WAIT that has
    /// data, or a sequence number, beyond the peer's FIN.
    OutsideWindow,
    /// The timestamp is missing, or older than the timestamp of an earlier segment (PAWS).
    OldTimestamp,
    /// The acknowledgement number covers data that was never sent, or is too old: it precedes
    /// SND.UNA by more than the largest window of the peer.
    BadAck,
    /// The segment has no ACK, although every segment must have it in this state.
    NoAck,
    /// The segment has no SYN, although the peer's SYN must arrive first.
    NoSyn,
    /// A reset or SYN that an attacker may have forged. It was answered by a challenge ACK (RFC
    /// 5961).
    Challenged,
    /// A reset in TIME-WAIT, which is ignored (RFC 1337).
    ResetInTimeWait,
}

impl Connection {
    pub(crate) fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
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

    pub(crate) fn handle_segment_with(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
        memory: Option<&Arc<[u8]>>,
    ) -> Disposition {
        let Some(memory) = memory else { return self.handle_codepoint(now, segment, ecn) };
        self.offered = Some(Box::new(Arc::clone(memory)));
        let disposition = self.handle_codepoint(now, segment, ecn);
        self.offered = None;
        disposition
    }

    fn handle_codepoint(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> Disposition {
        if ecn != Ecn::Ce {
            let disposition = self.handle_segment(now, segment);
            if ecn != Ecn::NotEct {
                self.slow(|connection| connection.on_codepoint(segment, ecn, disposition));
            }
            return disposition;
        }
        self.count_joined(segment);
        let disposition = self.take_unpredicted(now, segment, Some(MissReason::Mark));
        self.slow(|connection| connection.on_codepoint(segment, ecn, disposition));
        disposition
    }

    /// Handles a segment that the link has coalesced from several received segments (GRO).
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

    /// Handles a segment that the link may have coalesced from several segments. `piece` is the
    /// number of data bytes in the largest of these segments.
    #[inline(always)]
    fn take_segment(&mut self, now: Instant, segment: &Segment<'_>, piece: u32) -> Disposition {
        match predict(self, segment) {
            Prediction::Data { segment, stamp, length } => {
                self.take_predicted_data(now, segment, stamp, length, piece)
            }
            Prediction::Ack { segment, acked } => self.take_predicted_ack(now, segment, acked, 1),
            Prediction::Both { segment, stamp, length } => {
                self.take_predicted_both(now, segment, stamp, length, piece)
            }
            Prediction::Miss => self.take_unpredicted(now, segment, None),
        }
    }

    /// Handles a segment on the slow path, because header prediction did not recognise it. `reason`
    /// is the reason for the miss, which is counted. If it is `None`, the reason is found here.
    #[inline(never)]
    fn take_unpredicted(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        reason: Option<MissReason>,
    ) -> Disposition {
        let reason = reason.unwrap_or_else(|| why_it_missed(self, segment));
        self.statistics.prediction.count_miss(reason, segment);
        self.slow(|connection| connection.handle_unpredicted(now, segment))
    }

    #[inline(always)]
    fn handle_unpredicted(&mut self, now: Instant, segment: &Segment<'_>) -> Disposition {
        match self.validate(now, segment) {
            Ok(verdict) => self.apply(now, verdict),
            Err(refused) => self.refuse(now, segment, refused),
        }
    }
}
