//! Ephemeral ports that a third party cannot guess (RFC 6056 §3.3.4, "double-hash").

use crate::keys::Keys;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use siphasher::sip::SipHasher24;

/// Number of counters, which are shared by connections to different destinations. More counters
/// reveal less about how often this host connects to others.
const TABLE_LENGTH: usize = 64;

/// The selection of ephemeral ports.
#[derive(Debug)]
pub(crate) struct Ports {
    range: RangeInclusive<u16>,
    hasher: SipHasher24,
    /// The last destination, its local address, and their hash. Consecutive connections often have
    /// the same destination.
    last: Option<(IpAddr, SocketAddr, u64)>,
    table: [u32; TABLE_LENGTH],
}

impl Ports {
    /// Creates the selection from `range`, with the secrets of a host.
    pub(crate) fn new(range: RangeInclusive<u16>, keys: &Keys) -> Self {
        let mut table = [0; TABLE_LENGTH];
        for (index, counter) in (0..).zip(&mut table) {
            #[allow(clippy::cast_possible_truncation, reason = "any 32 of the bits do")]
            let start = keys.draw("port counters", index) as u32;
            *counter = start;
        }
        Self { range, hasher: keys.visible("ports"), last: None, table }
    }

    /// Returns a port for a connection of `local` to `remote` that is not `taken`; `None` if all
    /// are. The ports for one destination follow each other from an unpredictable start, so that a
    /// port is reused only after all others.
    //= rfc6056#3.3.4
    pub(crate) fn choose(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        mut taken: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        // F and G of the RFC are the halves of a keyed hash, which are independent.
        let hash = self.hash(local, remote);
        let offset = hash >> 32;
        #[allow(clippy::cast_possible_truncation, reason = "less than the length of the table")]
        let counter = &mut self.table[(hash % TABLE_LENGTH as u64) as usize];
        let (first, last) = (*self.range.start(), *self.range.end());
        let count = u64::from(last.checked_sub(first)?) + 1;
        for _ in 0..count {
            #[allow(clippy::cast_possible_truncation, reason = "less than the count of ports")]
            let port = first + ((offset + u64::from(*counter)) % count) as u16;
            *counter = counter.wrapping_add(1);
            if !taken(port) {
                return Some(port);
            }
        }
        None
    }

    fn hash(&mut self, local: IpAddr, remote: SocketAddr) -> u64 {
        if let Some((from, to, hash)) = self.last
            && (from, to) == (local, remote)
        {
            return hash;
        }
        let port = remote.port().to_be_bytes();
        let hash = match (local, remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let mut key = [0; 10];
                key[..4].copy_from_slice(&local.octets());
                key[4..8].copy_from_slice(&remote.octets());
                key[8..].copy_from_slice(&port);
                self.hasher.hash(&key)
            }
            (local, remote) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                let mut key = [0; 34];
                key[..16].copy_from_slice(&octets(local));
                key[16..32].copy_from_slice(&octets(remote));
                key[32..].copy_from_slice(&port);
                self.hasher.hash(&key)
            }
        };
        self.last = Some((local, remote, hash));
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    fn ports(seed: u8) -> Ports {
        Ports::new(40_000..=40_099, &Keys::new([seed; 32]))
    }

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 80);

    #[test]
    fn every_port_of_the_range_is_used_once_and_then_there_is_none() {
        let mut ports = ports(1);
        let mut used = Vec::new();
        while let Some(port) = ports.choose(LOCAL, REMOTE, |port| used.contains(&port)) {
            used.push(port);
        }
        used.sort_unstable();
        assert_eq!(used, (40_000..=40_099).collect::<Vec<_>>());
    }

    #[test]
    fn another_seed_starts_at_another_port() {
        let firsts: Vec<_> =
            (0..8).map(|seed| ports(seed).choose(LOCAL, REMOTE, |_| false)).collect();
        assert!(firsts.iter().any(|&first| first != firsts[0]));
        assert_eq!(firsts[3], ports(3).choose(LOCAL, REMOTE, |_| false));
    }

    #[test]
    fn another_destination_does_not_change_the_hash() {
        let (mut alone, mut between) = (ports(1), ports(1));
        let hash = alone.hash(LOCAL, REMOTE);
        assert_ne!(between.hash(LOCAL, SocketAddr::new(REMOTE.ip(), 81)), hash);
        assert_eq!(between.hash(LOCAL, REMOTE), hash);
        assert_eq!(alone.hash(LOCAL, REMOTE), hash);
    }

    /// Connections to other destinations must not affect the ports of this one, unless they share
    /// the counter.
    #[test]
    fn each_destination_has_its_own_sequence() {
        let mut ports = ports(1);
        let counter = |ports: &mut Ports, to| ports.hash(LOCAL, to) % TABLE_LENGTH as u64;
        let own = counter(&mut ports, REMOTE);
        let at = |port| SocketAddr::new(REMOTE.ip(), port);
        let other = (81..).map(at).find(|&to| counter(&mut ports, to) != own).unwrap();
        let first = ports.choose(LOCAL, REMOTE, |_| false).unwrap();
        assert!((0..7).all(|_| ports.choose(LOCAL, other, |_| false).is_some()));
        let next = ports.choose(LOCAL, REMOTE, |_| false).unwrap();
        assert_eq!((next + 100 - first) % 100, 1);
    }

    #[test]
    fn destinations_with_a_shared_counter_start_at_different_ports() {
        let own = ports(1).hash(LOCAL, REMOTE) % TABLE_LENGTH as u64;
        let at = |port| SocketAddr::new(REMOTE.ip(), port);
        let shares = |&to: &SocketAddr| ports(1).hash(LOCAL, to) % TABLE_LENGTH as u64 == own;
        let firsts =
            (81..1_000).map(at).filter(shares).map(|to| ports(1).choose(LOCAL, to, |_| false));
        let mut firsts: Vec<_> = firsts.collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert!(firsts.len() > 3, "{firsts:?}");
    }

    #[test]
    fn each_pair_of_addresses_has_its_own_sequence() {
        let mut ports = ports(1);
        let other = IpAddr::from([192, 0, 2, 9]);
        assert_ne!(ports.hash(LOCAL, REMOTE), ports.hash(other, REMOTE));
        assert_ne!(
            ports.hash(LOCAL, REMOTE),
            ports.hash(LOCAL, SocketAddr::new(other, REMOTE.port()))
        );
    }

    /// RFC 6056 §3.3.4: the table is filled with random numbers. Counters that start at zero would
    /// reveal the uptime of the host.
    #[test]
    fn the_counters_start_at_random() {
        let (mut one, other) = (ports(1).table, ports(2).table);
        assert_ne!(one, other);
        one.sort_unstable();
        assert!(one.windows(2).all(|pair| pair[0] != pair[1]), "{one:?}");
    }

    #[test]
    fn a_returned_port_is_not_reused_at_once() {
        let mut ports = ports(1);
        let first = ports.choose(LOCAL, REMOTE, |_| false);
        assert!((0..99).all(|_| ports.choose(LOCAL, REMOTE, |_| false) != first));
    }
}
