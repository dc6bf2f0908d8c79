//! The floor: the time that the bytes of a transfer take without a protocol, for comparison with
//! TCP.

use linerate_units::Duration;

/// One measured transfer without TCP (the floor), with which TCP is compared. It uses the same
/// threads as a TCP transfer, and copies and checksums each byte as often. It goes through the same
/// link or, in place of the loopback device, through a socket pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Number of bytes transferred.
    pub bytes: u64,
    /// Time from the first write to the last read.
    pub time: Duration,
    /// A description of the transfer for reports: how often each byte was copied and checksummed,
    /// and through which channel it went.
    pub how: String,
}
