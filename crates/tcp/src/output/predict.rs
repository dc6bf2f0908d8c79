//! Output prediction, the mirror of header prediction.
//!
//! What leaves alone is nearly always one of two: the rest of what was written, in a segment that is not full,
//! or an acknowledgement of what has arrived. A connection that predicts the next header is established,
//! hears in order and misses nothing, so that only what is due besides is left to be asked; and after either
//! there is nothing more to say, so what is remembered of it is little, too.
//!
//! [`predict_output`](Connection::predict_output) changes nothing, and whatever it answers, `choose` would answer,
//! too. In every test a twin that predicts nothing has to send the same, and to remember the same of it.

use super::choose::Piece;
use super::{Finish, Transmit};
use crate::Connection;
use crate::ecn::Past;
use crate::timers::Timer;
use linerate_units::Instant;
use linerate_wire::{Sum, TcpFlags, TcpHeader, TcpOptions};

/// The only segment that may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Bytes of its data: the last that were written. Zero for an acknowledgement alone.
    length: u32,
    /// Bytes in flight, once it has left.
    in_flight: u32,
    /// Are these as many as the congestion window allows?
    fills_window: bool,
}

/// What may be due in the name of ECN.
const OF_ECN: Past = Past::OPTION_WITH_DATA.union(Past::CWR_DUE);

impl Connection {
    /// The only segment that may leave now, if that is plain to see.
    #[inline(always)]
    pub(super) fn predict_output(&self) -> Option<Rest> {
        let is_usual = self.predicted != 0 && self.timestamps.on && self.agreement.selective_acks;
        if !is_usual || self.is_anything_due() || self.snd.nxt != self.snd.max {
            return None;
        }
        let length = self.sender.buffer.end() - self.snd.nxt;
        if length == 0 {
            return self.ack_due.then_some(Rest { length, in_flight: 0, fills_window: false });
        }
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let cwnd = self.sender.congestion.window().cwnd();
        let may_leave = length < self.full_segment()
            && length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= cwnd
            && self.nagle_allows();
        may_leave.then_some(Rest { length, in_flight, fills_window: in_flight == cwnd })
    }

    /// Is there anything to be sent, or told, but new data and what has arrived in order?
    #[inline(always)]
    fn is_anything_due(&self) -> bool {
        let (sender, loss) = (&self.sender, &self.sender.loss);
        let of_handshake_or_end = self.first_due | sender.fin;
        let of_timers = loss.retransmit_due | loss.tail_probe_due | sender.probe_due | self.keep_alive_due;
        let of_path = !sender.pacer.is_open() | sender.path.is_awake() | (sender.probes > 0);
        // What lies beyond holes would have spoiled the prediction of a header.
        let of_options =
            self.user_timeouts.due | self.receiver.owes_duplicate() | self.ecn.owes_option(OF_ECN);
        of_handshake_or_end | of_timers | of_path | of_options | sender.urgent.is_some()
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
        if rest.length > 0 {
            return self.send_rest(now, rest, finish, bytes);
        }
        let (header, sum) = self.write_predicted(now, TcpFlags::ACK, bytes);
        self.statistics.pure_acks_sent += 1;
        self.remember_told();
        self.say_no_more(now);
        Transmit::without_data(header, sum)
    }

    #[inline(always)]
    fn send_rest(&mut self, now: Instant, rest: Rest, finish: Finish, bytes: &mut [u8]) -> Transmit {
        let piece = Piece { seq: self.snd.nxt, length: rest.length, fin: false, probe: false, burst: false };
        if self.snd.flight() == 0 {
            self.leave_idleness(now);
        }
        self.end_burst();
        let header = self.write_predicted(now, TcpFlags::ACK | TcpFlags::PSH, bytes);
        let transmit = self.write_payload(header, piece.data(), finish, self.ecn.codepoint(), bytes);
        self.remember_rest(now, piece);
        self.remember_told();
        self.rest_is_said(now, rest);
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
        self.statistics.data_segments_sent += 1;
        self.statistics.bytes_sent += u64::from(piece.length);
        self.sender.depart(now, piece.seq, end, false);
        self.acks.on_data_sent();
        self.sender.small_end = self.sender.small_end.later(end);
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
