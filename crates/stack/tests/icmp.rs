//! Echo requests, and ICMP errors sent and received.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Event, Fragmentation, Limits, Medium, RateLimit, UdpOptions};
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    Echo, IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol, Quote, Redirect, Sum,
    TimeExceeded, UdpHeader, Unreachable,
};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Creates two hosts whose link carries IP packets instead of Ethernet frames, so that tests can
/// write packets without an Ethernet header.
fn pair() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, _| {})
}

fn packet(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20 + payload.len()];
    Ipv4Header::new(source, destination, protocol).emit(payload.len(), &mut bytes);
    bytes[20..].copy_from_slice(payload);
    bytes
}

fn icmp(source: Ipv4Addr, destination: Ipv4Addr, message: &IcmpMessage<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.length()];
    message.emit(&mut bytes);
    packet(source, destination, Protocol::ICMP, &bytes)
}

fn datagram(source: SocketAddrV4, destination: SocketAddrV4, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8 + data.len()];
    let ports = UdpHeader { source_port: source.port(), destination_port: destination.port() };
    ports.emit(data.len(), &mut bytes);
    bytes[8..].copy_from_slice(data);
    let header = Ipv4Header::new(*source.ip(), *destination.ip(), Protocol::UDP);
    let sum = Sum::of(&bytes);
    UdpHeader::fill_checksum(&mut bytes, header.pseudo_header(8 + data.len()), sum);
    packet(*source.ip(), *destination.ip(), Protocol::UDP, &bytes)
}

/// Delivers a packet to the left host, and returns its answers.
fn answers(pair: &mut Pair, packet: Vec<u8>) -> Vec<Vec<u8>> {
    pair.answers(Side::Left, packet)
}

const LEFT: Ipv4Addr = Side::Left.address();
const RIGHT: Ipv4Addr = Side::Right.address();

fn echo_request(destination: Ipv4Addr) -> Vec<u8> {
    icmp(
        RIGHT,
        destination,
        &IcmpMessage::EchoRequest(Echo { identifier: 1, sequence: 2, data: b"data" }),
    )
}

#[test]
fn an_echo_reply_has_the_data_and_address_of_its_request() {
    let answers = answers(&mut pair(), echo_request(LEFT));
    let reply = Ipv4Packet::parse(&answers[0]).unwrap();
    assert_eq!((reply.header.source, reply.header.destination), (LEFT, RIGHT));
    let echo = Echo { identifier: 1, sequence: 2, data: b"data" };
    assert_eq!(IcmpMessage::parse(reply.payload), Ok(IcmpMessage::EchoReply(echo)));
}

#[test]
fn a_broadcast_echo_is_answered_only_if_enabled() {
    let to_all = Ipv4Addr::new(192, 0, 2, 255);
    assert_eq!(answers(&mut pair(), echo_request(to_all)).len(), 0);
    let mut willing = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.answer_broadcast_echo = true;
    });
    let answers = answers(&mut willing, echo_request(to_all));
    assert_eq!(Ipv4Packet::parse(&answers[0]).unwrap().header.source, LEFT);
}

#[test]
fn an_unknown_port_or_protocol_is_answered_with_an_error() {
    let unreachable = datagram(SocketAddrV4::new(RIGHT, 5), SocketAddrV4::new(LEFT, 9), b"hello?");
    let unknown = packet(RIGHT, LEFT, Protocol::new(132), b"an SCTP chunk");
    for (packet, reason) in [(unreachable, Unreachable::Port), (unknown, Unreachable::Protocol)] {
        let answers = answers(&mut pair(), packet.clone());
        let answer = Ipv4Packet::parse(&answers[0]).unwrap();
        let quote = Quote::of(&packet).unwrap();
        let expected = IcmpMessage::Error { error: IcmpError::Unreachable(reason), quote };
        assert_eq!(IcmpMessage::parse(answer.payload), Ok(expected));
    }
}

#[test]
fn broadcasts_fragments_and_corrupt_packets_get_no_error() {
    let mut pair = pair();
    let remote = SocketAddrV4::new(RIGHT, 5);
    let to_all = datagram(remote, SocketAddrV4::new(Ipv4Addr::BROADCAST, 9), b"hello all");
    let mut wrong = datagram(remote, SocketAddrV4::new(LEFT, 9), b"hello?");
    wrong[30] ^= 1;
    let mut fragment = vec![0; 20 + 8];
    let header = Ipv4Header { more_fragments: true, ..Ipv4Header::new(RIGHT, LEFT, Protocol::UDP) };
    header.emit(8, &mut fragment);
    let from_all =
        datagram(SocketAddrV4::new(Ipv4Addr::BROADCAST, 5), SocketAddrV4::new(LEFT, 9), b"");
    for packet in [to_all, wrong, fragment, from_all] {
        assert_eq!(answers(&mut pair, packet).len(), 0);
    }
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.ip.reassembly_required, counters.ip.reassembly_failures), (1, 0));
    assert_eq!((counters.udp.in_checksum_errors, counters.ip.in_header_errors), (1, 1));
}

#[test]
fn errors_are_sent_at_a_limited_rate() {
    let setup = Setup { medium: Medium::Ip, ..Setup::default() };
    let mut pair = Pair::new(&setup, |_, config| {
        config.limits =
            Limits { icmp_errors: RateLimit { per_second: 10, burst: 5 }, ..config.limits };
    });
    let unreachable = datagram(SocketAddrV4::new(RIGHT, 5), SocketAddrV4::new(LEFT, 9), b"hello?");
    let mut sent = 0;
    for _ in 0..100 {
        sent += answers(&mut pair, unreachable.clone()).len();
    }
    assert_eq!(sent, 5);
    assert_eq!(pair.stack(Side::Left).counters().icmp.out_rate_limited, 95);
}

#[test]
fn an_error_about_a_datagram_reaches_the_socket_that_sent_it() {
    let mut pair = pair();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let socket = stack.udp_bind(SocketAddrV4::new(LEFT, 5), &UdpOptions::default()).unwrap();
    let peer = SocketAddrV4::new(RIGHT, 9);
    stack.udp_connect(now, socket, peer).unwrap();
    stack.udp_send(now, socket, b"hello?").unwrap();
    pair.run_for(Duration::from_millis(10));
    let stack = pair.stack(Side::Left);
    assert!(matches!(stack.poll_event(), Some(Event::Udp(handle, _)) if handle == socket));
    assert_eq!(stack.udp_send(now, socket, b"hello?"), Err(Error::Refused));
    assert_eq!(stack.udp_send(now, socket, b"hello?"), Ok(()));
}

#[test]
fn a_reported_path_mtu_is_kept_if_plausible() {
    let mut pair = pair();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let local = SocketAddrV4::new(LEFT, 5);
    let peer = SocketAddrV4::new(RIGHT, 9);
    let options = UdpOptions { fragmentation: Fragmentation::Never, ..UdpOptions::default() };
    let socket = stack.udp_bind(local, &options).unwrap();
    let sent = datagram(local, peer, &[0; 1_472]);
    for (next_hop_mtu, limit) in [(1_400, 1_372), (68, 524), (1_500, 524)] {
        let error = IcmpError::FragmentationNeeded { next_hop_mtu };
        let report =
            icmp(RIGHT, LEFT, &IcmpMessage::Error { error, quote: Quote::of(&sent).unwrap() });
        answers(&mut pair, report);
        let refused = pair.stack(Side::Left).udp_send_to(now, socket, peer, &[0; 1_473]);
        assert_eq!(refused, Err(Error::MessageTooLong { limit }));
    }
    let other = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 3), 9);
    assert_eq!(pair.stack(Side::Left).udp_send_to(now, socket, other, &[0; 1_472]), Ok(()));
}

/// An attacker who knows the two ports of a UDP flow can forge an ICMP error about a datagram.
/// Connections therefore ignore the path MTU from such errors, and discover it themselves. For
/// datagrams, the reported path MTU applies, and expires after ten minutes (RFC 1191 §6.3).
#[test]
fn a_report_about_a_datagram_does_not_affect_connections() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let socket = SocketAddrV4::new(LEFT, 5);
    let options = UdpOptions { fragmentation: Fragmentation::Never, ..UdpOptions::default() };
    let handle = pair.stack(Side::Left).udp_bind(socket, &options).unwrap();
    let peer = SocketAddrV4::new(RIGHT, 9);
    let sent = datagram(socket, peer, &[0; 1_472]);
    let error = IcmpError::FragmentationNeeded { next_hop_mtu: 600 };
    answers(
        &mut pair,
        icmp(RIGHT, LEFT, &IcmpMessage::Error { error, quote: Quote::of(&sent).unwrap() }),
    );
    let (left, right) = established(&mut pair, listener);
    let now = pair.now;
    assert_eq!(pair.stack(Side::Left).tcp(left).unwrap().effective_mss(), 1_448);
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().effective_mss(), 1_448);
    let refused = pair.stack(Side::Left).udp_send_to(now, handle, peer, &[0; 1_472]);
    assert_eq!(refused, Err(Error::MessageTooLong { limit: 572 }));
    pair.run_for(Duration::from_secs(600));
    let now = pair.now;
    assert_eq!(pair.stack(Side::Left).udp_send_to(now, handle, peer, &[0; 1_472]), Ok(()));
}

#[test]
fn unexpected_echo_replies_cause_no_events() {
    let mut pair = pair();
    let now = pair.now;
    let reply = IcmpMessage::EchoReply(Echo { identifier: 7, sequence: 1, data: b"spam" });
    answers(&mut pair, icmp(RIGHT, LEFT, &reply));
    assert_eq!(pair.stack(Side::Left).poll_event(), None);
    pair.stack(Side::Left).echo_send(now, RIGHT, 7, 1, b"spam").unwrap();
    for _ in 0..100 {
        answers(&mut pair, icmp(RIGHT, LEFT, &reply));
    }
    let events = std::iter::from_fn(|| pair.stack(Side::Left).poll_event()).count();
    assert_eq!(events, 64, "expected replies are limited");
}

#[test]
fn a_host_answers_itself() {
    let mut pair = pair();
    let now = pair.now;
    for address in [LEFT, Ipv4Addr::LOCALHOST] {
        pair.stack(Side::Left).echo_send(now, address, 3, 4, b"me").unwrap();
        pair.run_for(Duration::from_millis(1));
        let Some(Event::EchoReply(reply)) = pair.stack(Side::Left).poll_event() else {
            panic!("no reply")
        };
        assert_eq!(
            (reply.source, reply.sequence, reply.data.as_slice()),
            (address.into(), 4, &b"me"[..])
        );
    }
    assert_eq!(pair.stack(Side::Left).counters().transmit.packets, 0);
}

#[test]
fn received_messages_are_counted_by_type() {
    let mut pair = pair();
    let sent = datagram(SocketAddrV4::new(LEFT, 5), SocketAddrV4::new(RIGHT, 9), b"hello?");
    let echo = Echo { identifier: 1, sequence: 2, data: b"" };
    answers(&mut pair, icmp(RIGHT, LEFT, &IcmpMessage::EchoRequest(echo)));
    answers(&mut pair, icmp(RIGHT, LEFT, &IcmpMessage::EchoReply(echo)));
    for error in [
        IcmpError::Unreachable(Unreachable::Host),
        IcmpError::FragmentationNeeded { next_hop_mtu: 1_400 },
        IcmpError::TimeExceeded(TimeExceeded::Transit),
        IcmpError::ParameterProblem { pointer: 9 },
        IcmpError::OptionMissing,
        IcmpError::BadLength,
        IcmpError::Redirect { scope: Redirect::Host, gateway: RIGHT },
        IcmpError::SourceQuench,
    ] {
        let quote = Quote::of(&sent).unwrap();
        answers(&mut pair, icmp(RIGHT, LEFT, &IcmpMessage::Error { error, quote }));
    }
    let mut wrong = echo_request(LEFT);
    wrong[24] ^= 1;
    answers(&mut pair, wrong);
    answers(&mut pair, packet(RIGHT, LEFT, Protocol::ICMP, &[8, 0]));
    let counted = pair.stack(Side::Left).counters().icmp;
    assert_eq!((counted.in_messages, counted.in_echos, counted.in_echo_replies), (12, 1, 1));
    assert_eq!((counted.in_unreachables, counted.in_time_exceeded), (2, 1));
    assert_eq!(
        (counted.in_parameter_problems, counted.in_redirects, counted.in_source_quenches),
        (3, 1, 1)
    );
    assert_eq!(
        (counted.in_errors, counted.in_checksum_errors),
        (2, 1),
        "the other one is truncated"
    );
}

#[test]
fn sent_and_dropped_messages_are_counted() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.limits = Limits { reply_bytes: 600, ..config.limits };
    });
    let unreachable = datagram(SocketAddrV4::new(RIGHT, 5), SocketAddrV4::new(LEFT, 9), b"hello?");
    answers(&mut pair, echo_request(LEFT));
    answers(&mut pair, unreachable.clone());
    let counted = pair.stack(Side::Left).counters().icmp;
    assert_eq!((counted.out_messages, counted.out_errors), (2, 0));
    assert_eq!((counted.out_echo_replies, counted.out_unreachables), (1, 1));

    let now = pair.now;
    for _ in 0..20 {
        pair.host(Side::Left).link_mut().put(now, echo_request(LEFT));
        pair.host(Side::Left).link_mut().put(now, unreachable.clone());
    }
    pair.host(Side::Left).turn(now).unwrap();
    let counted = pair.stack(Side::Left).counters().icmp;
    assert_eq!(counted.out_messages + counted.out_errors, 42);
    assert!(counted.out_errors > 0);
    assert_eq!(counted.out_echo_replies + counted.out_unreachables, counted.out_messages);
}

/// RFC 6633 §4: source quench messages are ignored. This host also ignores redirects for IPv4.
#[test]
fn ignored_and_unrelated_errors_reach_no_socket() {
    let mut pair = pair();
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 5);
    let socket = pair.stack(Side::Left).udp_bind(anywhere, &UdpOptions::default()).unwrap();
    let redirect = IcmpError::Redirect { scope: Redirect::Host, gateway: RIGHT };
    let unreachable = IcmpError::Unreachable(Unreachable::Port);
    let other = Ipv4Addr::new(192, 0, 2, 9);
    for (error, sender, told) in [
        (IcmpError::SourceQuench, LEFT, None),
        (redirect, LEFT, None),
        (unreachable, other, None),
        (unreachable, LEFT, Some(Error::Refused)),
    ] {
        let sent = datagram(SocketAddrV4::new(sender, 5), SocketAddrV4::new(RIGHT, 9), b"hello?");
        let quote = Quote::of(&sent).unwrap();
        answers(&mut pair, icmp(RIGHT, LEFT, &IcmpMessage::Error { error, quote }));
        let reported = pair.stack(Side::Left).udp_take_error(socket).unwrap();
        assert_eq!(reported, told, "{error:?} about a packet of {sender}");
    }
}
