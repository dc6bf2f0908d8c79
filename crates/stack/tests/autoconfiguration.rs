//! Router discovery and stateless address autoconfiguration (RFC 4861 §6.3, RFC 4862 §5.5,
//! RFC 7217, RFC 8981).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod link_peer;

use linerate_stack::{
    AddressOrigin, AddressState, Autoconfiguration, Error, InterfaceAddress, Route, StackConfig,
    UdpOptions,
};
use linerate_units::Duration;
use linerate_wire::{
    Icmpv6Message, IpCidr, MacAddress, NdMessage, NdOption, PrefixInformation, RouterPreference,
    ipv6_multicast,
};
use link_peer::{LINK_LOCAL, Peer, Router, SECOND, Sent, prefix};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const PREFIX: &str = "2001:db8:1::";
const FAR: &str = "2001:db8:ffff::7";
const DAY: u32 = 86_400;

fn host_with(configure: impl FnOnce(&mut StackConfig)) -> Peer {
    Peer::new(&[], |config| {
        config.ipv6_autoconfiguration = Some(Autoconfiguration::STABLE);
        config.dad_transmits = 1;
        configure(config);
    })
}

fn host() -> Peer {
    host_with(|_| {})
}

/// Returns a host and a router. The host has formed its addresses from the prefix that the router
/// advertises.
fn configured() -> (Peer, Router) {
    let (mut host, router) = (host(), Router::new(1));
    host.run(SECOND * 3);
    host.receive_router(&router, &[router.source_option(), prefix(PREFIX, DAY, 3_600)]);
    host.run(SECOND * 3);
    (host, router)
}

fn of_origin(host: &Peer, origin: AddressOrigin) -> Vec<InterfaceAddress> {
    host.stack.addresses().iter().filter(|own| own.origin == origin).copied().collect()
}

fn stable(host: &Peer) -> InterfaceAddress {
    let [own] = of_origin(host, AddressOrigin::Stable).try_into().unwrap();
    own
}

fn to(sent: &[Sent]) -> Vec<MacAddress> {
    sent.iter().filter(|sent| sent.discovery().is_none()).map(|sent| sent.to).collect()
}

/// RFC 4861 §6.3.7: a host sends at most three router solicitations, and none after it has received
/// an advertisement.
#[test]
fn a_host_solicits_routers_three_times_and_stops_at_an_advertisement() {
    let mut host = host();
    let sent = host.run(SECOND * 30);
    let solicitations: Vec<_> = sent.iter().filter(|sent| sent.is_router_solicitation()).collect();
    assert_eq!(solicitations.len(), 3);
    for pair in solicitations.windows(2) {
        assert_eq!(pair[1].at.since(pair[0].at), SECOND * 4);
    }
    for sent in solicitations {
        let (header, message) = sent.discovery().unwrap();
        assert_eq!(header.destination, ipv6_multicast::ALL_ROUTERS);
        let NdMessage::RouterSolicitation { source_mac } = message else { panic!() };
        assert_eq!(source_mac.is_some(), header.source == LINK_LOCAL.parse::<Ipv6Addr>().unwrap());
    }
    let mut host = self::host();
    host.run(SECOND * 2);
    host.receive_router(&Router::new(1), &[]);
    assert!(!host.run(SECOND * 30).iter().any(Sent::is_router_solicitation));
}

#[test]
fn an_autonomous_prefix_gives_a_stable_address_a_route_and_a_default_router() {
    let (mut host, router) = configured();
    let own = stable(&host);
    assert!(own.cidr.contains(PREFIX.parse().unwrap()) && own.cidr.prefix_length() == 64);
    assert_eq!(own.state, AddressState::Preferred);
    assert_eq!(own.valid_until.since(host.now), SECOND * (u64::from(DAY) - 3));
    assert_eq!(own.preferred_until.since(host.now), SECOND * 3_597);
    assert_eq!(host.stack.default_routers()[0].address, router.address);
    let sent = host.ping(FAR);
    assert_eq!(to(&sent), [router.mac]);
    let IpAddr::V6(address) = own.cidr.address() else { panic!() };
    let packet = linerate_wire::Ipv6Packet::parse(&sent[0].payload).unwrap();
    assert_eq!(packet.header.source, address);
    let neighbour = host.ping("2001:db8:1::99");
    assert!(neighbour.iter().any(|sent| sent.solicitation().is_some()), "the prefix is on-link");
}

#[test]
fn without_configuration_advertisements_are_ignored() {
    let mut host = Peer::new(&["2001:db8::1/64"], |_| {});
    let router = Router::new(1);
    host.receive_router(&router, &[router.source_option(), prefix(PREFIX, DAY, DAY)]);
    assert_eq!(of_origin(&host, AddressOrigin::Stable), []);
    assert_eq!(host.stack.default_routers(), []);
    let refused = host.stack.echo_send(host.now, FAR.parse::<IpAddr>().unwrap(), 1, 1, b"");
    assert_eq!(refused, Err(Error::NoRoute(FAR.parse().unwrap())));
    let counters = host.stack.counters().neighbor_discovery;
    assert_eq!((counters.in_advertisements, counters.ignored_advertisements), (1, 1));
}

/// RFC 7217 §4: the interface identifier of an address is determined by the prefix and by a secret
/// key. After a restart, a host with the same key must form the same identifier, and a host with
/// another key a different one.
#[test]
fn a_stable_address_is_the_same_after_a_restart_with_the_same_secret() {
    let address = |secret, configure: fn(&mut StackConfig)| {
        let mut host = host_with(|config| {
            config.ipv6_autoconfiguration = Some(Autoconfiguration::STABLE.with_secret(secret));
            configure(config);
        });
        host.run(SECOND * 3);
        host.receive_router(&Router::new(1), &[prefix(PREFIX, DAY, DAY)]);
        stable(&host).cidr
    };
    assert_eq!(address([1; 16], |_| {}), address([1; 16], |config| config.dad_transmits = 3));
    assert_ne!(address([1; 16], |_| {}), address([2; 16], |_| {}));
}

#[test]
fn the_best_router_is_used_and_another_one_when_it_does_not_answer() {
    let (mut host, first) = configured();
    let better = Router { preference: RouterPreference::High, ..Router::new(2) };
    host.receive_router(&better, &[better.source_option()]);
    assert_eq!(to(&host.ping(FAR)), [better.mac]);
    // The router with the higher preference does not answer any more. Its entry is in state DELAY
    // for five seconds, and three unanswered probes follow. After that, the host uses the other
    // router.
    host.run(SECOND * 9);
    assert_eq!(to(&host.ping(FAR)), [first.mac]);
    assert_eq!(host.stack.counters().neighbor_discovery.router_changes, 3);
    let leaving = Router { lifetime: 0, ..first };
    host.receive_router(&leaving, &[]);
    let [left] = host.stack.default_routers() else { panic!() };
    assert_eq!(left.address, better.address);
}

#[test]
fn the_lifetimes_of_a_router_and_of_a_prefix_end() {
    let (mut host, _) = (configured().0, ());
    let router = Router { lifetime: 10, ..Router::new(1) };
    host.receive_router(&router, &[prefix("2001:db8:2::", 20, 20)]);
    host.run(SECOND * 11);
    assert_eq!(host.stack.default_routers(), []);
    let send = |host: &mut Peer, to: &str| {
        host.stack.echo_send(host.now, to.parse::<IpAddr>().unwrap(), 1, 1, b"")
    };
    assert_eq!(send(&mut host, FAR), Err(Error::NoRoute(FAR.parse().unwrap())));
    assert_eq!(send(&mut host, "2001:db8:2::9"), Ok(()));
    host.run(SECOND * 11);
    assert!(send(&mut host, "2001:db8:2::9").is_err());
    assert_eq!(of_origin(&host, AddressOrigin::Stable).len(), 1, "the address is gone, too");
}

/// RFC 4862 §5.5.3 e: an unauthenticated advertisement can deprecate an address at once, but cannot
/// shorten its remaining valid lifetime below two hours.
#[test]
fn an_advertisement_deprecates_an_address_but_cannot_end_it_within_two_hours() {
    let (mut host, router) = configured();
    host.receive_router(&router, &[prefix(PREFIX, 0, 0)]);
    let own = stable(&host);
    assert_eq!(own.state, AddressState::Deprecated);
    assert_eq!(own.valid_until.since(host.now), SECOND * 7_200);
    host.receive_router(&router, &[prefix(PREFIX, DAY, DAY)]);
    assert_eq!(stable(&host).state, AddressState::Preferred);
    assert_eq!(stable(&host).valid_until.since(host.now), SECOND * u64::from(DAY));
}

#[test]
fn invalid_prefixes_form_no_address() {
    let mut host = host();
    host.run(SECOND * 3);
    let information = |prefix: &str, length| PrefixInformation {
        prefix: prefix.parse().unwrap(),
        length,
        is_on_link: false,
        is_autonomous: true,
        valid_lifetime: 100,
        preferred_lifetime: 100,
    };
    let options = [
        NdOption::Prefix(information("fe80::", 64)),
        NdOption::Prefix(information("ff02::", 64)),
        NdOption::Prefix(information(PREFIX, 63)),
        NdOption::Prefix(information(PREFIX, 65)),
        NdOption::Prefix(PrefixInformation { preferred_lifetime: 101, ..information(PREFIX, 64) }),
    ];
    host.receive_router(&Router::new(1), &options);
    assert_eq!(of_origin(&host, AddressOrigin::Stable), []);
    assert_eq!(host.stack.counters().neighbor_discovery.refused_prefixes, 5);
    // The prefix has no on-link flag, but the host forms an address from it. The host sends packets
    // for other addresses of this prefix to the router (RFC 5942 §4).
    let router = Router::new(1);
    let option = NdOption::Prefix(information(PREFIX, 64));
    host.receive_router(&router, &[router.source_option(), option]);
    host.run(SECOND * 3);
    assert_eq!(to(&host.ping("2001:db8:1::99")), [router.mac]);
}

/// RFC 7217 §6: if an address turns out to be a duplicate, the host forms an address with another
/// identifier. It does this up to three times.
#[test]
fn a_duplicate_gets_another_identifier_three_times() {
    let (mut host, router) = (host(), Router::new(1));
    host.run(SECOND * 3);
    host.receive_router(&router, &[prefix(PREFIX, DAY, DAY)]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let own = stable(&host);
        let IpAddr::V6(target) = own.cidr.address() else { panic!() };
        assert!(!seen.contains(&target));
        seen.push(target);
        let probe = NdMessage::NeighborSolicitation { target, source_mac: None };
        let group = ipv6_multicast::solicited_node(target);
        let probe = Icmpv6Message::NeighborDiscovery(probe);
        host.receive_message(router.mac, Ipv6Addr::UNSPECIFIED, group, &probe);
    }
    assert_eq!(stable(&host).state, AddressState::Duplicated);
    host.receive_router(&router, &[prefix(PREFIX, DAY, DAY)]);
    host.run(SECOND * 5);
    assert_eq!(stable(&host).state, AddressState::Duplicated, "it is reported, and not used");
    assert_eq!(host.stack.counters().neighbor_discovery.duplicates, 4);
}

/// RFC 4862 §5.4.5: if another host uses the link-local address that a host forms from its MAC
/// address, that host should disable IP on the interface. The test checks that the host at least
/// ignores router advertisements.
#[test]
fn a_host_whose_link_local_address_is_anothers_takes_nothing_from_routers() {
    let mut host = host();
    let target = LINK_LOCAL.parse().unwrap();
    let probe = NdMessage::NeighborSolicitation { target, source_mac: None };
    let group = ipv6_multicast::solicited_node(target);
    let probe = Icmpv6Message::NeighborDiscovery(probe);
    host.receive_message(MacAddress::new([2; 6]), Ipv6Addr::UNSPECIFIED, group, &probe);
    host.receive_router(&Router::new(1), &[prefix(PREFIX, DAY, DAY)]);
    assert_eq!(of_origin(&host, AddressOrigin::Stable), []);
    assert_eq!(host.stack.default_routers(), []);
}

fn temporary_host() -> (Peer, Router) {
    let mut host = host_with(|config| {
        let stable = Autoconfiguration::STABLE;
        config.ipv6_autoconfiguration = Some(stable.with_temporary_addresses());
    });
    let router = Router { lifetime: 9_000, ..Router::new(1) };
    host.run(SECOND * 3);
    host.receive_router(&router, &[router.source_option(), prefix(PREFIX, 30 * DAY, 7 * DAY)]);
    host.run(SECOND * 3);
    (host, router)
}

/// RFC 8981 §3.4: a temporary address stays preferred for at most a day, minus a random time.
#[test]
fn temporary_addresses_are_preferred_as_sources_and_last_a_day() {
    let (mut host, _) = temporary_host();
    let [own] = of_origin(&host, AddressOrigin::Temporary).try_into().unwrap();
    assert_eq!(own.state, AddressState::Preferred);
    let span = own.preferred_until.since(host.now);
    assert!(span <= SECOND * 86_400 && span >= SECOND * 51_000, "{span:?}");
    assert!(own.valid_until.since(host.now) <= SECOND * 172_800);
    let sent = host.ping(FAR);
    let packet = linerate_wire::Ipv6Packet::parse(&sent[0].payload).unwrap();
    assert_eq!(IpAddr::V6(packet.header.source), own.cidr.address());
}

/// RFC 8981 §3.5, §3.6: before a temporary address is deprecated, the host forms a new one.
/// Advertisements do not extend the lifetimes of the old address.
#[test]
fn a_temporary_address_is_replaced_before_its_end_and_is_not_prolonged() {
    let (mut host, router) = temporary_host();
    let [first] = of_origin(&host, AddressOrigin::Temporary).try_into().unwrap();
    host.run(SECOND * 1_000);
    host.receive_router(&router, &[prefix(PREFIX, 30 * DAY, 7 * DAY)]);
    let [same] = of_origin(&host, AddressOrigin::Temporary).try_into().unwrap();
    assert_eq!(same, first);
    host.run(first.preferred_until.since(host.now) - SECOND);
    let both = of_origin(&host, AddressOrigin::Temporary);
    assert_eq!((both.len(), both[0].cidr), (2, first.cidr));
    assert_eq!(both[1].state, AddressState::Preferred, "it was probed before");
    host.run(SECOND * 2);
    let both = of_origin(&host, AddressOrigin::Temporary);
    assert_eq!(both[0].state, AddressState::Deprecated);
    host.run(SECOND * 86_400 * 3);
    let alive = of_origin(&host, AddressOrigin::Temporary);
    assert!(!alive.iter().any(|own| own.cidr == first.cidr));
    assert!((1..=4).contains(&alive.len()), "{alive:?}");
}

#[test]
fn a_link_mtu_and_the_times_of_a_router_are_taken_within_limits() {
    let (mut host, router) = configured();
    for mtu in [1_279, 1_501, 1_400] {
        host.receive_router(&router, &[NdOption::Mtu(mtu)]);
    }
    let destination: IpAddr = FAR.parse().unwrap();
    let anywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let socket = host.stack.udp_bind(anywhere, &UdpOptions::default()).unwrap();
    host.stack.udp_connect(host.now, socket, SocketAddr::new(destination, 9)).unwrap();
    assert_eq!(host.stack.udp_path_mtu(host.now, socket), Ok(1_400));
    let quick = Router { retransmission_timer: 1, reachable_time: 1, ..router };
    host.receive_router(&quick, &[]);
    let neighbour: IpAddr = "2001:db8:1::99".parse().unwrap();
    host.stack.echo_send(host.now, neighbour, 1, 1, b"").unwrap();
    let sent = host.run(SECOND * 10);
    let times: Vec<_> =
        sent.iter().filter(|sent| sent.solicitation().is_some()).map(|sent| sent.at).collect();
    assert_eq!(times.len(), 3);
    assert!(times[1].since(times[0]) >= Duration::from_millis(250), "not every millisecond");
}

#[test]
fn configured_routes_are_not_replaced() {
    let mut host = host_with(|config| {
        config.addresses.push("2001:db8::1/64".parse().unwrap());
        let gateway: Ipv6Addr = "2001:db8::ff".parse().unwrap();
        config.routes.push(Route::via(IpCidr::ALL_IPV6, gateway));
    });
    let router = Router::new(1);
    host.run(SECOND * 3);
    host.receive_router(&router, &[router.source_option(), prefix("2001:db8::", 10, 10)]);
    let sent = host.ping(FAR);
    let gateway: Ipv6Addr = "2001:db8::ff".parse().unwrap();
    assert_eq!(sent.iter().find_map(Sent::solicitation).unwrap().0, gateway);
    host.run(SECOND * 30);
    assert!(host.ping("2001:db8::7").iter().any(|sent| sent.solicitation().is_some()));
}

/// Router advertisements can create only a limited number of default routers and addresses. The
/// limit is a policy of this stack, and no RFC requires it.
#[test]
fn a_flood_of_rogue_advertisements_is_bounded() {
    let (mut host, router) = configured();
    for number in 0..2_000_u16 {
        let [_, low] = number.to_be_bytes();
        let rogue = Router {
            address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 9, number),
            mac: MacAddress::new([2, 0, 0, 0, 2, low]),
            ..Router::new(9)
        };
        let own = prefix(&format!("2001:db8:{number:x}:9::"), DAY, DAY);
        host.receive_router(&rogue, &[rogue.source_option(), own]);
        if number % 500 == 0 {
            host.ping(FAR);
        }
    }
    host.run(SECOND * 5);
    assert_eq!(host.stack.default_routers().len(), 8);
    assert_eq!(of_origin(&host, AddressOrigin::Stable).len(), 16);
    assert!(host.stack.counters().neighbor_discovery.overflows > 3_000);
    assert_eq!(to(&host.ping(FAR)), [router.mac], "the first router remains the default one");
}
