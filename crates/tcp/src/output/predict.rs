//! Output prediction: a short path for the segments that are sent most often, just as header
//! prediction is a short path for received segments.
//!
//! A segment after which no other segment can be sent at once is nearly always one of two kinds. It
//! is an ACK without data, or it carries the rest of the written data, perhaps with the FIN. A
//! connection that predicts the next received header is established and misses no data, so few
//! conditions remain to be checked. For a closing connection, more checks are necessary. Since no
//! other segment follows at once, little must be recorded.
//!
//! [`predict_output`](Connection::predict_output) has no side effects, and returns the segment that
//! [`choose`](Connection::choose) would choose. Every test runs a second connection without
//! prediction, which must send the same segments and have the same state.

use super::build::Data;
use super::choose::{Choice, Piece};
use super::commit::Origin;
use super::idle::Reason;
use super::{HEADER, Offload, Transmit};
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};

/// A segment that is predicted to be the only one that can be sent now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// The number of data bytes, up to the end of the written data. Zero for an ACK or a FIN alone.
    length: u32,
    /// The number of bytes that are in flight once the segment is sent.
    in_flight: u32,
}

impl Rest {
    const ACKNOWLEDGEMENT: Self = Self { length: 0, in_flight: 0 };
}

/// The length of the header of a SYN with the usual options, in bytes.
const SYN_HEADER: usize = TcpHeader::LENGTH + TcpOptions::SYN_LENGTH;

/// A written segment that opens or closes a connection. Unlike [`Transmit`], it is small enough to
/// be returned in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// The number of data bytes.
    length: u32,
    sum: Sum,
    ecn: Ecn,
    is_syn: bool,
}

impl From<Control> for Transmit {
    #[inline(always)]
    fn from(Control { length, sum, ecn, is_syn }: Control) -> Self {
        let header = if is_syn { SYN_HEADER } else { HEADER };
        Self {
            length: header + length as usize,
            ecn,
            is_predicted: true,
            ..Self::without_data(header, sum)
        }
    }
}

impl Connection {
    /// Returns the only segment that can be sent now, if it can be predicted. Must be called only
    /// while the connection predicts the next received header: the conditions that this implies are
    /// not checked here.
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
            // Nothing is in flight, so Nagle's algorithm permits the segment, and every congestion
            // window has room for it. Only the peer's window remains to be checked.
            return (length <= self.snd.wnd).then_some(Rest { length, in_flight: length });
        }
        let in_flight = self.sender.scoreboard.in_flight().saturating_add(length);
        let may_leave = length <= self.snd.wnd.saturating_sub(self.snd.flight())
            && in_flight <= self.sender.congestion.window().cwnd()
            && self.nagle_allows();
        may_leave.then_some(Rest { length, in_flight })
    }

    /// Returns the only segment that a closing connection can send outside recovery: the rest of
    /// the data with the FIN, or an ACK without data. The second value is true if the segment has
    /// the FIN.
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

    /// Whether any output that is due is plain (new data, the FIN or an ACK), pacing permits it,
    /// and no retransmission is in progress.
    #[inline(always)]
    pub(super) const fn is_usual(&self) -> bool {
        self.expectation.is_plain() && self.sends_nothing_again()
    }

    /// Whether pacing permits a segment, and no retransmission is in progress.
    #[inline(always)]
    const fn sends_nothing_again(&self) -> bool {
        self.sender.pacer.is_open() && self.snd.nxt.number() == self.snd.max.number()
    }

    /// Writes and records the segment that [`Connection::predict_output`] has returned.
    #[inline(always)]
    pub(super) fn send_predicted(
        &mut self,
        now: Instant,
        rest: Rest,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Transmit {
        let seq = self.snd.nxt;
        let sum = if rest.length > 0 {
            self.send_rest(now, rest, bytes)
        } else {
            self.send_ack(now, bytes)
        };
        let sent = self.write_rest(seq, rest, sum, offload, bytes);
        Transmit { is_predicted: true, ..sent }
    }

    /// Sends the only segment that can be sent while a connection opens or closes, if it can be
    /// predicted. [`Self::predict_output`] does not cover these states, because no header is
    /// predicted in them.
    #[inline(never)]
    pub(super) fn send_control(
        &mut self,
        now: Instant,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Option<Control> {
        if self.first_due {
            self.send_first_syn(now, bytes)
        } else {
            self.send_last(now, offload, bytes)
        }
    }

    #[inline(always)]
    fn send_last(&mut self, now: Instant, offload: Offload, bytes: &mut [u8]) -> Option<Control> {
        let (rest, fin) = self.predict_last_output()?;
        if !fin {
            let sum = self.send_ack(now, bytes);
            return Some(Control { length: 0, sum, ecn: Ecn::NotEct, is_syn: false });
        }
        if rest.length > 0 && offload != Offload::None {
            // A link with scatter-gather may take the data from the send buffer without a copy,
            // which the result type `Control` cannot express. So if the link has any offload,
            // segments with data are left to the general path.
            return None;
        }
        let seq = self.snd.nxt;
        let pushed = if rest.length > 0 { TcpFlags::PSH } else { TcpFlags::empty() };
        self.commit_rest(now, rest.length, true);
        let sum = self.write_alone(now, seq, TcpFlags::ACK | TcpFlags::FIN | pushed, bytes);
        self.end_output_all_sent(now);
        let Transmit { sum, ecn, .. } = self.write_rest(seq, rest, sum, offload, bytes);
        Some(Control { length: rest.length, sum, ecn, is_syn: false })
    }

    /// Sends our first SYN or SYN-ACK, if it has the usual options and no other segment can follow
    /// it.
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
        self.commit(now, Choice::Syn { length: 0 }, Origin::Predicted { is_alone: true });
        self.end_output(now);
        Some(Control { length: 0, sum, ecn: Ecn::NotEct, is_syn: true })
    }

    /// Writes the data of a segment that is already recorded and whose header is already written.
    /// `sum` is the partial checksum of the header.
    #[inline(always)]
    fn write_rest(
        &self,
        seq: SeqNum,
        rest: Rest,
        sum: Sum,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Transmit {
        let data = Data::whole(seq, rest.length);
        let ecn = if rest.length > 0 { self.ecn.codepoint() } else { Ecn::NotEct };
        self.write_payload((HEADER, sum), data, offload, ecn, bytes)
    }

    /// Records and writes an ACK without data, and ends output, and returns its partial checksum.
    #[inline(always)]
    fn send_ack(&mut self, now: Instant, bytes: &mut [u8]) -> Sum {
        self.end_output_after_ack(now);
        let sum = self.write_alone(now, self.snd.nxt, TcpFlags::ACK, bytes);
        let origin = Origin::Predicted { is_alone: false };
        self.commit(now, Choice::Ack { count: 1 }, origin);
        sum
    }

    /// Records a segment with the rest of the written data, and writes its header. Returns the
    /// partial checksum of the header.
    #[inline(never)]
    fn send_rest(&mut self, now: Instant, rest: Rest, bytes: &mut [u8]) -> Sum {
        let seq = self.snd.nxt;
        let is_alone = self.commit_rest(now, rest.length, false);
        self.end_output_for(now, Reason::RestSent { in_flight: rest.in_flight, is_alone });
        self.write_predicted(now, seq, TcpFlags::ACK | TcpFlags::PSH, bytes)
    }

    /// Records a segment with the rest of the written data. Returns whether its data is the only
    /// data in flight.
    #[inline(always)]
    fn commit_rest(&mut self, now: Instant, length: u32, fin: bool) -> bool {
        let is_alone = self.snd.flight() == 0;
        if is_alone {
            self.restart_after_idle_time(now);
        }
        let piece = Piece { seq: self.snd.nxt, length, fin, probe: false, segments: 1 };
        self.commit(now, Choice::Data(piece), Origin::Predicted { is_alone });
        is_alone
    }

    /// Writes the header of an ACK or a FIN without data.
    #[inline(never)]
    fn write_alone(&mut self, now: Instant, seq: SeqNum, flags: TcpFlags, bytes: &mut [u8]) -> Sum {
        self.write_predicted(now, seq, flags, bytes)
    }

    /// Writes the header of a segment at `seq`, with timestamps, and returns its partial checksum.
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
}
