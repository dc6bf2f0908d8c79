//! The receiving half: what has arrived, what may still come, and when to say so.

pub(crate) mod ack_policy;
mod assembler;
pub(crate) mod autotune;
pub(crate) mod buffer;

use crate::opening::DEFAULT_PEER_MSS;
use crate::options::Agreement;
use crate::rest::pack::packed;
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
    /// RCV.NXT: the next number expected.
    pub(crate) nxt: SeqNum,
    /// RCV.NXT + RCV.WND as the peer knows it: the right edge of the window that was offered. It
    /// never moves back.
    pub(crate) edge: SeqNum,
    /// What the last acknowledgement that left said (Last.ACK.sent of RFC 7323).
    pub(crate) acked: SeqNum,
    /// IRS: the peer's initial number.
    pub(crate) irs: SeqNum,
}

packed!(ReceiveSequence { nxt, edge, acked, irs });

impl ReceiveSequence {
    pub(crate) fn new(irs: SeqNum) -> Self {
        Self { nxt: irs, edge: irs, acked: irs, irs }
    }

    /// RCV.WND: what the peer may still send.
    pub(crate) fn window(&self) -> u32 {
        self.edge - self.nxt
    }

    /// In order and not acknowledged yet.
    pub(crate) fn pending(&self) -> u32 {
        self.nxt - self.acked
    }
}

/// What became of data that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It is in its place.
    Kept,
    /// It would be one stretch too many beyond holes.
    TooManyStretches,
    /// The host has no memory for it.
    NoMemory,
}

/// The receive buffer and everything that decides about the window. What each segment touches comes first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Receiver {
    pub(crate) buffer: ReceiveBuffer,
    /// When data last came in order.
    pub(crate) last_data: Instant,
    /// The largest segment seen, the peer's idea of a full one.
    pub(crate) largest_segment: u32,
    /// The most that the window field can express.
    pub(crate) largest_window: u32,
    /// RCV.UP while urgent data is announced that was not read yet: the number after it.
    pub(crate) urgent: Option<SeqNum>,
    pub(crate) assembler: Assembler,
    pub(crate) autotune: Autotune,
    /// Where the peer's FIN lies, once a segment has brought it.
    pub(crate) fin: Option<SeqNum>,
    /// What has arrived twice, until an acknowledgement has told of it (RFC 2883).
    duplicate: Option<SackBlock>,
    /// Nobody will read: what arrives is acknowledged and thrown away.
    pub(crate) shut: bool,
    /// Segments out of order that no acknowledgement has answered, for a peer that can only count them.
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

/// Blocks that fit the options beside timestamps.
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

    /// The handshake has told by how much windows are scaled.
    pub(crate) fn note_agreement(&mut self, agreement: &Agreement) {
        self.largest_window = u32::from(u16::MAX) << agreement.receive_shift;
    }

    /// The most that the window can be.
    pub(crate) fn capacity(&self) -> u32 {
        saturated(self.buffer.capacity()).min(self.largest_window)
    }

    /// Did unread data fill more than half of what the window can be, before the last `later` bytes came?
    pub(crate) fn was_crowded(&self, later: u32) -> bool {
        saturated(self.buffer.len()) - later > self.capacity() / 2
    }

    /// The window that there is room for.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        saturated(self.buffer.free()).min(self.largest_window)
    }

    /// Puts data that begins at `seq` in its place, if no more than `most` stretches lie beyond holes
    /// then, and no more memory is needed than is granted. They may stay in memory that was offered.
    pub(crate) fn keep(
        &mut self,
        rcv: &ReceiveSequence,
        seq: SeqNum,
        payload: &[u8],
        most: usize,
        (grant, offered): (&MemoryGrant, &Offered),
    ) -> Keep {
        if seq == rcv.nxt {
            // What lies beyond a hole has its place behind what is copied.
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
            return Keep::TooManyStretches;
        }
        if !self.shut {
            self.buffer.place(offset, payload);
        }
        Keep::Kept
    }

    /// Forgets what has arrived beyond holes; false if there is none. The peer must send it again, also
    /// what it was told of: a SACK is advice (RFC 2018 §8).
    pub(crate) fn drop_beyond_holes(&mut self) -> bool {
        let dropped = !self.assembler.is_empty();
        self.assembler = Assembler::default();
        self.unanswered = 0;
        dropped
    }

    /// Gives back the memory that nothing lies in, nor did of late.
    pub(crate) fn give_back_unused(&mut self, now: Instant, rcv: &ReceiveSequence) {
        let beyond = self.assembler.end().map_or(0, |end| (end - rcv.nxt) as usize);
        self.buffer.give_back_unused(now, if self.shut { 0 } else { beyond });
    }

    /// `left` up to `right` has arrived: what of it had been here before, if anything?
    pub(crate) fn note_duplicate(&mut self, rcv: &ReceiveSequence, left: SeqNum, right: SeqNum) {
        if left.before(rcv.nxt) {
            self.duplicate = Some(SackBlock { left, right: right.earlier(rcv.nxt) });
        } else if let Some(known) = self.assembler.overlap(left, right) {
            self.duplicate = Some(known);
        }
    }

    /// `count` segments beyond a hole have come, joined to one.
    pub(crate) fn note_out_of_order(&mut self, count: u32) {
        self.unanswered = self.unanswered.saturating_add(u8::try_from(count).unwrap_or(u8::MAX));
    }

    /// Everything before `arrived` has arrived, and there were holes: up to where there are none, everything
    /// can be read. What came beyond them before is not told of by duplicates any more: with the new number
    /// they would tell of another hole.
    pub(crate) fn fill_hole(&mut self, arrived: SeqNum) -> SeqNum {
        self.unanswered = 0;
        let next = self.assembler.advance(arrived);
        if !self.shut {
            self.buffer.extend((next - arrived) as usize);
        }
        next
    }

    /// An acknowledgement with [`Receiver::blocks`], at most `fit`, has left: each duplicate is told of once
    /// (RFC 2883 §4).
    /// Must another follow, because what has come together needs more blocks?
    pub(crate) fn note_named(&mut self, fit: usize) -> bool {
        let left = self.newest_to_leave_out(fit);
        self.duplicate = None;
        self.unanswered = 0;
        self.assembler.leave_unnamed(left);
        left > 0
    }

    /// An acknowledgement has left to a peer that counts those that come `alone`, without data. Must another
    /// follow?
    pub(crate) fn note_counted(&mut self, alone: bool) -> bool {
        self.duplicate = None;
        self.unanswered -= u8::from(alone && self.unanswered > 0);
        self.unanswered > 0
    }

    /// Of the stretches that were not named yet, those that came first are named first, as if each had been
    /// acknowledged when it came.
    fn newest_to_leave_out(&self, fit: usize) -> usize {
        let room = fit.saturating_sub(usize::from(self.duplicate.is_some()));
        self.assembler.unnamed().saturating_sub(room)
    }

    /// Is there anything for a SACK option?
    pub(crate) fn has_blocks(&self) -> bool {
        self.owes_duplicate() || !self.assembler.is_empty()
    }

    /// Has something come twice that the peer was not told of?
    pub(crate) const fn owes_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// Blocks for a SACK option in which `fit` find room: what came twice, then what lies beyond holes, the
    /// stretch that a duplicate is a part of before the others.
    pub(crate) fn blocks(&self, fit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(duplicate) = self.duplicate {
            blocks.push(duplicate);
        }
        self.assembler
            .stretches(self.newest_to_leave_out(fit))
            .for_each(|stretch| blocks.push(stretch));
        blocks
    }

    /// Does something beyond a hole wait to be told, by `blocks` or by counting?
    pub(crate) fn owes_duplicates(&self, blocks: bool) -> bool {
        if blocks { self.assembler.unnamed() > 0 } else { self.unanswered > 0 }
    }

    /// Nobody will read any more.
    pub(crate) fn shut(&mut self) {
        self.shut = true;
        self.urgent = None;
        self.buffer.clear();
    }

    /// What lies in the buffer's memory, but nobody reads, is what it is in that of `other`, for whoever compares them.
    pub(crate) fn take_leftovers_of(&mut self, other: &Self, rcv: &ReceiveSequence) {
        let place = |seq: SeqNum| self.buffer.len() + (seq - rcv.nxt) as usize;
        let beyond: Vec<_> = self
            .assembler
            .all()
            .iter()
            .map(|stretch| place(stretch.left)..place(stretch.right))
            .collect();
        self.buffer.take_leftovers_of(&other.buffer, &beyond);
    }

    pub(crate) fn check(&self, rcv: &ReceiveSequence) {
        let beyond = self.assembler.end().map_or(0, |end| (end - rcv.nxt) as usize);
        self.buffer.check(if self.shut { 0 } else { beyond });
        // The FIN is taken beyond the window's edge: it needs no room.
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

/// A buffer's size as a length in sequence space: configuration keeps buffers up to 2^30.
pub(crate) fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
