//! Selection of source addresses, and ordering of destination addresses (RFC 6724).
//!
//! Some rules are not implemented, for these reasons. The stack has no home addresses (rule 4 of
//! sources and destinations) and no encapsulating transports (destination rule 7). Only addresses
//! of the outgoing interface are candidates (source rule 5). The host does not record which next
//! hop advertised a prefix (source rule 5.5).

use crate::ip::address::{AddressOrigin, AddressState, InterfaceAddress};
use core::cmp::Ordering;
use core::net::{IpAddr, Ipv6Addr};

/// An entry of the policy table (RFC 6724 §2.1).
#[derive(Clone, Copy, Debug)]
struct Policy {
    prefix: Ipv6Addr,
    length: u32,
    precedence: u8,
    label: u8,
}

const fn policy(prefix: [u16; 6], length: u32, precedence: u8, label: u8) -> Policy {
    let [a, b, c, d, e, f] = prefix;
    Policy { prefix: Ipv6Addr::new(a, b, c, d, e, f, 0, 0), length, precedence, label }
}

/// The default policy table (RFC 6724 §2.1), the longest prefixes first.
const POLICIES: [Policy; 9] = [
    Policy { prefix: Ipv6Addr::LOCALHOST, length: 128, precedence: 50, label: 0 },
    policy([0, 0, 0, 0, 0, 0xffff], 96, 35, 4),
    policy([0; 6], 96, 1, 3),
    policy([0x2001, 0, 0, 0, 0, 0], 32, 5, 5),
    policy([0x2002, 0, 0, 0, 0, 0], 16, 30, 2),
    policy([0x3ffe, 0, 0, 0, 0, 0], 16, 1, 12),
    policy([0xfec0, 0, 0, 0, 0, 0], 10, 1, 11),
    policy([0xfc00, 0, 0, 0, 0, 0], 7, 3, 13),
    policy([0; 6], 0, 40, 1),
];

/// Converts an IPv4 address to an IPv4-mapped IPv6 address (RFC 6724 §3.2). Returns an IPv6 address
/// unchanged.
const fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Returns the entry of the policy table with the longest matching prefix.
fn policy_of(address: IpAddr) -> Policy {
    let address = mapped(address).to_bits();
    let matches =
        |policy: &&Policy| (address ^ policy.prefix.to_bits()).leading_zeros() >= policy.length;
    POLICIES.iter().find(matches).copied().unwrap_or(POLICIES[POLICIES.len() - 1])
}

/// Returns the scope of an address, as a number. Scopes have the numbers that the scope field of a
/// multicast address contains (RFC 6724 §3.1, §3.2).
fn scope_of(address: IpAddr) -> u8 {
    const LINK_LOCAL: u8 = 2;
    const SITE_LOCAL: u8 = 5;
    const GLOBAL: u8 = 14;
    match address {
        IpAddr::V4(address) if address.is_link_local() || address.is_loopback() => LINK_LOCAL,
        IpAddr::V4(_) => GLOBAL,
        IpAddr::V6(address) if address.is_multicast() => address.octets()[1] & 0xf,
        IpAddr::V6(address) if address.is_unicast_link_local() || address.is_loopback() => {
            LINK_LOCAL
        }
        IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfec0 => SITE_LOCAL,
        IpAddr::V6(_) => GLOBAL,
    }
}

/// Does the address count as preferred, and not as deprecated? IPv4 addresses always do (RFC 6724
/// §3.2).
fn is_preferred(own: &InterfaceAddress) -> bool {
    own.state == AddressState::Preferred || own.cidr.address().is_ipv4()
}

/// Returns the number of leading bits in which the source and the destination agree, but at most
/// the prefix length of the source (RFC 6724 §2.2).
fn common_prefix(source: &InterfaceAddress, destination: IpAddr) -> u32 {
    let own = source.cidr.address();
    let differing = mapped(own).to_bits() ^ mapped(destination).to_bits();
    let mapping = if own.is_ipv4() { 96 } else { 0 };
    differing.leading_zeros().min(mapping + u32::from(source.cidr.prefix_length()))
}

/// The rank of a source address: its properties in the order of the rules of RFC 6724 §5. The
/// address with the greatest rank is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SourceRank {
    /// Rule 1: prefer the destination address itself.
    is_destination: bool,
    /// Rule 2: prefer a scope that reaches the destination.
    reaches: bool,
    /// Rule 2: among scopes that reach the destination, prefer the smallest; among other scopes,
    /// prefer the largest.
    scope: i16,
    /// Rule 3: avoid deprecated addresses.
    is_preferred: bool,
    /// Rule 6: prefer the label of the destination.
    has_same_label: bool,
    /// Rule 7: prefer temporary addresses.
    is_temporary: bool,
    /// Rule 8: prefer the longest prefix in common with the destination.
    common_prefix: u32,
}

impl SourceRank {
    fn of(source: &InterfaceAddress, destination: IpAddr) -> Self {
        let own = source.cidr.address();
        let (scope, wanted) = (scope_of(own), scope_of(destination));
        let reaches = scope >= wanted;
        Self {
            is_destination: own == destination,
            reaches,
            scope: if reaches { -i16::from(scope) } else { i16::from(scope) },
            is_preferred: is_preferred(source),
            has_same_label: policy_of(own).label == policy_of(destination).label,
            is_temporary: source.origin == AddressOrigin::Temporary,
            common_prefix: common_prefix(source, destination),
        }
    }
}

/// Returns the best source address for `destination`, or `None` if no address of the destination's
/// IP version is usable.
pub(crate) fn best_source(
    addresses: &[InterfaceAddress],
    destination: IpAddr,
) -> Option<&InterfaceAddress> {
    let is_candidate = |own: &&InterfaceAddress| {
        own.state.is_usable() && own.cidr.address().is_ipv4() == destination.is_ipv4()
    };
    // Among addresses of equal rank, the address that was added first is selected: `max_by_key`
    // returns the final one of equal elements, and the list is reversed.
    let candidates = addresses.iter().rev().filter(is_candidate);
    candidates.max_by_key(|own| SourceRank::of(own, destination))
}

/// A destination, and the source address for packets to it. `source` is `None` if the destination
/// is unreachable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) destination: IpAddr,
    pub(crate) source: Option<InterfaceAddress>,
}

/// Compares two destinations by the rules of RFC 6724 §6. The destination that compares as less is
/// to be tried first. Destinations that compare as equal keep their order in a stable sort (rule
/// 10).
pub(crate) fn compare_destinations(one: &Candidate, other: &Candidate) -> Ordering {
    let rank = |candidate: &Candidate| {
        let (to, source) = (candidate.destination, candidate.source);
        let has =
            |property: &dyn Fn(&InterfaceAddress) -> bool| source.as_ref().is_some_and(property);
        let policy = policy_of(to);
        [
            // RFC 6724 §6, rules 1 (the destination is reachable), 2 (the scopes match), 3 (the
            // source is not deprecated) and 5 (the labels match).
            u8::from(source.is_some()),
            u8::from(has(&|own| scope_of(own.cidr.address()) == scope_of(to))),
            u8::from(has(&is_preferred)),
            u8::from(has(&|own| policy_of(own.cidr.address()).label == policy.label)),
            // RFC 6724 §6, rules 6 (higher precedence) and 8 (smaller scope).
            policy.precedence,
            u8::MAX - scope_of(to),
        ]
    };
    let common = |candidate: &Candidate| {
        candidate.source.map_or(0, |own| common_prefix(&own, candidate.destination))
    };
    let is_same_version = one.destination.is_ipv4() == other.destination.is_ipv4();
    rank(other).cmp(&rank(one)).then_with(|| {
        // RFC 6724 §6, rule 9: prefer the destination that has the longest prefix in common with
        // its source address.
        if is_same_version { common(other).cmp(&common(one)) } else { Ordering::Equal }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec;
    use alloc::vec::Vec;
    use linerate_units::Instant;

    fn own(text: &str, origin: AddressOrigin, state: AddressState) -> InterfaceAddress {
        InterfaceAddress { state, ..InterfaceAddress::permanent(text.parse().unwrap(), origin) }
    }

    fn preferred(text: &str) -> InterfaceAddress {
        own(text, AddressOrigin::Static, AddressState::Preferred)
    }

    fn best(addresses: &[InterfaceAddress], destination: &str) -> Option<String> {
        let best = best_source(addresses, destination.parse().unwrap())?;
        Some(best.cidr.address().to_string())
    }

    #[test]
    fn policies_are_those_of_the_longest_prefix() {
        for (address, precedence, label) in [
            ("::1", 50, 0),
            ("2a00::1", 40, 1),
            ("192.0.2.1", 35, 4),
            ("2002::1", 30, 2),
            ("2001:0:1::1", 5, 5),
            ("2001:db8::1", 40, 1),
            ("fd00::1", 3, 13),
            ("::192.0.2.1", 1, 3),
            ("fec0::1", 1, 11),
            ("3ffe::1", 1, 12),
        ] {
            let policy = policy_of(address.parse().unwrap());
            assert_eq!((policy.precedence, policy.label), (precedence, label), "{address}");
        }
    }

    /// RFC 6724 §3.2: IPv4 addresses count as preferred in the selection, even if DHCP has
    /// deprecated them.
    #[test]
    fn ipv4_addresses_count_as_preferred() {
        let old = own("192.0.2.1/24", AddressOrigin::Dhcp, AddressState::Deprecated);
        let new = own("198.51.100.1/24", AddressOrigin::Dhcp, AddressState::Preferred);
        assert_eq!(best(&[old, new], "192.0.2.9").as_deref(), Some("192.0.2.1"));
    }

    /// RFC 6724 §3.4: the loopback address counts as an address of link-local scope.
    #[test]
    fn the_loopback_address_has_link_local_scope() {
        let scope = |text: &str| scope_of(text.parse().unwrap());
        assert_eq!((scope("::1"), scope("127.0.0.1"), scope("fe80::1")), (2, 2, 2));
        assert_eq!((scope("fec0::1"), scope("4000::1"), scope("192.0.2.1")), (5, 14, 14));
        assert_eq!((scope("ff02::1"), scope("ff0e::1"), scope("169.254.0.1")), (2, 14, 2));
    }

    /// In the examples of RFC 6724 §10.1 that need only one interface, the selected sources are
    /// those that the RFC states.
    #[test]
    fn sources_are_selected_as_in_the_examples_of_the_rfc() {
        let deprecated = |text| own(text, AddressOrigin::Static, AddressState::Deprecated);
        let temporary = |text| own(text, AddressOrigin::Temporary, AddressState::Preferred);
        for (destination, addresses, expected) in [
            (
                "2001:db8:1::1",
                vec![preferred("2001:db8:3::1/64"), preferred("fe80::1/64")],
                "2001:db8:3::1",
            ),
            (
                "ff05::1",
                vec![preferred("2001:db8:3::1/64"), preferred("fe80::1/64")],
                "2001:db8:3::1",
            ),
            (
                "2001:db8:1::1",
                vec![deprecated("2001:db8:1::1/64"), preferred("2001:db8:2::1/64")],
                "2001:db8:1::1",
            ),
            ("fe80::1", vec![deprecated("fe80::2/64"), preferred("2001:db8:1::1/64")], "fe80::2"),
            (
                "2001:db8:1::1",
                vec![preferred("2001:db8:1::2/64"), preferred("2001:db8:3::2/64")],
                "2001:db8:1::2",
            ),
            (
                "2002:c633:6401::1",
                vec![
                    temporary("2001:db8:1::d5e3:7953:13eb:22e8/64"),
                    preferred("2002:c633:6401::d5e3:7953:13eb:22e8/64"),
                ],
                "2002:c633:6401:0:d5e3:7953:13eb:22e8",
            ),
            (
                "2001:db8:1::d5e3:0:0:1",
                vec![
                    preferred("2001:db8:1::2/64"),
                    temporary("2001:db8:1::d5e3:7953:13eb:22e8/64"),
                ],
                "2001:db8:1:0:d5e3:7953:13eb:22e8",
            ),
        ] {
            assert_eq!(best(&addresses, destination).as_deref(), Some(expected), "{destination}");
        }
    }

    #[test]
    fn unusable_addresses_and_those_of_the_other_version_are_no_sources() {
        let tentative = own("2001:db8::1/64", AddressOrigin::Stable, AddressState::Tentative);
        let duplicated = own("2001:db8::2/64", AddressOrigin::Stable, AddressState::Duplicated);
        assert_eq!(best(&[tentative, duplicated, preferred("192.0.2.1/24")], "2001:db8::9"), None);
        let pair = [preferred("2001:db8::3/64"), preferred("2001:db8::4/64")];
        assert_eq!(
            best(&pair, "2001:db8::9").as_deref(),
            Some("2001:db8::3"),
            "the first of equals"
        );
    }

    fn order(addresses: &[InterfaceAddress], destinations: &[&str]) -> Vec<String> {
        let candidate = |text: &&str| {
            let destination = text.parse().unwrap();
            Candidate { destination, source: best_source(addresses, destination).copied() }
        };
        let mut candidates: Vec<_> = destinations.iter().map(candidate).collect();
        candidates.sort_by(compare_destinations);
        candidates.iter().map(|candidate| candidate.destination.to_string()).collect()
    }

    /// In the examples of RFC 6724 §10.2, the order of the destinations is the order that the RFC
    /// states.
    #[test]
    fn destinations_are_ordered_as_in_the_examples_of_the_rfc() {
        let deprecated = |text| own(text, AddressOrigin::Static, AddressState::Deprecated);
        for (addresses, destinations) in [
            (
                vec![
                    preferred("2001:db8:1::2/64"),
                    preferred("fe80::1/64"),
                    preferred("169.254.13.78/16"),
                ],
                ["2001:db8:1::1", "198.51.100.121"],
            ),
            (
                vec![preferred("fe80::1/64"), preferred("198.51.100.117/24")],
                ["198.51.100.121", "2001:db8:1::1"],
            ),
            (
                vec![
                    preferred("2001:db8:1::2/64"),
                    preferred("fe80::1/64"),
                    preferred("10.1.2.4/24"),
                ],
                ["2001:db8:1::1", "10.1.2.3"],
            ),
            (
                vec![preferred("2001:db8:1::2/64"), preferred("fe80::2/64")],
                ["fe80::1", "2001:db8:1::1"],
            ),
            (
                vec![preferred("2001:db8:1::2/64"), deprecated("fe80::2/64")],
                ["2001:db8:1::1", "fe80::1"],
            ),
            (
                vec![
                    preferred("2001:db8:1::2/64"),
                    preferred("2001:db8:3f44::2/64"),
                    preferred("fe80::2/64"),
                ],
                ["2001:db8:1::1", "2001:db8:3ffe::1"],
            ),
            (
                vec![preferred("2002:c633:6401::2/64"), preferred("fe80::2/64")],
                ["2002:c633:6401::1", "2001:db8:1::1"],
            ),
            (
                vec![
                    preferred("2002:c633:6401::2/64"),
                    preferred("2001:db8:1::2/64"),
                    preferred("fe80::2/64"),
                ],
                ["2001:db8:1::1", "2002:c633:6401::1"],
            ),
        ] {
            assert_eq!(order(&addresses, &destinations), destinations, "{addresses:?}");
            let [one, other] = destinations;
            assert_eq!(order(&addresses, &[other, one]), destinations, "{addresses:?}");
        }
    }

    #[test]
    fn unreachable_destinations_come_last_and_equal_ones_keep_their_order() {
        let addresses = [preferred("2001:db8::1/64")];
        let given = ["192.0.2.9", "2a00:1::1", "2a00:2::1"];
        let expected = ["2a00:1::1", "2a00:2::1", "192.0.2.9"];
        assert_eq!(order(&addresses, &given), expected);
        assert_eq!(addresses[0].valid_until, Instant::NEVER);
    }
}
