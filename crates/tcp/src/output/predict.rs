//! Output prediction, the mirror of header prediction.
//!
//! A single segment is nearly always the end of the written data, perhaps with the FIN, or an
//! acknowledgement. A connection that predicts its next header is established and misses nothing,
//! so that few conditions remain to be checked; closing connections are checked further. Nothing
//! more is sent after either, so that little is to be recorded.
//!
//! [`predict_output`](Connection::predict_output) has no side effects, and `choose` would choose
//! the same. In every test a twin without prediction must send and record the same.

use super::build::Data;
use super::{Finish, Transmit};
use crate::timers::Timer;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};

/// The only segment that may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Bytes of data: the last written ones. Zero for a pure acknowledgement or a FIN.
    length: u32,
    /// Bytes in flight after it was sent.
    in_flight: u32,
}

impl Rest {
    const ACKNOWLEDGEMENT: Self = Self { length: 0, in_flight: 0 };
}

/// Header bytes of a predicted segment.
const HEADER: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// Header bytes of most SYNs.
const SYN_HEADER: usize = TcpHeader::LENGTH + TcpOptions::SYN_LENGTH;

/// A segment that opens or closes a connection and was written. It is returned in registers, where
/// a [`Transmit`] would go through memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// Bytes of data.
    length: u32,
    sum: Sum,
    ecn: Ecn,
    is_syn: bool,
}

impl From<Control> for Transmit {
    #[inline(always)]
    fn from(Control { length, sum, ecn, is_syn }: Control) -> Self {
        let header = if is_syn { SYN_HEADER } else { HEADER };
        Self { length: header + length as usize, ecn, ..Self::without_data(header, sum) }
    }
}

impl Connection {
    /// Returns the only segment that may be sent, if it is predictable, while the next header is
    /// predicted.
    #[inline(always)]
    pub(super) fn predict_output(&self) -> Option<Rest> {
        if !self.is_usual() {
            return None;
        }
        let length = self.sender.buffer.end() - self.snd.nxt;
        if length == 0 {
            return (self.ack_due && self.acknowledges_all()).then_some(Rest::ACKNOWLEDGEMENT);
        }
        if length >= self.full_segment() {
            return None;
        }
        if self.snd.nxt == self.snd.una {
            // Alone in flight, it waits for none before it, and every congestion window has room
            // for a full segment.
            return (length <= self.snd.wnd).then_some(Rest { length, in_flight: length });
        }
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let may_leave = length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= self.sender.congestion.window().cwnd()
            && self.nagle_allows();
        may_leave.then_some(Rest { length, in_flight })
    }

    /// The same of a connection that is being closed, and that hears in order and misses nothing
    /// all the same: its FIN with the rest, for which no other segment is waited for, or an
    /// acknowledgement. Does the FIN go with it?
    #[inline(always)]
    fn predict_last_output(&self) -> Option<(Rest, bool)> {
        let is_closing = self.state.is_synchronized() && self.state != State::Established;
        let is_plain =
            is_closing && self.receiver.assembler.is_empty() && self.is_outside_recovery();
        if !self.preferences.header_prediction
            || !is_plain
            || !self.sends_nothing_again()
            || !self.has_only_plain_output()
        {
            return None;
        }
        if !self.sender.has_unsent(self.snd.nxt) {
            return (self.ack_due && self.acknowledges_all())
                .then_some((Rest::ACKNOWLEDGEMENT, false));
        }
        let length = self.sender.buffer.end() - self.snd.nxt;
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let has_room = length < self.full_segment()
            && length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= self.sender.congestion.window().cwnd();
        let may_leave = self.sender.fin() && self.state.sends_data() && (length == 0 || has_room);
        may_leave.then_some((Rest { length, in_flight }, true))
    }

    /// Is nothing due that a header as usual does not say, and nothing to be sent again?
    #[inline(always)]
    pub(super) const fn is_usual(&self) -> bool {
        self.expectation.is_plain() && self.sends_nothing_again()
    }

    /// Is the pacer open, and nothing to be sent again?
    #[inline(always)]
    const fn sends_nothing_again(&self) -> bool {
        self.sender.pacer.is_open() && self.snd.nxt.number() == self.snd.max.number()
    }

    /// Writes the segment that [`Connection::predict_output`] says, and remembers it.
    #[inline(always)]
    pub(super) fn send_predicted(
        &mut self,
        now: Instant,
        rest: Rest,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        let seq = self.snd.nxt;
        let sum = if rest.length > 0 {
            self.send_rest(now, rest, bytes)
        } else {
            self.ack_is_said(now);
            self.send_ack(now, bytes)
        };
        self.write_rest(seq, rest, sum, finish, bytes)
    }

    /// The only segment that may leave now, if that is plain to see, of a connection that predicts
    /// no header: of one that is being opened, or closed.
    #[inline(never)]
    pub(super) fn send_control(
        &mut self,
        now: Instant,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Option<Control> {
        if self.first_due {
            self.send_first_syn(now, bytes)
        } else {
            self.send_last(now, finish, bytes)
        }
    }

    #[inline(always)]
    fn send_last(&mut self, now: Instant, finish: Finish, bytes: &mut [u8]) -> Option<Control> {
        let (rest, fin) = self.predict_last_output()?;
        if !fin {
            self.ack_is_said(now);
            let sum = self.send_ack(now, bytes);
            return Some(Control { length: 0, sum, ecn: Ecn::NotEct, is_syn: false });
        }
        if rest.length > 0 && finish != Finish::Nothing {
            // Whoever takes it may want to gather its data.
            return None;
        }
        let seq = self.snd.nxt;
        let pushed = if rest.length > 0 { TcpFlags::PSH } else { TcpFlags::empty() };
        let was_idle = self.snd.flight() == 0;
        self.remember_rest(now, rest.length, seq + rest.length + 1, was_idle);
        let sum = self.write_alone(now, seq, TcpFlags::ACK | TcpFlags::FIN | pushed, bytes);
        self.note_nothing_unsent(now);
        let Transmit { sum, ecn, .. } = self.write_rest(seq, rest, sum, finish, bytes);
        Some(Control { length: rest.length, sum, ecn, is_syn: false })
    }

    /// Our SYN, or SYN-ACK, that leaves for the first time, with the options that nearly all have
    /// and with nothing else to be told; nothing may leave after it.
    #[inline(always)]
    fn send_first_syn(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Control> {
        let answers = match self.state {
            State::SynSent => false,
            State::SynReceived => true,
            _ => return None,
        };
        let stamps = if answers { self.timestamps.on } else { self.config.timestamps };
        let agreed = stamps && self.agreement.scaling && self.agreement.selective_acks;
        let is_odd = self.fast_open.is_some()
            || self.reset_due.is_some()
            || self.ecn.is_accurate()
            || self.config.user_timeout_option
            || self.keep_alive_due;
        let is_first = self.snd.max == self.snd.iss;
        if !self.preferences.header_prediction || !agreed || is_odd || !is_first {
            return None;
        }
        self.pace(now);
        let flags = self.flags_of_syn();
        let ack = if answers { self.rcv.nxt } else { SeqNum::new(0) };
        let window = self.offer_on_syn();
        let header = TcpHeader { seq: self.snd.iss, ack, flags, window, ..TcpHeader::default() };
        #[allow(clippy::cast_possible_truncation, reason = "it is one that the option can hold")]
        let mss = self.path.mss() as u16;
        let (shift, stamp) = (self.agreement.receive_shift, self.timestamps.stamp(now));
        let sum = header.emit_syn(mss, shift, stamp, bytes);
        self.statistics.segments_sent += 1;
        self.record_first_syn(now, flags, 0);
        if answers {
            self.record_acknowledged(self.rcv.nxt);
        }
        self.note_output_ended(now);
        Some(Control { length: 0, sum, ecn: Ecn::NotEct, is_syn: true })
    }

    /// Writes the data of a segment whose header is there, with this sum, and is remembered: what
    /// is known of it otherwise need not be kept for that.
    #[inline(always)]
    fn write_rest(
        &self,
        seq: SeqNum,
        rest: Rest,
        sum: Sum,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        let data = Data::whole(seq, rest.length);
        let ecn = if rest.length > 0 { self.ecn.codepoint() } else { Ecn::NotEct };
        self.write_payload((HEADER, sum), data, finish, ecn, bytes)
    }

    /// Remembers that an acknowledgement leaves, and writes its header: the sum of that.
    #[inline(always)]
    fn send_ack(&mut self, now: Instant, bytes: &mut [u8]) -> Sum {
        self.statistics.segments_sent += 1;
        self.statistics.pure_acks_sent += 1;
        self.write_alone(now, self.snd.nxt, TcpFlags::ACK, bytes)
    }

    /// Writes the header of an acknowledgement or a FIN, and remembers what it tells.
    #[inline(never)]
    fn write_alone(&mut self, now: Instant, seq: SeqNum, flags: TcpFlags, bytes: &mut [u8]) -> Sum {
        let sum = self.write_predicted(now, seq, flags, bytes);
        self.record_acknowledged(self.rcv.nxt);
        sum
    }

    /// What [`Connection::note_nothing_unsent`] does, for an acknowledgement alone. If all that was ever
    /// sent is acknowledged, and it was done since, it has found no flight, nobody who is busy and
    /// an application that limits us, and would find them again: who only receives does it once.
    #[inline(always)]
    fn ack_is_said(&mut self, now: Instant) {
        if self.snd.una == self.snd.nxt && self.sender.usage.is_nothing_until(self.snd.nxt) {
            self.output_due = false;
            self.sender.held_back = false;
        } else {
            self.note_nothing_unsent(now);
        }
    }

    /// Remembers that the rest leaves, and writes its header: the sum of that. The header comes
    /// last, so that nothing of it has to be kept meanwhile.
    #[inline(never)]
    fn send_rest(&mut self, now: Instant, rest: Rest, bytes: &mut [u8]) -> Sum {
        let seq = self.snd.nxt;
        let was_idle = self.snd.flight() == 0;
        self.remember_rest(now, rest.length, seq + rest.length, was_idle);
        self.rest_is_said(now, rest.in_flight, was_idle);
        let sum = self.write_predicted(now, seq, TcpFlags::ACK | TcpFlags::PSH, bytes);
        self.record_acknowledged(self.rcv.nxt);
        sum
    }

    /// Writes the header of a segment that begins at `seq`, with timestamps; its sum.
    #[inline(always)]
    fn write_predicted(
        &mut self,
        now: Instant,
        seq: SeqNum,
        flags: TcpFlags,
        bytes: &mut [u8],
    ) -> Sum {
        let header = self.header(seq, self.rcv.nxt, flags);
        header.emit_timestamped(self.timestamps.stamp(now), bytes)
    }

    /// What remains of what was written leaves up to `end`, with `length` bytes of new data and
    /// nothing else in it but what has to be told.
    #[inline(always)]
    fn remember_rest(&mut self, now: Instant, length: u32, end: SeqNum, was_idle: bool) {
        self.statistics.segments_sent += 1;
        self.statistics.data_segments_sent += u64::from(length > 0);
        self.statistics.bytes_sent += u64::from(length);
        let left = self.snd.nxt;
        (self.snd.nxt, self.snd.max) = (end, end);
        if was_idle {
            self.restart_after_idle_time(now);
            self.sender.record_first_sent(now, left, end);
            if !self.timers.is_set(Timer::Retransmit) {
                self.watch_alone(now);
            }
        } else {
            self.sender.record_sent(now, left, end, false);
            self.watch(now);
        }
        self.acks.on_data_sent();
        if length > 0 {
            self.sender.small_end = end;
        }
        self.sender.last_sent = now;
        self.sender.pacer.on_sent(length);
        self.timers.clear(Timer::Persist);
    }

    /// What [`Connection::note_nothing_unsent`] does, after data: the application is what limits us, or the
    /// window. For what is alone in flight the timer is right.
    #[inline(always)]
    fn rest_is_said(&mut self, now: Instant, in_flight: u32, is_alone: bool) {
        self.output_due = false;
        self.sender.held_back = false;
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        self.note_all_sent(now);
        // Less than a full segment never fills a congestion window.
        if is_alone || in_flight < self.sender.congestion.window().cwnd() {
            self.sender.account.note_application_limited(in_flight);
        }
        if !is_alone {
            self.watch_tail(now);
        }
    }
}
