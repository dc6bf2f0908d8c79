//! Segments whose data stays in the send buffer instead of being copied to the frame, for links
//! with scatter-gather.

use crate::Connection;
use linerate_wire::SeqNum;

/// The minimum length, in bytes, of data that is sent without a copy. For shorter data, a copy is
/// faster.
const MIN_LENGTH: usize = 2_048;

/// The range of the send buffer that contains the data of a sent segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyRange {
    pub(super) seq: SeqNum,
    pub(super) length: u32,
}

impl ZeroCopyRange {
    /// Returns the number of bytes in the range.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length as usize
    }
}

impl Connection {
    /// Whether scatter-gather is faster than a copy for this data, because the data is long and
    /// lies in at most two contiguous parts of the send buffer.
    pub(super) fn is_worth_zero_copy(&self, seq: SeqNum, length: usize) -> bool {
        length >= MIN_LENGTH && self.sender.buffer.parts(seq, length).is_some()
    }

    pub(crate) fn zero_copy_data(&self, range: ZeroCopyRange) -> [&[u8]; 2] {
        let parts = self.sender.buffer.parts(range.seq, range.length());
        parts.expect("the send buffer contains the data until the next call")
    }
}
