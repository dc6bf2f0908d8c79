//! Tests of multicast between two hosts: group memberships of sockets, and membership reports on
//! the link (RFC 1112, RFC 3376, RFC 3810).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Medium, RxFrame, UdpHandle, UdpOptions};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    EtherType, EthernetFrame, EthernetHeader, GroupMessage, GroupRecordKind, Icmpv6Message,
    Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet, MacAddress, Protocol, Sum, VlanTags, igmp, mld,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const PORT: u16 = 5_000;

fn address(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, side as u16 + 1)
}

fn group_v6() -> Ipv6Addr {
    "ff05::1:3".parse().unwrap()
}

fn pair(medium: Medium) -> Pair {
    Pair::new(&Setup { medium, ..Setup::default() }, |side, config| {
        config.addresses.push(format!("{}/64", address(side)).parse().unwrap());
    })
}

fn bind(pair: &mut Pair, side: Side, local: &str) -> UdpHandle {
    let local: SocketAddr = local.parse().unwrap();
    pair.stack(side).udp_bind(local, &UdpOptions::default()).unwrap()
}

fn join(
    pair: &mut Pair,
    side: Side,
    socket: UdpHandle,
    group: IpAddr,
    source: Option<IpAddr>,
) -> Result<(), Error> {
    let now = pair.now;
    pair.stack(side).udp_join(now, socket, group, source)
}

/// Sends a datagram from the left host to the group, and runs both hosts until it has arrived.
fn send(pair: &mut Pair, socket: UdpHandle, group: IpAddr, data: &[u8]) {
    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, socket, (group, PORT), data).unwrap();
    pair.run_for(Duration::from_millis(1));
}

fn received(pair: &mut Pair, side: Side, socket: UdpHandle) -> Option<Vec<u8>> {
    let mut into = [0; 100];
    let (length, _) = pair.stack(side).udp_receive_from(socket, &mut into).ok()?;
    Some(into[..length].to_vec())
}

/// A record of the membership reports that use the current protocol version. Each group record of a
/// report is one text, such as `239.1.2.3 ToExclude []`.
type Reports = Rc<RefCell<Vec<String>>>;

/// Records the membership reports that the right host sends from now on, and checks the headers of
/// their packets.
fn observe_reports(pair: &mut Pair) -> Reports {
    let reports = Reports::default();
    let log = Rc::clone(&reports);
    pair.observe(move |_, side, frame| {
        if side == Side::Right {
            log.borrow_mut().extend(reports_in(frame));
        }
    });
    reports
}

fn reports_in(frame: &[u8]) -> Vec<String> {
    let frame = EthernetFrame::parse(frame).unwrap();
    let mac = frame.header.destination;
    let payload;
    let message = if frame.header.ether_type == EtherType::IPV4 {
        let packet = Ipv4Packet::parse(frame.payload).unwrap();
        if packet.header.protocol != Protocol::IGMP {
            return Vec::new();
        }
        assert_eq!((packet.header.ttl, packet.options), (1, &igmp::ROUTER_ALERT[..]));
        assert_eq!(mac, MacAddress::of_ipv4_multicast(packet.header.destination));
        assert_eq!(packet.header.source, Side::Right.address());
        payload = packet.payload.to_vec();
        igmp::parse(&payload).unwrap()
    } else if frame.header.ether_type == EtherType::IPV6 {
        let packet = Ipv6Packet::parse(frame.payload).unwrap();
        let parsed = Icmpv6Message::parse(&packet.header, packet.payload);
        if !matches!(parsed, Ok(Icmpv6Message::Other { .. })) {
            return Vec::new();
        }
        assert_eq!((packet.header.hop_limit, packet.extensions), (1, &mld::ROUTER_ALERT[..]));
        assert_eq!(mac, MacAddress::of_ipv6_multicast(packet.header.destination));
        assert!(packet.header.source.is_unicast_link_local());
        payload = packet.payload.to_vec();
        mld::parse(&payload).unwrap()
    } else {
        return Vec::new();
    };
    match message {
        Some(GroupMessage::Report(records)) => {
            let line = |record: linerate_wire::GroupRecord<'_>| {
                let sources: Vec<_> = record.sources.iter().collect();
                format!("{} {:?} {sources:?}", record.group, record.kind)
            };
            records.iter().map(line).collect()
        }
        other => vec![format!("{other:?}")],
    }
}

/// Delivers an IGMP query with these IP options to the right host.
fn deliver_query(pair: &mut Pair, source: Ipv4Addr, options: &[u8], query: &[u8]) {
    deliver_query_to(pair, igmp::ALL_HOSTS, source, options, query);
}

fn deliver_query_to(pair: &mut Pair, to: Ipv4Addr, source: Ipv4Addr, options: &[u8], query: &[u8]) {
    let mut message = query.to_vec();
    let checksum = Sum::of(&message).finish();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let ethernet = EthernetHeader {
        destination: if to.is_multicast() {
            MacAddress::of_ipv4_multicast(to)
        } else {
            Side::Right.mac()
        },
        source: Side::Left.mac(),
        tags: VlanTags::NONE,
        ether_type: EtherType::IPV4,
    };
    let mut frame = [0; 100];
    let at = ethernet.emit(&mut frame);
    let header = Ipv4Header { ttl: 1, ..Ipv4Header::new(source, to, Protocol::IGMP) };
    let end = at + header.emit_with_options(options, message.len(), &mut frame[at..]);
    frame[end..end + message.len()].copy_from_slice(&message);
    let now = pair.now;
    let frame = RxFrame::plain(&frame[..end + message.len()], now);
    pair.stack(Side::Right).handle_frame(now, frame);
}

const GENERAL_QUERY: [u8; 12] = [0x11, 10, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0];

#[test]
fn datagrams_are_received_from_joining_until_leaving() {
    for (group, any) in [(GROUP.into(), "0.0.0.0"), (IpAddr::from(group_v6()), "[::]")] {
        let mut pair = pair(Medium::Ethernet);
        let left = bind(&mut pair, Side::Left, &format!("{any}:0"));
        let right = bind(&mut pair, Side::Right, &format!("{any}:{PORT}"));
        send(&mut pair, left, group, b"before");
        assert_eq!(received(&mut pair, Side::Right, right), None);
        assert_eq!(join(&mut pair, Side::Right, right, group, None), Ok(()));
        send(&mut pair, left, group, b"now");
        assert_eq!(received(&mut pair, Side::Right, right), Some(b"now".to_vec()));
        let now = pair.now;
        pair.stack(Side::Right).udp_leave(now, right, group, None).unwrap();
        send(&mut pair, left, group, b"after");
        assert_eq!(received(&mut pair, Side::Right, right), None);
    }
}

#[test]
fn every_member_with_the_port_receives_a_copy_and_others_none() {
    let mut pair = pair(Medium::Ethernet);
    let left = bind(&mut pair, Side::Left, "0.0.0.0:0");
    let members = [
        bind(&mut pair, Side::Right, &format!("0.0.0.0:{PORT}")),
        bind(&mut pair, Side::Right, &format!("{GROUP}:{PORT}")),
    ];
    let others = [
        bind(&mut pair, Side::Right, &format!("{}:{PORT}", Side::Right.address())),
        bind(&mut pair, Side::Right, "0.0.0.0:7"),
        bind(&mut pair, Side::Right, &format!("239.9.9.9:{PORT}")),
    ];
    for socket in members.into_iter().chain(others) {
        join(&mut pair, Side::Right, socket, GROUP.into(), None).unwrap();
    }
    send(&mut pair, left, GROUP.into(), b"to all");
    for socket in members {
        assert_eq!(received(&mut pair, Side::Right, socket), Some(b"to all".to_vec()));
    }
    assert!(others.iter().all(|&other| received(&mut pair, Side::Right, other).is_none()));
}

#[test]
fn sources_are_included_and_excluded() {
    let mut pair = pair(Medium::Ethernet);
    let left = bind(&mut pair, Side::Left, "0.0.0.0:0");
    let right = bind(&mut pair, Side::Right, &format!("0.0.0.0:{PORT}"));
    let source = IpAddr::from(Side::Left.address());
    let other = IpAddr::from([10, 9, 9, 9]);
    join(&mut pair, Side::Right, right, GROUP.into(), Some(other)).unwrap();
    send(&mut pair, left, GROUP.into(), b"not asked for");
    assert_eq!(received(&mut pair, Side::Right, right), None);
    join(&mut pair, Side::Right, right, GROUP.into(), Some(source)).unwrap();
    send(&mut pair, left, GROUP.into(), b"asked for");
    assert_eq!(received(&mut pair, Side::Right, right), Some(b"asked for".to_vec()));
    let now = pair.now;
    pair.stack(Side::Right).udp_leave(now, right, GROUP, None).unwrap();
    join(&mut pair, Side::Right, right, GROUP.into(), None).unwrap();
    pair.stack(Side::Right).udp_block_source(now, right, GROUP, source).unwrap();
    send(&mut pair, left, GROUP.into(), b"blocked");
    assert_eq!(received(&mut pair, Side::Right, right), None);
    pair.stack(Side::Right).udp_unblock_source(now, right, GROUP, source).unwrap();
    send(&mut pair, left, GROUP.into(), b"admitted");
    assert_eq!(received(&mut pair, Side::Right, right), Some(b"admitted".to_vec()));
}

#[test]
fn the_sender_receives_its_datagrams_unless_loop_is_off() {
    let mut pair = pair(Medium::Ethernet);
    let left = bind(&mut pair, Side::Left, &format!("0.0.0.0:{PORT}"));
    send(&mut pair, left, GROUP.into(), b"not a member");
    join(&mut pair, Side::Left, left, GROUP.into(), None).unwrap();
    send(&mut pair, left, GROUP.into(), b"a member");
    assert_eq!(received(&mut pair, Side::Left, left), Some(b"a member".to_vec()));
    pair.stack(Side::Left).udp_set_multicast_loop(left, false).unwrap();
    send(&mut pair, left, GROUP.into(), b"off");
    assert_eq!(received(&mut pair, Side::Left, left), None);
}

#[test]
fn datagrams_to_groups_have_one_hop_unless_told_otherwise() {
    let mut pair = pair(Medium::Ethernet);
    let sent = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&sent);
    pair.observe(move |_, side, frame| {
        let frame = EthernetFrame::parse(frame).unwrap();
        let packet = Ipv4Packet::parse(frame.payload);
        if let (Side::Left, Ok(Ipv4Packet { header, .. })) = (side, packet)
            && header.destination == GROUP
            && header.protocol == Protocol::UDP
        {
            let mac = frame.header.destination;
            assert_eq!(mac, MacAddress::new([1, 0, 0x5e, 1, 2, 3]));
            log.borrow_mut().push(header.ttl);
        }
    });
    let left = bind(&mut pair, Side::Left, &format!("0.0.0.0:{PORT}"));
    join(&mut pair, Side::Left, left, GROUP.into(), None).unwrap();
    for hops in [1, 17, 0] {
        pair.stack(Side::Left).udp_set_multicast_hops(left, hops).unwrap();
        send(&mut pair, left, GROUP.into(), b"hops");
        assert!(received(&mut pair, Side::Left, left).is_some());
    }
    assert_eq!(*sent.borrow(), [1, 17], "nothing without a hop leaves the host");
}

#[test]
fn memberships_are_reported_and_queries_answered() {
    let mut pair = pair(Medium::Ethernet);
    pair.run_for(Duration::from_secs(2));
    let reports = observe_reports(&mut pair);
    let right = bind(&mut pair, Side::Right, &format!("0.0.0.0:{PORT}"));
    join(&mut pair, Side::Right, right, GROUP.into(), None).unwrap();
    pair.run_for(Duration::from_secs(5));
    let change = format!("{GROUP} {:?} []", GroupRecordKind::ToExclude);
    assert_eq!(reports.take(), [change.clone(), change]);
    deliver_query(&mut pair, Side::Left.address(), &igmp::ROUTER_ALERT, &GENERAL_QUERY);
    // A bridge without an IP address may send queries. A query from the unspecified address is
    // therefore valid.
    deliver_query(&mut pair, Ipv4Addr::UNSPECIFIED, &igmp::ROUTER_ALERT, &GENERAL_QUERY);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(reports.take(), [format!("{GROUP} {:?} []", GroupRecordKind::IsExclude)]);
    pair.stack(Side::Right).udp_close(right).unwrap();
    pair.run_for(Duration::from_secs(2));
    let change = format!("{GROUP} {:?} []", GroupRecordKind::ToInclude);
    assert_eq!(reports.take(), [change.clone(), change]);
    let counters = pair.stack(Side::Right).counters().groups;
    assert_eq!((counters.in_queries, counters.in_errors), (2, 0));
}

/// The host must ignore queries that cannot come from a router of the link. IGMP queries need a
/// Router Alert option (RFC 3376 §9.1). MLD queries need this option, a link-local source, and a
/// hop limit of 1 (RFC 3810 §6.2).
#[test]
fn queries_that_no_router_of_the_link_can_have_sent_are_ignored() {
    let mut pair = pair(Medium::Ethernet);
    let right = bind(&mut pair, Side::Right, &format!("0.0.0.0:{PORT}"));
    join(&mut pair, Side::Right, right, GROUP.into(), None).unwrap();
    pair.run_for(Duration::from_secs(5));
    let reports = observe_reports(&mut pair);
    deliver_query(&mut pair, Side::Left.address(), &[], &GENERAL_QUERY);
    deliver_query(&mut pair, Side::Left.address(), &igmp::ROUTER_ALERT, &GENERAL_QUERY[..10]);
    let mld_query = |source: Ipv6Addr, hop_limit, with_alert: bool| {
        let alert = if with_alert { &mld::ROUTER_ALERT[..] } else { &[] };
        let next = if with_alert { Protocol::HOP_BY_HOP } else { Protocol::ICMPV6 };
        let header =
            Ipv6Header { hop_limit, ..Ipv6Header::new(source, address(Side::Right), next) };
        let body = [0, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let message = Icmpv6Message::Other { kind: 130, code: 0, body: &body };
        let mut packet = vec![0; 40 + alert.len() + message.length()];
        header.emit(alert.len() + message.length(), &mut packet);
        packet[40..40 + alert.len()].copy_from_slice(alert);
        message.emit(&header, &mut packet[40 + alert.len()..]);
        let ethernet = EthernetHeader {
            destination: Side::Right.mac(),
            source: Side::Left.mac(),
            tags: VlanTags::NONE,
            ether_type: EtherType::IPV6,
        };
        let mut frame = vec![0; 14];
        ethernet.emit(&mut frame);
        frame.extend(packet);
        frame
    };
    let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
    let global = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
    for frame in [
        mld_query(router, 255, true),
        mld_query(router, 1, false),
        mld_query(global, 1, true),
        mld_query(Ipv6Addr::UNSPECIFIED, 1, true),
    ] {
        let now = pair.now;
        pair.stack(Side::Right).handle_frame(now, RxFrame::plain(&frame, now));
    }
    pair.run_for(Duration::from_secs(20));
    assert_eq!(reports.take(), [""; 0]);
    let counters = pair.stack(Side::Right).counters();
    // The host has counted two IGMP queries and four MLD queries as invalid queries. It has counted
    // none of them as an invalid ICMPv6 message. An ICMPv6 packet from the unspecified address, as
    // one of them was, is not invalid as such (RFC 3590).
    assert_eq!((counters.groups.in_errors, counters.icmp.in_errors), (6, 0));
    let (now, frame) = (pair.now, mld_query(router, 1, true));
    pair.stack(Side::Right).handle_frame(now, RxFrame::plain(&frame, now));
    pair.run_for(Duration::from_secs(20));
    assert_eq!(reports.take().len(), 1, "both addresses have one group");
}

/// RFC 3376 §4.1.12: a host processes a query that was sent to any address of the interface. §9.1:
/// but it ignores a general query that was sent to a group other than that of all hosts.
#[test]
fn a_query_to_any_address_is_answered_and_a_general_one_to_another_group_is_not() {
    let mut pair = pair(Medium::Ethernet);
    let right = bind(&mut pair, Side::Right, &format!("0.0.0.0:{PORT}"));
    join(&mut pair, Side::Right, right, GROUP.into(), None).unwrap();
    pair.run_for(Duration::from_secs(5));
    let reports = observe_reports(&mut pair);
    let (router, alert) = (Side::Left.address(), igmp::ROUTER_ALERT);
    let state = format!("{GROUP} {:?} []", GroupRecordKind::IsExclude);
    let mut specific = GENERAL_QUERY;
    specific[4..8].copy_from_slice(&GROUP.octets());
    let to_us = Side::Right.address();
    for (to, query, expected) in
        [(to_us, GENERAL_QUERY, true), (GROUP, specific, true), (GROUP, GENERAL_QUERY, false)]
    {
        deliver_query_to(&mut pair, to, router, &alert, &query);
        pair.run_for(Duration::from_secs(5));
        let expected = if expected { vec![state.clone()] } else { Vec::new() };
        assert_eq!(reports.take(), expected, "{to}");
    }
    assert_eq!(pair.stack(Side::Right).counters().groups.in_errors, 1);
}

/// On Ethernet, a host joins the solicited-node groups of its addresses (RFC 4861 §7.2.1) and
/// reports them. Some bridges forward multicast packets only to members, and would not deliver
/// neighbour solicitations to the host otherwise.
#[test]
fn a_host_reports_the_groups_of_its_addresses_on_ethernet() {
    for (medium, count) in [(Medium::Ethernet, 2), (Medium::Ip, 0)] {
        let mut pair = pair(medium);
        pair.run_for(Duration::from_secs(5));
        let counters = pair.stack(Side::Right).counters();
        assert_eq!(counters.groups.out_reports, count, "{medium:?}");
    }
    let mut pair = pair(Medium::Ethernet);
    let reports = observe_reports(&mut pair);
    pair.run_for(Duration::from_secs(5));
    let mut groups: Vec<_> = reports.take();
    groups.sort();
    groups.dedup();
    assert_eq!(groups, ["ff02::1:ff00:2 ToExclude []"]);
}

#[test]
fn memberships_in_what_is_no_group_are_refused() {
    let mut pair = pair(Medium::Ethernet);
    let socket = bind(&mut pair, Side::Right, "0.0.0.0:9");
    let unicast = IpAddr::from([192, 0, 2, 1]);
    let refused = join(&mut pair, Side::Right, socket, unicast, None);
    assert_eq!(refused, Err(Error::NotAGroup(unicast)));
    let other = group_v6().into();
    let mixed = Error::OtherVersion { local: Ipv4Addr::UNSPECIFIED.into(), remote: other };
    assert_eq!(join(&mut pair, Side::Right, socket, other, None), Err(mixed));
    let now = pair.now;
    let left = pair.stack(Side::Right).udp_leave(now, socket, GROUP, None);
    assert_eq!(left, Err(Error::NotJoined(GROUP.into())));
}
