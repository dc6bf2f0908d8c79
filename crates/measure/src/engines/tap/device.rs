//! The device, and who has which address on it.

use crate::bench_error::BenchError;
use linerate_link::{Tap, TapConfig};
use std::net::Ipv4Addr;

/// linerate's host, and the kernel's: from TEST-NET-1 (RFC 5737), nobody's addresses.
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Frames that the kernel may send ahead of our reading. What a window of the plan's size holds
/// fits; the kernel drops more without a word, and a drop is no part of the experiment.
pub(crate) const QUEUE: u32 = 20_000;

/// A new device in the network of this process, on which the kernel has its address.
pub(crate) fn open(mtu: usize, offloads: bool) -> Result<Tap, BenchError> {
    let tap = Tap::open(&TapConfig { mtu, offloads, ..TapConfig::default() })?;
    let interface = tap.interface();
    interface.disable_ipv6()?;
    interface.set_queue_length(QUEUE)?;
    interface.add_address(KERNEL, 24)?;
    interface.set_up()?;
    Ok(tap)
}
