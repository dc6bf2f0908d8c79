//! Tests that a host meets requirements of RFC 1122 on the internet layer and on UDP.
//! `specs/rfc1122.toml` lists the requirements.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Medium, RawOptions, UdpOptions};
use linerate_testkit::{Pair, Setup, Side};
use linerate_wire::{
    Echo, IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol, Quote, Sum, TypeOfService,
    UdpHeader, Unreachable,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

const LEFT: Ipv4Addr = Side::Left.address();
const RIGHT: Ipv4Addr = Side::Right.address();

/// Creates two hosts whose link carries IP packets instead of Ethernet frames, so that tests can
/// write packets without an Ethernet header.
fn pair() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, _| {})
}

fn packet(header: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    header.emit(payload.len(), &mut bytes);
    bytes.extend(payload);
    bytes
}

fn icmp(header: &Ipv4Header, message: &IcmpMessage<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.length()];
    message.emit(&mut bytes);
    packet(header, &bytes)
}

/// Returns an echo request in a packet with this header.
fn echo(header: &Ipv4Header) -> Vec<u8> {
    let echo = Echo { identifier: 1, sequence: 2, data: b"data" };
    icmp(header, &IcmpMessage::EchoRequest(echo))
}

fn to_left(source: Ipv4Addr) -> Ipv4Header {
    Ipv4Header::new(source, LEFT, Protocol::ICMP)
}

/// Returns a packet with a UDP datagram from port 5 of the right host to port 9 of the left host.
/// No socket is bound to port 9.
fn datagram(type_of_service: TypeOfService) -> Vec<u8> {
    let header = Ipv4Header { type_of_service, ..Ipv4Header::new(RIGHT, LEFT, Protocol::UDP) };
    let mut bytes = [0; 12];
    UdpHeader { source_port: 5, destination_port: 9 }.emit(4, &mut bytes);
    let sum = Sum::of(&bytes);
    UdpHeader::fill_checksum(&mut bytes, header.pseudo_header(12), sum);
    packet(&header, &bytes)
}

/// RFC 1122 §3.2.1.3: a host silently discards packets to addresses of other hosts, and packets
/// from invalid source addresses.
#[test]
fn packets_for_others_and_from_invalid_sources_are_silently_discarded() {
    let mut pair = pair();
    assert_eq!(pair.answers(Side::Left, echo(&to_left(RIGHT))).len(), 1);
    for destination in [[192, 0, 2, 77], [203, 0, 113, 1], [224, 0, 0, 9]] {
        let header = Ipv4Header::new(RIGHT, destination.into(), Protocol::ICMP);
        assert!(pair.answers(Side::Left, echo(&header)).is_empty(), "to {destination:?}");
    }
    for source in
        [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4], [192, 0, 2, 255], LEFT.octets()]
    {
        let answers = pair.answers(Side::Left, echo(&to_left(source.into())));
        assert!(answers.is_empty(), "from {source:?}");
    }
}

/// RFC 1122 §3.2.1.7: a host must not discard a packet because its TTL is less than two.
#[test]
fn a_packet_with_a_ttl_of_one_or_zero_is_accepted() {
    for ttl in [1, 0] {
        let header = Ipv4Header { ttl, ..to_left(RIGHT) };
        let answers = pair().answers(Side::Left, echo(&header));
        assert_eq!(Ipv4Packet::parse(&answers[0]).unwrap().header.ttl, 64, "{ttl}");
    }
}

/// RFC 1122 §3.2.1.7: a host must not send a packet with a TTL of zero.
#[test]
fn no_packet_has_a_ttl_of_zero() {
    let mut pair = pair();
    let now = pair.now;
    let anywhere = SocketAddr::from((LEFT, 7));
    let peer = SocketAddrV4::new(RIGHT, 9);
    let stack = pair.stack(Side::Left);
    let udp = stack.udp_bind(anywhere, &UdpOptions { hops: 0, ..UdpOptions::default() }).unwrap();
    stack.udp_send_to(now, udp, peer, b"first").unwrap();
    stack.udp_set_hops(udp, 0).unwrap();
    stack.udp_send_to(now, udp, peer, b"second").unwrap();
    let raw = stack.raw_open(false, Protocol::new(253), &RawOptions::default()).unwrap();
    stack.raw_set_hops(raw, 0).unwrap();
    stack.raw_send_to(now, raw, RIGHT, b"third").unwrap();
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    let sent: Vec<_> = std::iter::from_fn(|| host.link_mut().fetch()).collect();
    let hops = sent.iter().map(|packet| Ipv4Packet::parse(packet).unwrap().header.ttl);
    assert_eq!(hops.collect::<Vec<_>>(), [1, 1, 1]);
}

/// RFC 1122 §3.2.2: an ICMP error has the type of service zero. It quotes the IP header and the
/// first data bytes of the packet that caused it, without changes.
#[test]
fn an_error_has_no_type_of_service_and_quotes_its_packet_unchanged() {
    let request = datagram(TypeOfService::from_byte(0xb8));
    let answers = pair().answers(Side::Left, request.clone());
    let answer = Ipv4Packet::parse(&answers[0]).unwrap();
    assert_eq!(answer.header.type_of_service, TypeOfService::default());
    let IcmpMessage::Error { error, quote } = IcmpMessage::parse(answer.payload).unwrap() else {
        panic!("{answers:?}")
    };
    assert_eq!(error, IcmpError::Unreachable(Unreachable::Port));
    assert_eq!(quote.bytes(), request);
}

/// RFC 1122 §3.2.2: ICMP messages of unknown types are silently discarded. This host does not know
/// the requests 15 and 17, which RFC 6918 has deprecated, the optional timestamp request (13), and
/// router solicitations (10).
#[test]
fn requests_for_times_masks_and_networks_are_silently_discarded() {
    for (kind, length) in [(13, 16), (15, 4), (17, 8), (10, 4), (99, 4)] {
        let body = vec![0; length];
        let message = IcmpMessage::Other { kind, code: 0, body: &body };
        let answers = pair().answers(Side::Left, icmp(&to_left(RIGHT), &message));
        assert!(answers.is_empty(), "type {kind}");
    }
}

/// RFC 1122 §3.2.2: a host must not send an ICMP error about an ICMP error.
#[test]
fn no_error_answers_an_error() {
    let unknown = packet(&Ipv4Header::new(LEFT, RIGHT, Protocol::new(99)), &[0; 8]);
    let error = IcmpError::Unreachable(Unreachable::Protocol);
    let message = IcmpMessage::Error { error, quote: Quote::of(&unknown).unwrap() };
    assert!(pair().answers(Side::Left, icmp(&to_left(RIGHT), &message)).is_empty());
}

/// RFC 1122 §3.2.1.3, §4.1.3.6: the source address of a datagram must be an address of the host,
/// and no broadcast or multicast address.
#[test]
fn no_socket_sends_from_an_address_that_is_not_the_hosts() {
    let mut pair = pair();
    for address in [[192, 0, 2, 255], [255; 4], [192, 0, 2, 77], [192, 0, 2, 0]] {
        let local = SocketAddr::from((address, 7));
        let bound = pair.stack(Side::Left).udp_bind(local, &UdpOptions::default());
        assert!(bound.is_err(), "{local}");
    }
    // A socket that is bound to a multicast group sends from an address of the host.
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let group = SocketAddr::from(([239, 1, 1, 1], 7));
    let socket = stack.udp_bind(group, &UdpOptions::default()).unwrap();
    stack.udp_send_to(now, socket, SocketAddrV4::new(RIGHT, 9), b"data").unwrap();
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    let sent = host.link_mut().fetch().unwrap();
    assert_eq!(Ipv4Packet::parse(&sent).unwrap().header.source, LEFT);
}

/// RFC 1122 §3.2.1.3 (g): loopback addresses must not appear outside a host.
#[test]
fn loopback_addresses_do_not_leave_the_host() {
    let mut pair = pair();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let loopback = Ipv4Addr::LOCALHOST;
    let bound = SocketAddr::from((loopback, 7));
    let socket = stack.udp_bind(bound, &UdpOptions::default()).unwrap();
    let refused = stack.udp_send_to(now, socket, SocketAddrV4::new(RIGHT, 9), b"data");
    assert_eq!(refused, Err(Error::Loopback(loopback.into())));
    let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8));
    let other = stack.udp_bind(anywhere, &UdpOptions::default()).unwrap();
    stack.udp_send_to(now, other, SocketAddrV4::new(loopback, 7), b"data").unwrap();
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    assert_eq!(host.link_mut().fetch(), None);
    assert!(pair.stack(Side::Left).udp_is_readable(socket).unwrap());
}
