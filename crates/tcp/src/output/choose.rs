//! The choice of the next segment, made by functions that do not change the connection. The choice
//! obeys the windows, Nagle's algorithm (RFC 9293 §3.7.4) and silly-window avoidance at the sender
//! (§3.8.6.2.1).

use crate::ecn::EcnSignals;
use crate::receive::{BLOCKS_THAT_FIT, saturated};
use crate::send::frto::Frto;
use crate::send::path_probe::Probing;
use crate::{Connection, NagleRule, State};
use linerate_wire::{SackBlocks, SeqNum, TcpOptions};

/// Returns the number of SACK blocks that fit a segment beside the other `options`.
pub(super) fn blocks_beside(options: &TcpOptions) -> usize {
    let others = TcpOptions { sack: SackBlocks::default(), ..*options };
    let room = TcpOptions::MAX_LENGTH.saturating_sub(others.length() + 4) / 8;
    if options.ecn.is_some() { room.min(BLOCKS_THAT_FIT) } else { BLOCKS_THAT_FIT }
}

/// The next segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// No segment can be sent.
    Nothing,
    /// A SYN with `length` bytes of data. It is a SYN-ACK if the peer's SYN was received.
    Syn { length: u32 },
    /// A segment with data, a FIN, or both.
    Data(Piece),
    /// An ACK without data and SACK blocks, which must be sent before any data.
    BareAck,
    /// `count` ACKs without data. Only a batch has more than one.
    Ack { count: u32 },
    /// A keep-alive probe: an ACK with an old sequence number, which the peer must answer.
    KeepAlive,
}

/// A range of the send buffer that is sent in one segment or one GSO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) seq: SeqNum,
    /// The number of data bytes.
    pub(super) length: u32,
    /// Whether the FIN follows the data.
    pub(super) fin: bool,
    /// Whether the piece probes a closed window. If so, SND.NXT does not advance when it is sent.
    pub(super) probe: bool,
    /// The number of segments. If there are several, the link splits the piece (GSO).
    pub(super) segments: u32,
}

impl Choice {
    /// Returns the number of segments that this choice sends.
    pub(super) const fn segments(self) -> u32 {
        match self {
            Self::Ack { count } => count,
            Self::Data(piece) => piece.segments,
            _ => 1,
        }
    }
}

impl Piece {
    /// Returns the sequence number after the piece, including its FIN.
    pub(super) fn end(self) -> SeqNum {
        self.seq + self.length + u32::from(self.fin)
    }
}

impl Connection {
    pub(super) fn choose(&self) -> Choice {
        if self.first_due {
            return self.choose_first();
        }
        if self.may_send()
            && let Some(piece) = self.choose_data()
        {
            return Choice::Data(piece);
        }
        if self.ack_due && self.state != State::SynSent {
            return Choice::Ack { count: 1 };
        }
        if self.keep_alive_due { Choice::KeepAlive } else { Choice::Nothing }
    }

    /// Returns the segment that `first_due` requests, which is sent before all others: an ACK if
    /// the connection is synchronized, otherwise our SYN or SYN-ACK.
    fn choose_first(&self) -> Choice {
        if self.state.is_synchronized() {
            Choice::BareAck
        } else {
            Choice::Syn { length: self.data_for_syn() }
        }
    }

    fn choose_data(&self) -> Option<Piece> {
        if self.agreement.selective_acks {
            if self.sender.loss.tail_probe_due && self.may_probe_tail() && self.snd.flight() > 0 {
                return Some(self.choose_tail_probe());
            }
            if self.sender.loss.retransmit_due && self.sender.scoreboard.lost() > 0 {
                return self.choose_lost();
            }
        } else if self.sender.loss.retransmit_due && self.snd.flight() > 0 {
            let allowed = self.snd.wnd.max(self.snd.flight());
            return Some(self.piece(self.snd.una, self.segment_room().min(allowed)));
        }
        if self.sender.probe_due && self.sender.has_unsent(self.snd.nxt) {
            return Some(self.choose_probe());
        }
        if self.sender.pacer.is_open() { self.choose_within_windows() } else { None }
    }

    /// Chooses data that the windows permit. Data that is marked lost is chosen before new data.
    fn choose_within_windows(&self) -> Option<Piece> {
        // F-RTO has retransmitted only the first segment after a timeout. It retransmits nothing
        // more until it has decided whether the timeout was spurious.
        if self.sender.scoreboard.lost() > 0 && !self.sender.loss.frto.is_on() {
            return self.choose_lost();
        }
        if self.sender.has_unsent(self.snd.nxt) { self.choose_new() } else { None }
    }

    /// Whether there is any data to send that the windows permit.
    pub(crate) fn has_sendable(&self) -> bool {
        self.may_send() && self.choose_within_windows().is_some()
    }

    /// Chooses the first range that is marked lost, if the congestion window has room for it.
    fn choose_lost(&self) -> Option<Piece> {
        let lost = self.sender.scoreboard.next_lost()?;
        let piece = self.piece(lost.left, self.segment_room().min(lost.length()));
        let pipe = self.sender.scoreboard.in_flight();
        let fits = pipe + piece.length <= self.sender.congestion.window().cwnd();
        (fits || pipe == 0 || self.sender.loss.retransmit_due).then_some(piece)
    }

    /// Chooses the segment of a tail loss probe (RFC 8985 §7.3). It is new data, if there is any
    /// and the peer's window allows it. Otherwise it is the segment with the highest sequence
    /// number, which is sent again. While an ICMP report of a smaller path MTU waits for
    /// confirmation, the probe is not larger than the reported size. If the probe arrives and the
    /// larger segments in flight do not, this confirms the report.
    fn choose_tail_probe(&self) -> Piece {
        let most = self.segment_room().saturating_sub(self.excess_by_report()).max(1);
        let room = self.snd.wnd.saturating_sub(self.snd.nxt - self.snd.una).min(most);
        if room > 0 && self.sender.has_unsent(self.snd.nxt) {
            return self.piece(self.snd.nxt, room);
        }
        let (una, end) = (self.snd.una, self.snd.nxt);
        let left = self.sender.scoreboard.last_unacknowledged().map_or(una, |last| last.left);
        let seq = self.start_of_last_record(if end - left > most { end - most } else { left }, end);
        self.piece(seq, end - seq)
    }

    /// Chooses the next piece at SND.NXT: a probe of the path MTU if one is due, otherwise data, if
    /// silly-window avoidance permits it.
    fn choose_new(&self) -> Option<Piece> {
        match self.path_probe() {
            Probing::Send(length) => return Some(self.piece(self.snd.nxt, length)),
            Probing::Wait => return None,
            Probing::No => {}
        }
        let room = self.segment_room();
        let piece = self.piece(self.snd.nxt, room.min(self.usable_window()));
        let full = piece.length == room;
        (full || self.is_worth_sending(piece)).then_some(piece)
    }

    /// Chooses the segment to send when the persist timer has expired. If the window is closed, the
    /// segment contains the byte after the window. Otherwise it contains as much data as the small
    /// window permits.
    fn choose_probe(&self) -> Piece {
        match self.usable_window() {
            0 => Piece { probe: true, ..self.piece(self.snd.nxt, 1) },
            usable => self.piece(self.snd.nxt, self.segment_room().min(usable)),
        }
    }

    /// Returns the piece of at most `room` bytes from `seq` on that does not extend beyond a record
    /// boundary of the application (`MSG_EOR`). It includes the FIN if the application has closed
    /// and no more data follows the piece.
    pub(super) fn piece(&self, seq: SeqNum, room: u32) -> Piece {
        let end = self.sender.buffer.end();
        let room = self.room_in_record(seq, room);
        let available = if seq.before(end) { end - seq } else { 0 };
        let length = available.min(room);
        Piece {
            seq,
            length,
            fin: self.sender.fin() && length == available,
            probe: false,
            segments: 1,
        }
    }

    /// Returns the usable window in bytes (RFC 9293 §3.8.6.2.1: U): the smaller of the room in the
    /// peer's window and the room in the congestion window. With SACK, the latter is CWND less the
    /// estimate of data in flight.
    pub(crate) fn usable_window(&self) -> u32 {
        let cwnd = self.sender.congestion.window().cwnd() + self.limited_transmit();
        let peer = self.snd.wnd.saturating_sub(self.snd.nxt - self.snd.una);
        let usable = if self.agreement.selective_acks {
            cwnd.saturating_sub(self.sender.scoreboard.in_flight())
        } else if self.sender.loss.frto == Frto::SentNew {
            // In this step F-RTO may send two segments beyond `recover`, the end of the data that
            // was in flight at the timeout (RFC 5682 §2.1 step 2).
            (self.full_segment() * 2).saturating_sub(self.snd.nxt - self.sender.loss.recover)
        } else {
            cwnd.saturating_sub(self.snd.nxt - self.snd.una)
        };
        peer.min(usable)
    }

    /// Returns the number of data bytes that fit a segment beside its options.
    fn segment_room(&self) -> u32 {
        let is_option_due =
            self.user_timeouts.due || self.ecn.is_option_due(EcnSignals::OPTION_WITH_DATA);
        if !self.reports_blocks() && !is_option_due {
            return self.full_segment();
        }
        let options = saturated(self.options_of_data(EcnSignals::OPTION_WITH_DATA).length());
        (self.sender.full + self.constant_options()).saturating_sub(options).max(1)
    }

    /// Whether a piece shorter than a full segment may be sent. It may in five cases, each of them
    /// a variable below. It is a retransmission, includes the FIN, or ends a record (`MSG_EOR`). It
    /// contains all unsent data and Nagle's algorithm permits it. Or it fills half of the peer's
    /// largest window (RFC 9293 §3.8.6.2.1).
    pub(super) fn is_worth_sending(&self, piece: Piece) -> bool {
        if piece.length == 0 {
            return piece.fin;
        }
        // Data that follows a window probe may begin before SND.MAX although it is not a
        // retransmission, because SND.MAX includes the byte of the probe.
        let again = piece.seq.before(self.snd.max) && self.sender.probes == 0;
        let last = piece.fin;
        let ends_buffer = piece.end() == self.sender.buffer.end();
        let all = ends_buffer && self.nagle_allows() && !self.is_corked();
        // A record ends with this piece (`MSG_EOR`). No later write can extend its final segment,
        // so waiting for more data would be useless.
        let record = !ends_buffer && self.ends_record(piece.end());
        let half_of_largest_window = piece.length >= self.snd.max_wnd.div_ceil(2);
        again || last || all || record || half_of_largest_window
    }

    /// Whether Nagle's algorithm permits a small segment.
    pub(super) fn nagle_allows(&self) -> bool {
        if self.preferences.no_delay || self.snd.nxt == self.snd.una {
            return true;
        }
        match self.config.nagle {
            NagleRule::Classic => false,
            NagleRule::Minshall => !self.sender.small_end.after(self.snd.una),
        }
    }

    /// Whether the next segment must carry SACK blocks, because of out-of-order or duplicate data.
    pub(crate) fn reports_blocks(&self) -> bool {
        self.agreement.selective_acks && self.receiver.has_blocks()
    }

    /// Returns the options of our SYN or SYN-ACK. The values of timestamps are zero; the caller
    /// sets them.
    pub(crate) fn options_of_syn(&self) -> TcpOptions {
        let answers = self.state != State::SynSent;
        let options = TcpOptions {
            // The MSS of the path was limited to 16 bits when it was set, so the conversion cannot
            // fail.
            mss: u16::try_from(self.path.mss()).ok(),
            window_scale: self.agreement.scaling.then_some(self.agreement.receive_shift),
            sack_permitted: self.agreement.selective_acks,
            timestamps: (self.timestamps.on || (!answers && self.config.timestamps))
                .then(Default::default),
            user_timeout: self.user_timeout_option(),
            ..TcpOptions::default()
        };
        let options = TcpOptions { fast_open: self.fast_open_option(&options), ..options };
        TcpOptions { ecn: self.first_ecn_option(&options), ..options }
    }

    /// Returns the options of a segment other than a SYN. The values of timestamps are zero; the
    /// caller sets them. An AccECN option is included if it is due for one of `reasons`.
    pub(super) fn options_of_data(&self, reasons: EcnSignals) -> TcpOptions {
        let mut options = TcpOptions {
            timestamps: self.timestamps.on.then(Default::default),
            user_timeout: if self.user_timeouts.due { self.user_timeout_option() } else { None },
            ..TcpOptions::default()
        };
        options.ecn = self.ecn_option(reasons, &options);
        if self.reports_blocks() {
            options.sack = self.receiver.blocks(blocks_beside(&options));
        }
        options
    }

    /// Returns the options of an ACK that carries neither data nor SACK blocks.
    pub(super) fn options_of_bare_ack(&self) -> TcpOptions {
        let timestamps = self.timestamps.on.then(Default::default);
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        TcpOptions { ecn: self.first_ecn_option(&options), ..options }
    }
}
