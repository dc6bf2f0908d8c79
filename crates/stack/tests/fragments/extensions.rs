//! Tests of IPv6 extension headers and of IPv4 options in received packets.

use crate::{
    LEFT, LEFT_IPV6, Part, RIGHT, RIGHT_IPV6, VERSIONS, answers, bind, data, datagram, deliver,
    pair, receive,
};
use linerate_stack::Error;
use linerate_testkit::{Pair, Side};
use linerate_wire::{
    IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, Icmpv6Problem, Ipv4Header, Ipv4Packet,
    Ipv6Header, Ipv6Packet, Protocol, Unreachable, ipv6_multicast,
};
use std::net::Ipv6Addr;

/// Returns an IPv6 packet to `destination`. `body` follows the IPv6 header, and `next` says which
/// header it begins with.
fn packet(destination: Ipv6Addr, next: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    Ipv6Header::new(RIGHT_IPV6, destination, Protocol::new(next)).emit(body.len(), &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

/// Delivers a packet to the left host. Returns the ICMPv6 error that the host sends about it;
/// `None` if the host does not answer.
fn error_about(pair: &mut Pair, packet: Vec<u8>) -> Option<Icmpv6Error> {
    let answer = answers(pair, packet).pop()?;
    let packet = Ipv6Packet::parse(&answer).unwrap();
    assert_eq!((packet.header.source, packet.header.destination), (LEFT_IPV6, RIGHT_IPV6));
    match Icmpv6Message::parse(&packet.header, packet.payload) {
        Ok(Icmpv6Message::Error { error, .. }) => Some(error),
        other => panic!("{other:?}"),
    }
}

fn problem(problem: Icmpv6Problem, pointer: u32) -> Option<Icmpv6Error> {
    Some(Icmpv6Error::ParameterProblem { problem, pointer })
}

#[test]
fn a_datagram_behind_extension_headers_is_delivered() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT_IPV6.into(), 9);
    let mut body = vec![60, 0, 5, 2, 0, 0, 1, 0];
    body.extend([43, 0, 1, 4, 0, 0, 0, 0]);
    body.extend([44, 0, 4, 0, 0, 0, 0, 0]);
    body.extend([60, 0, 0, 0, 0, 0, 0, 9]);
    body.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    body.extend(datagram(VERSIONS[1], b"hello"));
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 0, &body)), None);
    assert_eq!(receive(&mut pair, Side::Left, left), Ok(b"hello".to_vec()));
}

/// RFC 6946: an atomic fragment (a packet with a fragment header that is not split) is processed at
/// once. Other fragments with the same identification do not affect it.
#[test]
fn atomic_fragments_are_processed_alone() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT_IPV6.into(), 9);
    let hosts = VERSIONS[1];
    let whole = datagram(hosts, &data(56));
    deliver(&mut pair, hosts, Part::udp(0, &whole[..32], true));
    deliver(&mut pair, hosts, Part::udp(0, &datagram(hosts, b"atomic"), false));
    assert_eq!(receive(&mut pair, Side::Left, left), Ok(b"atomic".to_vec()));
    deliver(&mut pair, hosts, Part::udp(32, &whole[32..], false));
    assert_eq!(receive(&mut pair, Side::Left, left), Ok(data(56)));
    assert_eq!(pair.stack(Side::Left).counters().ip.reassembly_required, 2);
}

#[test]
fn unknown_options_have_the_effect_that_their_type_selects() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT_IPV6.into(), 9);
    let with = |kind: u8| {
        let datagram = datagram(VERSIONS[1], b"hello");
        [&[17, 0, kind, 4, 0, 0, 0, 0], &datagram[..]].concat()
    };
    let option = problem(Icmpv6Problem::Option, 42);
    for (kind, error, is_delivered) in
        [(0x1f, None, true), (0x5f, None, false), (0x9f, option, false), (0xdf, option, false)]
    {
        for header in [0, 60] {
            let found = error_about(&mut pair, packet(LEFT_IPV6, header, &with(kind)));
            assert_eq!(found, error, "{kind:#x} in header {header}");
            assert_eq!(receive(&mut pair, Side::Left, left).is_ok(), is_delivered);
        }
    }
    // A packet to a multicast group contains an unknown option. The host reports it only if the
    // option type begins with the bits `10` (RFC 4443 §2.4 e.3).
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(error_about(&mut pair, packet(all_nodes, 0, &with(0x9f))), option);
    assert_eq!(error_about(&mut pair, packet(all_nodes, 0, &with(0xdf))), None);
    assert_eq!(pair.stack(Side::Left).counters().ip.in_header_errors, 8);
    assert_eq!(pair.stack(Side::Left).counters().icmp.out_parameter_problems, 5);
}

/// RFC 8200 §4.4: a packet with a routing header of an unknown type is refused unless Segments Left
/// is zero. RFC 5095: type 0 counts as unknown.
#[test]
fn routing_headers_with_segments_left_are_refused() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT_IPV6.into(), 9);
    for kind in [0, 2, 4] {
        let mut body = vec![17, 2, kind, 1, 0, 0, 0, 0];
        body.extend(RIGHT_IPV6.octets());
        body.extend(datagram(VERSIONS[1], b"hello"));
        let error = error_about(&mut pair, packet(LEFT_IPV6, 43, &body));
        assert_eq!(error, problem(Icmpv6Problem::HeaderField, 42));
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
        body[3] = 0;
        assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 43, &body)), None);
        assert_eq!(receive(&mut pair, Side::Left, left), Ok(b"hello".to_vec()));
    }
}

#[test]
fn unknown_headers_are_reported_and_no_next_header_is_not() {
    let mut pair = pair();
    let next = Icmpv6Problem::NextHeader;
    // This host has no IPsec, so it refuses an authentication header as an unknown header.
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 51, &[0; 24])), problem(next, 6));
    let body = [200, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4];
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 60, &body)), problem(next, 40));
    let misplaced = [0, 0, 1, 4, 0, 0, 0, 0, 59, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 60, &misplaced)), problem(next, 40));
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 59, &[])), None);
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 60, &[59, 0, 1, 4, 0, 0, 0, 0, 1])), None);
    assert_eq!(pair.stack(Side::Left).counters().ip.in_unknown_protocols, 2);
}

/// If options are behind the fragment header, they belong to the reassembled packet (RFC 8200
/// §4.5). The host must not examine them before reassembly.
#[test]
fn options_behind_a_fragment_header_are_examined_after_reassembly() {
    let mut pair = pair();
    let hosts = VERSIONS[1];
    let body = [&[17, 0, 0x9f, 4, 0, 0, 0, 0], &datagram(hosts, &data(56))[..]].concat();
    let first = Part { protocol: Protocol::new(60), ..Part::udp(0, &body[..32], true) };
    assert_eq!(deliver(&mut pair, hosts, first).len(), 0);
    let last = Part { offset: 32, more: false, payload: &body[32..], ..first };
    let error = error_about(&mut pair, last.packet(hosts));
    assert_eq!(error, problem(Icmpv6Problem::Option, 42));
}

#[test]
fn errors_do_not_answer_errors() {
    let mut pair = pair();
    let mut body = vec![58, 0, 0x9f, 4, 0, 0, 0, 0];
    body.extend([1, 4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(error_about(&mut pair, packet(LEFT_IPV6, 60, &body)), None);
    body[8] = 128;
    let error = error_about(&mut pair, packet(LEFT_IPV6, 60, &body));
    assert_eq!(error, problem(Icmpv6Problem::Option, 42));
}

/// RFC 1122 §3.2.1.8: a host that does not forward refuses a source route. RFC 791: a malformed
/// option is a parameter problem.
#[test]
fn source_routes_and_malformed_options_of_ipv4_are_refused() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT.into(), 9);
    let datagram = datagram(VERSIONS[0], b"hello");
    let refused = IcmpError::Unreachable(Unreachable::SourceRouteFailed);
    for (options, error) in [
        ([131, 7, 4, 192, 0, 2, 254, 0], Some(refused)),
        ([137, 7, 4, 192, 0, 2, 254, 0], Some(refused)),
        ([131, 7, 8, 192, 0, 2, 254, 0], None),
        ([1, 1, 7, 9, 0, 0, 0, 0], Some(IcmpError::ParameterProblem { pointer: 22 })),
        ([148, 4, 0, 0, 68, 4, 5, 0], None),
    ] {
        let mut packet = vec![0; 28];
        let header = Ipv4Header::new(RIGHT, LEFT, Protocol::UDP);
        header.emit_with_options(&options, datagram.len(), &mut packet);
        packet.extend_from_slice(&datagram);
        let answer = answers(&mut pair, packet).pop();
        let found = answer.map(|answer| {
            let packet = Ipv4Packet::parse(&answer).unwrap();
            match IcmpMessage::parse(packet.payload) {
                Ok(IcmpMessage::Error { error, .. }) => error,
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(found, error, "{options:?}");
        assert_eq!(receive(&mut pair, Side::Left, left).is_ok(), error.is_none());
    }
}

/// RFC 3590: a host without an address sends multicast reports from the unspecified address. ICMPv6
/// packets from this address are therefore valid, and packets of other protocols are not.
#[test]
fn only_icmpv6_comes_from_no_address() {
    for (protocol, errors) in [(Protocol::ICMPV6, 0), (Protocol::UDP, 1)] {
        let mut pair = pair();
        let router_alert = [protocol.number(), 0, 5, 2, 0, 0, 1, 0];
        let mut packet = packet(ipv6_multicast::ALL_NODES, 0, &[router_alert, [0; 8]].concat());
        packet[8..24].fill(0);
        answers(&mut pair, packet);
        let counters = pair.stack(Side::Left).counters();
        assert_eq!(counters.ip.in_header_errors, errors, "{protocol:?}");
    }
}
