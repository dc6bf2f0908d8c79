//! A burst: full segments of new data that may leave one right after the other, and differ in nothing but
//! their numbers and their data. Windows, pacing and whatever else must be said are asked for once; whoever
//! cuts by himself gets all of it behind one header, and for anybody else the segments after the first are
//! the first one's header with the next number.
//!
//! Nothing leaves unnoticed: sequence numbers, scoreboard and pacing move with each segment, so that a burst may
//! end behind any of them, and does when anything else happens to the connection.

use super::Finish;
use super::choose::{Choice, Piece};
use crate::Connection;
use crate::ecn::Past;
use crate::receive::saturated;
use crate::send::Writes;
use crate::send::frto::Frto;
use crate::send::pacing::BURST;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{SeqNum, Sum, TcpHeader};

/// What one burst may have: as much as fits an IP packet, with headers.
const MOST: u32 = 65_535 - 120;

/// Segments that may follow the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// SEG.SEQ of the first of them, in which its header differs from the one before; each other's follows from
    /// its length.
    pub seq: SeqNum,
    /// Bytes of data of each.
    pub length: u32,
    /// How many they are.
    pub segments: u32,
}

impl Connection {
    /// The segments that belong to the same burst as the last one: for each of them [`Connection::poll_transmit`]
    /// would write the header that it wrote for that one, but with the next number. They may leave at `now`,
    /// with the data that [`Connection::copy_of_burst`] writes; those that do are to be
    /// [noted](Connection::note_burst) before anything else happens to the connection.
    ///
    /// A segment of a burst never reaches the end of what was written, so it bears neither PSH nor FIN.
    #[must_use]
    pub fn poll_burst(&self, now: Instant) -> Option<Continuation> {
        let segments = u32::from(self.expectation.burst());
        let goes_on = segments > 0 && self.sender.last_sent == now && self.is_in_burst();
        goes_on.then(|| Continuation { seq: self.snd.nxt, length: self.full_segment(), segments })
    }

    /// Writes the data of a segment of a burst, from `seq` on; the sum over them.
    ///
    /// # Panics
    /// If so many data are not in the send buffer.
    #[inline]
    pub fn copy_of_burst(&self, seq: SeqNum, payload: &mut [u8]) -> Sum {
        self.sender.buffer.copy_and_sum_in_a_row(seq, payload)
    }

    /// So many `segments` of the burst that [`Connection::poll_burst`] has told of have left.
    pub fn note_burst(&mut self, segments: u32) {
        let length = self.full_segment() * segments;
        self.snd.nxt += length;
        self.snd.max = self.snd.nxt;
        if self.agreement.selective_acks {
            self.sender.scoreboard.extend_burst(length);
        }
        let burst = self.expectation.burst();
        self.limit_burst(burst.saturating_sub(u8::try_from(segments).unwrap_or(burst)));
        self.sender.pacer.on_sent(length);
        self.statistics.segments_sent += u64::from(segments);
        self.statistics.data_segments_sent += u64::from(segments);
        self.statistics.bytes_sent += u64::from(length);
    }

    /// Has a burst that was [noted](Connection::note_burst) at `now` used up the windows, so that [`Connection::poll_transmit`]
    /// would have nothing more? Then it need not be asked: all is as if it had been, and nothing changes that is told of a
    /// connection.
    pub fn falls_silent_after_burst(&mut self, now: Instant) -> bool {
        let is_silent = self.has_used_the_windows();
        if is_silent {
            self.fall_silent(now);
        }
        is_silent
    }

    /// Has all of the burst left, and have the windows room for less than a segment, which is not worth sending? A burst may
    /// also end before the last of what was written, or because pacing says so, or something else may have become due: then
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

    /// May [`Connection::poll_burst`] have something, if it is asked at the time at which the last segment left?
    #[must_use]
    pub const fn is_in_burst(&self) -> bool {
        let is_all_told = self.rcv.nxt.number() == self.rcv.acked.number() && !self.ack_due;
        self.expectation.burst() > 0 && is_all_told
    }

    /// `piece` was chosen: what may leave with it becomes a part of it, if others cut it. If not, returns how
    /// many segments may follow.
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
                // Whoever cuts leaves PSH to the last segment.
                let pushed = u32::from(!self.sender.fin());
                let unsent = self.sender.buffer.end() + pushed - piece.seq;
                let burst =
                    self.segments_let_go(unsent, full, self.sender.pacer.left_in_one_frame());
                piece.length = full * self.fitting(room, full).min(burst.into()).max(1);
                piece.burst = piece.length > full;
                0
            }
        }
    }

    /// Is `piece` to wait for what will follow it? It is the end of what was written, and less than a frame holds that
    /// others cut; its writer was refused, so that more will come; and a frame's worth is in flight on a short path: the
    /// acknowledgement that makes room for the writer asks again before long. A frame costs its link as much as four
    /// segments, however few it has, and what is acknowledged in one turn is hardly ever a multiple of a frame.
    // Drawn in, it is paid for with registers by links that do not cut.
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

    /// Nothing leaves before the next acknowledgement: what is in flight is as much as the application's share of the
    /// buffer lets it be.
    #[cold]
    pub(super) fn wait_to_grow(&mut self, now: Instant) {
        self.fall_silent(now);
        self.sender.account.note_application_limited(self.sender.scoreboard.in_flight());
    }

    /// Full segments that fit a frame with `room` for them and their headers.
    fn fitting(&self, room: usize, full: u32) -> u32 {
        let headers = self.constant_options() + saturated(TcpHeader::LENGTH);
        saturated(room).saturating_sub(headers) / full
    }

    /// Full segments from `seq` on that the windows and pacing let go together. One that reaches the end of
    /// what was written is none of them, since it is pushed, and may bear the FIN.
    fn burst_from(&self, seq: SeqNum, full: u32) -> u16 {
        self.segments_let_go(self.sender.buffer.end() - seq, full, self.sender.pacer.left())
    }

    /// Full segments that end before the last of `unsent` bytes, and that the windows let go together.
    fn segments_let_go(&self, unsent: u32, full: u32, paced: u32) -> u16 {
        let windows = self.usable_window().min(unsent.saturating_sub(1)).min(MOST);
        let segments = (windows / full).min(paced.div_ceil(full));
        u16::try_from(segments).unwrap_or(u16::MAX)
    }

    /// Is what leaves from `seq` on new, and is there nothing that a segment would say, or ask, beside its
    /// data?
    fn may_burst(&self, seq: SeqNum) -> bool {
        let loss = &self.sender.loss;
        let nothing_is_due = !loss.retransmit_due
            && !loss.tail_probe_due
            && !self.sender.probe_due
            && !self.user_timeouts.due
            && !self.ecn.owes_option(Past::OPTION_WITH_DATA)
            && self.ecn.flags_of_new_data().is_empty();
        seq == self.snd.max
            && nothing_is_due
            && self.is_untroubled()
            && !self.has_records()
            && loss.duplicates == 0
            && loss.frto == Frto::Off
            && self.sender.probes == 0
            && self.sender.urgent.is_none()
            && self.sender.path.ready().is_none()
            && !self.receiver.has_blocks()
    }

    /// Data bytes of each segment of a burst.
    pub(super) fn cut_size(&self) -> Option<NonZeroU16> {
        u16::try_from(self.full_segment()).ok().and_then(NonZeroU16::new)
    }

    /// Segments that a choice is.
    pub(super) fn segments_of(&self, choice: Choice) -> u32 {
        match choice {
            Choice::Data(piece) if piece.burst => piece.length / self.full_segment(),
            _ => 1,
        }
    }

    /// Checks that what may follow without being asked for would be let go if it were.
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
