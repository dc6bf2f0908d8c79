//! The floor: the time that the bytes of a transfer take without a protocol. The throughput of TCP
//! is compared with it.

use linerate_units::Duration;

/// One measured transfer without TCP (the floor), with which TCP is compared. It goes between the
/// same two threads and through the same link as a TCP transfer, and copies and checksums each byte
/// as often. For TCP over the loopback device, a socket pair takes the place of the link.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Number of bytes transferred.
    pub bytes: u64,
    /// Time from the beginning of the first write to the end of the final read.
    pub time: Duration,
    /// A description of the transfer for reports: how often each byte was copied and checksummed,
    /// and through which channel it went.
    pub how: String,
}
