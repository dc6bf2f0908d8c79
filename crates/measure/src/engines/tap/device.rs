//! The TAP or TUN device of a bench, and the addresses on the device.

use crate::bench_error::BenchError;
use crate::plan::Family;
use linerate_link::{Tap, TapConfig};
use linerate_stack::Medium;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 address of linerate's host, from TEST-NET-1, which is reserved for documentation (RFC
/// 5737).
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// IPv4 address of the kernel, from TEST-NET-1.
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// IPv6 address of linerate's host, from the prefix for documentation (RFC 3849).
const OURS_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// IPv6 address of the kernel, from the prefix for documentation.
const KERNEL_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// Returns the address of linerate's host and the address of the kernel, for one IP version.
pub(crate) const fn ends(family: Family) -> [IpAddr; 2] {
    match family {
        Family::Ipv4 => [IpAddr::V4(OURS), IpAddr::V4(KERNEL)],
        Family::Ipv6 => [IpAddr::V6(OURS_IPV6), IpAddr::V6(KERNEL_IPV6)],
    }
}

/// Length of the device's transmit queue in frames. The length exceeds the largest window of any
/// plan, so the queue never fills. From a full queue, the kernel would drop frames silently, which
/// would disturb the experiment.
pub(crate) const QUEUE: u32 = 20_000;

/// Creates a device in the current network namespace, and gives the kernel an address of the IP
/// version `family`. The kernel always has an IPv4 address too, because the floor uses IPv4.
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
    // The interface is set up before it gets addresses. Otherwise the kernel would install the
    // route of the IPv6 address only after a delay.
    interface.set_up()?;
    interface.add_address(KERNEL, 24)?;
    if family == Family::Ipv6 {
        interface.add_address(KERNEL_IPV6, 64)?;
    }
    Ok(tap)
}
