//! The TAP or TUN device of a bench, and the addresses on it.

use crate::bench_error::BenchError;
use crate::plan::Family;
use linerate_link::{Tap, TapConfig};
use linerate_stack::Medium;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of linerate's host and of the kernel, from TEST-NET-1 (RFC 5737).
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const OURS_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const KERNEL_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// Returns the addresses of linerate's host and of the kernel, for one IP version.
pub(crate) const fn ends(family: Family) -> [IpAddr; 2] {
    match family {
        Family::Ipv4 => [IpAddr::V4(OURS), IpAddr::V4(KERNEL)],
        Family::Ipv6 => [IpAddr::V6(OURS_IPV6), IpAddr::V6(KERNEL_IPV6)],
    }
}

/// Length of the device's transmit queue in frames. It holds a whole window of any plan, because
/// the kernel silently drops frames when the queue is full, which is not a part of the experiment.
pub(crate) const QUEUE: u32 = 20_000;

/// Creates a device in the current network namespace, and gives the kernel its addresses. An IPv4
/// address is always among them, because the floor uses IPv4.
pub(crate) fn open(
    medium: Medium,
    mtu: usize,
    offloads: bool,
    family: Family,
) -> Result<Tap, BenchError> {
    let tap = Tap::open(&TapConfig { medium, mtu, offloads, ..TapConfig::default() })?;
    let interface = tap.interface();
    if family == Family::Ipv4 {
        interface.disable_ipv6()?;
    }
    interface.set_queue_length(QUEUE)?;
    // The kernel installs the route of an IPv6 address at once only if the interface is already up.
    interface.set_up()?;
    interface.add_address(KERNEL, 24)?;
    if family == Family::Ipv6 {
        interface.add_address(KERNEL_IPV6, 64)?;
    }
    Ok(tap)
}
