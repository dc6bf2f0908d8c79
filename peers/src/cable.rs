//! A virtual cable with a stack at its near end and the kernel at its far end, in another network
//! namespace.

use crate::build::program;
use crate::kernel::choose_control;
use crate::tap::ends::sentence;
use linerate_link::KernelInterface;
use linerate_link::namespace::Network;
use std::net::Ipv4Addr;

/// Name of the stack's end.
pub const NEAR: &str = "near";
/// Offloads of a NIC or of a virtual cable.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];

/// Creates a cable with all offloads or with none, and the network namespace in which the kernel
/// has this address.
///
/// # Errors
/// A message that says what this machine does not permit.
pub fn to_kernel(kernel: Ipv4Addr, offloads: bool) -> Result<Network, String> {
    let network = Network::new().map_err(sentence)?;
    let (near, far) = KernelInterface::create_veth(NEAR, "far").map_err(sentence)?;
    far.move_to_process(network.id()).map_err(sentence)?;
    network.run(move || {
        // Each network namespace starts with the machine's default.
        choose_control()?;
        let far = KernelInterface::named("far").map_err(sentence)?;
        far.add_address(kernel, 24).map_err(sentence)?;
        set_up(&far, offloads)
    })?;
    set_up(&near, offloads)?;
    Ok(network)
}

/// Brings an end of a cable up, with all offloads or with none.
///
/// # Errors
/// A message that says what this machine does not permit.
pub fn set_up(end: &KernelInterface, offloads: bool) -> Result<(), String> {
    end.disable_ipv6().map_err(sentence)?;
    let switch = if offloads { "on" } else { "off" };
    let switches = OFFLOADS.iter().flat_map(|offload| [offload, switch]);
    let words: Vec<&str> = ["-K", end.name()].into_iter().chain(switches).collect();
    program("ethtool", &words)?;
    end.set_up().map_err(sentence)
}
