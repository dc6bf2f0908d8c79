//! The result of one transfer.

use crate::counters::Counters;
use linerate_units::Duration;

/// The result of one transfer, as a bench reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// Number of bytes that the receiving program read.
    pub bytes: u64,
    /// Time from the first write until the receiving program had read the last of `bytes`.
    pub time: Duration,
    /// Whether all requested bytes arrived. If not, the time limit cut the run short.
    pub complete: bool,
    /// Whether the bytes matched the expected pattern; `None` if they were not compared.
    pub verified: Option<bool>,
    /// The size of the sender's buffer that the system granted, in bytes.
    pub send_granted: u64,
    /// The size of the receiver's buffer that the system granted, in bytes.
    pub receive_granted: u64,
    /// Counters of both ends.
    pub counters: Counters,
}
