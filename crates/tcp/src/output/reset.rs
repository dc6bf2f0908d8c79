//! A reset (RFC 9293 §3.5.2): for a connection that ends, and for segments that belong to none.

use super::{Kind, Transmit};
use linerate_wire::{Ecn, Segment, SeqNum, Sum, TcpFlags, TcpHeader};

/// What a reset says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    seq: SeqNum,
    ack: Option<SeqNum>,
}

impl Reset {
    /// A reset of a connection whose variables these are.
    pub(crate) const fn of(nxt: SeqNum, rcv_nxt: SeqNum) -> Self {
        Self { seq: nxt, ack: Some(rcv_nxt) }
    }

    /// The answer to an acknowledgement of something that was never sent: `<SEQ=SEG.ACK><CTL=RST>`.
    pub(crate) const fn answering_ack(ack: SeqNum) -> Self {
        Self { seq: ack, ack: None }
    }

    /// The answer to a segment that belongs to no connection (group 1 of §3.5.2).
    pub(crate) fn answering(segment: &Segment<'_>) -> Self {
        if segment.flags().contains(TcpFlags::ACK) {
            Self::answering_ack(segment.ack)
        } else {
            Self { seq: SeqNum::new(0), ack: Some(segment.seq + segment.sequence_length()) }
        }
    }

    /// Writes the segment to the start of `bytes`, with ports and checksum left zero.
    ///
    /// # Panics
    /// If `bytes` has no room for a header of twenty bytes.
    #[must_use]
    pub fn emit(&self, bytes: &mut [u8]) -> Transmit {
        let ack_flag = if self.ack.is_some() { TcpFlags::ACK } else { TcpFlags::empty() };
        let header = TcpHeader {
            seq: self.seq,
            ack: self.ack.unwrap_or_default(),
            flags: TcpFlags::RST | ack_flag,
            ..TcpHeader::default()
        };
        header.emit(0, bytes);
        Transmit {
            length: TcpHeader::LENGTH,
            sum: Sum::of(&bytes[..TcpHeader::LENGTH]),
            ecn: Ecn::NotEct,
            header: TcpHeader::LENGTH,
            cut: None,
            lent: None,
            kind: Kind::Reset,
        }
    }
}
