//! The DHCP client without its sockets (RFC 2131): its configuration, its lease, and its states.

pub(crate) mod client;
pub(crate) mod lease;

use crate::dhcp::client::DhcpClient;
use crate::ip::route::Route;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// The configuration of the DHCP client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DhcpConfig {
    /// An address that the host had before. The client requests it first, and discovers other
    /// addresses only if no server confirms it (RFC 2131 §4.4.2).
    pub previous: Option<Ipv4Addr>,
    /// Whether to probe by ARP that no other host has the address before it is used (RFC 2131
    /// §4.4.1). This takes a second. Links without ARP are not probed.
    pub probe: bool,
    /// Whether to wait between one and ten seconds before the first message, so that hosts that
    /// start together do not send together (RFC 2131 §4.4.1).
    pub desynchronize: bool,
}

impl DhcpConfig {
    /// Creates the default configuration: no previous address, with a probe, without the initial
    /// wait.
    #[must_use]
    pub const fn new() -> Self {
        Self { previous: None, probe: true, desynchronize: false }
    }
}

impl Default for DhcpConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The DHCP client of an interface, and the routes that its lease has added.
#[derive(Debug)]
pub(crate) struct DhcpService {
    pub(crate) client: DhcpClient,
    pub(crate) routes: Vec<Route>,
}

impl DhcpService {
    pub(crate) const fn new(client: DhcpClient) -> Self {
        Self { client, routes: Vec::new() }
    }
}
