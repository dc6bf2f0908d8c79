//! The frames of a burst after its first: the headers of that one with another number, and the checksum that
//! follows from it. They are kept once for the host, because one connection sends at a time.

use super::TcpSocket;
use crate::ready::Sender;
use crate::stack::Stack;
use linerate_tcp::{Continuation, Transmit};
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, Sum, TcpHeader, TcpOptions};

/// The longest headers of a segment that has no option but timestamps.
const LONGEST: usize =
    EthernetHeader::LENGTH + Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// Where a sequence number begins in a header.
const SEQ: usize = 4;

/// The headers of the last segment of a burst.
#[derive(Debug)]
pub(crate) struct BurstHeaders {
    /// Whose they are; nobody's if no burst can go on.
    owner: Option<u32>,
    /// From the medium's to the options of TCP; what the last segment's number and checksum were, each
    /// segment writes anew.
    bytes: [u8; LONGEST],
    length: usize,
    /// Where the TCP header begins.
    tcp: usize,
    /// Over the pseudo-header, and over the TCP header without number and checksum.
    sum: Sum,
}

impl BurstHeaders {
    /// No burst.
    pub(crate) fn new() -> Self {
        Self { owner: None, bytes: [0; LONGEST], length: 0, tcp: 0, sum: Sum::default() }
    }

    /// No burst goes on.
    pub(super) const fn forget(&mut self) {
        self.owner = None;
    }

    /// The connection of `socket`, which is number `index`, has `sent` a segment in `frame`, and may go on.
    pub(super) fn keep(
        &mut self,
        index: u32,
        socket: &TcpSocket,
        sent: &Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let tcp = medium + Ipv4Header::LENGTH;
        let length = tcp + sent.header;
        let Some(bytes) = self.bytes.get_mut(..length) else { return };
        bytes.copy_from_slice(&frame[..length]);
        let rest = &mut bytes[tcp..];
        rest[SEQ..SEQ + 4].fill(0);
        rest[TcpHeader::CHECKSUM_OFFSET..TcpHeader::CHECKSUM_OFFSET + 2].fill(0);
        self.sum = socket.headers.sum_of(sent.length, &rest[SEQ..]);
        (self.owner, self.length, self.tcp) = (Some(index), length, tcp);
    }

    /// Writes the headers of the next segment in front of its data.
    fn complete(&self, next: &Continuation, frame: &mut [u8]) -> usize {
        let number = next.seq.number();
        let sum = (self.sum + next.sum).add_u32(number);
        let header = &mut frame[self.tcp..self.length];
        header[SEQ..SEQ + 4].copy_from_slice(&number.to_be_bytes());
        let at = TcpHeader::CHECKSUM_OFFSET;
        header[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
        self.length + next.length
    }
}

impl Stack {
    /// Writes the next frame of the burst that the last frame belonged to, if there is one, it may leave in
    /// the same turn, and nothing but its number is new: how long it is.
    #[inline]
    pub(crate) fn go_on_with_burst(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        let index = self.burst.owner?;
        let generation = self.routes.generation() + self.neighbors.generation();
        let socket = self.sockets.tcp_at(index)?;
        let narrow = frame.len() < self.burst.tcp + socket.room;
        if narrow || socket.hop != generation || !self.ready.goes_on(Sender::Socket(index)) {
            return None;
        }
        // The data come behind the headers, and over what is too long of them here.
        *frame.first_chunk_mut()? = self.burst.bytes;
        let next = socket.connection.poll_burst(now, &mut frame[self.burst.length..])?;
        let length = self.burst.complete(&next, frame);
        self.ready.count(1);
        self.counted.ip.out_requests += 1;
        self.counted.tcp.out_segments += 1;
        Some(length)
    }
}
