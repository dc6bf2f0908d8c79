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
    /// RCV.NXT + RCV.WND as last announced: the right edge of the offered window. It never moves
    /// back.
    pub(crate) edge: SeqNum,
    /// The last acknowledgement sent (Last.ACK.sent of RFC 7323).
    pub(crate) acked: SeqNum,
    /// IRS: the peer's initial sequence number.
    pub(crate) irs: SeqNum,
}

packed!(ReceiveSequence { nxt, edge, acked, irs });

impl ReceiveSequence {
    pub(crate) fn new(irs: SeqNum) -> Self {
        Self { nxt: irs, edge: irs, acked: irs, irs }
    }

    /// Returns RCV.WND: the bytes that the peer may still send.
    pub(crate) fn window(&self) -> u32 {
        self.edge - self.nxt
    }

    /// Returns the in-order bytes not yet acknowledged.
    pub(crate) fn pending(&self) -> u32 {
        self.nxt - self.acked
    }
}

/// The result of storing received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The data is in place.
    Kept,
    /// Storing the data would need one range too many beyond holes.
    TooManyRanges,
    /// The host's memory grant is too small for the data.
    NoMemory,
}

/// The receive buffer and the state that determines the window. Fields used by every segment come
/// first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Receiver {
    pub(crate) buffer: ReceiveBuffer,
    /// Time of the last in-order data.
    pub(crate) last_data: Instant,
    /// The largest segment received: an estimate of the peer's full segment.
    pub(crate) largest_segment: u32,
    /// The largest window that the window field can express.
    pub(crate) largest_window: u32,
    /// RCV.UP: the number after the urgent data, while announced urgent data is unread.
    pub(crate) urgent: Option<SeqNum>,
    pub(crate) assembler: Assembler,
    pub(crate) autotune: Autotune,
    /// Sequence number of the peer's FIN, once received.
    pub(crate) fin: Option<SeqNum>,
    /// A duplicate range that no acknowledgement has reported yet (RFC 2883).
    duplicate: Option<SackBlock>,
    /// Whether the application has stopped reading, so that data is acknowledged and discarded.
    pub(crate) shut: bool,
    /// Number of out-of-order segments still to be answered by duplicate ACKs, for a peer without
    /// SACK.
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

/// Maximum number of SACK blocks that fit beside timestamps.
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

    /// Applies the negotiated window scale.
    pub(crate) fn note_agreement(&mut self, agreement: &Agreement) {
        self.largest_window = u32::from(u16::MAX) << agreement.receive_shift;
    }

    /// Returns the largest possible window.
    pub(crate) fn capacity(&self) -> u32 {
        saturated(self.buffer.capacity()).min(self.largest_window)
    }

    /// Whether unread data filled more than half of the largest window before the last `later`
    /// bytes arrived.
    pub(crate) fn was_crowded(&self, later: u32) -> bool {
        saturated(self.buffer.len()) - later > self.capacity() / 2
    }

    /// Returns the window that the free room allows.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        saturated(self.buffer.free()).min(self.largest_window)
    }

    /// Stores data that begins at `seq`, if the grant suffices and at most `most` ranges lie beyond
    /// holes afterwards. The data may be kept in `offered` memory without a copy.
    pub(crate) fn keep(
        &mut self,
        rcv: &ReceiveSequence,
        seq: SeqNum,
        payload: &[u8],
        most: usize,
        (grant, offered): (&MemoryGrant, &Offered),
    ) -> Keep {
        if seq == rcv.nxt {
            // Data beyond a hole is placed in the ring, so in-order data before it must be copied
            // there, too.
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

    /// Discards data beyond holes, and returns whether there was any. The peer must send it again
    /// even if it was SACKed: SACK is advisory (RFC 2018 §8).
    pub(crate) fn drop_beyond_holes(&mut self) -> bool {
        let dropped = !self.assembler.is_empty();
        self.assembler = Assembler::default();
        self.unanswered = 0;
        dropped
    }

    /// Frees memory that holds no data and was not used recently.
    pub(crate) fn give_back_unused(&mut self, now: Instant, rcv: &ReceiveSequence) {
        let beyond = self.assembler.end().map_or(0, |end| (end - rcv.nxt) as usize);
        self.buffer.give_back_unused(now, if self.shut { 0 } else { beyond });
    }

    /// Records which part of the received range from `left` to `right` is a duplicate.
    pub(crate) fn note_duplicate(&mut self, rcv: &ReceiveSequence, left: SeqNum, right: SeqNum) {
        if left.before(rcv.nxt) {
            self.duplicate = Some(SackBlock { left, right: right.earlier(rcv.nxt) });
        } else if let Some(known) = self.assembler.overlap(left, right) {
            self.duplicate = Some(known);
        }
    }

    /// Records `count` coalesced segments beyond a hole.
    pub(crate) fn note_out_of_order(&mut self, count: u32) {
        self.unanswered = self.unanswered.saturating_add(u8::try_from(count).unwrap_or(u8::MAX));
    }

    /// Fills a hole with data up to `arrived`, and returns the new RCV.NXT. Duplicate ACKs still
    /// due are dropped: with the new acknowledgement number they would report another hole.
    pub(crate) fn fill_hole(&mut self, arrived: SeqNum) -> SeqNum {
        self.unanswered = 0;
        let next = self.assembler.advance(arrived);
        if !self.shut {
            self.buffer.extend((next - arrived) as usize);
        }
        next
    }

    /// Records that an acknowledgement has reported the first `fit` of [`Receiver::blocks`]. Each
    /// duplicate is reported once (RFC 2883 §4). Returns whether another must follow, because more
    /// blocks are unreported.
    pub(crate) fn on_sack_sent(&mut self, fit: usize) -> bool {
        let left = self.newest_to_leave_out(fit);
        self.duplicate = None;
        self.unanswered = 0;
        self.assembler.set_unreported(left);
        left > 0
    }

    /// Records an acknowledgement to a peer that counts duplicate ACKs. It counts only if it was
    /// sent `alone`, without data. Returns whether another one must follow.
    pub(crate) fn on_duplicate_ack_sent(&mut self, alone: bool) -> bool {
        self.duplicate = None;
        self.unanswered -= u8::from(alone && self.unanswered > 0);
        self.unanswered > 0
    }

    /// Returns how many of the newest ranges a SACK option with room for `fit` blocks must omit, so
    /// that older unreported ranges are reported first, as if each segment had been acknowledged on
    /// arrival.
    fn newest_to_leave_out(&self, fit: usize) -> usize {
        let room = fit.saturating_sub(usize::from(self.duplicate.is_some()));
        self.assembler.unreported().saturating_sub(room)
    }

    /// Whether there is data that a SACK option should report.
    pub(crate) fn has_blocks(&self) -> bool {
        self.owes_duplicate() || !self.assembler.is_empty()
    }

    /// Whether a duplicate range is still to be reported.
    pub(crate) const fn owes_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// Returns the SACK blocks for an option with room for `fit`: the duplicate range first, then
    /// the range that contains it, then the other ranges beyond holes.
    pub(crate) fn blocks(&self, fit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(duplicate) = self.duplicate {
            blocks.push(duplicate);
        }
        self.assembler.ranges(self.newest_to_leave_out(fit)).for_each(|range| blocks.push(range));
        blocks
    }

    /// Whether data beyond a hole is still to be reported, by SACK if `blocks` is set, otherwise by
    /// duplicate ACKs.
    pub(crate) fn owes_duplicates(&self, blocks: bool) -> bool {
        if blocks { self.assembler.unreported() > 0 } else { self.unanswered > 0 }
    }

    /// Discards all data, because the application will not read any more.
    pub(crate) fn shut(&mut self) {
        self.shut = true;
        self.urgent = None;
        self.buffer.clear();
    }

    /// Copies from `other` the buffer memory that holds no data, for comparisons of connections.
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
        // The FIN may lie beyond the window's edge, since it needs no room.
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

/// Converts a buffer size to a length in sequence space; sizes are at most 2^30.
pub(crate) fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
