//! Selection of ephemeral ports that an attacker cannot guess, by the double-hash algorithm (RFC
//! 6056 §3.3.4).

use crate::demux::Flow;
use crate::keys::Keys;
use core::ops::RangeInclusive;
use siphasher::sip::SipHasher24;

/// Number of counters. Each destination uses one counter, which it shares with other destinations.
/// With more counters, fewer destinations share one, so the sequence of ports to one destination
/// reveals less about connections to others.
const TABLE_LENGTH: usize = 64;

/// The selector of ephemeral ports.
#[derive(Debug)]
pub(crate) struct Ports {
    range: RangeInclusive<u16>,
    hasher: SipHasher24,
    /// The flow whose hash was computed most recently, without a local port, and this hash. If the
    /// next connection has the same destination, which is frequent, it reuses the hash.
    last: Option<(Flow, u64)>,
    table: [u32; TABLE_LENGTH],
}

impl Ports {
    /// Creates a selector of ports from `range`, with the secret keys of a host.
    pub(crate) fn new(range: RangeInclusive<u16>, keys: &Keys) -> Self {
        let mut table = [0; TABLE_LENGTH];
        for (index, counter) in (0..).zip(&mut table) {
            #[allow(clippy::cast_possible_truncation, reason = "any 32 of the bits do")]
            let start = keys.draw("port counters", index) as u32;
            *counter = start;
        }
        Self { range, hasher: keys.visible("ports"), last: None, table }
    }

    /// Sets the local port of `flow` to a port for which `taken` returns false, and returns the
    /// flow. Returns `None` if all ports are taken. Successive ports for one destination are
    /// consecutive numbers that begin at an unpredictable number. A port is thus reused only after
    /// all other ports were tried.
    //= rfc6056#3.3.4
    pub(crate) fn choose(
        &mut self,
        mut flow: Flow,
        mut taken: impl FnMut(&Flow) -> bool,
    ) -> Option<Flow> {
        // The functions F and G of the RFC are two halves of one keyed hash, which are independent
        // of each other. The upper half is F, the offset. The lower half is G, which selects the
        // counter.
        let hash = self.hash(&flow);
        let offset = hash >> 32;
        #[allow(clippy::cast_possible_truncation, reason = "less than the length of the table")]
        let counter = &mut self.table[(hash % TABLE_LENGTH as u64) as usize];
        let (first, last) = (*self.range.start(), *self.range.end());
        let count = u64::from(last.checked_sub(first)?) + 1;
        for _ in 0..count {
            #[allow(clippy::cast_possible_truncation, reason = "less than the count of ports")]
            let port = first + ((offset + u64::from(*counter)) % count) as u16;
            *counter = counter.wrapping_add(1);
            flow.set_local_port(port);
            if !taken(&flow) {
                return Some(flow);
            }
        }
        None
    }

    /// Returns the keyed hash of the flow's addresses and remote port.
    #[inline]
    fn hash(&mut self, flow: &Flow) -> u64 {
        match &self.last {
            Some((known, hash)) if known == flow => *hash,
            _ => self.hash_anew(flow),
        }
    }

    #[inline(never)]
    fn hash_anew(&mut self, flow: &Flow) -> u64 {
        let hosts = flow.hosts.bytes();
        let (remote, local) = hosts.split_at(hosts.len() / 2);
        let (mut key, mut length) = ([0; Flow::KEY], 0);
        for part in [local, remote, &flow.remote_port().to_be_bytes()] {
            key[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        let hash = self.hasher.hash(&key[..length]);
        self.last = Some((*flow, hash));
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::{IpAddr, Ipv4Addr, SocketAddr};

    fn ports(seed: u8) -> Ports {
        Ports::new(40_000..=40_099, &Keys::new([seed; 32]))
    }

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 80);

    fn to(remote: SocketAddr) -> Flow {
        Flow::new(SocketAddr::new(LOCAL, 0), remote)
    }

    fn choose(ports: &mut Ports, remote: SocketAddr) -> Option<u16> {
        ports.choose(to(remote), |_| false).map(|flow| flow.local_port())
    }

    #[test]
    fn every_port_of_the_range_is_used_once_and_then_there_is_none() {
        let mut ports = ports(1);
        let mut used = Vec::new();
        let taken = |used: &Vec<u16>, flow: &Flow| used.contains(&flow.local_port());
        while let Some(flow) = ports.choose(to(REMOTE), |flow| taken(&used, flow)) {
            assert_eq!((flow.local().ip(), flow.remote()), (LOCAL, REMOTE));
            used.push(flow.local_port());
        }
        used.sort_unstable();
        assert_eq!(used, (40_000..=40_099).collect::<Vec<_>>());
    }

    #[test]
    fn another_seed_starts_at_another_port() {
        let firsts: Vec<_> = (0..8).map(|seed| choose(&mut ports(seed), REMOTE)).collect();
        assert!(firsts.iter().any(|&first| first != firsts[0]));
        assert_eq!(firsts[3], choose(&mut ports(3), REMOTE));
    }

    #[test]
    fn another_destination_does_not_change_the_hash() {
        let (mut alone, mut between) = (ports(1), ports(1));
        let hash = alone.hash(&to(REMOTE));
        assert_ne!(between.hash(&to(SocketAddr::new(REMOTE.ip(), 81))), hash);
        assert_eq!(between.hash(&to(REMOTE)), hash);
        assert_eq!(alone.hash(&to(REMOTE)), hash);
    }

    /// The ports for one destination do not depend on connections to other destinations, unless
    /// these destinations share the counter.
    #[test]
    fn each_destination_has_its_own_sequence() {
        let mut ports = ports(1);
        let counter = |ports: &mut Ports, remote| ports.hash(&to(remote)) % TABLE_LENGTH as u64;
        let own = counter(&mut ports, REMOTE);
        let at = |port| SocketAddr::new(REMOTE.ip(), port);
        let other = (81..).map(at).find(|&remote| counter(&mut ports, remote) != own).unwrap();
        let first = choose(&mut ports, REMOTE).unwrap();
        assert!((0..7).all(|_| choose(&mut ports, other).is_some()));
        let next = choose(&mut ports, REMOTE).unwrap();
        assert_eq!((next + 100 - first) % 100, 1);
    }

    #[test]
    fn destinations_with_a_shared_counter_start_at_different_ports() {
        let own = ports(1).hash(&to(REMOTE)) % TABLE_LENGTH as u64;
        let at = |port| SocketAddr::new(REMOTE.ip(), port);
        let shares = |&remote: &SocketAddr| ports(1).hash(&to(remote)) % TABLE_LENGTH as u64 == own;
        let firsts = (81..1_000).map(at).filter(shares).map(|remote| choose(&mut ports(1), remote));
        let mut firsts: Vec<_> = firsts.collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert!(firsts.len() > 3, "{firsts:?}");
    }

    #[test]
    fn each_pair_of_addresses_has_its_own_sequence() {
        let mut ports = ports(1);
        let other = IpAddr::from([192, 0, 2, 9]);
        let hash = ports.hash(&to(REMOTE));
        assert_ne!(hash, ports.hash(&Flow::new(SocketAddr::new(other, 0), REMOTE)));
        assert_ne!(hash, ports.hash(&to(SocketAddr::new(other, REMOTE.port()))));
    }

    /// RFC 6056 §3.3.4: the counters in the table start at random numbers. If they started at zero,
    /// they would reveal how many ports the host has used since its start.
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
        let first = choose(&mut ports, REMOTE);
        assert!((0..99).all(|_| choose(&mut ports, REMOTE) != first));
    }
}
