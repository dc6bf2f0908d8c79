//! A linerate host on its link. The thread that writes or reads the data also executes the turns of
//! the host.

use super::wait::LinkWaiter;
use crate::bench_error::BenchError;
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::{Host, Link, LinkError, Stack, StackConfig};
use linerate_units::{Clock, Instant};
use linerate_wire::{IpCidr, MacAddress};
use std::io;
use std::net::IpAddr;

/// A linerate host on its link, with the means to wait for events of the link.
#[derive(Debug)]
pub(crate) struct End<L> {
    host: Host<L>,
    link_waiter: LinkWaiter,
}

impl<L: Link + Readiness> End<L> {
    /// Creates a host at `address`, with a prefix of 24 bits for IPv4 or 64 bits for IPv6. `seed`
    /// determines the host's secrets and sequence numbers.
    ///
    /// # Errors
    /// The system provides no descriptors to wait with.
    pub(crate) fn new(address: impl Into<IpAddr>, seed: u64, link: L) -> Result<Self, BenchError> {
        Self::counting_packets(false, address.into(), seed, link)
    }

    /// Creates a host like [`new`](Self::new). If `count_packets`, the host numbers its packets
    /// consecutively in the IPv4 identification field, which is otherwise zero. A link that
    /// compresses headers (RFC 1144) omits the field if it increases by one from packet to packet,
    /// which saves bytes.
    pub(crate) fn counting_packets(
        count_packets: bool,
        address: IpAddr,
        seed: u64,
        link: L,
    ) -> Result<Self, BenchError> {
        let prefix_length = if address.is_ipv4() { 24 } else { 64 };
        let network =
            IpCidr::new(address, prefix_length).unwrap_or_else(|| IpCidr::single(address));
        let config = StackConfig { count_packets, ..StackConfig::new(Self::mac(address), network) };
        let stack = Stack::new(config, spread(seed, last_octet(address)));
        Ok(Self { host: Host::new(stack, link), link_waiter: LinkWaiter::new()? })
    }

    /// Returns the locally administered MAC address of the host at `address`.
    pub(crate) fn mac(address: impl Into<IpAddr>) -> MacAddress {
        MacAddress::new([0x02, 0, 0x5e, 0, 0, last_octet(address.into())])
    }

    /// Returns the current time of the monotonic clock.
    pub(crate) fn now() -> Instant {
        MonotonicClock.now()
    }

    /// Returns the host's stack, through which the program opens, writes and reads connections.
    pub(crate) const fn stack(&mut self) -> &mut Stack {
        self.host.stack_mut()
    }

    /// Executes a turn of the host: receives frames, runs timers, and sends frames. If the turn had
    /// nothing to do, waits for an event of the link, but for a limited time. The program calls
    /// this function when it can neither write nor read.
    ///
    /// # Errors
    /// The link fails, or the system cannot wait.
    pub(crate) fn turn(&mut self, now: Instant) -> Result<(), BenchError> {
        let turn = self.host.turn(now).map_err(link_failed)?;
        if turn.more || turn.received > 0 || turn.transmitted > 0 || turn.timers > 0 {
            return Ok(());
        }
        self.link_waiter.wait(self.host.link_mut(), turn.next)
    }

    /// Returns the link, and drops the host.
    pub(crate) fn into_link(self) -> L {
        self.host.into_parts().1
    }
}

/// Returns the last byte of `address`, which distinguishes the hosts of a link.
const fn last_octet(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

/// Derives the seed of a host from the seed of the run and the last byte of the host's address.
/// Different hosts therefore have different seeds.
fn spread(seed: u64, host: u8) -> [u8; 32] {
    let mut random = oorandom::Rand64::new(u128::from(seed) << 8 | u128::from(host));
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.rand_u64().to_le_bytes());
    }
    bytes
}

/// Converts an error of the link to a bench error.
fn link_failed(error: LinkError) -> BenchError {
    match error {
        LinkError::Io { errno, what } => {
            BenchError::Io { what: what.to_owned(), source: io::Error::from_raw_os_error(errno) }
        }
        // The only other error is `Down`: the interface no longer exists.
        _ => BenchError::ConnectionLost { bytes: 0, what: "the link is down".to_owned() },
    }
}
