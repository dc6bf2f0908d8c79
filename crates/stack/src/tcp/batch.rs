//! The header template of a batch of segments that one connection sends: after the first frame,
//! only sequence number and checksum differ. A host needs only one template, because one connection
//! sends at a time.
//!
//! While a link takes one frame after another, no other method of the host can be called. The state
//! of the connection is therefore updated once for all frames, when the batch is committed.

use super::TcpSocket;
use linerate_tcp::{Batch, BatchContent, Transmit};
use linerate_wire::{EthernetHeader, Ipv4Header, Ipv6Header, SeqNum, Sum, TcpHeader, TcpOptions};

/// Maximum length in bytes of a TCP header whose only option is timestamps.
const LONGEST_TCP: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
/// Maximum length of a template in bytes: the link, IP and TCP headers of such a segment.
const LONGEST: usize = EthernetHeader::LENGTH + Ipv6Header::LENGTH + LONGEST_TCP;

/// Offsets of fields in the TCP header.
const SEQ: usize = 4;
const ACK: usize = 8;
const WINDOW: usize = 14;

/// Offsets of the TCP header in a frame with and without an Ethernet header, for both IP versions.
pub(crate) const TCP_OFFSET_ETHERNET: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
pub(crate) const TCP_OFFSET_IP: usize = Ipv4Header::LENGTH;
pub(crate) const TCP_OFFSET_ETHERNET_IPV6: usize = EthernetHeader::LENGTH + Ipv6Header::LENGTH;
pub(crate) const TCP_OFFSET_IPV6: usize = Ipv6Header::LENGTH;

/// The header template of a batch.
#[derive(Debug)]
pub(crate) struct BatchHeaders {
    /// Index of the connection that sends the batch; `None` if there is no batch to continue.
    pub(crate) owner: Option<u32>,
    /// The segments that can be sent next without consulting the connection.
    next: Batch,
    /// All headers of a frame, up to the TCP options. For each segment the sequence number, the
    /// checksum, and in a batch of acknowledgements the window are overwritten.
    bytes: [u8; LONGEST],
    /// Length of all headers in bytes.
    length: usize,
    /// Offset of the TCP header in a frame, in bytes.
    pub(crate) tcp: usize,
    /// Checksum of the pseudo-header and the TCP header, without the fields that are overwritten.
    sum: Sum,
    /// Length of each frame in bytes.
    frame: usize,
    /// Number of segments that were sent and not yet committed to the connection.
    uncommitted: u32,
}

/// Frames of a batch that were sent, to be committed to their connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFrames {
    pub(crate) content: BatchContent,
    /// Number of frames sent.
    pub(crate) count: u32,
    /// Length of each frame in bytes.
    pub(crate) length: usize,
}

impl BatchHeaders {
    /// Creates a template that belongs to no batch.
    pub(crate) fn new() -> Self {
        Self {
            owner: None,
            next: Batch { first: SeqNum::new(0), step: 0, count: 0, content: BatchContent::Data },
            bytes: [0; LONGEST],
            length: 0,
            tcp: 0,
            sum: Sum::default(),
            frame: 0,
            uncommitted: 0,
        }
    }

    /// Returns whether the next frame can be sent without consulting the connection.
    #[inline]
    pub(crate) const fn has_next(&self) -> bool {
        self.next.count > 0
    }

    /// Returns whether the batch can continue, or has frames that are not committed.
    #[inline]
    pub(crate) const fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns whether all sent frames have been committed to the connection.
    pub(crate) const fn is_committed(&self) -> bool {
        self.uncommitted == 0 && self.next.count == 0
    }

    /// Ends the batch, so that no frame can continue it.
    pub(crate) const fn forget(&mut self) {
        (self.owner, self.next.count) = (None, 0);
    }

    /// Begins a batch behind the segment `sent`, whose frame is `frame`.
    pub(crate) fn begin(
        &mut self,
        index: u32,
        socket: &TcpSocket,
        batch: Batch,
        sent: &Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let tcp = medium + socket.headers.ip_length();
        let length = tcp + sent.header;
        let Some(bytes) = self.bytes.get_mut(..length) else { return };
        bytes.copy_from_slice(&frame[..length]);
        let rest = &mut bytes[tcp..];
        match batch.content {
            BatchContent::Data => rest[SEQ..SEQ + 4].fill(0),
            BatchContent::Acks(_) => {
                rest[ACK..ACK + 4].fill(0);
                rest[WINDOW..WINDOW + 2].fill(0);
            }
        }
        rest[TcpHeader::CHECKSUM_OFFSET..TcpHeader::CHECKSUM_OFFSET + 2].fill(0);
        self.sum = socket.headers.sum_of(sent.length, &rest[SEQ..]);
        (self.owner, self.length, self.tcp) = (Some(index), length, tcp);
        self.set(batch);
    }

    /// Replaces the segments that can be sent next.
    pub(crate) fn set(&mut self, batch: Batch) {
        let data = if batch.content == BatchContent::Data { batch.step as usize } else { 0 };
        (self.next, self.frame) = (batch, self.length + data);
    }

    /// Limits the number of segments that can be sent next.
    pub(crate) fn limit(&mut self, segments: u32) {
        self.next.count = self.next.count.min(segments);
    }

    /// Returns the length of the TCP header in bytes.
    pub(crate) const fn header(&self) -> usize {
        self.length - self.tcp
    }

    /// Ends sending. Returns the frames that must be committed to the connection.
    pub(crate) const fn take_sent(&mut self) -> SentFrames {
        self.next.count = 0;
        let count = core::mem::replace(&mut self.uncommitted, 0);
        SentFrames { content: self.next.content, count, length: self.frame }
    }

    /// Writes the next frame, whose TCP header is at offset `TCP`. `data` copies the payload that
    /// begins at a sequence number, and returns its checksum. Returns the length of the frame, or
    /// `None` if `frame` is too short.
    #[inline(always)]
    pub(crate) fn write<const TCP: usize>(
        &mut self,
        data: impl FnOnce(SeqNum, &mut [u8]) -> Sum,
        frame: &mut [u8],
    ) -> Option<usize> {
        // Copies a constant number of bytes, which is faster. The payload overwrites those behind
        // the headers.
        let longest = TCP + LONGEST_TCP;
        frame.get_mut(..longest)?.copy_from_slice(self.bytes.get(..longest)?);
        let payload = frame.get_mut(self.length..self.frame)?;
        let Batch { first, step, .. } = self.next;
        let (place, sum) = match self.next.content {
            BatchContent::Data => (SEQ, self.sum + data(first, payload)),
            BatchContent::Acks(window) => {
                let window = window.at(first);
                let place = TCP + WINDOW;
                frame.get_mut(..longest)?[place..place + 2].copy_from_slice(&window.to_be_bytes());
                (ACK, self.sum.add_u16(window))
            }
        };
        let number = first.number();
        let (place, at) = (TCP + place, TCP + TcpHeader::CHECKSUM_OFFSET);
        let headers = frame.get_mut(..longest)?;
        headers[place..place + 4].copy_from_slice(&number.to_be_bytes());
        headers[at..at + 2].copy_from_slice(&sum.add_u32(number).finish().to_be_bytes());
        self.next.first += step;
        self.next.count -= 1;
        self.uncommitted += 1;
        Some(self.frame)
    }
}
