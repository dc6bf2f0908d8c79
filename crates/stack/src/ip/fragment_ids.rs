//! The identification of packets that are sent in fragments (RFC 7739 §5.3). It is the sum of two
//! numbers: a secret number, which is constant for each pair of hosts, and a counter, which a group
//! of pairs shares. The counter prevents that an identification is repeated soon. Because of the
//! secret, the identifications for one destination reveal nothing about those for another.

use crate::demux::flow::Hosts;
use crate::keys::Keys;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;
use siphasher::sip::{SipHasher13, SipHasher24};

/// Number of groups. Each group of host pairs shares a counter.
const GROUPS: usize = 256;

/// Number of identifications of each group that count as recent. An ICMP error about a fragment is
/// assumed to be forged if it quotes an older identification.
const RECENT: u32 = 1_024;

/// The generator of identifications of a host.
#[derive(Debug)]
pub(crate) struct FragmentIds {
    start: SipHasher24,
    group: SipHasher13,
    counters: Vec<u32>,
}

impl FragmentIds {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self {
            start: keys.visible("identification of fragments"),
            group: keys.table("groups of identifications"),
            counters: vec![0; GROUPS],
        }
    }

    /// Returns the identification of the next packet between these addresses. IPv4 uses only the
    /// low 16 bits.
    pub(crate) fn next(&mut self, source: IpAddr, destination: IpAddr) -> u32 {
        let hosts = Hosts::new(source, destination);
        let start = self.start(&hosts);
        let group = self.group(&hosts);
        let counter = &mut self.counters[group];
        let next = start.wrapping_add(*counter);
        *counter = counter.wrapping_add(1);
        next
    }

    /// Is `number` the identification of a recent packet between these addresses? For IPv4, only
    /// the low 16 bits are compared.
    pub(crate) fn is_recent(&self, source: IpAddr, destination: IpAddr, number: u32) -> bool {
        let hosts = Hosts::new(source, destination);
        let next = self.start(&hosts).wrapping_add(self.counters[self.group(&hosts)]);
        let age = next.wrapping_sub(number).wrapping_sub(1);
        let age = if source.is_ipv4() { age & 0xffff } else { age };
        age < RECENT && age < self.counters[self.group(&hosts)]
    }

    #[allow(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
    fn start(&self, hosts: &Hosts) -> u32 {
        let mut hasher = self.start;
        hasher.write(hosts.bytes());
        hasher.finish() as u32
    }

    #[allow(clippy::cast_possible_truncation, reason = "the remainder is a small number")]
    fn group(&self, hosts: &Hosts) -> usize {
        let mut hasher = self.group;
        hasher.write(hosts.bytes());
        (hasher.finish() % GROUPS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> FragmentIds {
        FragmentIds::new(&Keys::new([7; 32]))
    }

    const OWN: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn numbers_of_one_destination_are_not_repeated_and_those_of_others_are_unrelated() {
        let mut ids = ids();
        let other = |last| IpAddr::from([192, 0, 2, last]);
        let numbers: Vec<_> = (0..100).map(|_| ids.next(OWN, other(2))).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
        let starts: Vec<_> = (3..103).map(|last| ids.next(OWN, other(last))).collect();
        let is_near = |pair: &[u32]| pair[0].abs_diff(pair[1]) < 1_000;
        assert!(!starts.windows(2).any(is_near), "{starts:?}");
    }

    #[test]
    fn only_recent_numbers_are_plausible() {
        let mut ids = ids();
        for own in [OWN, "2001:db8::1".parse().unwrap()] {
            let other =
                if own.is_ipv4() { [192, 0, 2, 2].into() } else { "2001:db8::2".parse().unwrap() };
            let first = ids.next(own, other);
            let mask = if own.is_ipv4() { 0xffff } else { u32::MAX };
            assert!(ids.is_recent(own, other, first & mask));
            assert!(!ids.is_recent(own, other, first.wrapping_add(1) & mask));
            assert!(!ids.is_recent(own, other, first.wrapping_sub(1) & mask));
            (0..RECENT).for_each(|_| {
                ids.next(own, other);
            });
            assert!(!ids.is_recent(own, other, first & mask));
        }
    }
}
