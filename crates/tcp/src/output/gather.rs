//! Segments whose data stay in the send buffer, from which whoever takes the segment on its way gathers them.

use super::{Finish, Transmit};
use crate::Connection;
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// The least data that are gathered: fewer are copied in less time than it takes to say where they are.
const LEAST: usize = 2_048;

/// Data of a segment that has left, in the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    pub(super) seq: SeqNum,
    pub(super) length: u32,
}

impl Lent {
    /// How many bytes they are.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length as usize
    }
}

impl Connection {
    /// As [`Connection::poll_transmit_uncut`] for whoever can gather: where [`Transmit::lent`] says so, only the
    /// header is in `bytes`, and the data are what [`Connection::lent`] says. [`Transmit::length`] counts them.
    ///
    /// # Panics
    /// As [`Connection::poll_transmit`].
    pub fn poll_transmit_to_gather(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll(now, bytes, Finish::Gather)
    }

    /// Are these data better gathered than copied, and do they lie together, or nearly so?
    pub(super) fn is_worth_gathering(&self, seq: SeqNum, length: usize) -> bool {
        length >= LEAST && self.sender.buffer.parts(seq, length).is_some()
    }

    /// The data of the segment that has just left, one slice after the other. To be asked before anything else
    /// happens to the connection.
    ///
    /// # Panics
    /// If the data are not in the send buffer any more, since something else has happened.
    #[must_use]
    pub fn lent(&self, lent: Lent) -> [&[u8]; 2] {
        let parts = self.sender.buffer.parts(lent.seq, lent.length());
        parts.expect("data that were lent lie where they lay")
    }
}
