//! The header template of a batch. The segments of a batch are consecutive segments of one
//! connection, whose headers differ only in a few fields, such as sequence number and checksum. A
//! host needs only one such template, because only one connection sends at a time.
//!
//! While a link takes the frames of a batch, no other method of the host can be called. Therefore
//! the state of the connection is updated only once for all frames, when the batch is committed.

use super::TcpSocket;
use linerate_tcp::{Batch, BatchContent, Transmit};
use linerate_wire::{EthernetHeader, Ipv4Header, Ipv6Header, SeqNum, Sum, TcpHeader, TcpOptions};

/// Maximum length in bytes of a TCP header whose only option is timestamps.
const LONGEST_TCP: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
/// Maximum length of a template in bytes: an Ethernet, an IPv6 and a TCP header of maximum length.
const LONGEST: usize = EthernetHeader::LENGTH + Ipv6Header::LENGTH + LONGEST_TCP;

/// Offsets of the sequence number, acknowledgement number and window in the TCP header, in bytes.
const SEQ: usize = 4;
const ACK: usize = 8;
const WINDOW: usize = 14;

/// Offsets of the TCP header in a frame, in bytes, with and without an Ethernet header and for both
/// IP versions.
pub(crate) const TCP_OFFSET_ETHERNET: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
pub(crate) const TCP_OFFSET_IP: usize = Ipv4Header::LENGTH;
pub(crate) const TCP_OFFSET_ETHERNET_IPV6: usize = EthernetHeader::LENGTH + Ipv6Header::LENGTH;
pub(crate) const TCP_OFFSET_IPV6: usize = Ipv6Header::LENGTH;

/// The header template of a batch.
#[derive(Debug)]
pub(crate) struct BatchHeaders {
    /// Index of the connection that sends the batch; `None` if there is no batch to continue.
    pub(crate) owner: Option<u32>,
    /// The segments that can be sent next without calling the connection.
    next: Batch,
    /// All headers of a frame, including the TCP options. `write` copies them for each segment, and
    /// then sets the fields that differ. For a batch of data, these are the checksum and the
    /// sequence number. For a batch of acknowledgements, they are the checksum, the acknowledgement
    /// number and the window.
    bytes: [u8; LONGEST],
    /// Length of all headers in bytes.
    length: usize,
    /// Offset of the TCP header in a frame, in bytes.
    pub(crate) tcp: usize,
    /// Contribution of the pseudo-header and the TCP header to the checksum of each segment, before
    /// folding. It excludes the fields that `write` overwrites, which are taken as zero.
    sum: Sum,
    /// Length of each frame in bytes.
    frame: usize,
    /// Number of segments that were sent but not yet committed to the connection.
    uncommitted: u32,
}

/// The sent frames of a batch, which must be committed to their connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFrames {
    pub(crate) content: BatchContent,
    /// Number of frames sent.
    pub(crate) count: u32,
    /// Length of each frame in bytes.
    pub(crate) length: usize,
}

impl BatchHeaders {
    /// Creates an empty template, which belongs to no batch.
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

    /// Returns whether the next frame can be sent without calling the connection.
    #[inline]
    pub(crate) const fn has_next(&self) -> bool {
        self.next.count > 0
    }

    /// Returns whether a batch is in progress: further frames can continue it, or sent frames are
    /// not yet committed.
    #[inline]
    pub(crate) const fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns whether the batch needs no further attention: all sent frames have been committed to
    /// the connection, and no further frame can be sent.
    pub(crate) const fn is_committed(&self) -> bool {
        self.uncommitted == 0 && self.next.count == 0
    }

    /// Ends the batch, so that no frame can continue it.
    pub(crate) const fn forget(&mut self) {
        (self.owner, self.next.count) = (None, 0);
    }

    /// Begins a batch whose first segment, `sent`, the connection at `index` has just written.
    /// `frame` is the frame of this segment, from which the headers are copied. Its link header has
    /// `medium` bytes. `batch` describes the segments that follow.
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

    /// Sets the segments that follow in the batch, which can be sent without calling the
    /// connection.
    pub(crate) fn set(&mut self, batch: Batch) {
        let data = if batch.content == BatchContent::Data { batch.step as usize } else { 0 };
        (self.next, self.frame) = (batch, self.length + data);
    }

    /// Limits the number of segments that still follow in the batch.
    pub(crate) fn limit(&mut self, segments: u32) {
        self.next.count = self.next.count.min(segments);
    }

    /// Returns the length of the TCP header in bytes.
    pub(crate) const fn header(&self) -> usize {
        self.length - self.tcp
    }

    /// Stops the batch from sending further frames. Returns the frames that were sent since the
    /// most recent commit, which the caller must commit to the connection.
    pub(crate) const fn take_sent(&mut self) -> SentFrames {
        self.next.count = 0;
        let count = core::mem::replace(&mut self.uncommitted, 0);
        SentFrames { content: self.next.content, count, length: self.frame }
    }

    /// Writes the next frame, whose TCP header is at the offset `TCP`. `data` copies the payload
    /// that begins at a given sequence number, and returns the contribution of this payload to the
    /// checksum. Returns the length of the frame in bytes, or `None` if `frame` is too short.
    #[inline(always)]
    pub(crate) fn write<const TCP: usize>(
        &mut self,
        data: impl FnOnce(SeqNum, &mut [u8]) -> Sum,
        frame: &mut [u8],
    ) -> Option<usize> {
        // A copy is faster if its length is constant, so the maximum length of the headers is
        // copied. If the headers are shorter, the payload overwrites the excess bytes afterwards.
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
