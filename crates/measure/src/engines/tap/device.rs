//! The TAP device, and the addresses on it.

use crate::bench_error::BenchError;
use linerate_link::{Tap, TapConfig};
use std::net::Ipv4Addr;

/// Addresses of linerate's host and of the kernel, from TEST-NET-1 (RFC 5737).
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Length of the kernel's queue in frames. It holds a whole window of the plan's size: when the
/// queue is full, the kernel silently drops frames, which is not part of the experiment.
pub(crate) const QUEUE: u32 = 20_000;

/// Creates a device in the current network namespace, and configures the kernel's address on it.
pub(crate) fn open(mtu: usize, offloads: bool) -> Result<Tap, BenchError> {
    let tap = Tap::open(&TapConfig { mtu, offloads, ..TapConfig::default() })?;
    let interface = tap.interface();
    interface.disable_ipv6()?;
    interface.set_queue_length(QUEUE)?;
    interface.add_address(KERNEL, 24)?;
    interface.set_up()?;
    Ok(tap)
}
