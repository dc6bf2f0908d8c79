//! Arriving segments (RFC 9293 §3.10.7): `validate/` finds out what one may do, and the other files do
//! it.

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

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// It was valid and has taken effect.
    Accepted,
    /// It was valid, and all of it had arrived before. It is answered, and what it acknowledges counts.
    Duplicate,
    /// It was valid and has taken effect, but the host has no memory for its data, which the peer sends
    /// again: see [`Connection::grant_memory`].
    NoMemory,
    /// It was valid and has taken effect, but its data came after the application had closed, or found no
    /// room beyond the holes.
    DataRefused,
    /// It was not valid, for this reason. An answer, where one is due, waits in `poll_transmit`. Nothing
    /// else has changed but counters and the budget of challenge ACKs.
    Refused(Refusal),
    /// A SYN that may open the next incarnation of this connection, which is in TIME-WAIT: drop the
    /// connection and give the segment to the listener.
    OpenAgain,
}

/// Why a segment was not valid. The peer, or somebody who pretends to be it, is at fault, or the
/// network, which delivers late and twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no connection any more.
    Closed,
    /// It lies outside the receive window, or beyond the peer's FIN in TIME-WAIT.
    OutsideWindow,
    /// Its timestamp is from the past (PAWS), or missing.
    OldTimestamp,
    /// It acknowledges something that was never sent, or long ago.
    BadAck,
    /// It has no ACK, where every segment must have one.
    NoAck,
    /// It has no SYN, where the peer's must come first.
    NoSyn,
    /// A reset or SYN that could be forged: it was answered by a challenge (RFC 5961).
    Challenged,
    /// A reset of a connection in TIME-WAIT (RFC 1337).
    ResetInTimeWait,
}

impl Connection {
    /// Takes a segment whose checksum is right and whose ports are those of this connection, from a packet
    /// without an ECN codepoint.
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

    /// Takes a segment whose packet bore the codepoint `ecn`, because its sender takes part in ECN (RFC 3168
    /// §5) or a congested router has marked it. If it lies in `memory`, which nobody writes to as long as it
    /// is shared, data that fill at least half of that stay there until the application has read them.
    pub fn handle_segment_with(
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
                self.slow(|connection| connection.take_codepoint(segment, ecn, disposition));
            }
            return disposition;
        }
        self.count_joined(segment);
        let disposition = self.take_unpredicted(now, segment, Some(MissReason::Mark));
        self.slow(|connection| connection.take_codepoint(segment, ecn, disposition));
        disposition
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

    /// Takes a segment that was not predicted, for this reason if it is known.
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
