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
    /// Time between requests; zero sends the next request after each reply.
    pub interval: Duration,
    /// Time to wait for a reply.
    pub timeout: Duration,
    /// Bytes of data in each request.
    pub size: usize,
    /// The ICMP identifier, which distinguishes these requests from others.
    pub identifier: u16,
}
