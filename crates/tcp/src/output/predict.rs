//! Output prediction, the mirror of header prediction.
//!
//! What leaves alone is nearly always one of two: the rest of what was written, in a segment that is not full and
//! perhaps with the FIN, or an acknowledgement of what has arrived. A connection that predicts the next header is
//! established, hears in order and misses nothing, so that only what is due besides is left to be asked; one that is
//! being closed is asked for that, too. After either there is nothing more to say, so what is remembered of it is
//! little as well.
//!
//! [`predict_output`](Connection::predict_output) changes nothing, and whatever it answers, `choose` would answer,
//! too. In every test a twin that predicts nothing has to send the same, and to remember the same of it.

use super::choose::Piece;
use super::{Finish, Transmit};
use crate::ecn::Past;
use crate::timers::Timer;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, Sum, TcpFlags, TcpHeader, TcpOptions};

/// The only segment that may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Bytes of its data: the last that were written. Zero for an acknowledgement alone, or a FIN.
    length: u32,
    /// Does the FIN follow them?
    fin: bool,
    /// Bytes in flight, once it has left.
    in_flight: u32,
    /// Are these as many as the congestion window allows?
    fills_window: bool,
}

impl Rest {
    const ACKNOWLEDGEMENT: Self = Self { length: 0, fin: false, in_flight: 0, fills_window: false };
}

/// What may be due in the name of ECN.
const OF_ECN: Past = Past::OPTION_WITH_DATA.union(Past::CWR_DUE);

impl Connection {
    /// The only segment that may leave now, if that is plain to see.
    #[inline(always)]
    pub(super) fn predict_output(&self) -> Option<Rest> {
        if self.predicted == 0 {
            return self.predict_last_output();
        }
        if !self.is_usual() {
            return None;
        }
        let length = self.sender.buffer.end() - self.snd.nxt;
        if length == 0 {
            return self.ack_due.then_some(Rest::ACKNOWLEDGEMENT);
        }
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let cwnd = self.sender.congestion.window().cwnd();
        let may_leave = length < self.full_segment()
            && length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= cwnd
            && self.nagle_allows();
        may_leave.then_some(Rest { length, fin: false, in_flight, fills_window: in_flight == cwnd })
    }

    /// The same of a connection that is being closed, and that hears in order and misses nothing all the same: its
    /// FIN with the rest, for which no other segment is waited for, or an acknowledgement.
    #[inline(never)]
    fn predict_last_output(&self) -> Option<Rest> {
        let is_closing = self.state.is_synchronized() && self.state != State::Established;
        let hears_in_order = self.receiver.assembler.is_empty() && self.reset_due.is_none();
        let is_calm = is_closing && hears_in_order && self.is_untroubled();
        if !self.preferences.header_prediction || !is_calm || !self.is_usual() {
            return None;
        }
        if !self.sender.has_unsent(self.snd.nxt) {
            return self.ack_due.then_some(Rest::ACKNOWLEDGEMENT);
        }
        let length = self.sender.buffer.end() - self.snd.nxt;
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let cwnd = self.sender.congestion.window().cwnd();
        let has_room = length < self.full_segment()
            && length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= cwnd;
        let may_leave = self.sender.fin && self.state.sends_data() && (length == 0 || has_room);
        may_leave.then_some(Rest { length, fin: true, in_flight, fills_window: in_flight >= cwnd })
    }

    /// Is nothing to be sent, or told, that does not stand in a header as usual, and again nothing?
    #[inline(always)]
    fn is_usual(&self) -> bool {
        let agreed = self.timestamps.on && self.agreement.selective_acks;
        agreed && !self.is_anything_due() && self.snd.nxt == self.snd.max
    }

    /// Is there anything to be sent, or told, but new data, the FIN, and what has arrived in order?
    #[inline(always)]
    fn is_anything_due(&self) -> bool {
        let (sender, loss) = (&self.sender, &self.sender.loss);
        let of_timers = loss.retransmit_due | loss.tail_probe_due | sender.probe_due | self.keep_alive_due;
        let of_path = !sender.pacer.is_open() | sender.path.is_awake() | (sender.probes > 0);
        // What lies beyond holes would have spoiled the prediction of a header.
        let of_options =
            self.user_timeouts.due | self.receiver.owes_duplicate() | self.ecn.owes_option(OF_ECN);
        self.first_due | of_timers | of_path | of_options | sender.urgent.is_some()
    }

    /// Writes the segment that [`Connection::predict_output`] says, and remembers it.
    #[inline(never)]
    pub(super) fn send_predicted(
        &mut self,
        now: Instant,
        rest: Rest,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        self.statistics.segments_sent += 1;
        if rest.fin {
            return self.send_last(now, rest, finish, bytes);
        }
        if rest.length > 0 {
            return self.send_rest(now, Rest { fin: false, ..rest }, finish, bytes);
        }
        let (header, sum) = self.write_predicted(now, TcpFlags::ACK, bytes);
        self.statistics.pure_acks_sent += 1;
        self.remember_told();
        self.say_no_more(now);
        Transmit::without_data(header, sum)
    }

    #[inline(never)]
    fn send_last(&mut self, now: Instant, rest: Rest, finish: Finish, bytes: &mut [u8]) -> Transmit {
        self.send_rest(now, Rest { fin: true, ..rest }, finish, bytes)
    }

    #[inline(always)]
    fn send_rest(&mut self, now: Instant, rest: Rest, finish: Finish, bytes: &mut [u8]) -> Transmit {
        let Rest { length, fin, .. } = rest;
        let piece = Piece { seq: self.snd.nxt, length, fin, probe: false, burst: false };
        if self.snd.flight() == 0 {
            self.leave_idleness(now);
        }
        self.end_burst();
        let mut flags = TcpFlags::ACK;
        flags.set(TcpFlags::PSH, length > 0);
        flags.set(TcpFlags::FIN, fin);
        let header = self.write_predicted(now, flags, bytes);
        let ecn = if length > 0 { self.ecn.codepoint() } else { Ecn::NotEct };
        let transmit = self.write_payload(header, piece.data(), finish, ecn, bytes);
        self.remember_rest(now, piece);
        self.remember_told();
        if fin {
            self.say_no_more(now);
        } else {
            self.rest_is_said(now, rest);
        }
        transmit
    }

    /// Writes the header of the next segment, with timestamps; how long it is, and its sum.
    #[inline(always)]
    fn write_predicted(&mut self, now: Instant, flags: TcpFlags, bytes: &mut [u8]) -> (usize, Sum) {
        let header = self.header(self.snd.nxt, flags);
        let sum = header.emit_timestamped(self.timestamps.stamp(now), bytes);
        (TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH, sum)
    }

    /// The rest of what was written has left, with nothing but new data in it.
    #[inline(always)]
    fn remember_rest(&mut self, now: Instant, piece: Piece) {
        let end = piece.end();
        self.statistics.data_segments_sent += u64::from(piece.length > 0);
        self.statistics.bytes_sent += u64::from(piece.length);
        self.sender.depart(now, piece.seq, end, false);
        self.acks.on_data_sent();
        if piece.length > 0 {
            self.sender.small_end = self.sender.small_end.later(end);
        }
        self.sender.last_sent = now;
        self.sender.pacer.on_sent(piece.length);
        self.snd.nxt = end;
        self.snd.max = end;
        self.timers.clear(Timer::Persist);
        self.watch(now);
    }

    /// What [`Connection::say_no_more`] does, after data: the application is what limits us, or the window.
    #[inline(always)]
    fn rest_is_said(&mut self, now: Instant, rest: Rest) {
        self.output_due = false;
        self.sender.held_back = false;
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        self.note_all_sent(now);
        if !rest.fills_window {
            self.sender.account.note_application_limited(rest.in_flight);
        }
        self.watch_tail(now);
    }
}
