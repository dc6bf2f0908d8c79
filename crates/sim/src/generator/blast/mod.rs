//! Bulk transfer by blasts, as in the V kernel (Carter and Zwaenepoel 1989). A blast is a number of
//! frames back to back, and the receiver sends one acknowledgement for all of them. A blast that is
//! not acknowledged is repeated.

mod receiver;
mod sender;

pub(crate) use receiver::BlastReceiver;
pub(crate) use sender::BlastSender;

use super::{FrameCosts, Header};
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// EtherType of blast frames: IEEE 802 local experimental EtherType 2.
const KIND: u16 = 0x88b6;
/// Length of the Ethernet header and the V kernel's headers in bytes. The V kernel's headers are as
/// long as the headers of VMTP (RFC 1045).
const HEADERS: usize = 14 + 64;
/// Maximum number of frames in a blast. The receiver notes the frames that have arrived in a bitmap
/// of this size.
const MOST_FRAMES: u64 = 64;

/// Upper limit of the configured number of data bytes in a frame.
const MOST_DATA: u64 = 65_000;

/// Parameters of a blast transfer, which sender and receiver share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlastParameters {
    costs: FrameCosts,
    bytes: u64,
    /// Number of data bytes in each frame.
    data: usize,
    /// Number of frames in each blast; the final blast may have fewer.
    frames: u64,
    /// Time from the end of a blast until the sender repeats it, if it is not acknowledged.
    timeout: Span,
}

impl BlastParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            costs: FrameCosts::read(section)?,
            bytes: section.count_within("bytes", 1..=u64::MAX)?,
            data: section.size_within("data", 1..=MOST_DATA)?,
            frames: section.count_within("frames", 1..=MOST_FRAMES)?,
            timeout: section.pause("timeout")?,
        })
    }

    /// Returns the length in bytes of the longest frame that sender or receiver transmits.
    pub(crate) const fn longest(&self) -> usize {
        HEADERS + self.data
    }

    /// Returns the number of frames of the whole transfer.
    const fn all(&self) -> u64 {
        self.bytes.div_ceil(self.data as u64)
    }

    /// Returns the number of frames in blast number `blast`, or zero if the transfer has fewer
    /// blasts.
    fn of_blast(&self, blast: u32) -> u64 {
        self.all().saturating_sub(u64::from(blast) * self.frames).min(self.frames)
    }
}

/// Parses the header of a blast frame that is addressed to the NIC with this number. Returns `None`
/// for any other frame.
fn read(frame: &[u8], number: usize) -> Option<Header> {
    Header::read(frame).filter(|header| header.kind == KIND && header.to == number)
}
