//! A veth pair (a pair of veth interfaces) between a contender's stack and the kernel's TCP,
//! which is in another network namespace.

use crate::build::program;
use crate::kernel::choose_control;
use crate::tap::ends::sentence;
use linerate_link::KernelInterface;
use linerate_link::namespace::Network;
use std::net::Ipv4Addr;

/// Name of the interface at the end of the veth pair where the contender's stack is.
pub const NEAR: &str = "near";
/// The offloads that [`set_up`] switches on or off, by their names in `ethtool -K`.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];

/// Creates a veth pair with all offloads or with none. Returns the network namespace of the far
/// end, where the kernel has the address `kernel`.
///
/// # Errors
/// A message that says which step this machine does not permit.
pub fn to_kernel(kernel: Ipv4Addr, offloads: bool) -> Result<Network, String> {
    let network = Network::new().map_err(sentence)?;
    let (near, far) = KernelInterface::create_veth(NEAR, "far").map_err(sentence)?;
    far.move_to_process(network.id()).map_err(sentence)?;
    network.run(move || {
        // A new network namespace has the machine's default congestion control, which may pace its
        // segments. It is replaced here, because pacing would delay the transfer.
        choose_control()?;
        let far = KernelInterface::named("far").map_err(sentence)?;
        far.add_address(kernel, 24).map_err(sentence)?;
        set_up(&far, offloads)
    })?;
    set_up(&near, offloads)?;
    Ok(network)
}

/// Brings up the interface at one end of a veth pair, with all offloads or with none.
///
/// # Errors
/// A message that says which step this machine does not permit.
pub fn set_up(end: &KernelInterface, offloads: bool) -> Result<(), String> {
    end.disable_ipv6().map_err(sentence)?;
    let switch = if offloads { "on" } else { "off" };
    let switches = OFFLOADS.iter().flat_map(|offload| [offload, switch]);
    let words: Vec<&str> = ["-K", end.name()].into_iter().chain(switches).collect();
    program("ethtool", &words)?;
    end.set_up().map_err(sentence)
}
