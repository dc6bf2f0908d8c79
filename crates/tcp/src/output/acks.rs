//! Acknowledgements alone: how much the next one tells, and those that may follow it like it.
//!
//! One tells of all that has arrived. A connection without [stretch ACKs](crate::Config::stretch_acks) sends one for
//! each two full segments instead, also of data that came together: they leave one right after the other, and differ
//! in nothing but their number, and the window as seen from there. So they are asked for once, as a burst of data is.

use crate::Connection;
use linerate_wire::SeqNum;

/// Acknowledgements that may follow the last segment, which was one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgements {
    /// SEG.ACK of the first of them.
    pub first: SeqNum,
    /// By how much each tells more than the one before.
    pub step: u32,
    /// How many they are.
    pub count: u32,
    /// Where the offered window ends, for all of them.
    edge: SeqNum,
    /// What SEG.WND is shifted by.
    shift: u8,
}

impl Acknowledgements {
    /// SEG.WND of the one with this number.
    #[inline]
    #[must_use]
    pub fn window(&self, ack: SeqNum) -> u16 {
        in_field(self.edge - ack, self.shift)
    }
}

impl Connection {
    /// The acknowledgements of a row to which the last segment belongs, if [`Connection::poll_transmit`] has just written
    /// it: for each of them it would write the same header, but for number and window. Those that leave are to be
    /// [noted](Connection::note_acks) before anything else happens to the connection. The last of a row, which tells
    /// of everything, is none of them.
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

    /// So many of the acknowledgements have left that [`Connection::poll_acks`] has told of.
    pub fn note_acks(&mut self, count: u32) {
        self.rcv.acked += self.pair() * count;
        self.statistics.segments_sent += u64::from(count);
        self.statistics.pure_acks_sent += u64::from(count);
    }

    /// SEG.ACK of an acknowledgement alone that leaves now.
    #[inline]
    pub(super) fn next_ack(&self) -> SeqNum {
        if self.tells_all() { self.rcv.nxt } else { self.rcv.acked + self.pair() }
    }

    /// Would an acknowledgement alone tell of all that has arrived?
    #[inline(always)]
    pub(super) fn tells_all(&self) -> bool {
        self.rcv.pending() <= self.pair() || self.config.stretch_acks || self.receiver.has_blocks()
    }

    /// Two full segments, after which there is to be an acknowledgement.
    #[inline(always)]
    const fn pair(&self) -> u32 {
        self.receiver.largest_segment * 2
    }
}

/// A window as SEG.WND says it: what is too much for the field is left out, and what its scale cuts off.
#[inline]
pub(super) fn in_field(window: u32, shift: u8) -> u16 {
    u16::try_from(window >> shift).unwrap_or(u16::MAX)
}
