//! Bursts of full segments of new data that are sent together and differ only in number and data.
//! Windows, pacing and other conditions are checked once. A link with GSO gets the whole burst
//! behind one header; other links copy the first header with new numbers.
//!
//! Sequence numbers, scoreboard and pacing advance with each segment, so that a burst may end
//! behind any of them, and does when anything else happens to the connection.

use super::Finish;
use super::choose::{Choice, Piece};
use super::commit::Origin;
use crate::Connection;
use crate::ecn::EcnSignals;
use crate::receive::saturated;
use crate::send::Writes;
use crate::send::frto::Frto;
use crate::send::pacing::BURST;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{SeqNum, Sum, TcpHeader};

/// Maximum bytes of a burst: an IP packet with headers.
const MOST: u32 = 65_535 - 120;

/// Segments that may follow the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// SEG.SEQ of the first one, the only difference from the previous header; the others follow
    /// from the length.
    pub seq: SeqNum,
    /// Bytes of data of each.
    pub length: u32,
    /// Number of segments.
    pub segments: u32,
}

impl Connection {
    /// Returns the segments of the same burst as the last one: [`Connection::poll_transmit`] would
    /// write the same header for each of them, with the next number. They may be sent at `now`,
    /// with the data that [`Connection::copy_of_burst`] writes; those that are sent must be
    /// [noted](Connection::note_burst) before anything else happens to the connection.
    ///
    /// A segment of a burst never reaches the end of the written data, so it has neither PSH nor
    /// FIN.
    #[must_use]
    pub fn poll_burst(&self, now: Instant) -> Option<Continuation> {
        let segments = u32::from(self.expectation.burst());
        let goes_on = segments > 0 && self.sender.last_sent == now && self.is_in_burst();
        goes_on.then(|| Continuation { seq: self.snd.nxt, length: self.full_segment(), segments })
    }

    /// Writes the data of a segment of a burst, from `seq`, and returns its checksum.
    ///
    /// # Panics
    /// If this data is not in the send buffer.
    #[inline]
    pub fn copy_of_burst(&self, seq: SeqNum, payload: &mut [u8]) -> Sum {
        self.sender.buffer.copy_and_sum_inlined(seq, payload)
    }

    /// Notes that `segments` of the burst of [`Connection::poll_burst`] were sent.
    pub fn note_burst(&mut self, segments: u32) {
        let length = self.full_segment() * segments;
        let seq = self.snd.nxt;
        let piece = Piece { seq, length, fin: false, probe: false, segments };
        self.commit(self.sender.last_sent, Choice::Data(piece), Origin::Batch);
        let burst = self.expectation.burst();
        self.limit_burst(burst.saturating_sub(u8::try_from(segments).unwrap_or(burst)));
    }

    /// Whether a burst [noted](Connection::note_burst) at `now` has used up the windows, so that
    /// [`Connection::poll_transmit`] would return nothing. It need not be called then: the state is
    /// as if it had been.
    pub fn falls_silent_after_burst(&mut self, now: Instant) -> bool {
        let is_silent = self.has_used_the_windows();
        if is_silent {
            self.end_output(now);
        }
        is_silent
    }

    /// Whether the whole burst was sent, and the windows have room for less than a segment. A burst
    /// may also end before the last written data, by pacing, or because something else is due: then
    /// the next segment is chosen.
    fn has_used_the_windows(&self) -> bool {
        let usable = self.usable_window();
        self.expectation.burst() == 0
            && usable < self.full_segment()
            && self.sender.pacer.is_open()
            && !self.sender.path.is_awake()
            && self.sender.writes != Writes::Limited
            && !self.is_asked_besides()
            && !self.is_worth_sending(self.piece(self.snd.nxt, usable))
    }

    /// Whether [`Connection::poll_burst`] may return segments at the time when the last one was
    /// sent.
    #[must_use]
    pub const fn is_in_burst(&self) -> bool {
        let is_all_told = self.rcv.nxt.number() == self.rcv.acked.number() && !self.ack_due;
        self.expectation.burst() > 0 && is_all_told
    }

    /// Extends the chosen `piece` by a burst if the link cuts it. Otherwise returns how many
    /// segments may follow.
    pub(super) fn begin_burst(&self, piece: &mut Piece, finish: Finish, room: usize) -> u8 {
        let full = self.full_segment();
        if piece.length != full || piece.fin || piece.probe || !self.may_burst(piece.seq) {
            return 0;
        }
        match finish {
            Finish::Nothing => {
                let burst = self.burst_from(piece.seq, full).saturating_sub(1);
                u8::try_from(burst).unwrap_or(u8::MAX)
            }
            Finish::CutAndSum | Finish::Gather => {
                // With GSO, PSH is left to the last segment.
                let pushed = u32::from(!self.sender.fin());
                let unsent = self.sender.buffer.end() + pushed - piece.seq;
                let burst =
                    self.segments_let_go(unsent, full, self.sender.pacer.left_in_one_frame());
                piece.segments = self.fitting(room, full).min(burst.into()).max(1);
                piece.length = full * piece.segments;
                0
            }
        }
    }

    /// Whether a GSO frame should wait for more data. The piece is the end of the written data and
    /// shorter than a frame; the writer was refused, so more will follow; and a frame's worth is in
    /// flight on a short path, whose acknowledgement will trigger output soon. A frame costs as
    /// much as four segments, however short, and acknowledgements rarely cover whole frames.
    // Not inlined, as that would cost registers on links without GSO.
    #[inline(never)]
    pub(super) fn is_to_grow(&self, piece: &Piece, room: usize) -> bool {
        if !self.sender.write_refused {
            return false;
        }
        let full = self.full_segment();
        let frame = full * self.fitting(room, full).min(MOST / full);
        self.sender.buffer.end() - piece.seq < frame
            && self.snd.flight() >= frame
            && !piece.fin
            && !self.ack_due
            && !self.preferences.no_delay
            && self.may_burst(piece.seq)
            && self.sender.rtt.smoothed().is_some_and(|round_trip| round_trip < BURST)
    }

    /// Holds output back until the next acknowledgement, since the data in flight fills the
    /// application's share of the buffer.
    #[cold]
    pub(super) fn wait_to_grow(&mut self, now: Instant) {
        self.end_output(now);
        self.sender.account.note_application_limited(self.sender.scoreboard.in_flight());
    }

    /// Returns how many full segments fit a frame with `room` bytes, headers included.
    fn fitting(&self, room: usize, full: u32) -> u32 {
        let headers = self.constant_options() + saturated(TcpHeader::LENGTH);
        saturated(room).saturating_sub(headers) / full
    }

    /// Returns how many full segments from `seq` windows and pacing admit together. One that
    /// reaches the end of the written data is excluded, since it has PSH and perhaps the FIN.
    fn burst_from(&self, seq: SeqNum, full: u32) -> u16 {
        self.segments_let_go(self.sender.buffer.end() - seq, full, self.sender.pacer.left())
    }

    /// Returns how many full segments, excluding the last of `unsent` bytes, the windows admit
    /// together.
    fn segments_let_go(&self, unsent: u32, full: u32, paced: u32) -> u16 {
        let windows = self.usable_window().min(unsent.saturating_sub(1)).min(MOST);
        let segments = (windows / full).min(paced.div_ceil(full));
        u16::try_from(segments).unwrap_or(u16::MAX)
    }

    /// Whether data from `seq` is new, and segments would carry nothing else.
    fn may_burst(&self, seq: SeqNum) -> bool {
        let loss = &self.sender.loss;
        let nothing_is_due = !loss.retransmit_due
            && !loss.tail_probe_due
            && !self.sender.probe_due
            && !self.user_timeouts.due
            && !self.ecn.is_option_due(EcnSignals::OPTION_WITH_DATA)
            && self.ecn.flags_of_new_data().is_empty();
        seq == self.snd.max
            && nothing_is_due
            && self.is_outside_recovery()
            && !self.has_records()
            && loss.duplicates == 0
            && loss.frto == Frto::Off
            && self.sender.probes == 0
            && self.sender.urgent.is_none()
            && self.sender.path.ready().is_none()
            && !self.receiver.has_blocks()
    }

    /// Returns the data bytes of each segment of a burst.
    pub(super) fn cut_size(&self) -> Option<NonZeroU16> {
        u16::try_from(self.full_segment()).ok().and_then(NonZeroU16::new)
    }

    /// Checks that segments of a burst would also be chosen individually.
    pub(crate) fn check_burst(&self) {
        if self.is_in_burst() {
            let (full, burst) = (self.full_segment(), self.expectation.burst());
            assert!(
                self.output_due && self.reset_due.is_none(),
                "a burst of {burst} that nobody asks for"
            );
            assert!(
                self.may_burst(self.snd.nxt),
                "a burst of {burst} after something has happened"
            );
            let allowed = self.burst_from(self.snd.nxt, full);
            assert!(u16::from(burst) <= allowed, "a burst of {burst}, where {allowed} may leave");
        }
    }
}
