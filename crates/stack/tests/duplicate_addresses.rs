//! Detection of duplicate addresses (RFC 4862 §5.4, RFC 5227).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod link_peer;

use linerate_stack::{
    AddressOptions, AddressOrigin, AddressState, Capabilities, Error, Event, Medium, Stack,
    StackConfig,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{ArpOperation, Icmpv6Message, MacAddress, NdMessage, ipv6_multicast};
use link_peer::{LINK_LOCAL, MAC, Peer, SECOND, arp};
use std::net::{Ipv6Addr, SocketAddr};

const OTHER: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 9]);
const OWN: &str = "2001:db8::1";

fn host() -> Peer {
    Peer::new(&["2001:db8::1/64"], |config| config.dad_transmits = 1)
}

fn probe_of(target: &str) -> Icmpv6Message<'static> {
    let target = target.parse().unwrap();
    Icmpv6Message::NeighborDiscovery(NdMessage::NeighborSolicitation { target, source_mac: None })
}

fn own_group() -> Ipv6Addr {
    ipv6_multicast::solicited_node(OWN.parse().unwrap())
}

fn advertisement(mac: MacAddress) -> NdMessage<'static> {
    NdMessage::NeighborAdvertisement {
        is_router: false,
        is_solicited: false,
        is_override: true,
        target: OWN.parse().unwrap(),
        target_mac: Some(mac),
    }
}

#[test]
fn an_ipv6_address_is_probed_from_no_address_and_used_a_second_later() {
    let mut host = host();
    assert_eq!(host.state(OWN), Some(AddressState::Tentative));
    let sent = host.run(SECOND * 3);
    for own in [OWN, LINK_LOCAL] {
        let target: Ipv6Addr = own.parse().unwrap();
        let probes: Vec<_> = sent
            .iter()
            .filter(|sent| sent.solicitation().is_some_and(|(to, _)| to == target))
            .collect();
        assert_eq!(probes.len(), 1, "{own}");
        let (header, message) = probes[0].discovery().unwrap();
        let expected = NdMessage::NeighborSolicitation { target, source_mac: None };
        assert_eq!((header.source, message), (Ipv6Addr::UNSPECIFIED, expected));
        assert_eq!(header.destination, ipv6_multicast::solicited_node(target));
        assert_eq!(host.state(own), Some(AddressState::Preferred));
    }
    assert_eq!(sent.len(), 2, "nothing else is sent");
    assert_eq!(host.stack.poll_event(), Some(Event::Addresses));
}

#[test]
fn a_tentative_address_neither_sends_nor_receives() {
    let mut host = host();
    let there: SocketAddr = "[2001:db8::2]:80".parse().unwrap();
    let refused = host.stack.tcp_connect(host.now, there, &Default::default());
    assert_eq!(refused, Err(Error::NoAddress));
    // A solicitation with a source address does not probe for a duplicate, but asks for a MAC
    // address. The host must ignore it, because its own address is still tentative (RFC 4862
    // §5.4.3).
    let target = OWN.parse().unwrap();
    let solicitation = NdMessage::NeighborSolicitation { target, source_mac: Some(OTHER) };
    let message = Icmpv6Message::NeighborDiscovery(solicitation);
    host.receive_message(OTHER, "2001:db8::2".parse().unwrap(), own_group(), &message);
    assert_eq!(host.transmit(), []);
    assert_eq!(host.state(OWN), Some(AddressState::Tentative));
}

#[test]
fn a_probe_or_an_advertisement_of_another_host_ends_a_tentative_address() {
    for is_probe in [true, false] {
        let mut host = host();
        host.run(Duration::from_millis(900));
        if is_probe {
            host.receive_message(OTHER, Ipv6Addr::UNSPECIFIED, own_group(), &probe_of(OWN));
        } else {
            host.receive_advertisement(ipv6_multicast::ALL_NODES, advertisement(OTHER));
        }
        assert_eq!(host.state(OWN), Some(AddressState::Duplicated));
        assert_eq!(host.stack.poll_event(), Some(Event::Addresses));
        host.run(SECOND * 5);
        assert_eq!(host.state(OWN), Some(AddressState::Duplicated), "it is not used later");
        assert_eq!(host.state(LINK_LOCAL), Some(AddressState::Preferred));
        let counters = host.stack.counters();
        assert_eq!(counters.neighbor_discovery.duplicates, 1);
        assert_eq!(
            host.stack.tcp_listen((target(OWN), 80), &Default::default()).unwrap_err(),
            Error::AddressNotOurs(target(OWN))
        );
    }
}

fn target(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_assigned_address_is_kept_and_the_probe_of_another_host_is_answered() {
    let mut host = host();
    host.run(SECOND * 3);
    host.receive_message(OTHER, Ipv6Addr::UNSPECIFIED, own_group(), &probe_of(OWN));
    let answer = host.transmit();
    let (header, message) = answer[0].discovery().unwrap();
    let NdMessage::NeighborAdvertisement { is_solicited, target_mac, .. } = message else {
        panic!("{message:?}");
    };
    let to_all = ipv6_multicast::ALL_NODES;
    assert_eq!((header.destination, is_solicited, target_mac), (to_all, false, Some(MAC)));
    host.receive_advertisement(ipv6_multicast::ALL_NODES, advertisement(OTHER));
    assert_eq!(host.state(OWN), Some(AddressState::Preferred));
    assert_eq!(host.stack.counters().neighbor.conflicts, 1);
}

#[test]
fn the_number_of_probes_is_configured() {
    let mut host = Peer::new(&["2001:db8::1/64"], |config| config.dad_transmits = 3);
    let sent = host.run(SECOND * 5);
    assert_eq!(sent.iter().filter(|sent| sent.solicitation().is_some()).count(), 6);
    let mut immediate = Peer::new(&["2001:db8::1/64", "192.0.2.1/24"], |_| {});
    assert_eq!(immediate.state(OWN), Some(AddressState::Preferred));
    assert_eq!(immediate.run(SECOND * 20), []);
}

#[test]
fn addresses_of_a_link_without_other_hosts_are_used_at_once() {
    let mut config = StackConfig::new(MAC, "2001:db8::1/64".parse().unwrap()).shared_network();
    config.addresses.push("192.0.2.1/24".parse().unwrap());
    let mut stack = Stack::new(config, [1; 32]);
    stack.attach(Capabilities::new(Medium::Ip, 1_500));
    assert!(stack.addresses().iter().all(|own| own.state == AddressState::Preferred));
    stack.handle_timeout(Instant::ZERO, 100);
    assert_eq!(stack.poll_transmit(Instant::ZERO, &mut [0; 1_500]), None);
}

#[test]
fn an_address_that_is_added_later_is_probed_as_well() {
    let mut host = host();
    host.run(SECOND * 3);
    let added = "2001:db8::7/64".parse().unwrap();
    host.stack.add_address(host.now, added, &AddressOptions::default()).unwrap();
    assert_eq!(host.state("2001:db8::7"), Some(AddressState::Tentative));
    assert_eq!(host.run(SECOND * 3).len(), 1);
    assert_eq!(host.state("2001:db8::7"), Some(AddressState::Preferred));
    host.stack.add_address(host.now, added, &AddressOptions::default()).unwrap();
    assert_eq!(host.state("2001:db8::7"), Some(AddressState::Preferred), "renewal does not probe");
}

fn ipv4_host() -> Peer {
    Peer::new(&["192.0.2.1/24"], |config| config.dad_transmits = 1)
}

/// RFC 5227 §2.1.1, §2.3: a host sends three ARP probes before it uses an address, and then two
/// announcements.
#[test]
fn an_ipv4_address_is_probed_three_times_then_used_and_announced_twice() {
    let mut host = ipv4_host();
    let sent = host.run(SECOND * 12);
    let packets: Vec<_> = sent.iter().map(|sent| sent.arp().unwrap()).collect();
    let probe = arp(ArpOperation::Request, MAC, "0.0.0.0", "192.0.2.1");
    let announcement = arp(ArpOperation::Request, MAC, "192.0.2.1", "192.0.2.1");
    assert_eq!(packets, [probe, probe, probe, announcement, announcement]);
    assert!(sent.iter().all(|sent| sent.to == MacAddress::BROADCAST));
    assert_eq!(host.state("192.0.2.1"), Some(AddressState::Preferred));
}

#[test]
fn a_probe_or_any_packet_from_a_tentative_ipv4_address_ends_it() {
    for packet in [
        arp(ArpOperation::Request, OTHER, "0.0.0.0", "192.0.2.1"),
        arp(ArpOperation::Request, OTHER, "192.0.2.1", "192.0.2.77"),
        arp(ArpOperation::Reply, OTHER, "192.0.2.1", "192.0.2.1"),
    ] {
        let mut host = ipv4_host();
        host.run(SECOND * 2);
        host.receive_arp(&packet);
        assert_eq!(host.state("192.0.2.1"), Some(AddressState::Duplicated), "{packet:?}");
        assert_eq!(host.run(SECOND * 20), []);
    }
    let mut host = ipv4_host();
    host.run(SECOND * 2);
    host.receive_arp(&arp(ArpOperation::Request, OTHER, "192.0.2.9", "192.0.2.1"));
    assert_eq!(host.state("192.0.2.1"), Some(AddressState::Tentative), "a request is no conflict");
}

/// RFC 5227 §2.4: a host may keep its address despite conflicts, and defend it by announcements. It
/// must send at most one of them in ten seconds.
#[test]
fn a_configured_ipv4_address_is_defended_at_most_every_ten_seconds() {
    let mut host = ipv4_host();
    host.run(SECOND * 12);
    let claim = arp(ArpOperation::Reply, OTHER, "192.0.2.1", "192.0.2.1");
    for expected in [1, 0, 0] {
        host.receive_arp(&claim);
        assert_eq!(host.run(SECOND).len(), expected);
    }
    host.run(SECOND * 10);
    host.receive_arp(&claim);
    assert_eq!(host.run(SECOND).len(), 1);
    assert_eq!(host.state("192.0.2.1"), Some(AddressState::Preferred));
    assert_eq!(host.stack.counters().neighbor.conflicts, 4);
}

#[test]
fn a_leased_ipv4_address_is_given_up_at_the_second_conflict() {
    let mut host = Peer::new(&[], |config| config.dad_transmits = 1);
    let lease = AddressOptions::lease(SECOND * 1_000);
    host.stack.add_address(host.now, "192.0.2.1/24".parse().unwrap(), &lease).unwrap();
    host.run(SECOND * 12);
    let claim = arp(ArpOperation::Reply, OTHER, "192.0.2.1", "192.0.2.1");
    host.receive_arp(&claim);
    assert_eq!(host.state("192.0.2.1"), Some(AddressState::Preferred));
    host.run(SECOND * 5);
    host.receive_arp(&claim);
    assert_eq!(host.state("192.0.2.1"), Some(AddressState::Duplicated));
}

/// Returns the IPv4 link-local address of a host.
fn ipv4_link_local(host: &Peer) -> (std::net::Ipv4Addr, AddressState) {
    let own = host.stack.addresses().iter().find(|own| own.origin == AddressOrigin::LinkLocal);
    match own.map(|own| (own.cidr.address(), own.state)) {
        Some((std::net::IpAddr::V4(address), state)) => (address, state),
        other => panic!("{other:?}"),
    }
}

/// Delivers an ARP reply of another host that uses the host's IPv4 link-local address.
fn claim(host: &mut Peer) {
    let own = ipv4_link_local(host).0.to_string();
    host.receive_arp(&arp(ArpOperation::Reply, OTHER, &own, &own));
}

/// RFC 3927 §2.2.1: a host that has had ten conflicts must try at most one new address a minute.
#[test]
fn an_ipv4_link_local_address_is_probed_and_replaced_at_a_limited_rate() {
    let mut host = Peer::new(&[], |config| config.dad_transmits = 1);
    host.stack.add_ipv4_link_local(host.now).unwrap();
    let mut seen = Vec::new();
    for _ in 0..10 {
        let (address, state) = ipv4_link_local(&host);
        assert_eq!(state, AddressState::Tentative);
        assert!(address.is_link_local() && !seen.contains(&address));
        seen.push(address);
        host.run(Duration::from_millis(1_100));
        claim(&mut host);
    }
    claim(&mut host);
    assert_eq!(host.run(SECOND * 59), [], "after ten conflicts it waits for a minute");
    let sent = host.run(SECOND * 20);
    assert_eq!(sent.len(), 5, "three probes and two announcements");
    let (address, state) = ipv4_link_local(&host);
    assert_eq!((state, seen.contains(&address)), (AddressState::Preferred, false));
}

/// RFC 3927 §2.5 b: at the second conflict within ten seconds, a host must give up its link-local
/// address.
#[test]
fn an_ipv4_link_local_address_is_defended_once_and_then_replaced() {
    let mut host = Peer::new(&[], |config| config.dad_transmits = 1);
    host.stack.add_ipv4_link_local(host.now).unwrap();
    host.run(SECOND * 12);
    let first = ipv4_link_local(&host);
    claim(&mut host);
    assert_eq!((host.run(SECOND).len(), ipv4_link_local(&host)), (1, first));
    claim(&mut host);
    assert_ne!(ipv4_link_local(&host).0, first.0);
    host.run(SECOND * 12);
    assert_eq!(ipv4_link_local(&host).1, AddressState::Preferred);
}

/// RFC 3927 §2.6.2: a packet with a link-local source address must not be sent to a router.
#[test]
fn packets_from_an_ipv4_link_local_address_reach_no_router() {
    let gateway: std::net::Ipv4Addr = "192.0.2.254".parse().unwrap();
    let mut host = Peer::new(&[], |config| {
        config.routes.push(linerate_stack::Route::via(linerate_wire::IpCidr::ALL_IPV4, gateway));
    });
    host.stack.add_ipv4_link_local(host.now).unwrap();
    let beyond = target("198.51.100.7");
    assert_eq!(host.stack.echo_send(host.now, beyond, 1, 1, b""), Err(Error::NoAddress));
    assert_eq!(host.stack.echo_send(host.now, target("169.254.7.7"), 1, 1, b""), Ok(()));
    let added = "192.0.2.1/24".parse().unwrap();
    host.stack.add_address(host.now, added, &AddressOptions::default()).unwrap();
    assert_eq!(host.stack.echo_send(host.now, beyond, 1, 1, b""), Ok(()));
}
