//! Resets (RFC 9293 §3.5.2). They are sent when a connection is aborted. They also answer segments
//! that belong to no connection, and acknowledgements of data that was never sent.

use super::build::write_with_options;
use super::{Kind, Transmit};
use linerate_wire::{Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// The contents of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    seq: SeqNum,
    ack: Option<SeqNum>,
    timestamps: Option<Timestamps>,
}

impl Reset {
    /// The maximum length of a reset in bytes.
    pub const LONGEST: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

    /// Creates a reset that aborts a connection. `nxt` is the sequence number after the sent data,
    /// and `rcv_nxt` is RCV.NXT. `timestamps` is `None` if the connection does not use timestamps.
    pub(crate) const fn of(nxt: SeqNum, rcv_nxt: SeqNum, timestamps: Option<Timestamps>) -> Self {
        Self { seq: nxt, ack: Some(rcv_nxt), timestamps }
    }

    /// Creates the answer to a segment that acknowledges data which was never sent:
    /// `<SEQ=SEG.ACK><CTL=RST>`.
    pub(crate) fn answering_ack(segment: &Segment<'_>) -> Self {
        Self { seq: segment.ack, ack: None, timestamps: Self::echo(segment) }
    }

    /// Creates the answer to a segment that belongs to no connection (RFC 9293 §3.5.2, group 1).
    pub(crate) fn answering(segment: &Segment<'_>) -> Self {
        if segment.flags().contains(TcpFlags::ACK) {
            return Self::answering_ack(segment);
        }
        let ack = segment.seq + segment.sequence_length();
        Self { seq: SeqNum::new(0), ack: Some(ack), timestamps: Self::echo(segment) }
    }

    /// Returns the timestamps for a reset in answer to `segment`. TSecr is the TSval of the
    /// segment, and TSval is zero (RFC 7323 §5.2).
    pub(crate) fn echo(segment: &Segment<'_>) -> Option<Timestamps> {
        segment.timestamps().map(|last_received| Timestamps { value: 0, echo: last_received.value })
    }

    /// Writes the reset to the start of `bytes`, with zero for ports and checksum.
    ///
    /// # Panics
    /// If `bytes` is shorter than the reset, which has at most [`Reset::LONGEST`] bytes.
    #[must_use]
    pub fn emit(&self, bytes: &mut [u8]) -> Transmit {
        let ack_flag = if self.ack.is_some() { TcpFlags::ACK } else { TcpFlags::empty() };
        let header = TcpHeader {
            seq: self.seq,
            ack: self.ack.unwrap_or_default(),
            flags: TcpFlags::RST | ack_flag,
            ..TcpHeader::default()
        };
        let options = TcpOptions { timestamps: self.timestamps, ..TcpOptions::default() };
        let (length, sum) = write_with_options(&header, &options, bytes);
        Transmit { kind: Kind::Reset, ..Transmit::without_data(length, sum) }
    }
}
