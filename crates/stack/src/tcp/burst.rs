//! The header template of a burst: each frame after the first differs only in its sequence number
//! and checksum. The frames of an ACK batch differ in acknowledgement number, window and checksum.
//! One template is enough for the host, because one connection sends at a time.
//!
//! While a link takes frame after frame, nothing else can happen to the connection. So its state is
//! updated once for all frames, when the burst is committed.

use super::TcpSocket;
use linerate_tcp::{Acknowledgements, Transmit};
use linerate_wire::{EthernetHeader, Ipv4Header, SeqNum, Sum, TcpHeader, TcpOptions};

/// The longest headers of a segment without options other than timestamps.
const LONGEST: usize =
    EthernetHeader::LENGTH + Ipv4Header::LENGTH + TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// Offsets in the TCP header.
const SEQ: usize = 4;
const ACK: usize = 8;
const WINDOW: usize = 14;

/// The header template of a burst.
#[derive(Debug)]
pub(crate) struct BurstHeaders {
    /// The connection; `None` without a burst that can continue.
    pub(crate) owner: Option<u32>,
    /// For an ACK batch, its parameters; `None` for data.
    pub(crate) ack_batch: Option<Acknowledgements>,
    /// The headers from the link header to the TCP options. Number, checksum, and in an ACK batch
    /// the window are overwritten for each segment.
    bytes: [u8; LONGEST],
    pub(crate) length: usize,
    /// The offset of the TCP header.
    pub(crate) tcp: usize,
    /// The sum of the pseudo-header and the TCP header, without the fields that are overwritten.
    sum: Sum,
    /// SEG.SEQ of the next segment; in an ACK batch, SEG.ACK.
    pub(crate) number: SeqNum,
    /// Bytes of data in each segment.
    pub(crate) segment: u32,
    /// Bytes of each frame.
    pub(crate) frame: usize,
    /// Segments that can still be sent without a new decision.
    pub(crate) left: u32,
    /// Segments that were sent and not committed to the connection.
    pub(crate) uncommitted: u32,
}

impl BurstHeaders {
    /// Creates the template without a burst.
    pub(crate) fn new() -> Self {
        Self {
            owner: None,
            ack_batch: None,
            bytes: [0; LONGEST],
            length: 0,
            tcp: 0,
            sum: Sum::default(),
            number: SeqNum::new(0),
            segment: 0,
            frame: 0,
            left: 0,
            uncommitted: 0,
        }
    }

    /// Can the next frame be sent without a new decision?
    #[inline]
    pub(crate) const fn has_next(&self) -> bool {
        self.left > 0
    }

    /// Is there a burst that can continue, or that has uncommitted frames?
    #[inline]
    pub(crate) const fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Are all frames committed?
    pub(crate) const fn is_committed(&self) -> bool {
        self.uncommitted == 0 && self.left == 0
    }

    /// Ends the burst.
    pub(crate) const fn forget(&mut self) {
        (self.owner, self.ack_batch, self.left) = (None, None, 0);
    }

    /// Begins a burst after a segment that was `sent` in `frame`, of data or of acknowledgements.
    pub(crate) fn keep(
        &mut self,
        index: u32,
        socket: &TcpSocket,
        ack_batch: Option<Acknowledgements>,
        sent: &Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let tcp = medium + Ipv4Header::LENGTH;
        let length = tcp + sent.header;
        let Some(bytes) = self.bytes.get_mut(..length) else { return };
        bytes.copy_from_slice(&frame[..length]);
        let rest = &mut bytes[tcp..];
        if ack_batch.is_some() {
            rest[ACK..ACK + 4].fill(0);
            rest[WINDOW..WINDOW + 2].fill(0);
        } else {
            rest[SEQ..SEQ + 4].fill(0);
        }
        rest[TcpHeader::CHECKSUM_OFFSET..TcpHeader::CHECKSUM_OFFSET + 2].fill(0);
        self.sum = socket.headers.sum_of(sent.length, &rest[SEQ..]);
        (self.owner, self.ack_batch, self.length, self.tcp) = (Some(index), ack_batch, length, tcp);
    }

    /// Writes the next frame, whose TCP header is at offset `TCP`. `data` copies the payload of the
    /// segment with a given number, and returns its sum. Returns the length of the frame; `None` if
    /// the frame has no room.
    #[inline(always)]
    pub(crate) fn write<const TCP: usize>(
        &mut self,
        data: impl FnOnce(SeqNum, &mut [u8]) -> Sum,
        frame: &mut [u8],
    ) -> Option<usize> {
        // The template has a fixed length, so the payload overwrites its unused end.
        *frame.first_chunk_mut()? = self.bytes;
        let payload = frame.get_mut(self.length..self.frame)?;
        let (place, step, sum) = match self.ack_batch {
            None => (SEQ, self.segment, self.sum + data(self.number, payload)),
            Some(ack_batch) => {
                let window = ack_batch.window(self.number);
                let place = TCP + WINDOW;
                frame.first_chunk_mut::<LONGEST>()?[place..place + 2]
                    .copy_from_slice(&window.to_be_bytes());
                (ACK, ack_batch.step, self.sum.add_u16(window))
            }
        };
        let number = self.number.number();
        let (place, at) = (TCP + place, TCP + TcpHeader::CHECKSUM_OFFSET);
        let headers = frame.first_chunk_mut::<LONGEST>()?;
        headers[place..place + 4].copy_from_slice(&number.to_be_bytes());
        headers[at..at + 2].copy_from_slice(&sum.add_u32(number).finish().to_be_bytes());
        self.number += step;
        self.left -= 1;
        self.uncommitted += 1;
        Some(self.frame)
    }
}

/// Offsets of the TCP header on Ethernet, and on links without a link header.
pub(crate) const TCP_OFFSET_ETHERNET: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
pub(crate) const TCP_OFFSET_IP: usize = Ipv4Header::LENGTH;
