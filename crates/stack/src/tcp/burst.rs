//! The frames of a burst after its first: the headers of that one with another number, and the checksum that
//! follows from it. So are the acknowledgements of a row, whose window differs as well. They are kept once for the host,
//! because one connection sends at a time.
//!
//! While a link asks for frame after frame nothing else can happen to the connection, so it is told once, at the
//! end, of all that have left.

use super::TcpSocket;
use linerate_tcp::{Acknowledgements, Transmit};
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
    pub(crate) owner: Option<u32>,
    /// The row of acknowledgements that it is; else it is one of data.
    pub(crate) row: Option<Acknowledgements>,
    /// From the medium's to the options of TCP; what the last segment's number and checksum were, and in a row its
    /// window, each segment writes anew.
    bytes: [u8; LONGEST],
    pub(crate) length: usize,
    /// Where the TCP header begins.
    pub(crate) tcp: usize,
    /// Over the pseudo-header, and over the TCP header without what each segment writes anew.
    sum: Sum,
    /// SEG.SEQ of the next segment, and in a row SEG.ACK.
    pub(crate) number: SeqNum,
    /// Bytes of data of each, and of each frame.
    pub(crate) segment: u32,
    pub(crate) frame: usize,
    /// Segments that may leave without a question.
    pub(crate) left: u32,
    /// Segments that have left, and of which the connection does not know.
    pub(crate) untold: u32,
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
    pub(crate) fn keep(
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
    pub(crate) fn write<const TCP: usize>(
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
pub(crate) const BEHIND_STATIONS: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
pub(crate) const BEHIND_NONE: usize = Ipv4Header::LENGTH;
