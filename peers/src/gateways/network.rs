//! The network namespaces of the comparison: one for clients, one for the gateway, and one for the
//! server. A veth pair connects the gateway with the server.

use linerate_link::KernelInterface;
use linerate_link::namespace::Network;
use std::fs;
use std::net::Ipv4Addr;

/// Address of the gateway's end of the veth pair to the server.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
/// Address of a router that does not exist: the next hop of the default route that pasta needs.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 254);
/// Address of the server at the far end of the veth pair.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);

/// The networks that surround one gateway: that of the clients and that of the server. They are
/// deleted when this value is dropped. The gateway itself runs in the network namespace of this
/// process.
#[derive(Debug)]
pub struct TestNetwork {
    /// Gateway's end of the veth pair to the server; `None` while this value is being dropped.
    near: Option<KernelInterface>,
    /// Network namespace of the clients, which reach the server only through the gateway.
    pub client: Network,
    /// Network namespace of the server.
    pub server: Network,
}

impl TestNetwork {
    /// Creates the network namespaces of the client and of the server, and the veth pair to the
    /// server.
    ///
    /// # Errors
    /// A message that says which step has failed.
    pub fn new() -> Result<Self, String> {
        let (near, server) =
            Network::behind_veth(["left", "right"], FAR).map_err(|error| error.to_string())?;
        near.add_address(NEAR, 24).map_err(|error| error.to_string())?;
        // The namespace of this process needs a default route, because pasta copies the route to
        // its clients. No packet takes this route, so its router need not exist.
        near.add_route(Ipv4Addr::UNSPECIFIED, 0, Some(ROUTER.into()))
            .map_err(|error| error.to_string())?;
        let client = Network::new().map_err(|error| error.to_string())?;
        pin_reno()?;
        server.run(pin_reno)?;
        client.run(pin_reno)?;
        Ok(Self { near: Some(near), client, server })
    }
}

impl Drop for TestNetwork {
    /// Deletes the veth pair at once. The kernel would delete it only some time after the
    /// namespaces. The next test network uses the same interface names, and could not create its
    /// veth pair until then.
    fn drop(&mut self) {
        if let Some(near) = self.near.take() {
            let _ = near.delete();
        }
    }
}

/// Selects Reno as congestion control in the network namespace of the calling thread. With BBR,
/// which is paced, the processor time would depend on the timers of the machine.
///
/// # Errors
/// A message that the kernel does not permit Reno.
pub fn pin_reno() -> Result<(), String> {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    fs::write(path, "reno").map_err(|error| format!("{path} cannot be written: {error}"))
}
