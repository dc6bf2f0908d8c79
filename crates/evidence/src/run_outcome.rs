//! The result of one run, as a bench reports it.

use crate::counters::Counters;
use linerate_units::Duration;

/// The result of one run, as a bench reports it. A run is one transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// Number of bytes that the receiving program read.
    pub bytes: u64,
    /// Time from the beginning of the first write until the receiving program had read all bytes.
    pub time: Duration,
    /// Whether all requested bytes arrived. If not, the run exceeded its maximum duration and was
    /// cut short.
    pub complete: bool,
    /// Whether the received bytes matched the expected pattern; `None` if they were not compared.
    pub verified: Option<bool>,
    /// Size of the send buffer that the system granted, in bytes.
    pub send_granted: u64,
    /// Size of the receive buffer that the system granted, in bytes.
    pub receive_granted: u64,
    /// Counters of the sending and the receiving end.
    pub counters: Counters,
}
