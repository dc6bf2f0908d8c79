//! One transfer over a bench's link without a protocol.

use linerate_units::Duration;

/// One transfer over a bench's link without a protocol: the same link, threads and copies, no TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Bytes carried.
    pub bytes: u64,
    /// Time from the first write to the last read.
    pub time: Duration,
    /// How each byte was carried: the number of copies and checksums, and the channel.
    pub how: String,
}
