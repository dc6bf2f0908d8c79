//! A connection that the intruder drives segment by segment.

use super::{Captured, Intruder};
use linerate_wire::{SackBlocks, SeqNum, TcpFlags, TcpHeader, TcpOptions};
use std::net::SocketAddrV4;

/// Initial sequence number of the intruder's connections.
const ISS: SeqNum = SeqNum::new(7_000);

/// The endpoint of a connection that belongs to the intruder. It has no TCP of its own: the test
/// decides about each segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address and port of the intruder.
    pub here: SocketAddrV4,
    /// Address and port of the host.
    pub there: SocketAddrV4,
    /// Next sequence number for the intruder to send.
    pub next: SeqNum,
    /// Next sequence number that the intruder expects from the host.
    pub expected: SeqNum,
    /// Sequence number that follows the highest one that the host has sent.
    pub highest: SeqNum,
    /// Sequence number of the first byte of the host's stream.
    pub first: SeqNum,
    opening: bool,
}

impl Peer {
    pub(super) const fn new(here: SocketAddrV4, there: SocketAddrV4) -> Self {
        let none = SeqNum::new(0);
        Self { here, there, next: ISS, expected: none, highest: none, first: none, opening: false }
    }

    /// Performs the next step of the handshake: sends the SYN, or acknowledges the SYN-ACK if it is
    /// among the segments captured since the previous call. Must be called once in each turn.
    pub(super) fn open(
        &mut self,
        intruder: &mut Intruder,
        captured: &[Captured],
        shift: u8,
        window: u16,
    ) {
        if !self.opening {
            self.opening = true;
            let syn = TcpHeader {
                seq: ISS,
                flags: TcpFlags::SYN,
                window: u16::MAX,
                ..TcpHeader::default()
            };
            let options = TcpOptions {
                mss: Some(1_000),
                window_scale: Some(shift),
                sack_permitted: true,
                ..TcpOptions::default()
            };
            intruder.segment(self.here, self.there, syn, &options, &[]);
            return;
        }
        let mine = |captured: &&Captured| {
            captured.to == self.here && captured.flags.contains(TcpFlags::SYN)
        };
        let Some(answer) = captured.iter().find(mine) else { return };
        self.next = ISS + 1;
        self.first = answer.seq + 1;
        (self.expected, self.highest) = (self.first, self.first);
        self.acknowledge(intruder, self.expected, window, SackBlocks::default());
    }

    /// Returns whether a captured segment belongs to this connection and carries data.
    #[must_use]
    pub fn is_data(&self, captured: &Captured) -> bool {
        captured.to == self.here && !captured.payload.is_empty()
    }

    /// Calls [`Self::note`] for all captured segments that carry data of this connection. Ignores
    /// all other captured segments.
    pub fn note_all(&mut self, captured: &[Captured]) {
        for segment in captured {
            if self.is_data(segment) {
                self.note(segment);
            }
        }
    }

    /// Updates `highest` and `expected` as a receiver would do on the arrival of this segment. The
    /// segment must belong to this connection.
    pub fn note(&mut self, captured: &Captured) {
        let end = captured.seq + u32::try_from(captured.payload.len()).unwrap_or(0);
        self.highest = self.highest.later(end);
        if !captured.seq.after(self.expected) {
            self.expected = self.expected.later(end);
        }
    }

    /// Sends an acknowledgement.
    pub fn acknowledge(&self, intruder: &mut Intruder, ack: SeqNum, window: u16, sack: SackBlocks) {
        let header =
            TcpHeader { seq: self.next, ack, flags: TcpFlags::ACK, window, ..TcpHeader::default() };
        let options = TcpOptions { sack, ..TcpOptions::default() };
        intruder.segment(self.here, self.there, header, &options, &[]);
    }

    /// Sends data with the sequence number `seq`, which may differ from `next`.
    pub fn send(&self, intruder: &mut Intruder, seq: SeqNum, payload: &[u8]) {
        let header = TcpHeader {
            seq,
            ack: self.expected,
            flags: TcpFlags::ACK,
            window: u16::MAX,
            ..TcpHeader::default()
        };
        intruder.segment(self.here, self.there, header, &TcpOptions::default(), payload);
    }
}
