//! The construction of the chosen segment: first the header with its options, then the data. The
//! data is copied from the send buffer and checksummed in one pass.

use super::batch::in_field;
use super::choose::{Choice, Piece, blocks_beside};
use super::zero_copy::ZeroCopyRange;
use super::{Kind, Offload, Transmit};
use crate::ecn::EcnSignals;
use crate::receive::saturated;
use crate::{Connection, State};
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{Ecn, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};

/// The data of a segment, as a range of the send buffer.
#[derive(Clone, Copy)]
pub(super) struct Data {
    seq: SeqNum,
    length: usize,
    /// The number of data bytes in each segment of a GSO frame; `None` for a single segment.
    cut: Option<NonZeroU16>,
}

impl Data {
    /// Creates the data of a single segment: `length` bytes from `seq`.
    pub(super) const fn whole(seq: SeqNum, length: u32) -> Self {
        Self { seq, length: length as usize, cut: None }
    }
}

impl Connection {
    pub(super) fn build(
        &mut self,
        now: Instant,
        choice: Choice,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Transmit {
        match choice {
            Choice::Syn { length } => self.build_syn(now, length, offload, bytes),
            Choice::Data(piece) => self.build_data(now, piece, offload, bytes),
            Choice::KeepAlive => self.build_empty(now, self.snd.nxt - 1, self.rcv.nxt, bytes),
            Choice::BareAck => self.build_bare_ack(now, bytes),
            Choice::Ack { .. } | Choice::Nothing => {
                self.build_empty(now, self.empty_seq(), self.next_ack(), bytes)
            }
        }
    }

    fn build_syn(
        &mut self,
        now: Instant,
        data: u32,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Transmit {
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
        self.write_payload(header, data, offload, Ecn::NotEct, bytes)
    }

    /// Writes the data of a segment after its header. The header has `header` bytes, and its
    /// partial checksum is known.
    #[inline]
    pub(super) fn write_payload(
        &self,
        (header, header_sum): (usize, Sum),
        data: Data,
        offload: Offload,
        ecn: Ecn,
        bytes: &mut [u8],
    ) -> Transmit {
        let length = header + data.length;
        let payload = &mut bytes[header..length];
        let mut zero_copy = None;
        let mut sum = header_sum;
        match offload {
            _ if payload.is_empty() => {}
            // The header has an even length, so the partial checksum of the data can be added to
            // that of the header.
            Offload::None => {
                sum = header_sum + self.sender.buffer.copy_and_sum(data.seq, payload);
            }
            Offload::ScatterGather if self.is_worth_zero_copy(data.seq, data.length) => {
                zero_copy = Some(ZeroCopyRange { seq: data.seq, length: saturated(data.length) });
            }
            Offload::ScatterGather | Offload::Segmentation => {
                self.sender.buffer.copy(data.seq, payload);
            }
        }
        Transmit {
            length,
            sum,
            ecn,
            header,
            cut: data.cut,
            zero_copy,
            kind: Kind::Ordinary,
            is_predicted: false,
        }
    }

    /// Returns the flags of our SYN or SYN-ACK.
    pub(super) fn flags_of_syn(&self) -> TcpFlags {
        let ack = if self.state == State::SynSent { TcpFlags::empty() } else { TcpFlags::ACK };
        TcpFlags::SYN | ack | self.ecn_flags_of_syn()
    }

    /// Returns the window field of a SYN, which is never scaled (RFC 7323 §2.2), and records that
    /// window as announced.
    pub(super) fn offer_on_syn(&mut self) -> u16 {
        let window = self.window_of_syn();
        if self.state != State::SynSent {
            self.rcv.edge = self.rcv.edge.later(self.rcv.nxt + u32::from(window));
        }
        window
    }

    /// Returns the window field of a SYN, for the present room in the buffer.
    pub(crate) fn window_of_syn(&self) -> u16 {
        u16::try_from(self.receiver.buffer.free()).unwrap_or(u16::MAX)
    }

    fn build_data(
        &mut self,
        now: Instant,
        piece: Piece,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Transmit {
        let mut flags = TcpFlags::ACK;
        flags.set(TcpFlags::FIN, piece.fin);
        // PSH is set on the segment with the end of the written data (RFC 9293 §3.9.1.2).
        flags.set(TcpFlags::PSH, piece.length > 0 && self.is_pushed(piece.seq + piece.length));
        // Retransmissions and window probes must be Not-ECT (RFC 3168 §6.1.5, §6.1.6).
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
        let header = self.write_header(now, &header, EcnSignals::OPTION_WITH_DATA, bytes);
        let cut = if piece.segments > 1 { self.cut_size() } else { None };
        let data = Data { cut, ..Data::whole(piece.seq, piece.length) };
        self.write_payload(header, data, offload, ecn, bytes)
    }

    /// Whether the piece begins with data that was not sent before. A window probe does not count
    /// as new data: its byte lies outside the peer's window, and may have to be sent again.
    pub(super) fn is_new_data(&self, piece: Piece) -> bool {
        piece.length > 0 && !piece.probe && !piece.seq.before(self.snd.max)
    }

    /// Returns the sequence number of a segment without data, which is the number after all sent
    /// data, even during retransmissions. If only acknowledgements were lost, the peer has the
    /// retransmitted data already. If the segment had the number of the retransmission, the peer
    /// would refuse it as outside the window, and ignore its acknowledgement.
    ///
    /// The byte of a window probe does not count as sent here, because the peer may have refused
    /// it.
    pub(crate) const fn empty_seq(&self) -> SeqNum {
        if self.sender.probes > 0 { self.snd.nxt } else { self.snd.max }
    }

    /// Builds a segment without data.
    fn build_empty(
        &mut self,
        now: Instant,
        seq: SeqNum,
        ack: SeqNum,
        bytes: &mut [u8],
    ) -> Transmit {
        let header = self.header(seq, ack, TcpFlags::ACK);
        let (length, sum) = self.write_header(now, &header, EcnSignals::OPTION_DUE, bytes);
        Transmit::without_data(length, sum)
    }

    /// Builds an ACK that carries neither data nor SACK blocks.
    fn build_bare_ack(&mut self, now: Instant, bytes: &mut [u8]) -> Transmit {
        let header = self.header(self.empty_seq(), self.rcv.nxt, TcpFlags::ACK);
        let header = TcpHeader { flags: TcpFlags::ACK | self.bare_echo(), ..header };
        let mut options = self.options_of_bare_ack();
        options.timestamps = options.timestamps.map(|_| self.timestamps.stamp(now));
        let (length, sum) = write_with_options(&header, &options, bytes);
        Transmit::without_data(length, sum)
    }

    /// Writes the header of a segment other than a SYN, with its options. Returns their total
    /// length in bytes, and their partial checksum. If an AccECN option is due for one of
    /// `reasons`, it is included. If timestamps are the only option, as in bulk transfers, the
    /// header is written by faster code.
    fn write_header(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        reasons: EcnSignals,
        bytes: &mut [u8],
    ) -> (usize, Sum) {
        let is_usual =
            !self.reports_blocks() && !self.user_timeouts.due && !self.ecn.is_option_due(reasons);
        if self.timestamps.on && is_usual {
            let sum = header.emit_timestamped(self.timestamps.stamp(now), bytes);
            return (TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH, sum);
        }
        let mut options = self.options_of_data(reasons);
        if options.ecn.is_some() {
            let with_data = reasons.contains(EcnSignals::TEST_OPTION);
            self.on_ecn_option_sent(blocks_beside(&options), with_data);
        }
        if let Some(timestamps) = &mut options.timestamps {
            *timestamps = self.timestamps.stamp(now);
        }
        write_with_options(header, &options, bytes)
    }

    /// Creates a header that acknowledges everything before `ack`, and announces the current
    /// window.
    #[inline]
    pub(super) fn header(&mut self, seq: SeqNum, ack: SeqNum, flags: TcpFlags) -> TcpHeader {
        let flags = flags | self.ecn.echo();
        TcpHeader { seq, ack, flags, window: self.offer_window(ack), ..TcpHeader::default() }
    }

    /// Returns the window field for a segment that acknowledges `ack`. The right edge of the window
    /// moves only if the ACK policy permits a window update. The window is rounded down, so that it
    /// can be expressed with the window scale.
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

    /// Returns the urgent pointer of a segment at `seq`: the distance to the number after the
    /// urgent data, at most 65,535. `None` if the urgent data ends before `seq` (RFC 9293 §3.8.5).
    fn urgent_pointer(&self, seq: SeqNum) -> Option<u16> {
        let mark = self.sender.urgent?;
        mark.after(seq).then(|| u16::try_from(mark - seq).unwrap_or(u16::MAX))
    }
}

/// Writes a header with any options. Returns their total length in bytes, and their partial
/// checksum.
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
