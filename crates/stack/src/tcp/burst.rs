//! The frames of a burst after its first: the headers of that one with another number, and the checksum that
//! follows from it. They are kept once for the host, because one connection sends at a time.
//!
//! While a link asks for frame after frame nothing else can happen to the connection, so it is told once, at the
//! end, of all that have left.

use super::TcpSocket;
use crate::ready::Sender;
use crate::stack::Stack;
use linerate_tcp::Transmit;
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, SeqNum, Sum, TcpHeader, TcpOptions};

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
    /// SEG.SEQ of the next segment.
    seq: SeqNum,
    /// Bytes of data of each, and of each frame.
    segment: u32,
    frame: usize,
    /// Segments that may leave without a question.
    left: u32,
    /// Segments that have left, and of which the connection does not know.
    untold: u32,
}

impl BurstHeaders {
    /// No burst.
    pub(crate) fn new() -> Self {
        Self {
            owner: None,
            bytes: [0; LONGEST],
            length: 0,
            tcp: 0,
            sum: Sum::default(),
            seq: SeqNum::new(0),
            segment: 0,
            frame: 0,
            left: 0,
            untold: 0,
        }
    }

    /// May the next frame leave without a question?
    #[inline]
    pub(crate) const fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Is there a burst that may go on, or of which something is to be told?
    #[inline]
    pub(crate) const fn is_somebodys(&self) -> bool {
        self.owner.is_some()
    }

    /// Does the connection know of all that has left?
    pub(crate) const fn is_told(&self) -> bool {
        self.untold == 0 && self.left == 0
    }

    /// No burst goes on.
    pub(crate) const fn forget(&mut self) {
        (self.owner, self.left) = (None, 0);
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

    /// Writes the headers of the next segment in front of its data, which have this sum.
    #[inline]
    fn complete(&mut self, data: Sum, frame: &mut [u8]) -> Option<()> {
        let number = self.seq.number();
        let sum = (self.sum + data).add_u32(number);
        let header: &mut [u8; TcpHeader::LENGTH] = frame.get_mut(self.tcp..)?.first_chunk_mut()?;
        header[SEQ..SEQ + 4].copy_from_slice(&number.to_be_bytes());
        let at = TcpHeader::CHECKSUM_OFFSET;
        header[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
        self.seq += self.segment;
        self.left -= 1;
        self.untold += 1;
        Some(())
    }
}

impl Stack {
    /// Writes the next frame of the burst, which [goes on](BurstHeaders::goes_on): how long it is. `None` if it
    /// has no room.
    #[inline(never)]
    pub(crate) fn go_on_with_burst(&mut self, frame: &mut [u8]) -> Option<usize> {
        let burst = &mut self.burst;
        let socket = self.sockets.tcp_at(burst.owner?)?;
        let frame = frame.get_mut(..burst.frame)?;
        // The data come behind the headers, and over what is too long of them here.
        *frame.first_chunk_mut()? = burst.bytes;
        let sum = socket.connection.copy_of_burst(burst.seq, &mut frame[burst.length..]);
        burst.complete(sum, frame)?;
        Some(burst.frame)
    }

    /// Finds out how many frames like the last one may follow it in the same turn, with nothing new but their
    /// numbers: is there one, for frames of which each has `room`?
    pub(crate) fn resume_burst(&mut self, now: Instant, room: usize) -> bool {
        let Some(index) = self.burst.owner else { return false };
        let generation = self.routes.generation() + self.neighbors.generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        if room < self.burst.tcp + socket.room as usize || socket.hop != generation {
            return false;
        }
        let Some(next) = socket.connection.poll_burst(now) else { return false };
        let burst = &mut self.burst;
        (burst.seq, burst.segment) = (next.seq, next.length);
        burst.frame = burst.length + next.length as usize;
        burst.left = next.segments.min(self.ready.left_to(Sender::Socket(index)));
        burst.left > 0
    }

    /// Tells the connection of what has left of its burst.
    #[inline]
    pub(crate) fn tell_of_burst(&mut self) {
        if !self.burst.is_told() {
            self.tell_of_frames();
        }
    }

    fn tell_of_frames(&mut self) {
        self.burst.left = 0;
        let frames = core::mem::take(&mut self.burst.untold);
        if let Some(socket) = self.burst.owner.and_then(|index| self.sockets.tcp_at(index)) {
            socket.connection.note_burst(frames);
        }
        self.ready.count(frames);
        self.counted.ip.out_requests += u64::from(frames);
        self.counted.tcp.out_segments += u64::from(frames);
        self.counted.transmit.packets += u64::from(frames);
        self.counted.transmit.bytes += u64::from(frames) * self.burst.frame as u64;
    }
}
