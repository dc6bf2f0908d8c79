//! A virtual cable whose near end a stack works on; the kernel has its far end, in a network of its own.

use crate::build::program;
use crate::kernel::choose_control;
use crate::tap::ends::sentence;
use linerate_link::KernelInterface;
use linerate_link::namespace::Network;
use std::net::Ipv4Addr;

/// The name of the end that is a stack's.
pub const NEAR: &str = "near";
/// What a network card, or a virtual cable, would do for those who send on it.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];

/// A cable with all offloads, or with none, and the network where the kernel has this address.
///
/// # Errors
/// What this machine does not grant.
pub fn to_kernel(kernel: Ipv4Addr, offloads: bool) -> Result<Network, String> {
    let network = Network::new().map_err(sentence)?;
    let (near, far) = KernelInterface::create_veth(NEAR, "far").map_err(sentence)?;
    far.move_to_process(network.id()).map_err(sentence)?;
    network.run(move || {
        // Each network begins with the machine's.
        choose_control()?;
        let far = KernelInterface::named("far").map_err(sentence)?;
        far.add_address(kernel, 24).map_err(sentence)?;
        set_up(&far, offloads)
    })?;
    set_up(&near, offloads)?;
    Ok(network)
}

/// Brings an end of a cable up, that saves the kernel all it can, or nothing.
///
/// # Errors
/// What this machine does not grant.
pub fn set_up(end: &KernelInterface, offloads: bool) -> Result<(), String> {
    end.disable_ipv6().map_err(sentence)?;
    let switch = if offloads { "on" } else { "off" };
    let switches = OFFLOADS.iter().flat_map(|offload| [offload, switch]);
    let words: Vec<&str> = ["-K", end.name()].into_iter().chain(switches).collect();
    program("ethtool", &words)?;
    end.set_up().map_err(sentence)
}
