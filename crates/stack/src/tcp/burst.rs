//! The frames of a burst after its first: the headers of that one with another number, and the checksum that
//! follows from it. So are the acknowledgements of a row, whose window differs as well. They are kept once for the host,
//! because one connection sends at a time.
//!
//! While a link asks for frame after frame nothing else can happen to the connection, so it is told once, at the
//! end, of all that have left.

use super::TcpSocket;
use crate::link::{FrameSlots, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use linerate_tcp::{Acknowledgements, Transmit};
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, SeqNum, Sum, TcpHeader, TcpOptions};

/// The longest headers of a segment that has no option but timestamps.
const LONGEST: usize =
    EthernetHeader::LENGTH + Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// Where a sequence number begins in a header, an acknowledgement, and the window.
const SEQ: usize = 4;
const ACK: usize = 8;
const WINDOW: usize = 14;

/// The headers of the last segment of a burst.
#[derive(Debug)]
pub(crate) struct BurstHeaders {
    /// Whose they are; nobody's if no burst can go on.
    owner: Option<u32>,
    /// The row of acknowledgements that it is; else it is one of data.
    row: Option<Acknowledgements>,
    /// From the medium's to the options of TCP; what the last segment's number and checksum were, and in a row its
    /// window, each segment writes anew.
    bytes: [u8; LONGEST],
    length: usize,
    /// Where the TCP header begins.
    tcp: usize,
    /// Over the pseudo-header, and over the TCP header without what each segment writes anew.
    sum: Sum,
    /// SEG.SEQ of the next segment, and in a row SEG.ACK.
    number: SeqNum,
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
            row: None,
            bytes: [0; LONGEST],
            length: 0,
            tcp: 0,
            sum: Sum::default(),
            number: SeqNum::new(0),
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
        (self.owner, self.row, self.left) = (None, None, 0);
    }

    /// The connection of `socket`, which is number `index`, has `sent` a segment in `frame`, and may go on with data or
    /// with a row of acknowledgements.
    pub(super) fn keep(
        &mut self,
        index: u32,
        socket: &TcpSocket,
        row: Option<Acknowledgements>,
        sent: &Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let tcp = medium + Ipv4Header::LENGTH;
        let length = tcp + sent.header;
        let Some(bytes) = self.bytes.get_mut(..length) else { return };
        bytes.copy_from_slice(&frame[..length]);
        let rest = &mut bytes[tcp..];
        if row.is_some() {
            rest[ACK..ACK + 4].fill(0);
            rest[WINDOW..WINDOW + 2].fill(0);
        } else {
            rest[SEQ..SEQ + 4].fill(0);
        }
        rest[TcpHeader::CHECKSUM_OFFSET..TcpHeader::CHECKSUM_OFFSET + 2].fill(0);
        self.sum = socket.headers.sum_of(sent.length, &rest[SEQ..]);
        (self.owner, self.row, self.length, self.tcp) = (Some(index), row, length, tcp);
    }

    /// Writes the next frame, whose TCP header begins at `TCP`, with `data` of the segment that has this number: how long
    /// it is. `None` if it has no room.
    #[inline(always)]
    fn write<const TCP: usize>(
        &mut self,
        data: impl FnOnce(SeqNum, &mut [u8]) -> Sum,
        frame: &mut [u8],
    ) -> Option<usize> {
        // The data come behind the headers, and over what is too long of them here.
        *frame.first_chunk_mut()? = self.bytes;
        let payload = frame.get_mut(self.length..self.frame)?;
        let (place, step, sum) = match self.row {
            None => (SEQ, self.segment, self.sum + data(self.number, payload)),
            Some(row) => {
                let window = row.window(self.number);
                let place = TCP + WINDOW;
                frame.first_chunk_mut::<LONGEST>()?[place..place + 2]
                    .copy_from_slice(&window.to_be_bytes());
                (ACK, row.step, self.sum.add_u16(window))
            }
        };
        let number = self.number.number();
        let (place, at) = (TCP + place, TCP + TcpHeader::CHECKSUM_OFFSET);
        let headers = frame.first_chunk_mut::<LONGEST>()?;
        headers[place..place + 4].copy_from_slice(&number.to_be_bytes());
        headers[at..at + 2].copy_from_slice(&sum.add_u32(number).finish().to_be_bytes());
        self.number += step;
        self.left -= 1;
        self.untold += 1;
        Some(self.frame)
    }
}

/// Where a TCP header begins on links with stations, and on those without.
const BEHIND_STATIONS: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
const BEHIND_NONE: usize = Ipv4Header::LENGTH;

impl Stack {
    /// Writes frames of the burst, which [goes on](BurstHeaders::goes_on), into `slots` as long as there are both: is
    /// there room for more?
    #[inline(never)]
    pub(crate) fn fill_with_burst(&mut self, slots: &mut impl FrameSlots) -> bool {
        match self.burst.tcp {
            BEHIND_STATIONS => self.fill_with_burst_behind::<BEHIND_STATIONS>(slots),
            _ => self.fill_with_burst_behind::<BEHIND_NONE>(slots),
        }
    }

    /// The same for one frame: how long it is. `None` if it has no room.
    #[inline(never)]
    pub(crate) fn next_of_burst(&mut self, frame: &mut [u8]) -> Option<usize> {
        let burst = &mut self.burst;
        let connection = &self.sockets.tcp_at(burst.owner?)?.connection;
        let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
        match burst.tcp {
            BEHIND_STATIONS => burst.write::<BEHIND_STATIONS>(data, frame),
            _ => burst.write::<BEHIND_NONE>(data, frame),
        }
    }

    #[inline(always)]
    fn fill_with_burst_behind<const TCP: usize>(&mut self, slots: &mut impl FrameSlots) -> bool {
        let burst = &mut self.burst;
        let Some(socket) = burst.owner.and_then(|owner| self.sockets.tcp_at(owner)) else {
            return false;
        };
        let connection = &socket.connection;
        while burst.goes_on() {
            let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
            if !slots.offer(|frame| burst.write::<TCP>(data, frame).map(TxFrame::whole)) {
                return false;
            }
        }
        true
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
        (burst.number, burst.segment) = (next.seq, next.length);
        burst.frame = burst.length + next.length as usize;
        burst.left = next.segments.min(self.ready.left_to(Sender::Socket(index)));
        burst.left > 0
    }

    /// The connection with this number has `sent` an acknowledgement in `frame`: those of the same row may follow it
    /// without a question, as long as nobody else has his turn, and nothing comes in.
    pub(super) fn begin_row(&mut self, index: u32, sent: &Transmit, medium: usize, frame: &[u8]) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let is_usual = sent.length == TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
        let Some(row) = socket.connection.poll_acks().filter(|_| is_usual) else { return };
        let left = row.count.min(self.ready.left_to(Sender::Socket(index)));
        if left > 0 {
            let burst = &mut self.burst;
            burst.keep(index, socket, Some(row), sent, medium, frame);
            (burst.number, burst.left, burst.frame) = (row.first, left, burst.length);
        }
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
        let is_row = self.burst.row.is_some();
        self.ready.count(frames);
        if let Some(index) = self.burst.owner
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            if is_row {
                socket.connection.note_acks(frames);
            } else {
                socket.connection.note_burst(frames);
                if socket.connection.falls_silent_after_burst(self.now) {
                    // It may have a deadline, and is otherwise what it was before the burst.
                    debug_assert!(
                        socket.connection.events().is_empty(),
                        "nobody has to hear of a silence"
                    );
                    socket.arm(index, &mut self.timers);
                    self.ready.remove(Sender::Socket(index));
                    self.burst.forget();
                }
            }
        }
        if is_row {
            self.burst.forget();
        }
        self.counted.ip.out_requests += u64::from(frames);
        self.counted.tcp.out_segments += u64::from(frames);
        self.counted.transmit.packets += u64::from(frames);
        self.counted.transmit.bytes += u64::from(frames) * self.burst.frame as u64;
    }
}
