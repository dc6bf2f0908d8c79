//! Writing the chosen segment: header and options, then the payload straight from the send buffer,
//! summed on its way.

use super::acks::in_field;
use super::choose::{Choice, Piece, blocks_beside};
use super::zero_copy::ZeroCopyRange;
use super::{Finish, Kind, Transmit};
use crate::ecn::Past;
use crate::receive::saturated;
use crate::{Connection, State};
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{Ecn, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};

/// Which data follow a header.
#[derive(Clone, Copy)]
pub(super) struct Data {
    seq: SeqNum,
    length: usize,
    /// Of a burst, how many of them each segment gets.
    cut: Option<NonZeroU16>,
}

impl Data {
    /// `length` bytes from `seq` on, not to be cut.
    pub(super) const fn whole(seq: SeqNum, length: u32) -> Self {
        Self { seq, length: length as usize, cut: None }
    }
}

impl Connection {
    pub(super) fn build(
        &mut self,
        now: Instant,
        choice: Choice,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        match choice {
            Choice::Syn { length } => self.build_syn(now, length, finish, bytes),
            Choice::Data(piece) => self.build_data(now, piece, finish, bytes),
            Choice::KeepAlive => self.build_empty(now, self.snd.nxt - 1, self.rcv.nxt, bytes),
            Choice::BareAck => self.build_bare_ack(now, bytes),
            Choice::Ack | Choice::Nothing => {
                self.build_empty(now, self.empty_seq(), self.next_ack(), bytes)
            }
        }
    }

    fn build_syn(&mut self, now: Instant, data: u32, finish: Finish, bytes: &mut [u8]) -> Transmit {
        let answers = self.state != State::SynSent;
        let header = TcpHeader {
            seq: self.snd.iss,
            ack: if answers { self.rcv.nxt } else { SeqNum::new(0) },
            flags: self.flags_of_syn(),
            window: self.offer_on_syn(),
            ..TcpHeader::default()
        };
        let mut options = self.options_of_syn();
        options.timestamps = options.timestamps.map(|_| self.timestamps.stamp(now));
        let header = write_with_options(&header, &options, bytes);
        let data = Data { seq: self.snd.iss + 1, length: data as usize, cut: None };
        self.write_payload(header, data, finish, Ecn::NotEct, bytes)
    }

    /// Writes the payload behind a `header` of so many bytes and this sum.
    #[inline]
    pub(super) fn write_payload(
        &self,
        (header, header_sum): (usize, Sum),
        data: Data,
        finish: Finish,
        ecn: Ecn,
        bytes: &mut [u8],
    ) -> Transmit {
        let length = header + data.length;
        let payload = &mut bytes[header..length];
        let mut zero_copy = None;
        let mut sum = header_sum;
        match finish {
            _ if payload.is_empty() => {}
            // Every header has an even number of bytes.
            Finish::Nothing => {
                sum = header_sum + self.sender.buffer.copy_and_sum(data.seq, payload);
            }
            Finish::Gather if self.is_worth_zero_copy(data.seq, data.length) => {
                zero_copy = Some(ZeroCopyRange { seq: data.seq, length: saturated(data.length) });
            }
            Finish::Gather | Finish::CutAndSum => self.sender.buffer.copy(data.seq, payload),
        }
        Transmit { length, sum, ecn, header, cut: data.cut, zero_copy, kind: Kind::Ordinary }
    }

    /// The control bits of our SYN, or of the SYN-ACK.
    pub(super) fn flags_of_syn(&self) -> TcpFlags {
        let ack = if self.state == State::SynSent { TcpFlags::empty() } else { TcpFlags::ACK };
        TcpFlags::SYN | ack | self.ecn_flags_of_syn()
    }

    /// The window of a SYN is not scaled (RFC 7323 §2.2); what it says is an offer all the same.
    pub(super) fn offer_on_syn(&mut self) -> u16 {
        let window = self.window_of_syn();
        if self.state != State::SynSent {
            self.rcv.edge = self.rcv.edge.later(self.rcv.nxt + u32::from(window));
        }
        window
    }

    /// What room there is, in the words of a SYN.
    pub(crate) fn window_of_syn(&self) -> u16 {
        u16::try_from(self.receiver.buffer.free()).unwrap_or(u16::MAX)
    }

    fn build_data(
        &mut self,
        now: Instant,
        piece: Piece,
        finish: Finish,
        bytes: &mut [u8],
    ) -> Transmit {
        let mut flags = TcpFlags::ACK;
        flags.set(TcpFlags::FIN, piece.fin);
        // RFC 9293 §3.9.1.2: the last segment of what was written is pushed.
        flags.set(TcpFlags::PSH, piece.length > 0 && self.is_pushed(piece.seq + piece.length));
        // What is sent again, and what probes a closed window, is left to be dropped (RFC 3168 §6.1.5,
        // §6.1.6): its mark would tell nothing of what was dropped before.
        let mut ecn = Ecn::NotEct;
        if self.is_new_data(piece) {
            ecn = self.ecn.codepoint();
            flags |= self.ecn.flags_of_new_data();
        }
        let mut header = self.header(piece.seq, self.rcv.nxt, flags);
        if let Some(pointer) = self.urgent_pointer(piece.seq) {
            header.flags |= TcpFlags::URG;
            header.urgent = pointer;
        }
        let header = self.write_header(now, &header, Past::OPTION_WITH_DATA, bytes);
        let cut = if piece.burst { self.cut_size() } else { None };
        let data = Data { cut, ..Data::whole(piece.seq, piece.length) };
        self.write_payload(header, data, finish, ecn, bytes)
    }

    /// Does the piece begin with data that was never sent, and that the peer has room for?
    pub(super) fn is_new_data(&self, piece: Piece) -> bool {
        piece.length > 0 && !piece.probe && !piece.seq.before(self.snd.max)
    }

    /// SEG.SEQ of a segment without data: the next number that was never sent, even while old ones
    /// are sent again. With theirs it would lie before the peer's window if only acknowledgements
    /// were lost, and two ends that lost each other's would never hear that all has arrived. A byte
    /// that probed a closed window may lie beyond it, so it does not count.
    pub(crate) const fn empty_seq(&self) -> SeqNum {
        if self.sender.probes > 0 { self.snd.nxt } else { self.snd.max }
    }

    /// A segment without data.
    fn build_empty(
        &mut self,
        now: Instant,
        seq: SeqNum,
        ack: SeqNum,
        bytes: &mut [u8],
    ) -> Transmit {
        let header = self.header(seq, ack, TcpFlags::ACK);
        let (length, sum) = self.write_header(now, &header, Past::OPTION_DUE, bytes);
        Transmit::without_data(length, sum)
    }

    /// An acknowledgement that tells of no hole, nor of what came twice.
    fn build_bare_ack(&mut self, now: Instant, bytes: &mut [u8]) -> Transmit {
        let header = self.header(self.empty_seq(), self.rcv.nxt, TcpFlags::ACK);
        let header = TcpHeader { flags: TcpFlags::ACK | self.bare_echo(), ..header };
        let mut options = self.options_of_bare_ack();
        options.timestamps = options.timestamps.map(|_| self.timestamps.stamp(now));
        let (length, sum) = write_with_options(&header, &options, bytes);
        Transmit::without_data(length, sum)
    }

    /// Writes the header of any segment but a SYN, with its options; how long they are together, and their
    /// sum. In bulk transfers there is one option, and it has its place. The option of accurate ECN is there for
    /// one of `reasons`.
    fn write_header(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        reasons: Past,
        bytes: &mut [u8],
    ) -> (usize, Sum) {
        let is_usual =
            !self.tells_of_blocks() && !self.user_timeouts.due && !self.ecn.owes_option(reasons);
        if self.timestamps.on && is_usual {
            let sum = header.emit_timestamped(self.timestamps.stamp(now), bytes);
            return (TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH, sum);
        }
        let mut options = self.options_of_data(reasons);
        if options.ecn.is_some() {
            let with_data = reasons.contains(Past::FIRST_DATA);
            self.on_ecn_option_sent(blocks_beside(&options), with_data);
        }
        if let Some(timestamps) = &mut options.timestamps {
            *timestamps = self.timestamps.stamp(now);
        }
        write_with_options(header, &options, bytes)
    }

    /// A header that acknowledges what comes before `ack`, and offers the window anew.
    #[inline]
    pub(super) fn header(&mut self, seq: SeqNum, ack: SeqNum, flags: TcpFlags) -> TcpHeader {
        let flags = flags | self.ecn.echo();
        TcpHeader { seq, ack, flags, window: self.offer_window(ack), ..TcpHeader::default() }
    }

    /// SEG.WND for the window to offer, as seen from `ack`: the old one until the new one, whose edge is never before
    /// that, is worth it. What the field's scale cuts off is not offered.
    #[inline(always)]
    fn offer_window(&mut self, ack: SeqNum) -> u16 {
        let shift = self.agreement.receive_shift;
        let room = self.receiver.room();
        if room > self.rcv.window() && self.acks.is_worth_offering(&self.received()) {
            let offered = u32::from(in_field(room, shift)) << shift;
            self.rcv.edge = self.rcv.edge.later(self.rcv.nxt + offered);
        }
        in_field(self.rcv.edge - ack, shift)
    }

    /// The pointer from `seq` to the number after the urgent data, while that is ahead (RFC 9293
    /// §3.8.5). Farther than the field reaches, it points as far as it can.
    fn urgent_pointer(&self, seq: SeqNum) -> Option<u16> {
        let mark = self.sender.urgent?;
        mark.after(seq).then(|| u16::try_from(mark - seq).unwrap_or(u16::MAX))
    }
}

/// Writes header and options; how long they are together, and their sum.
pub(super) fn write_with_options(
    header: &TcpHeader,
    options: &TcpOptions,
    bytes: &mut [u8],
) -> (usize, Sum) {
    let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(options_length, bytes);
    let length = TcpHeader::LENGTH + options_length;
    (length, Sum::of(&bytes[..length]))
}
