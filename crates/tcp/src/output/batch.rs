//! Batches: segments that differ only in their sequence or acknowledgement numbers, so that one
//! decision covers all of them. A batch is either a burst of full segments with new data, or a
//! series of ACKs without data. A link with GSO gets a whole burst as one frame. For other links,
//! the first header is copied and its numbers are replaced.
//!
//! With [`stretch_acks`](crate::Config::stretch_acks), one ACK covers everything received. Without
//! it, one ACK covers at most two full segments. If more data arrives together, several ACKs are
//! then due at once.
//!
//! The sequence numbers, the scoreboard and pacing advance with each segment, so a batch may end
//! after any segment. It must end before any other method of the connection is called.

use super::choose::{Choice, Piece};
use super::commit::Origin;
use super::{HEADER, Offload};
use crate::Connection;
use crate::ecn::EcnSignals;
use crate::receive::saturated;
use crate::send::Writes;
use crate::send::frto::Frto;
use crate::send::pacing::BURST;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{SeqNum, Sum, TcpFlags, TcpHeader};

/// The maximum number of data bytes in a burst, so that it fits an IP packet of the largest size
/// together with the headers.
const MOST: u32 = 65_535 - 120;

/// Segments that can be sent directly after the most recently sent segment. Their headers are
/// copies of its header, with other sequence or acknowledgement numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number in the first segment of the batch: SEG.SEQ for data, SEG.ACK for ACKs.
    pub first: SeqNum,
    /// The increment of the number from one segment to the next. For data, this is the number of
    /// bytes in each segment.
    pub step: u32,
    /// The number of segments.
    pub count: u32,
    /// The contents of the segments.
    pub content: BatchContent,
}

/// The contents of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchContent {
    /// New data, which [`Connection::copy_of_batch`] writes.
    Data,
    /// ACKs without data, which announce windows with the same right edge.
    Acks(AckWindow),
}

/// The window that the ACKs of a batch announce. The right edge is the same in all of them, so the
/// window field depends on the acknowledgement number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckWindow {
    /// The right edge of the window, common to all ACKs.
    edge: SeqNum,
    /// The window scale shift of the window field.
    shift: u8,
}

impl AckWindow {
    /// Returns the window field of the ACK with the number `ack`.
    #[inline]
    #[must_use]
    pub fn at(&self, ack: SeqNum) -> u16 {
        in_field(self.edge - ack, self.shift)
    }
}

impl Connection {
    pub(crate) fn poll_batch(&self, now: Instant, header: usize) -> Option<Batch> {
        if self.is_in_burst() {
            let (first, step) = (self.snd.nxt, self.full_segment());
            let count = self.expectation.burst().into();
            let batch = Batch { first, step, count, content: BatchContent::Data };
            return (self.sender.last_sent == now).then_some(batch);
        }
        let is_usual = self.ack_due
            && header == HEADER
            && self.next_ack() != self.rcv.nxt
            && self.is_usual()
            && !self.sender.has_unsent(self.snd.nxt);
        is_usual.then(|| {
            let step = self.pair();
            let count = (self.rcv.pending() - 1) / step;
            let window = AckWindow { edge: self.rcv.edge, shift: self.agreement.receive_shift };
            let content = BatchContent::Acks(window);
            Batch { first: self.rcv.acked + step, step, count, content }
        })
    }

    /// Writes the data of a segment in a batch, beginning at `seq`, and returns its partial
    /// checksum.
    ///
    /// # Panics
    /// If this data is not in the send buffer.
    #[inline]
    pub fn copy_of_batch(&self, seq: SeqNum, payload: &mut [u8]) -> Sum {
        self.sender.buffer.copy_and_sum_inlined(seq, payload)
    }

    pub(crate) fn commit_batch(&mut self, now: Instant, content: BatchContent, count: u32) {
        if content != BatchContent::Data {
            return self.commit(now, Choice::Ack { count }, Origin::Batch);
        }
        let piece = Piece {
            seq: self.snd.nxt,
            length: self.full_segment() * count,
            fin: false,
            probe: false,
            segments: count,
        };
        self.commit(now, Choice::Data(piece), Origin::Batch);
        let burst = self.expectation.burst();
        self.limit_burst(burst.saturating_sub(u8::try_from(count).unwrap_or(burst)));
        if self.has_used_the_windows() {
            self.end_output(now);
        }
    }

    /// Whether the burst has ended because the windows have room for less than a segment. If so,
    /// nothing more can be sent. If the burst has ended for another reason, such as pacing, another
    /// segment may be due, which must be chosen individually.
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

    /// Whether further segments may continue the burst now, without being chosen individually.
    const fn is_in_burst(&self) -> bool {
        let is_all_told = self.rcv.nxt.number() == self.rcv.acked.number() && !self.ack_due;
        self.expectation.burst() > 0 && is_all_told
    }

    /// Returns the acknowledgement number of an ACK without data that is sent now.
    #[inline]
    pub(super) fn next_ack(&self) -> SeqNum {
        if self.acknowledges_all() { self.rcv.nxt } else { self.rcv.acked + self.pair() }
    }

    /// Whether an ACK without data that is sent now acknowledges everything received. If not, it
    /// acknowledges two full segments.
    #[inline(always)]
    pub(super) fn acknowledges_all(&self) -> bool {
        self.rcv.pending() <= self.pair() || self.config.stretch_acks || self.receiver.has_blocks()
    }

    /// Returns the number of bytes in two full segments of the peer, the most that one ACK covers
    /// without [`stretch_acks`](crate::Config::stretch_acks).
    #[inline(always)]
    pub(super) const fn pair(&self) -> u32 {
        self.receiver.largest_segment * 2
    }

    /// Extends the chosen `piece` to a burst, if the link performs GSO. The result is then zero. On
    /// a link without GSO, leaves `piece` unchanged, and returns the number of full segments that
    /// may follow it.
    pub(super) fn begin_burst(&self, piece: &mut Piece, offload: Offload, room: usize) -> u8 {
        let full = self.full_segment();
        if piece.length != full || piece.fin || piece.probe || !self.may_burst(piece.seq) {
            return 0;
        }
        match offload {
            Offload::None => {
                let burst = self.burst_from(piece.seq, full).saturating_sub(1);
                u8::try_from(burst).unwrap_or(u8::MAX)
            }
            Offload::Segmentation | Offload::ScatterGather if self.loses_flags_in_gso() => 0,
            Offload::Segmentation | Offload::ScatterGather => {
                // The segment with the final written byte needs PSH, which the link sets only on
                // the final segment of a GSO frame. So the frame may include this byte, unless a
                // FIN follows it.
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

    /// Whether the segments of a GSO frame would lose an ECN flag. NICs and kernels clear CWR in
    /// all segments after the first one (RFC 3168 §6.1.2). With AccECN, CWR is a bit of the ACE
    /// counter, which every segment must carry (RFC 9768 §3.2.2.2).
    const fn loses_flags_in_gso(&self) -> bool {
        self.ecn.echo().contains(TcpFlags::CWR)
    }

    /// Whether a GSO frame should wait for more data, because sending a frame costs as much as four
    /// segments, however short it is. The main conditions are three. The written data ends before
    /// the frame is full. The most recent write did not fit, so the application will write more. At
    /// least a full frame of data is in flight and the round-trip time is short, so an
    /// acknowledgement will soon trigger output.
    // This method is not inlined, because it would occupy registers of the caller even on links
    // without GSO.
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
            && !self.loses_flags_in_gso()
            && self.sender.rtt.smoothed().is_some_and(|round_trip| round_trip < BURST)
    }

    /// Ends output until the next acknowledgement, because a GSO frame waits for more data. The
    /// sender then counts as application-limited: it could send more, but the send buffer is full,
    /// so the application cannot write.
    #[cold]
    pub(super) fn wait_to_grow(&mut self, now: Instant) {
        self.end_output(now);
        self.sender.account.note_application_limited(self.sender.scoreboard.in_flight());
    }

    /// Returns the number of full segments that fit a frame of `room` bytes together with one
    /// header.
    fn fitting(&self, room: usize, full: u32) -> u32 {
        let headers = self.constant_options() + saturated(TcpHeader::LENGTH);
        saturated(room).saturating_sub(headers) / full
    }

    /// Returns the number of full segments from `seq` on that the congestion window, the peer's
    /// window and pacing permit. The segment with the final byte of the written data is not
    /// counted, since it has PSH and perhaps the FIN.
    fn burst_from(&self, seq: SeqNum, full: u32) -> u16 {
        self.segments_let_go(self.sender.buffer.end() - seq, full, self.sender.pacer.left())
    }

    /// Returns the number of full segments that the congestion window, the peer's window and pacing
    /// permit. `unsent` bytes are unsent, and pacing permits `paced` bytes. A segment with the
    /// final one of the `unsent` bytes is not counted, since it may have PSH and the FIN.
    fn segments_let_go(&self, unsent: u32, full: u32, paced: u32) -> u16 {
        let windows = self.usable_window().min(unsent.saturating_sub(1)).min(MOST);
        let segments = (windows / full).min(paced.div_ceil(full));
        u16::try_from(segments).unwrap_or(u16::MAX)
    }

    /// Whether data from `seq` on may form a burst: the data is new, and its segments need no
    /// unusual options or flags.
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

    /// Returns the number of data bytes in each segment of a burst. GSO splits a frame into
    /// segments of this size.
    pub(super) fn cut_size(&self) -> Option<NonZeroU16> {
        u16::try_from(self.full_segment()).ok().and_then(NonZeroU16::new)
    }

    /// Checks that individual choices would yield the same segments as the burst in progress.
    pub(crate) fn check_burst(&self) {
        if self.is_in_burst() {
            let (full, burst) = (self.full_segment(), self.expectation.burst());
            assert!(
                self.output_due && self.reset_due.is_none(),
                "a burst of {burst} although no output is due"
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

/// Returns the value of the window field for a window of `window` bytes, scaled down by `shift`.
#[inline]
pub(super) fn in_field(window: u32, shift: u8) -> u16 {
    u16::try_from(window >> shift).unwrap_or(u16::MAX)
}
