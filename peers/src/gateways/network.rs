//! The namespaces of the comparison: clients, the gateway, and a server at the far end of a cable.

use linerate_link::KernelInterface;
use linerate_link::namespace::Network;
use std::fs;
use std::net::Ipv4Addr;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 254);
/// The address of the server.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);

/// The networks around one gateway, which are deleted when this value is dropped. The gateway
/// itself runs in the network of this process.
#[derive(Debug)]
pub struct Laboratory {
    /// Near end of the cable to the server; `None` while this value is being dropped.
    near: Option<KernelInterface>,
    pub client: Network,
    pub server: Network,
}

impl Laboratory {
    /// Creates the networks of client and server.
    ///
    /// # Errors
    /// A message about the failure.
    pub fn new() -> Result<Self, String> {
        let (near, server) =
            Network::behind_cable(["left", "right"], FAR).map_err(|error| error.to_string())?;
        near.add_address(NEAR, 24).map_err(|error| error.to_string())?;
        // pasta copies the default route to its clients, so there must be one. Its router need not
        // exist.
        near.add_route(Ipv4Addr::UNSPECIFIED, 0, Some(ROUTER.into()))
            .map_err(|error| error.to_string())?;
        let client = Network::new().map_err(|error| error.to_string())?;
        pin_reno()?;
        server.run(pin_reno)?;
        client.run(pin_reno)?;
        Ok(Self { near: Some(near), client, server })
    }
}

impl Drop for Laboratory {
    /// Deletes the cable at once; the kernel would delete it some time later.
    fn drop(&mut self) {
        if let Some(near) = self.near.take() {
            let _ = near.delete();
        }
    }
}

/// Selects Reno in the network of the calling thread. With BBR, the cost of pacing would depend on
/// the machine.
///
/// # Errors
/// A message, if the kernel refuses.
pub fn pin_reno() -> Result<(), String> {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    fs::write(path, "reno").map_err(|error| format!("{path} cannot be written: {error}"))
}
