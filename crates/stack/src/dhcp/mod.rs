//! The DHCP client (RFC 2131): its configuration, its lease and its state machine. The module
//! `stack::dhcp` sends and receives the messages.

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
    /// An address that the host had before, if any. The client requests this address first, and
    /// discovers other addresses only if no server confirms this address (RFC 2131 §4.4.2).
    pub previous: Option<Ipv4Addr>,
    /// Whether the client checks by an ARP probe that no other host has the leased address, before
    /// the host uses the address (RFC 2131 §4.4.1). The probe takes a second. On links without ARP,
    /// the client sends no probe.
    pub probe: bool,
    /// Whether the client waits between one and ten seconds before its first message. This prevents
    /// many hosts that start together from sending at once (RFC 2131 §4.4.1).
    pub desynchronize: bool,
}

impl DhcpConfig {
    /// Creates the default configuration: no previous address, an ARP probe, and no wait before the
    /// first message.
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
