//! Tests of raw sockets of both IP versions, and of header fields that an application can set for
//! datagrams.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Event, RawEvent, RawHandle, RawOptions, UdpOptions};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    Echo, EthernetFrame, Icmpv6Message, Ipv4Packet, Ipv6Header, Protocol, TypeOfService,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// A protocol number for experiments (RFC 3692).
const EXPERIMENT: Protocol = Protocol::new(253);

fn address(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, side as u16 + 1)
}

fn pair() -> Pair {
    Pair::new(&Setup::default(), |side, config| {
        config.addresses.push(format!("{}/64", address(side)).parse().unwrap());
    })
}

fn open(pair: &mut Pair, side: Side, is_ipv6: bool, protocol: Protocol) -> RawHandle {
    pair.stack(side).raw_open(is_ipv6, protocol, &RawOptions::default()).unwrap()
}

fn received(pair: &mut Pair, side: Side, socket: RawHandle) -> Option<(Vec<u8>, IpAddr, u8)> {
    let mut into = [0; 2_000];
    let (length, packet) = pair.stack(side).raw_receive(socket, &mut into).ok()?;
    Some((into[..length].to_vec(), packet.source, packet.hops))
}

#[test]
fn packets_of_any_protocol_are_exchanged_over_both_versions() {
    for is_ipv6 in [false, true] {
        let mut pair = pair();
        let of = |side: Side| match is_ipv6 {
            true => IpAddr::from(address(side)),
            false => side.address().into(),
        };
        let left = open(&mut pair, Side::Left, is_ipv6, EXPERIMENT);
        let right = open(&mut pair, Side::Right, is_ipv6, EXPERIMENT);
        let other = open(&mut pair, Side::Right, is_ipv6, Protocol::new(254));
        let twin = open(&mut pair, Side::Right, is_ipv6, EXPERIMENT);
        let version = open(&mut pair, Side::Right, !is_ipv6, EXPERIMENT);
        let now = pair.now;
        pair.stack(Side::Left).raw_set_hops(left, 9).unwrap();
        pair.stack(Side::Left).raw_send_to(now, left, of(Side::Right), b"data").unwrap();
        pair.run_for(Duration::from_millis(1));
        let event = Event::Raw(right, RawEvent::Readable);
        let events: Vec<_> = std::iter::from_fn(|| pair.stack(Side::Right).poll_event()).collect();
        assert!(events.contains(&event), "{events:?}");
        let expected = Some((b"data".to_vec(), of(Side::Left), 9));
        assert_eq!(received(&mut pair, Side::Right, right), expected);
        assert_eq!(received(&mut pair, Side::Right, twin), expected, "each socket gets a copy");
        assert_eq!(received(&mut pair, Side::Right, other), None);
        assert_eq!(received(&mut pair, Side::Right, version), None);
        let counters = pair.stack(Side::Right).counters();
        assert_eq!((counters.ip.in_unknown_protocols, counters.icmp.out_unreachables), (0, 0));
        pair.stack(Side::Right).check();
    }
}

#[test]
fn a_closed_socket_leaves_its_protocol_unknown() {
    let mut pair = pair();
    let left = open(&mut pair, Side::Left, false, EXPERIMENT);
    let right = open(&mut pair, Side::Right, false, EXPERIMENT);
    pair.stack(Side::Right).raw_close(right).unwrap();
    assert_eq!(pair.stack(Side::Right).raw_close(right), Err(Error::Closed));
    let now = pair.now;
    pair.stack(Side::Left).raw_send_to(now, left, Side::Right.address(), b"data").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Right).counters().ip.in_unknown_protocols, 1);
    pair.stack(Side::Right).check();
}

/// A raw socket receives copies of echo requests. The host must still answer these requests itself.
#[test]
fn the_host_handles_its_protocols_beside_raw_sockets() {
    let mut pair = pair();
    let right = open(&mut pair, Side::Right, true, Protocol::ICMPV6);
    let left = open(&mut pair, Side::Left, true, Protocol::ICMPV6);
    let message = Icmpv6Message::EchoRequest(Echo { identifier: 7, sequence: 1, data: b"hello" });
    let mut bytes = vec![0; message.length()];
    let header = Ipv6Header::new(address(Side::Left), address(Side::Right), Protocol::ICMPV6);
    message.emit(&header, &mut bytes);
    // The application writes a wrong checksum. This does not matter, because the host computes the
    // checksum of ICMPv6 packets that are sent by raw sockets.
    bytes[2..4].fill(0xee);
    let now = pair.now;
    pair.stack(Side::Left).raw_send_to(now, left, address(Side::Right), &bytes).unwrap();
    pair.run_for(Duration::from_millis(1));
    let first = |pair: &mut Pair, side: Side, socket, kind: u8| {
        let found = std::iter::from_fn(|| received(pair, side, socket));
        let mut found = found.filter(|(bytes, _, _)| bytes[0] == kind);
        found.next().expect("a message of the kind")
    };
    let (request, _, _) = first(&mut pair, Side::Right, right, 128);
    let parsed = Icmpv6Message::parse(&header, &request);
    assert_eq!(parsed, Ok(message), "the checksum is right");
    let (_, from, _) = first(&mut pair, Side::Left, left, 129);
    assert_eq!(from, IpAddr::from(address(Side::Right)));
}

#[test]
fn queues_are_bounded_and_a_refused_sender_gets_an_event() {
    let mut pair = pair();
    let mut options = RawOptions::default();
    (options.send_bytes, options.receive_bytes) = (2 * (64 + 20 + 10), 64 + 10);
    let left = pair.stack(Side::Left).raw_open(false, EXPERIMENT, &options).unwrap();
    let right = pair.stack(Side::Right).raw_open(false, EXPERIMENT, &options).unwrap();
    let now = pair.now;
    let to = Side::Right.address();
    let send =
        |pair: &mut Pair, bytes: &[u8]| pair.stack(Side::Left).raw_send_to(now, left, to, bytes);
    assert_eq!([send(&mut pair, &[1; 10]), send(&mut pair, &[2; 10])], [Ok(()); 2]);
    assert_eq!(send(&mut pair, &[3; 10]), Err(Error::WouldBlock));
    assert_eq!(send(&mut pair, &[3; 105]), Err(Error::MessageTooLong { limit: 104 }));
    pair.run_for(Duration::from_millis(1));
    let event = Event::Raw(left, RawEvent::Writable);
    assert_eq!(pair.stack(Side::Left).poll_event(), Some(event));
    assert_eq!(received(&mut pair, Side::Right, right).map(|it| it.0), Some(vec![1; 10]));
    assert_eq!(received(&mut pair, Side::Right, right), None);
    assert_eq!(pair.stack(Side::Right).counters().ip.in_discards, 1);
}

#[test]
fn invalid_destinations_are_refused() {
    let mut pair = pair();
    let socket = open(&mut pair, Side::Left, false, EXPERIMENT);
    let now = pair.now;
    let mut send = |to: IpAddr| pair.stack(Side::Left).raw_send_to(now, socket, to, b"");
    for to in [IpAddr::from([0, 0, 0, 0]), address(Side::Right).into()] {
        assert_eq!(send(to), Err(Error::InvalidDestination((to, 0).into())));
    }
    let broadcast = IpAddr::from([255; 4]);
    assert_eq!(send(broadcast), Err(Error::BroadcastForbidden(broadcast)));
    let far = IpAddr::from([198, 51, 100, 1]);
    assert_eq!(send(far), Err(Error::NoRoute(far)));
}

#[test]
fn a_host_sends_raw_packets_to_itself() {
    let mut pair = pair();
    let socket = open(&mut pair, Side::Left, false, EXPERIMENT);
    let (now, own) = (pair.now, IpAddr::from(Side::Left.address()));
    pair.stack(Side::Left).raw_send_to(now, socket, own, b"self").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(received(&mut pair, Side::Left, socket), Some((b"self".to_vec(), own, 64)));
}

/// RFC 1122 §4.1.4: the application sets the TTL and the type of service.
#[test]
fn the_hops_and_the_type_of_service_of_datagrams_can_be_set() {
    let mut pair = pair();
    let sent = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&sent);
    pair.observe(move |_, _, frame| {
        let frame = EthernetFrame::parse(frame).unwrap();
        if let Ok(packet) = Ipv4Packet::parse(frame.payload)
            && packet.header.protocol == Protocol::UDP
        {
            log.borrow_mut().push((packet.header.ttl, packet.header.type_of_service.byte()));
        }
    });
    let local = (Side::Left.address(), 5);
    let left = pair.stack(Side::Left).udp_bind(local, &UdpOptions::default()).unwrap();
    let send = |pair: &mut Pair| {
        let now = pair.now;
        let stack = pair.stack(Side::Left);
        stack.udp_send_to(now, left, (Side::Right.address(), 9), b"data").unwrap();
        pair.run_for(Duration::from_millis(1));
    };
    send(&mut pair);
    pair.stack(Side::Left).udp_set_hops(left, 3).unwrap();
    let service = TypeOfService::from_byte(0xb8 | 2);
    pair.stack(Side::Left).udp_set_type_of_service(left, service).unwrap();
    assert_eq!(pair.stack(Side::Left).udp_hops(left), Ok(3));
    assert_eq!(pair.stack(Side::Left).udp_type_of_service(left), Ok(service));
    send(&mut pair);
    assert_eq!(*sent.borrow(), [(64, 0), (3, 0xba)]);
}
