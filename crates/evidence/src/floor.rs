//! The floor: the time of a transfer without a protocol, for comparison with TCP.

use linerate_units::Duration;

/// One transfer without TCP, over the same link, with the same threads, copies and checksums.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Number of bytes transferred.
    pub bytes: u64,
    /// Time from the first write to the last read.
    pub time: Duration,
    /// A description of the transfer: how often each byte was copied and checksummed, and the
    /// channel.
    pub how: String,
}
