//! A reset (RFC 9293 §3.5.2): for a connection that ends, and for segments that belong to none.

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
    /// Bytes of the longest reset there is.
    pub const LONGEST: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

    /// A reset of a connection whose variables these are.
    pub(crate) const fn of(nxt: SeqNum, rcv_nxt: SeqNum, timestamps: Option<Timestamps>) -> Self {
        Self { seq: nxt, ack: Some(rcv_nxt), timestamps }
    }

    /// The answer to a segment that acknowledges what was never sent: `<SEQ=SEG.ACK><CTL=RST>`.
    pub(crate) fn answering_ack(segment: &Segment<'_>) -> Self {
        Self { seq: segment.ack, ack: None, timestamps: Self::echo(segment) }
    }

    /// The answer to a segment that belongs to no connection (group 1 of §3.5.2).
    pub(crate) fn answering(segment: &Segment<'_>) -> Self {
        if segment.flags().contains(TcpFlags::ACK) {
            return Self::answering_ack(segment);
        }
        let ack = segment.seq + segment.sequence_length();
        Self { seq: SeqNum::new(0), ack: Some(ack), timestamps: Self::echo(segment) }
    }

    /// The timestamps of a reset that `segment` is the cause of: its own echoed, and none of ours
    /// (RFC 7323 §5.2).
    pub(crate) fn echo(segment: &Segment<'_>) -> Option<Timestamps> {
        segment.timestamps().map(|last_received| Timestamps { value: 0, echo: last_received.value })
    }

    /// Writes the segment to the start of `bytes`, with ports and checksum left zero.
    ///
    /// # Panics
    /// If `bytes` has no room for it: [`Reset::LONGEST`] always suffice.
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
