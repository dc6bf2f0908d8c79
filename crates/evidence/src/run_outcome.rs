//! The result of one transfer.

use crate::counters::Counters;
use linerate_units::Duration;

/// The result of one transfer, as a bench reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// Bytes that the sink has read.
    pub bytes: u64,
    /// Time from the first write until the sink had read the last of `bytes`.
    pub time: Duration,
    /// Whether all bytes of the request arrived; if not, the run was cut short by its time limit.
    pub complete: bool,
    /// Whether the bytes matched the pattern; `None` if they were not compared.
    pub verified: Option<bool>,
    /// The sender's buffer as granted, in bytes.
    pub send_granted: u64,
    /// The receiver's buffer as granted, in bytes.
    pub receive_granted: u64,
    /// Counters of both ends.
    pub counters: Counters,
}
