//! Batches of pure acknowledgements.
//!
//! One acknowledgement covers everything received. A connection without [stretch
//! ACKs](crate::Config::stretch_acks) instead sends one for each two full segments, even of data
//! that arrived together. These are sent together and differ only in acknowledgement number and
//! window, so they are chosen once, like a burst of data.

use super::choose::Choice;
use super::commit::Origin;
use crate::Connection;
use linerate_wire::SeqNum;

/// Acknowledgements that may follow the last segment, which was one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgements {
    /// SEG.ACK of the first one.
    pub first: SeqNum,
    /// Difference of SEG.ACK from one to the next.
    pub step: u32,
    /// Number of acknowledgements.
    pub count: u32,
    /// Right edge of the offered window, for all of them.
    edge: SeqNum,
    /// Shift of SEG.WND.
    shift: u8,
}

impl Acknowledgements {
    /// Returns SEG.WND of the acknowledgement with this number.
    #[inline]
    #[must_use]
    pub fn window(&self, ack: SeqNum) -> u16 {
        in_field(self.edge - ack, self.shift)
    }
}

impl Connection {
    /// Returns the rest of an ACK batch if [`Connection::poll_transmit`] has just written its first
    /// segment: it would write the same header for each of them, except for number and window.
    /// Those that are sent must be [noted](Connection::note_acks) before anything else happens to
    /// the connection. The final acknowledgement, of everything, is not among them.
    #[must_use]
    pub fn poll_acks(&self) -> Option<Acknowledgements> {
        let is_row =
            self.ack_due && self.expectation.header() != 0 && self.next_ack() != self.rcv.nxt;
        let is_only = is_row && self.is_usual() && !self.sender.has_unsent(self.snd.nxt);
        is_only.then(|| {
            let step = self.pair();
            let count = (self.rcv.pending() - 1) / step;
            let (edge, shift) = (self.rcv.edge, self.agreement.receive_shift);
            Acknowledgements { first: self.rcv.acked + step, step, count, edge, shift }
        })
    }

    /// Notes that `count` of the acknowledgements of [`Connection::poll_acks`] were sent.
    pub fn note_acks(&mut self, count: u32) {
        self.commit(self.sender.last_sent, Choice::Ack { count }, Origin::Batch);
    }

    /// Returns SEG.ACK of a pure acknowledgement sent now.
    #[inline]
    pub(super) fn next_ack(&self) -> SeqNum {
        if self.acknowledges_all() { self.rcv.nxt } else { self.rcv.acked + self.pair() }
    }

    /// Whether a pure acknowledgement would cover everything received.
    #[inline(always)]
    pub(super) fn acknowledges_all(&self) -> bool {
        self.rcv.pending() <= self.pair() || self.config.stretch_acks || self.receiver.has_blocks()
    }

    /// Returns the bytes of two full segments, which one acknowledgement covers.
    #[inline(always)]
    pub(super) const fn pair(&self) -> u32 {
        self.receiver.largest_segment * 2
    }
}

/// Returns SEG.WND for a window, limited by the field and truncated by the scale.
#[inline]
pub(super) fn in_field(window: u32, shift: u8) -> u16 {
    u16::try_from(window >> shift).unwrap_or(u16::MAX)
}
