//! A bulk transfer by blasts, as V's kernel did it: so many frames one behind the other, without a word between them,
//! then one acknowledgement for all (Carter and Zwaenepoel 1989). A blast that is not acknowledged is sent again.

mod receiver;
mod sender;

pub(crate) use receiver::BlastReceiver;
pub(crate) use sender::BlastSender;

use super::{Header, Labour};
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// An EtherType for tests (IEEE 802 local experimental).
const KIND: u16 = 0x88b6;
/// Ethernet, and the headers of V's kernel, which are as long as those of VMTP (RFC 1045).
const HEADERS: usize = 14 + 64;
/// A blast has no more frames than bits here.
const MOST_FRAMES: u64 = 64;

/// Bytes of data of a frame.
const MOST_DATA: u64 = 65_000;

/// What both ends know of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlastParameters {
    labour: Labour,
    bytes: u64,
    /// Bytes of data in a frame.
    data: usize,
    /// Frames of a blast.
    frames: u64,
    /// How long an acknowledgement is waited for.
    timeout: Span,
}

impl BlastParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            labour: Labour::read(section)?,
            bytes: section.count_within("bytes", 1..=u64::MAX)?,
            data: section.size_within("data", 1..=MOST_DATA)?,
            frames: section.count_within("frames", 1..=MOST_FRAMES)?,
            timeout: section.pause("timeout")?,
        })
    }

    /// Bytes of the longest frame of either end.
    pub(crate) const fn longest(&self) -> usize {
        HEADERS + self.data
    }

    /// Frames of the whole transfer.
    const fn all(&self) -> u64 {
        self.bytes.div_ceil(self.data as u64)
    }

    /// Frames of the blast with this number.
    fn of_blast(&self, blast: u32) -> u64 {
        self.all().saturating_sub(u64::from(blast) * self.frames).min(self.frames)
    }
}

/// The header of a frame of this kind for this station.
fn read(frame: &[u8], number: usize) -> Option<Header> {
    Header::read(frame).filter(|header| header.kind == KIND && header.to == number)
}
