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
use linerate_wire::{Ecn, TcpFlags, TcpHeader, TcpOptions};

/// What may be due in the name of ECN.
const OF_ECN: Past = Past::OPTION_WITH_DATA.union(Past::CWR_DUE);

impl Connection {
    /// The only segment that may leave now, if that is plain to see: the last so many bytes of what was written,
    /// and for zero an acknowledgement alone.
    #[inline]
    pub(super) fn predict_output(&self) -> Option<u32> {
        let is_usual = self.predicted != 0 && self.timestamps.on && self.agreement.selective_acks;
        if !is_usual || self.is_anything_due() || self.snd.nxt != self.snd.max {
            return None;
        }
        let rest = self.sender.buffer.end() - self.snd.nxt;
        if rest == 0 {
            return self.ack_due.then_some(0);
        }
        let in_flight = self.sender.scoreboard.in_flight();
        let may_leave = rest < self.full_segment()
            && rest <= self.snd.wnd.saturating_sub(self.snd.flight())
            && rest <= self.sender.congestion.window().cwnd().saturating_sub(in_flight)
            && self.nagle_allows();
        may_leave.then_some(rest)
    }

    /// Is there anything to be sent, or told, but new data and what has arrived in order?
    #[inline]
    fn is_anything_due(&self) -> bool {
        let (sender, loss) = (&self.sender, &self.sender.loss);
        let of_handshake_or_end = self.first_due | sender.fin;
        let of_timers = loss.retransmit_due | loss.tail_probe_due | sender.probe_due | self.keep_alive_due;
        let of_path = !sender.pacer.is_open() | sender.path.is_awake() | (sender.probes > 0);
        let of_options = self.user_timeouts.due | self.receiver.has_blocks() | self.ecn.owes_option(OF_ECN);
        of_handshake_or_end | of_timers | of_path | of_options | sender.urgent.is_some()
    }

    /// Writes the segment that [`Connection::predict_output`] says, and remembers it.
    #[inline]
    pub(super) fn send_predicted(
        &mut self,
        now: Instant,
        rest: u32,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        let piece = Piece { seq: self.snd.nxt, length: rest, fin: false, probe: false, burst: false };
        let has_data = rest > 0;
        let mut flags = TcpFlags::ACK;
        let mut ecn = Ecn::NotEct;
        if has_data {
            self.leave_idleness(now, piece);
            self.end_burst();
            flags |= TcpFlags::PSH;
            ecn = self.ecn.codepoint();
        }
        let header_sum = self.header(piece.seq, flags).emit_timestamped(self.timestamps.stamp(now), bytes);
        let header = (TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH, header_sum);
        let transmit = self.write_payload(header, piece.data(), finish, ecn, bytes);
        self.statistics.segments_sent += 1;
        if has_data {
            self.remember_rest(now, piece);
        } else {
            self.statistics.pure_acks_sent += 1;
        }
        self.remember_told();
        self.say_no_more(now);
        transmit
    }

    /// The rest of what was written has left, with nothing but new data in it.
    #[inline]
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
}
