//! The receiving half of a connection: received data, the window, and acknowledgements.

pub(crate) mod ack_policy;
mod assembler;
pub(crate) mod autotune;
pub(crate) mod buffer;

use crate::compact::pack::packed;
use crate::opening::DEFAULT_PEER_MSS;
use crate::options::Agreement;
use crate::{BufferSize, MemoryGrant};
use alloc::vec::Vec;
use assembler::Assembler;
use autotune::Autotune;
use buffer::{Offered, ReceiveBuffer};
use linerate_units::Instant;
use linerate_wire::{SackBlock, SackBlocks, SeqNum};

/// The receive sequence variables (RFC 9293 §3.3.1).
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct ReceiveSequence {
    /// RCV.NXT: the next sequence number expected.
    pub(crate) nxt: SeqNum,
    /// The right edge of the most recently announced window, RCV.NXT + RCV.WND. It never moves
    /// back.
    pub(crate) edge: SeqNum,
    /// The acknowledgement number that we sent most recently (Last.ACK.sent of RFC 7323).
    pub(crate) acked: SeqNum,
    /// IRS: the peer's initial sequence number.
    pub(crate) irs: SeqNum,
}

packed!(ReceiveSequence { nxt, edge, acked, irs });

impl ReceiveSequence {
    pub(crate) fn new(irs: SeqNum) -> Self {
        Self { nxt: irs, edge: irs, acked: irs, irs }
    }

    /// Returns RCV.WND, the number of bytes that the peer may still send beyond RCV.NXT.
    pub(crate) fn window(&self) -> u32 {
        self.edge - self.nxt
    }

    /// Returns the number of bytes received in order that we have not acknowledged.
    pub(crate) fn pending(&self) -> u32 {
        self.nxt - self.acked
    }
}

/// The result of storing received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The data was stored.
    Kept,
    /// The data was refused, because it would need too many separate ranges of out-of-order data.
    TooManyRanges,
    /// The data was refused, because the host's memory grant is too small for it.
    NoMemory,
}

/// The receive buffer, and the state that determines the window. Fields that every segment uses
/// come first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Receiver {
    pub(crate) buffer: ReceiveBuffer,
    /// The time when in-order data most recently arrived.
    pub(crate) last_data: Instant,
    /// The number of data bytes in the largest segment received, an estimate of the peer's full
    /// segment.
    pub(crate) largest_segment: u32,
    /// The largest window that the window field can announce with the negotiated scale.
    pub(crate) largest_window: u32,
    /// RCV.UP: the sequence number after the urgent data, while announced urgent data is unread.
    pub(crate) urgent: Option<SeqNum>,
    pub(crate) assembler: Assembler,
    pub(crate) autotune: Autotune,
    /// The sequence number of the peer's FIN, once it was received.
    pub(crate) fin: Option<SeqNum>,
    /// A range of data that arrived twice, to be reported by the next acknowledgement (RFC 2883).
    duplicate: Option<SackBlock>,
    /// Whether the application has closed the receiving direction. If so, data is acknowledged, but
    /// discarded.
    pub(crate) shut: bool,
    /// The number of duplicate ACKs that must still be sent to a peer without SACK, one for each
    /// segment that has arrived out of order.
    unanswered: u8,
}

packed!(Receiver {
    buffer,
    assembler,
    autotune,
    fin,
    urgent,
    shut,
    largest_segment,
    largest_window,
    duplicate,
    unanswered,
    last_data
});

/// The maximum number of SACK blocks that fit beside timestamps.
pub(crate) const BLOCKS_THAT_FIT: usize = 3;

impl Receiver {
    pub(crate) fn new(size: BufferSize, now: Instant) -> Self {
        let most = if size.most() > size.initial() { size.most() } else { 0 };
        Self {
            buffer: ReceiveBuffer::new(size.initial()),
            assembler: Assembler::default(),
            autotune: Autotune::new(saturated(most), now),
            fin: None,
            urgent: None,
            shut: false,
            largest_segment: DEFAULT_PEER_MSS.into(),
            last_data: now,
            largest_window: u32::from(u16::MAX),
            duplicate: None,
            unanswered: 0,
        }
    }

    /// Limits the window to what the negotiated scale can express.
    pub(crate) fn note_agreement(&mut self, agreement: &Agreement) {
        self.largest_window = u32::from(u16::MAX) << agreement.receive_shift;
    }

    /// Returns the size of the largest window that can be announced when the buffer is empty, in
    /// bytes.
    pub(crate) fn capacity(&self) -> u32 {
        saturated(self.buffer.capacity()).min(self.largest_window)
    }

    /// Whether unread data filled more than half of the largest window before the `later` bytes at
    /// its end arrived.
    pub(crate) fn was_crowded(&self, later: u32) -> bool {
        saturated(self.buffer.len()) - later > self.capacity() / 2
    }

    /// Returns the size of the window that can be announced for the free room in the buffer, in
    /// bytes.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        saturated(self.buffer.free()).min(self.largest_window)
    }

    /// Stores data that begins at `seq`, if the memory grant suffices, and if there are then at
    /// most `most` ranges of out-of-order data. In-order data may stay in the `offered` memory,
    /// without a copy.
    pub(crate) fn keep(
        &mut self,
        rcv: &ReceiveSequence,
        seq: SeqNum,
        payload: &[u8],
        most: usize,
        (grant, offered): (&MemoryGrant, &Offered),
    ) -> Keep {
        if seq == rcv.nxt {
            // This data begins at RCV.NXT. Out-of-order data may be stored in the ring buffer,
            // behind a hole. Data that fills the hole must then be copied to its place before it,
            // and cannot stay in the `offered` memory.
            let is_kept = self.shut
                || if self.assembler.is_empty() {
                    self.buffer.append(payload, grant, offered)
                } else {
                    self.buffer.append_copy(payload, grant)
                };
            return if is_kept { Keep::Kept } else { Keep::NoMemory };
        }
        let offset = (seq - rcv.nxt) as usize;
        if !self.shut && !self.buffer.make_room(offset, payload.len(), grant) {
            return Keep::NoMemory;
        }
        if !self.assembler.insert(seq, seq + saturated(payload.len()), most) {
            return Keep::TooManyRanges;
        }
        if !self.shut {
            self.buffer.place(offset, payload);
        }
        Keep::Kept
    }

    /// Discards out-of-order data, and returns whether there was any. The peer must send the data
    /// again, even if it was SACKed, because SACK is advisory (RFC 2018 §8).
    pub(crate) fn drop_beyond_holes(&mut self) -> bool {
        let dropped = !self.assembler.is_empty();
        self.assembler = Assembler::default();
        self.unanswered = 0;
        dropped
    }

    /// Frees memory of the buffer that contains no data and was not used recently.
    pub(crate) fn give_back_unused(&mut self, now: Instant, rcv: &ReceiveSequence) {
        let beyond = self.assembler.end().map_or(0, |end| (end - rcv.nxt) as usize);
        self.buffer.give_back_unused(now, if self.shut { 0 } else { beyond });
    }

    /// Handles the arrival of data from `left` to `right`. Stores the part of it that had arrived
    /// before, which the next acknowledgement reports as a duplicate.
    pub(crate) fn note_duplicate(&mut self, rcv: &ReceiveSequence, left: SeqNum, right: SeqNum) {
        if left.before(rcv.nxt) {
            self.duplicate = Some(SackBlock { left, right: right.earlier(rcv.nxt) });
        } else if let Some(known) = self.assembler.overlap(left, right) {
            self.duplicate = Some(known);
        }
    }

    /// Records that `count` segments have arrived out of order.
    pub(crate) fn note_out_of_order(&mut self, count: u32) {
        self.unanswered = self.unanswered.saturating_add(u8::try_from(count).unwrap_or(u8::MAX));
    }

    /// Adds the out-of-order data that follows `arrived` without a hole, and returns the new
    /// RCV.NXT. Duplicate ACKs for the filled hole that are still due are not sent any more. They
    /// would have the new acknowledgement number, and thus report another hole.
    pub(crate) fn fill_hole(&mut self, arrived: SeqNum) -> SeqNum {
        self.unanswered = 0;
        let next = self.assembler.advance(arrived);
        if !self.shut {
            self.buffer.extend((next - arrived) as usize);
        }
        next
    }

    /// Records that an acknowledgement with room for `fit` SACK blocks was sent. The duplicate
    /// range in it is not reported again (RFC 2883 §4). Returns whether another acknowledgement
    /// must follow, because some ranges did not fit.
    pub(crate) fn on_sack_sent(&mut self, fit: usize) -> bool {
        let left = self.newest_to_leave_out(fit);
        self.duplicate = None;
        self.unanswered = 0;
        self.assembler.set_unreported(left);
        left > 0
    }

    /// Records that an acknowledgement was sent to a peer without SACK. `alone` is true if it was
    /// sent without data. The peer counts only such an acknowledgement as a duplicate ACK. Returns
    /// whether another duplicate ACK must follow.
    pub(crate) fn on_duplicate_ack_sent(&mut self, alone: bool) -> bool {
        self.duplicate = None;
        self.unanswered -= u8::from(alone && self.unanswered > 0);
        self.unanswered > 0
    }

    /// Returns how many of the most recent ranges a SACK option with room for `fit` blocks must
    /// omit, so that all older unreported ranges fit. The omitted ranges are reported by later
    /// acknowledgements. Thus the peer gets the reports in the order in which the segments arrived.
    fn newest_to_leave_out(&self, fit: usize) -> usize {
        let room = fit.saturating_sub(usize::from(self.duplicate.is_some()));
        self.assembler.unreported().saturating_sub(room)
    }

    /// Whether there is a duplicate range or out-of-order data for a SACK option to report.
    pub(crate) fn has_blocks(&self) -> bool {
        self.owes_duplicate() || !self.assembler.is_empty()
    }

    /// Whether a duplicate range is to be reported by the next acknowledgement.
    pub(crate) const fn owes_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// Returns the SACK blocks for an option with room for `fit` blocks. The duplicate range comes
    /// first, if there is one. The ranges of out-of-order data follow, the most recently changed
    /// first.
    pub(crate) fn blocks(&self, fit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(duplicate) = self.duplicate {
            blocks.push(duplicate);
        }
        self.assembler.ranges(self.newest_to_leave_out(fit)).for_each(|range| blocks.push(range));
        blocks
    }

    /// Whether out-of-order data is still to be reported: by SACK if `blocks` is true, otherwise by
    /// duplicate ACKs.
    pub(crate) fn owes_duplicates(&self, blocks: bool) -> bool {
        if blocks { self.assembler.unreported() > 0 } else { self.unanswered > 0 }
    }

    /// Discards all readable data, because the application has closed the receiving direction.
    pub(crate) fn shut(&mut self) {
        self.shut = true;
        self.urgent = None;
        self.buffer.clear();
    }

    /// Overwrites the buffer memory that contains no data with that of `other`. A comparison of the
    /// two then considers only data.
    pub(crate) fn copy_unused_memory(&mut self, other: &Self, rcv: &ReceiveSequence) {
        let place = |seq: SeqNum| self.buffer.len() + (seq - rcv.nxt) as usize;
        let beyond: Vec<_> = self
            .assembler
            .all()
            .iter()
            .map(|range| place(range.left)..place(range.right))
            .collect();
        self.buffer.copy_unused_memory(&other.buffer, &beyond);
    }

    pub(crate) fn check(&self, rcv: &ReceiveSequence) {
        let beyond = self.assembler.end().map_or(0, |end| (end - rcv.nxt) as usize);
        self.buffer.check(if self.shut { 0 } else { beyond });
        // The FIN is not checked against the right edge of the window. It needs no room, so it may
        // lie beyond that edge.
        self.assembler.check(rcv.nxt, rcv.edge);
        assert!(!rcv.acked.after(rcv.nxt), "acknowledged {} beyond {}", rcv.acked, rcv.nxt);
        assert!(!rcv.nxt.after(rcv.edge), "received {} beyond the edge {}", rcv.nxt, rcv.edge);
        assert!(
            self.shut || rcv.window() as usize <= self.buffer.free(),
            "a window of {} was offered for {} free bytes",
            rcv.window(),
            self.buffer.free()
        );
    }
}

/// Converts a buffer size to a length in sequence space. Sizes are at most 2^30, so the limit is
/// never reached.
pub(crate) fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
