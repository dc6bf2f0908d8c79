//! Neighbour unreachability detection, and the rules for advertisements, solicitations and
//! redirects (RFC 4861 §7.2, §7.3, §8).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod link_peer;

use linerate_stack::{Autoconfiguration, ConnectOptions, Event, ListenOptions};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{EtherType, Icmpv6Message, MacAddress, NdMessage, ipv6_multicast};
use link_peer::{MAC, Peer, Router, SECOND, Sent, destination, prefix};
use std::net::Ipv6Addr;

const ONE: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 8]);
const OTHER: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 9]);
const OWN: &str = "2001:db8::1";
const PEER: &str = "2001:db8::2";

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn host() -> Peer {
    Peer::new(&["2001:db8::1/64"], |_| {})
}

/// The flags of a neighbour advertisement.
#[derive(Clone, Copy, Default)]
struct Flags {
    solicited: bool,
    overrides: bool,
    router: bool,
}

const SOLICITED: Flags = Flags { solicited: true, overrides: true, router: false };

fn advertise(host: &mut Peer, mac: Option<MacAddress>, flags: Flags) {
    let message = NdMessage::NeighborAdvertisement {
        is_router: flags.router,
        is_solicited: flags.solicited,
        is_override: flags.overrides,
        target: ip(PEER),
        target_mac: mac,
    };
    let to = if flags.solicited { ip(OWN) } else { ipv6_multicast::ALL_NODES };
    host.receive_advertisement(to, message);
}

/// Creates a host that has resolved the neighbour `PEER`: the entry is REACHABLE, with the MAC
/// address `ONE`.
fn resolved() -> Peer {
    let mut host = host();
    host.ping(PEER);
    advertise(&mut host, Some(ONE), SOLICITED);
    assert_eq!(addressees(&host.transmit()), [ONE], "the queued request");
    host
}

/// Returns the destination MAC address of each echo request among these frames.
fn addressees(sent: &[Sent]) -> Vec<MacAddress> {
    sent.iter().filter(|sent| sent.discovery().is_none()).map(|sent| sent.to).collect()
}

fn solicitations(sent: &[Sent]) -> Vec<(MacAddress, u64)> {
    let solicitations = sent.iter().filter(|sent| sent.solicitation().is_some());
    solicitations.map(|sent| (sent.to, sent.at.as_millis())).collect()
}

#[test]
fn an_unknown_neighbour_is_solicited_three_times_by_multicast_and_then_unreachable() {
    let mut host = host();
    let start = host.now.as_millis();
    let mut sent = host.ping(PEER);
    sent.extend(host.run(SECOND * 10));
    let group = MacAddress::of_ipv6_multicast(ipv6_multicast::solicited_node(ip(PEER)));
    let times: Vec<_> = solicitations(&sent).iter().map(|&(_, at)| at - start).collect();
    assert_eq!(times.len(), 3);
    assert!(
        times.windows(2).all(|pair| (1_000..1_020).contains(&(pair[1] - pair[0]))),
        "{times:?}"
    );
    assert!(solicitations(&sent).iter().all(|&(to, _)| to == group));
    assert!(matches!(host.stack.poll_event(), Some(Event::EchoError(_))));
}

/// RFC 4861 §7.3.3: the host sends packets to a neighbour that no longer answers. The neighbour's
/// entry becomes STALE, then DELAY for five seconds, then PROBE for three probes. It is then
/// removed.
#[test]
fn a_neighbour_in_use_that_falls_silent_is_delayed_probed_by_unicast_and_removed() {
    let mut host = resolved();
    assert_eq!(host.run(SECOND * 46), [], "an unused neighbour causes nothing");
    let start = host.now.as_millis();
    let sent = host.ping(PEER);
    assert_eq!(addressees(&sent), [ONE], "a stale neighbour remains in use");
    let sent = host.run(SECOND * 30);
    let times: Vec<_> = solicitations(&sent).iter().map(|&(_, at)| at - start).collect();
    assert!(solicitations(&sent).iter().all(|&(to, _)| to == ONE));
    let expected = [5_000, 6_000, 7_000];
    let is_near = |(time, expected): (&u64, u64)| (expected..expected + 50).contains(time);
    assert!(times.len() == 3 && times.iter().zip(expected).all(is_near), "{times:?}");
    let sent = host.ping(PEER);
    let group = MacAddress::of_ipv6_multicast(ipv6_multicast::solicited_node(ip(PEER)));
    assert_eq!(solicitations(&sent), [(group, host.now.as_millis())], "it is resolved again");
}

#[test]
fn an_answer_to_a_probe_makes_the_neighbour_reachable_again() {
    let mut host = resolved();
    host.run(SECOND * 46);
    host.ping(PEER);
    let sent = host.run(Duration::from_millis(5_500));
    assert_eq!(solicitations(&sent).len(), 1);
    advertise(&mut host, Some(ONE), SOLICITED);
    assert_eq!(solicitations(&host.run(SECOND * 14)), []);
    assert_eq!(addressees(&host.ping(PEER)), [ONE]);
}

#[test]
fn the_reachable_time_is_random_between_half_and_one_and_a_half_times_the_mean() {
    let mut host = resolved();
    for _ in 0..20 {
        host.run(Duration::from_millis(14_900));
        host.ping(PEER);
        assert_eq!(solicitations(&host.run(Duration::from_millis(5_050))), [], "still reachable");
        advertise(&mut host, Some(ONE), SOLICITED);
        host.transmit();
        host.run(SECOND * 46);
        host.ping(PEER);
        assert_eq!(solicitations(&host.run(Duration::from_millis(5_050))).len(), 1, "stale");
        advertise(&mut host, Some(ONE), SOLICITED);
    }
}

/// RFC 4861 §7.2.5 and appendix C: an advertisement without the Override flag cannot replace a
/// known MAC address.
#[test]
fn an_advertisement_without_the_override_flag_does_not_change_the_mac_address() {
    let mut host = resolved();
    let flags = Flags { solicited: true, ..Flags::default() };
    advertise(&mut host, Some(OTHER), flags);
    assert_eq!(addressees(&host.ping(PEER)), [ONE]);
    let sent = host.run(Duration::from_millis(5_500));
    assert_eq!(solicitations(&sent).len(), 1, "a reachable neighbour becomes stale");
    advertise(&mut host, Some(OTHER), flags);
    let sent = host.run(SECOND);
    assert_eq!(solicitations(&sent).len(), 1, "in any other state it is ignored");
}

#[test]
fn an_unsolicited_advertisement_with_the_override_flag_changes_the_mac_address_to_a_stale_one() {
    let mut host = resolved();
    advertise(&mut host, Some(OTHER), Flags { overrides: true, ..Flags::default() });
    assert_eq!(addressees(&host.ping(PEER)), [OTHER]);
    let sent = host.run(Duration::from_millis(5_500));
    assert_eq!(solicitations(&sent).len(), 1, "it is probed");
}

#[test]
fn an_unsolicited_advertisement_confirms_nothing() {
    let mut host = resolved();
    host.run(SECOND * 46);
    host.ping(PEER);
    advertise(&mut host, Some(ONE), Flags::default());
    advertise(&mut host, None, Flags::default());
    assert_eq!(solicitations(&host.run(Duration::from_millis(5_500))).len(), 1);
    advertise(&mut host, None, SOLICITED);
    assert_eq!(solicitations(&host.run(SECOND * 3)), [], "a solicited one needs no MAC address");
}

#[test]
fn an_advertisement_of_an_unknown_neighbour_creates_no_entry() {
    let mut host = host();
    advertise(&mut host, Some(ONE), SOLICITED);
    assert_eq!(solicitations(&host.ping(PEER)).len(), 1);
    // An advertisement without a MAC address cannot resolve the neighbour.
    advertise(&mut host, None, SOLICITED);
    assert_eq!(addressees(&host.transmit()), []);
    // An unsolicited advertisement gives the MAC address of the neighbour, but does not confirm
    // that it is reachable, so its entry is STALE. Five seconds after the next packet to the
    // neighbour, the host therefore sends a probe.
    advertise(&mut host, Some(ONE), Flags::default());
    assert_eq!(addressees(&host.transmit()), [ONE]);
    host.ping(PEER);
    assert_eq!(solicitations(&host.run(Duration::from_millis(5_500))).len(), 1);
}

#[test]
fn a_known_neighbour_with_another_mac_address_is_stale() {
    let mut host = resolved();
    let message = NdMessage::NeighborSolicitation { target: ip(OWN), source_mac: Some(OTHER) };
    let message = Icmpv6Message::NeighborDiscovery(message);
    host.receive_message(OTHER, ip(PEER), ip(OWN), &message);
    assert_eq!(host.transmit()[0].to, OTHER);
    let sent = host.run(Duration::from_millis(5_500));
    assert_eq!(solicitations(&sent).len(), 1, "it is probed");
}

#[test]
fn an_advertised_reachable_time_replaces_the_default() {
    let mut host = Peer::new(&["2001:db8::1/64"], |config| {
        config.ipv6_autoconfiguration = Some(Autoconfiguration::STABLE);
    });
    host.receive_router(&Router { reachable_time: 4_000, ..Router::new(1) }, &[]);
    host.ping(PEER);
    advertise(&mut host, Some(ONE), SOLICITED);
    host.run(SECOND * 7);
    host.ping(PEER);
    assert_eq!(solicitations(&host.run(Duration::from_millis(5_500))).len(), 1, "it was stale");
}

/// RFC 4861 §7.3.1: if a neighbour acknowledges new data of a connection, this confirms that it is
/// reachable, so the host need not probe it.
#[test]
fn the_progress_of_a_connection_confirms_its_neighbour() {
    let mut pair = Pair::new(&Setup::default(), |side, config| {
        config.addresses.push(format!("2001:db8::{}/64", side as u8 + 1).parse().unwrap());
    });
    let there: std::net::SocketAddr = "[2001:db8::2]:80".parse().unwrap();
    let listener = pair.stack(Side::Right).tcp_listen(there, &ListenOptions::default()).unwrap();
    let now = pair.now;
    let client =
        pair.stack(Side::Left).tcp_connect(now, there, &ConnectOptions::default()).unwrap();
    pair.run_for(SECOND);
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    for _ in 0..600 {
        let now = pair.now;
        pair.stack(Side::Left).tcp_write(now, client, b"data").unwrap();
        pair.run_for(Duration::from_millis(500));
        let now = pair.now;
        pair.stack(Side::Right).tcp_read(now, server, &mut [0; 9]).unwrap();
    }
    let counters = pair.stack(Side::Left).counters().neighbor;
    assert_eq!(counters.out_requests, 1, "only the resolution");
    assert!(counters.confirmations >= 5, "{counters:?}");
    // The server (right) sends no data, so no acknowledgement confirms that the client is
    // reachable. The server must therefore probe the client repeatedly.
    assert!(pair.stack(Side::Right).counters().neighbor.out_requests >= 4);
}

/// RFC 4861 §7.2.3: a solicitation creates a neighbour entry for its sender. The entry is STALE:
/// the solicitation has arrived from the sender, but does not show that packets arrive there.
#[test]
fn a_solicitation_for_us_creates_a_stale_entry() {
    let mut host = host();
    let message = NdMessage::NeighborSolicitation { target: ip(OWN), source_mac: Some(ONE) };
    let message = Icmpv6Message::NeighborDiscovery(message);
    host.receive_message(ONE, ip(PEER), ip(OWN), &message);
    let sent = host.transmit();
    assert_eq!((sent.len(), sent[0].to), (1, ONE), "the answer needs no solicitation");
    assert!(matches!(
        sent[0].discovery(),
        Some((
            _,
            NdMessage::NeighborAdvertisement { is_solicited: true, target_mac: Some(MAC), .. }
        ))
    ));
    let sent = host.run(Duration::from_millis(5_500));
    assert_eq!(solicitations(&sent).len(), 1, "its use is followed by a probe");
}

fn with_router() -> (Peer, Router) {
    let mut host = Peer::new(&["2001:db8::1/64"], |config| {
        config.ipv6_autoconfiguration = Some(Autoconfiguration::STABLE);
    });
    let router = Router::new(1);
    host.receive_router(&router, &[router.source_option(), prefix("2001:db8:1::", 3_600, 3_600)]);
    host.run(SECOND * 5);
    (host, router)
}

fn redirect(host: &mut Peer, from: &Router, to: &str, target: Ipv6Addr, mac: MacAddress) {
    let message = NdMessage::Redirect {
        target,
        destination: ip(to),
        target_mac: Some(mac),
        redirected: None,
    };
    let message = Icmpv6Message::NeighborDiscovery(message);
    let own = host.stack.addresses().iter().find_map(|own| match own.cidr.address() {
        std::net::IpAddr::V6(own) if own.is_unicast_link_local() => Some(own),
        _ => None,
    });
    host.receive_message(from.mac, from.address, own.unwrap(), &message);
}

/// RFC 4861 §7.2.5, §7.3.3: if the advertisement of a default router has a cleared router flag, the
/// router has become an ordinary host. The host under test must remove it from its default routers.
#[test]
fn a_router_that_advertises_itself_as_a_host_is_no_default_router() {
    for has_mac in [true, false] {
        let (mut host, router) = with_router();
        let options = if has_mac { vec![router.source_option()] } else { Vec::new() };
        host.receive_router(&router, &options);
        let message = NdMessage::NeighborAdvertisement {
            is_router: false,
            is_solicited: false,
            is_override: true,
            target: router.address,
            target_mac: Some(router.mac),
        };
        host.receive_advertisement(ipv6_multicast::ALL_NODES, message);
        assert_eq!(host.stack.default_routers(), []);
    }
}

const FAR: &str = "2001:db8:ffff::7";

/// RFC 4861 §8.3: a valid redirect changes the next hop for one destination. This host uses the new
/// next hop for ten minutes.
#[test]
fn a_redirect_of_the_first_hop_changes_the_route_to_one_destination_for_ten_minutes() {
    let (mut host, router) = with_router();
    assert_eq!(addressees(&host.ping(FAR)), [router.mac]);
    let better = Router::new(2);
    redirect(&mut host, &router, FAR, better.address, better.mac);
    assert_eq!(addressees(&host.ping(FAR)), [better.mac]);
    assert_eq!(addressees(&host.ping("2001:db8:ffff::8")), [router.mac]);
    // If the target of a redirect equals its destination, the destination is on-link: the host
    // sends packets to it directly.
    redirect(&mut host, &router, "2001:db8:ffff::8", ip("2001:db8:ffff::8"), OTHER);
    assert_eq!(addressees(&host.ping("2001:db8:ffff::8")), [OTHER]);
    host.run(SECOND * 700);
    let sent = host.ping(FAR);
    assert_eq!(sent[0].solicitation().unwrap().0, router.address);
}

/// RFC 4861 §8.1: a redirect for a destination is valid only if it comes from the router to which
/// the host currently sends packets for this destination.
#[test]
fn forged_redirects_are_refused() {
    let (mut host, router) = with_router();
    let attacker = Router::new(66);
    redirect(&mut host, &attacker, FAR, attacker.address, attacker.mac);
    // The host does not reach an on-link destination through the router, nor its own address. So it
    // must refuse redirects for these, even if they come from the router.
    redirect(&mut host, &router, "2001:db8:1::7", attacker.address, attacker.mac);
    redirect(&mut host, &router, OWN, attacker.address, attacker.mac);
    assert_eq!(addressees(&host.ping(FAR)), [router.mac]);
    assert_eq!(host.stack.counters().neighbor_discovery.refused_redirects, 3);
    let mut unconfigured = self::host();
    redirect(&mut unconfigured, &router, FAR, router.address, router.mac);
    assert_eq!(unconfigured.stack.counters().neighbor_discovery.refused_redirects, 1);
}

#[test]
fn a_redirect_ends_when_its_target_does_not_answer() {
    let (mut host, router) = with_router();
    let better = Router::new(2);
    redirect(&mut host, &router, FAR, better.address, better.mac);
    host.ping(FAR);
    host.run(SECOND * 10);
    assert_eq!(addressees(&host.ping(FAR)), [router.mac]);
}

#[test]
fn a_flood_of_redirects_keeps_sixty_four() {
    let (mut host, router) = with_router();
    for number in 0..1_000_u16 {
        let to = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 1, number).to_string();
        let better = Router::new(2);
        redirect(&mut host, &router, &to, better.address, better.mac);
    }
    assert_eq!(addressees(&host.ping("2001:db8:ffff::1:0")), [router.mac], "the oldest are gone");
    assert_eq!(addressees(&host.ping("2001:db8:ffff::1:3e7")), [Router::new(2).mac]);
}

#[test]
fn a_neighbour_flood_is_bounded_and_keeps_the_neighbours_in_use() {
    let mut host = resolved();
    let mut sent = 0;
    for number in 0..20_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let source = Ipv6Addr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 1, a, b, c, d]);
        let target = ip(OWN);
        let mac = MacAddress::new([2, 1, a, b, c, d]);
        let message = NdMessage::NeighborSolicitation { target, source_mac: Some(mac) };
        host.receive_message(mac, source, target, &Icmpv6Message::NeighborDiscovery(message));
        sent += host.transmit().len();
        if number % 500 == 0 {
            host.ping(PEER);
        }
    }
    assert_eq!(sent, 20_000, "each is answered");
    assert_eq!(addressees(&host.ping(PEER)), [ONE]);
    assert!(host.stack.counters().neighbor.table_overflows >= 18_000);
}

#[test]
fn packets_to_many_absent_neighbours_cause_a_limited_number_of_solicitations() {
    let mut host = host();
    let mut sent = Vec::new();
    for number in 0..5_000_u16 {
        let to = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 7, number).to_string();
        sent.extend(host.ping(&to));
    }
    assert_eq!(solicitations(&sent).len(), 128, "the limit of unresolved neighbours");
}

#[test]
fn messages_that_a_router_has_forwarded_are_refused() {
    let mut host = resolved();
    let header = linerate_wire::Ipv6Header {
        hop_limit: 254,
        ..linerate_wire::Ipv6Header::new(ip(PEER), ip(OWN), linerate_wire::Protocol::ICMPV6)
    };
    let message = Icmpv6Message::NeighborDiscovery(NdMessage::NeighborAdvertisement {
        is_router: false,
        is_solicited: true,
        is_override: true,
        target: ip(PEER),
        target_mac: Some(OTHER),
    });
    let mut packet = vec![0; 40 + message.length()];
    header.emit(message.length(), &mut packet);
    message.emit(&header, &mut packet[40..]);
    host.receive_packet(OTHER, &packet);
    let sent = host.ping(PEER);
    assert_eq!(addressees(&sent), [ONE]);
    assert_eq!((sent[0].ether_type, destination(&sent[0].payload)), (EtherType::IPV6, ip(PEER)));
    assert_eq!(host.stack.counters().icmp.in_errors, 1);
}
