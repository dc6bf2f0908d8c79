//! Tests of ICMPv6 (RFC 4443): echo requests, packets about which the host sends errors, packets
//! about which it must not, and the rate limit of errors.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod link_peer;

use linerate_wire::{
    Echo, Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, Ipv6Header, Ipv6Packet,
    Ipv6Quote, MacAddress, NdMessage, Protocol, Sum, checksum, ipv6_multicast,
};
use link_peer::{Peer, SECOND, Sent};
use std::net::Ipv6Addr;

const PEER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 8]);
const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// Returns a host that knows the MAC address of its peer.
fn host() -> Peer {
    let mut host = Peer::new(&["2001:db8::1/64"], |_| {});
    let message = NdMessage::NeighborSolicitation { target: OWN, source_mac: Some(PEER_MAC) };
    let message = Icmpv6Message::NeighborDiscovery(message);
    host.receive_message(PEER_MAC, PEER, OWN, &message);
    host.transmit();
    host
}

fn packet(destination: Ipv6Addr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; Ipv6Header::LENGTH];
    Ipv6Header::new(PEER, destination, protocol).emit(payload.len(), &mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// Returns a packet that carries a UDP datagram with `length` bytes of data. It is sent to a port
/// on which the host has no socket.
fn datagram(destination: Ipv6Addr, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8 + length];
    bytes[..4].copy_from_slice(&[0, 9, 0, 7]);
    bytes[4..6].copy_from_slice(&u16::try_from(8 + length).unwrap().to_be_bytes());
    let sum = checksum::pseudo_header_v6(PEER, destination, Protocol::UDP, bytes.len());
    let checksum = sum.append(Sum::of(&bytes), 40).finish();
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    packet(destination, Protocol::UDP, &bytes)
}

fn answers(host: &mut Peer, packet: &[u8]) -> Vec<Sent> {
    host.receive_packet(PEER_MAC, packet);
    host.transmit()
}

/// Returns the ICMPv6 error in a packet, the packet's source address, and its length in bytes.
fn error(sent: &Sent) -> (Icmpv6Error, Ipv6Addr, usize) {
    let packet = Ipv6Packet::parse(&sent.payload).unwrap();
    match Icmpv6Message::parse(&packet.header, packet.payload).unwrap() {
        Icmpv6Message::Error { error, .. } => (error, packet.header.source, sent.payload.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_closed_port_and_an_unknown_protocol_are_reported_from_the_address_that_was_used() {
    let mut host = host();
    let sent = answers(&mut host, &datagram(OWN, 10));
    let port = Icmpv6Error::Unreachable(Icmpv6Unreachable::Port);
    assert_eq!(error(&sent[0]), (port, OWN, 40 + 8 + 40 + 8 + 10));
    let sent = answers(&mut host, &packet(OWN, Protocol::new(253), &[1, 2, 3]));
    let problem = Icmpv6Error::ParameterProblem { problem: Icmpv6Problem::NextHeader, pointer: 6 };
    assert_eq!(error(&sent[0]), (problem, OWN, 40 + 8 + 40 + 3));
}

/// RFC 4443 §2.4 c: an error quotes as much of the packet as fits into the minimum IPv6 MTU.
#[test]
fn an_error_quotes_as_much_as_fits_in_1280_bytes() {
    let mut host = host();
    let sent = answers(&mut host, &datagram(OWN, 1_400));
    assert_eq!(error(&sent[0]).2, 1_280);
}

/// RFC 4443 §2.4 e: a host sends no error about certain packets. These are ICMPv6 errors, packets
/// to a multicast group, and packets whose source is not the address of a single host.
#[test]
fn errors_and_packets_to_groups_and_from_no_host_cause_no_errors() {
    let mut host = host();
    let quoted = datagram(OWN, 10);
    let quote = Ipv6Quote::of(&quoted).unwrap();
    let reported = Icmpv6Error::Unreachable(Icmpv6Unreachable::Port);
    let message = Icmpv6Message::Error { error: reported, quote };
    let header = Ipv6Header::new(PEER, OWN, Protocol::ICMPV6);
    let mut bytes = vec![0; message.length()];
    message.emit(&header, &mut bytes);
    assert_eq!(answers(&mut host, &packet(OWN, Protocol::ICMPV6, &bytes)), []);
    assert_eq!(answers(&mut host, &datagram(ipv6_multicast::ALL_NODES, 10)), []);
    for source in [Ipv6Addr::UNSPECIFIED, ipv6_multicast::ALL_NODES] {
        let mut forged = datagram(OWN, 10);
        forged[8..24].copy_from_slice(&source.octets());
        assert_eq!(answers(&mut host, &forged), []);
    }
}

/// RFC 4443 §2.4 f: a node must limit the rate of its ICMPv6 errors.
#[test]
fn errors_are_sent_at_a_limited_rate() {
    let mut host = host();
    let mut sent = 0;
    for _ in 0..1_000 {
        sent += answers(&mut host, &datagram(OWN, 10)).len();
    }
    assert_eq!(sent, 50, "the burst of the limit");
    assert_eq!(host.stack.counters().icmp.out_rate_limited, 950);
    host.run(SECOND);
    assert_eq!(answers(&mut host, &datagram(OWN, 10)).len(), 1);
}

/// RFC 4443 §2.4 b: an informational message of an unknown type must be silently discarded.
#[test]
fn unknown_informational_messages_are_silently_discarded() {
    let mut host = host();
    let message = Icmpv6Message::Other { kind: 200, code: 0, body: &[0; 8] };
    let header = Ipv6Header::new(PEER, OWN, Protocol::ICMPV6);
    let mut bytes = vec![0; message.length()];
    message.emit(&header, &mut bytes);
    assert_eq!(answers(&mut host, &packet(OWN, Protocol::ICMPV6, &bytes)), []);
}

/// RFC 4443 §4.2: the source of an echo reply is the destination of the request, or a unicast
/// address of the host if the request was sent to a group.
#[test]
fn an_echo_reply_returns_the_data_from_the_requested_or_a_unicast_address() {
    let mut host = host();
    let data: Vec<u8> = (0..=255).collect();
    let echo = Echo { identifier: 7, sequence: 9, data: &data };
    for destination in [OWN, ipv6_multicast::ALL_NODES] {
        let message = Icmpv6Message::EchoRequest(echo);
        let header = Ipv6Header::new(PEER, destination, Protocol::ICMPV6);
        let mut bytes = vec![0; message.length()];
        message.emit(&header, &mut bytes);
        let sent = answers(&mut host, &packet(destination, Protocol::ICMPV6, &bytes));
        let reply = Ipv6Packet::parse(&sent[0].payload).unwrap();
        assert_eq!((reply.header.source, reply.header.destination), (OWN, PEER));
        let message = Icmpv6Message::parse(&reply.header, reply.payload).unwrap();
        assert_eq!(message, Icmpv6Message::EchoReply(echo));
    }
}
