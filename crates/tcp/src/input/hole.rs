//! Data that come while something before them is missing.
//!
//! As long as there is a hole no header is predicted, and what is left of a window takes the steps of RFC 9293 §3.10.7.4,
//! nearly all of which ask the sender's half about an acknowledgement that says nothing. As header prediction does, this
//! asks whether data are all that a segment brings, touches nothing before it is sure, and does then what the steps would
//! do, in their order; a twin without prediction, which takes the steps, must agree.

use super::Disposition;
use super::acceptable::Text;
use super::predict::{COMPARED, stamp_as_agreed};
use crate::receive::saturated;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, Timestamps};

impl Connection {
    /// Takes `segment`, which is none of several, if it brings data inside the window and nothing else; `None`, and
    /// nothing has happened, if the steps must look at it.
    #[inline(never)]
    pub(super) fn take_plain_data(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Option<Disposition> {
        if !self.is_plain_data(segment) || !self.has_no_questions() {
            return None;
        }
        let value = stamp_as_agreed(self, segment)?;
        self.end_burst();
        let (seq, payload) = (segment.seq, segment.payload);
        let piece = saturated(payload.len());
        self.receiver.note_duplicate(&self.rcv, seq, seq + piece);
        if self.timestamps.on {
            self.timestamps.note(Timestamps { value, echo: 0 }, seq, self.rcv.acked, now);
        }
        self.heard = now;
        self.update_window(segment);
        let text = Text { seq, payload, piece, count: 1, fin: false, cut: false };
        let taken = self.take_text(now, segment, &text);
        Some(taken.map_or_else(Disposition::Refused, |()| Disposition::Accepted))
    }

    /// Are there data in `segment`, all of them inside the window, of a peer that acknowledges nothing new and has not
    /// said which are the last?
    #[inline(always)]
    fn is_plain_data(&self, segment: &Segment<'_>) -> bool {
        let (length, window) = (saturated(segment.payload.len()), self.rcv.edge - self.rcv.nxt);
        segment.offset_and_flags & COMPARED == self.plain_header()
            && segment.joined.is_none()
            && self.state == State::Established
            && self.receiver.fin.is_none()
            && segment.ack == self.snd.una
            && segment.seq.all_within(length, self.rcv.nxt, window)
    }
}
