//! The parameters of a series of echo requests.

use linerate_units::Duration;
use std::net::IpAddr;

/// The parameters of a series of echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoParameters {
    /// The destination.
    pub destination: IpAddr,
    /// Number of requests; `None` for no limit.
    pub count: Option<u64>,
    /// Time between requests. With zero, the next request is sent as soon as the reply to the
    /// previous one arrives, or its timeout has passed.
    pub interval: Duration,
    /// Maximum time to wait for a reply.
    pub timeout: Duration,
    /// Number of data bytes in each request.
    pub size: usize,
    /// ICMP identifier, which distinguishes these requests from those of other programs.
    pub identifier: u16,
}
