//! What is to be asked.

use linerate_units::Duration;
use std::net::Ipv4Addr;

/// What is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    /// Whom.
    pub destination: Ipv4Addr,
    /// How often; none until it is interrupted.
    pub count: Option<u64>,
    /// Time from one request to the next; zero asks again as soon as there is an answer.
    pub interval: Duration,
    /// How long an answer is awaited.
    pub patience: Duration,
    /// Bytes of data in each request.
    pub size: usize,
    /// What tells these requests from others'.
    pub identifier: u16,
}
