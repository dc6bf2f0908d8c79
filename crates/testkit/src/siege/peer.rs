//! An end of a connection that the intruder works by hand.

use super::{Heard, Intruder};
use linerate_wire::{SackBlocks, SeqNum, TcpFlags, TcpHeader, TcpOptions};
use std::net::SocketAddrV4;

/// The intruder's sequence numbers begin here.
const ISS: SeqNum = SeqNum::new(7_000);

/// What the intruder knows of a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The intruder's end.
    pub here: SocketAddrV4,
    /// The host's end.
    pub there: SocketAddrV4,
    /// The next number that the intruder sends.
    pub next: SeqNum,
    /// The next number that it expects of the host.
    pub expected: SeqNum,
    /// One beyond the highest number that the host has sent.
    pub highest: SeqNum,
    /// The first byte of the host's stream.
    pub first: SeqNum,
    opening: bool,
}

impl Peer {
    pub(super) const fn new(here: SocketAddrV4, there: SocketAddrV4) -> Self {
        let none = SeqNum::new(0);
        Self { here, there, next: ISS, expected: none, highest: none, first: none, opening: false }
    }

    /// The handshake, a step a turn.
    pub(super) fn open(
        &mut self,
        intruder: &mut Intruder,
        heard: &[Heard],
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
        let mine = |heard: &&Heard| heard.to == self.here && heard.flags.contains(TcpFlags::SYN);
        let Some(answer) = heard.iter().find(mine) else { return };
        self.next = ISS + 1;
        self.first = answer.seq + 1;
        (self.expected, self.highest) = (self.first, self.first);
        self.acknowledge(intruder, self.expected, window, SackBlocks::default());
    }

    /// Is the segment one of this connection, with data?
    #[must_use]
    pub fn is_data(&self, heard: &Heard) -> bool {
        heard.to == self.here && !heard.payload.is_empty()
    }

    /// Notes how far the host has sent by these segments, and how far without a hole.
    pub fn listen(&mut self, heard: &[Heard]) {
        for segment in heard {
            if self.is_data(segment) {
                self.note(segment);
            }
        }
    }

    /// The same for one segment of this connection.
    pub fn note(&mut self, heard: &Heard) {
        let end = heard.seq + u32::try_from(heard.payload.len()).unwrap_or(0);
        self.highest = self.highest.later(end);
        if !heard.seq.after(self.expected) {
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

    /// Sends data, wherever in sequence space.
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
