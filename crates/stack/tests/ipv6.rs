//! Hosts with IPv6 addresses: connections, datagrams, echoes and errors (RFC 8200, RFC 4443, RFC
//! 4861 §7).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    ConnectOptions, Error, Event, Fragmentation, ListenOptions, Medium, ReportedError, RxFrame,
    SynCookies, TcpHandle, UdpOptions,
};
use linerate_testkit::{Network, Pair, Setup, Side};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    Echo, EtherType, EthernetFrame, Icmpv6Error, Icmpv6Message, Icmpv6Unreachable, Ipv6Header,
    Ipv6Packet, NdMessage, Protocol, Segment,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

fn address(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, side as u16 + 1)
}

fn at(side: Side, port: u16) -> SocketAddr {
    (address(side), port).into()
}

fn pair(setup: &Setup) -> Pair {
    Pair::new(setup, |side, config| {
        config.addresses.push(format!("{}/64", address(side)).parse().unwrap());
    })
}

/// Opens a connection from the left to the right host. Returns its handles on the left and on the
/// right host.
fn connect(pair: &mut Pair, options: &ListenOptions) -> (TcpHandle, TcpHandle) {
    let listener = pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), options).unwrap();
    let now = pair.now;
    let client =
        pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default());
    pair.run_for(Duration::from_secs(2));
    let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    let client = client.unwrap();
    assert_eq!(pair.stack(Side::Left).tcp_local_addr(client), Ok(peer));
    assert_eq!(pair.stack(Side::Right).tcp_local_addr(server), Ok(at(Side::Right, 9)));
    assert_eq!(peer.ip(), address(Side::Left));
    (client, server)
}

/// Transfers `length` bytes, and asserts that the received bytes equal the sent bytes.
fn transfer(pair: &mut Pair, from: (Side, TcpHandle), to: (Side, TcpHandle), length: usize) {
    let sent: Vec<u8> = (0..=250).cycle().take(length).collect();
    let (mut written, mut received) = (0, Vec::new());
    let mut piece = vec![0; 64 << 10];
    for _ in 0..100_000 {
        let now = pair.now;
        written += pair.stack(from.0).tcp_write(now, from.1, &sent[written..]).unwrap();
        pair.run_for(Duration::from_millis(1));
        let now = pair.now;
        while let Ok(count @ 1..) = pair.stack(to.0).tcp_read(now, to.1, &mut piece) {
            received.extend_from_slice(&piece[..count]);
        }
        if received.len() == length {
            assert!(received == sent, "the data differ");
            return;
        }
    }
    panic!("{} of {length} bytes have arrived", received.len());
}

#[test]
fn connections_transfer_data_in_both_directions_over_every_medium() {
    for medium in [Medium::Ethernet, Medium::Ip] {
        let mut pair = pair(&Setup { medium, ..Setup::default() });
        let largest = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&largest);
        pair.observe(move |_, _, frame| {
            let largest = &mut *seen.borrow_mut();
            *largest = frame.len().max(*largest);
        });
        let (client, server) = connect(&mut pair, &ListenOptions::default());
        transfer(&mut pair, (Side::Left, client), (Side::Right, server), 2_000_000);
        transfer(&mut pair, (Side::Right, server), (Side::Left, client), 2_000_000);
        assert_eq!(*largest.borrow(), medium.header_length() + 1_500, "segments fill the MTU");
        for side in Side::BOTH {
            let counters = pair.stack(side).counters();
            assert_eq!(counters.tcp.in_errors + counters.ip.in_header_errors, 0);
            assert_eq!(counters.tcp.retransmitted_segments, 0);
        }
        let now = pair.now;
        pair.stack(Side::Left).tcp_close(now, client).unwrap();
        pair.stack(Side::Right).tcp_close(now, server).unwrap();
        pair.run_for(Duration::from_secs(300));
        assert_eq!(pair.stack(Side::Left).counters().tcp.currently_established, 0);
    }
}

#[test]
fn the_announced_mss_is_the_mtu_less_sixty_bytes() {
    let mut pair = pair(&Setup::default());
    let sizes = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&sizes);
    pair.observe(move |_, _, frame| {
        let frame = EthernetFrame::parse(frame).unwrap();
        if let Ok(packet) = Ipv6Packet::parse(frame.payload)
            && packet.protocol == Protocol::TCP
        {
            let segment = Segment::parse(packet.payload).unwrap();
            log.borrow_mut().extend(segment.options().mss);
        }
    });
    connect(&mut pair, &ListenOptions::default());
    assert_eq!(*sizes.borrow(), [1_440, 1_440]);
}

#[test]
fn a_connection_survives_loss_corruption_and_reordering() {
    let network = Network {
        loss: 20,
        corruption: 20,
        reordering: 50,
        lateness: Duration::from_micros(300),
        ..Setup::default().network
    };
    let mut pair = pair(&Setup { network, ..Setup::default() });
    let (client, server) = connect(&mut pair, &ListenOptions::default());
    transfer(&mut pair, (Side::Left, client), (Side::Right, server), 300_000);
    assert!(pair.stack(Side::Left).counters().tcp.retransmitted_segments > 0);
    assert!(pair.stack(Side::Right).counters().tcp.in_checksum_errors > 0);
}

#[test]
fn a_syn_cookie_opens_a_connection() {
    let mut pair = pair(&Setup::default());
    let options = ListenOptions { syn_cookies: SynCookies::Always, ..ListenOptions::default() };
    let (client, server) = connect(&mut pair, &options);
    transfer(&mut pair, (Side::Left, client), (Side::Right, server), 100_000);
    assert_eq!(pair.stack(Side::Right).counters().tcp_extra.syn_cookies_received, 1);
}

#[test]
fn a_closed_port_answers_with_a_reset() {
    let mut pair = pair(&Setup::default());
    let now = pair.now;
    let options = ConnectOptions::default();
    let client = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
    pair.run_for(Duration::from_secs(2));
    let error = pair.stack(Side::Left).tcp(client).unwrap().error();
    assert_eq!(error, Some(linerate_tcp::Error::Refused));
}

#[test]
fn echo_requests_are_answered_from_each_address() {
    let link_local: Ipv6Addr = "fe80::ff:fe00:2".parse().unwrap();
    for destination in [address(Side::Right), link_local] {
        let mut pair = pair(&Setup::default());
        let now = pair.now;
        pair.stack(Side::Left).echo_send(now, destination, 7, 3, b"are you there?").unwrap();
        pair.run_for(Duration::from_secs(1));
        let Some(Event::EchoReply(reply)) = pair.stack(Side::Left).poll_event() else {
            panic!("no reply from {destination}");
        };
        assert_eq!(reply.source, destination);
        assert_eq!((reply.identifier, reply.sequence, reply.ttl), (7, 3, 64));
        assert_eq!(reply.data, b"are you there?");
    }
}

#[test]
fn a_neighbour_is_resolved_by_a_solicitation_to_its_group_and_answered_directly() {
    let mut pair = pair(&Setup::default());
    let messages = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&messages);
    pair.observe(move |_, side, frame| {
        let frame = EthernetFrame::parse(frame).unwrap();
        assert_eq!(frame.header.ether_type, EtherType::IPV6);
        let packet = Ipv6Packet::parse(frame.payload).unwrap();
        let Ok(Icmpv6Message::NeighborDiscovery(message)) =
            Icmpv6Message::parse(&packet.header, packet.payload)
        else {
            return;
        };
        let mac = frame.header.destination.to_string();
        match message {
            NdMessage::NeighborSolicitation { target, source_mac } => {
                assert_eq!((target, source_mac), (address(Side::Right), Some(side.mac())));
                log.borrow_mut().push((mac, packet.header.destination));
            }
            NdMessage::NeighborAdvertisement { target, target_mac, is_solicited, .. } => {
                assert!(is_solicited);
                assert_eq!((target, target_mac), (address(Side::Right), Some(side.mac())));
                log.borrow_mut().push((mac, packet.header.destination));
            }
            other => panic!("{other:?}"),
        }
    });
    let now = pair.now;
    pair.stack(Side::Left).echo_send(now, address(Side::Right), 7, 1, b"").unwrap();
    pair.run_for(Duration::from_secs(1));
    let expected = [
        ("33:33:ff:00:00:02".to_owned(), "ff02::1:ff00:2".parse().unwrap()),
        ("02:00:00:00:00:01".to_owned(), address(Side::Left)),
    ];
    assert_eq!(*messages.borrow(), expected);
}

#[test]
fn an_absent_neighbour_is_reported_as_unreachable() {
    let mut pair = pair(&Setup::default());
    let now = pair.now;
    let absent: Ipv6Addr = "2001:db8::77".parse().unwrap();
    pair.stack(Side::Left).echo_send(now, absent, 7, 1, b"").unwrap();
    pair.run_for(Duration::from_secs(10));
    let Some(Event::EchoError(error)) = pair.stack(Side::Left).poll_event() else {
        panic!("no error")
    };
    assert_eq!((error.reporter, error.destination), (address(Side::Left).into(), absent.into()));
    let unreachable = Icmpv6Error::Unreachable(Icmpv6Unreachable::Address);
    assert_eq!(error.error, ReportedError::V6(unreachable));
}

#[test]
fn datagrams_travel_in_both_directions_and_errors_return() {
    let mut pair = pair(&Setup::default());
    let options = UdpOptions::default();
    let left = pair.stack(Side::Left).udp_bind(at(Side::Left, 1), &options).unwrap();
    let anywhere: SocketAddr = "[::]:2".parse().unwrap();
    let right = pair.stack(Side::Right).udp_bind(anywhere, &options).unwrap();
    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 2), b"question").unwrap();
    pair.run_for(Duration::from_secs(1));
    let mut bytes = [0; 16];
    let received = pair.stack(Side::Right).udp_receive_from(right, &mut bytes);
    assert_eq!(received, Ok((8, at(Side::Left, 1))));
    let now = pair.now;
    pair.stack(Side::Right).udp_send_to(now, right, at(Side::Left, 1), b"answer").unwrap();
    pair.run_for(Duration::from_secs(1));
    let received = pair.stack(Side::Left).udp_receive_from(left, &mut bytes);
    assert_eq!((received, &bytes[..6]), (Ok((6, at(Side::Right, 2))), &b"answer"[..]));

    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 3), b"closed").unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.stack(Side::Left).udp_take_error(left), Ok(Some(Error::Refused)));
    let limit = 1_500 - 40 - 8;
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    stack.udp_set_fragmentation(left, Fragmentation::Never).unwrap();
    let long = stack.udp_send_to(now, left, at(Side::Right, 2), &[0; 1_453]);
    assert_eq!(long, Err(Error::MessageTooLong { limit }));
}

#[test]
fn a_host_talks_to_itself() {
    let mut pair = pair(&Setup::default());
    let own: SocketAddr = "[::1]:9".parse().unwrap();
    let stack = pair.stack(Side::Left);
    let listener = stack.tcp_listen(own, &ListenOptions::default()).unwrap();
    let now = pair.now;
    let client = pair.stack(Side::Left).tcp_connect(now, own, &ConnectOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(1));
    let (server, _) = pair.stack(Side::Left).tcp_accept(listener).unwrap();
    transfer(&mut pair, (Side::Left, client), (Side::Left, server), 500_000);
}

#[test]
fn addresses_of_two_versions_are_not_mixed() {
    let mut pair = pair(&Setup::default());
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let (left, right): (IpAddr, IpAddr) =
        (Side::Left.address().into(), address(Side::Right).into());
    let mixed = Error::OtherVersion { local: left, remote: right };
    let options = ConnectOptions { local: Some((left, 0).into()), ..ConnectOptions::default() };
    assert_eq!(stack.tcp_connect(now, at(Side::Right, 9), &options), Err(mixed));
    let socket = stack.udp_bind((left, 1), &UdpOptions::default()).unwrap();
    assert_eq!(stack.udp_send_to(now, socket, at(Side::Right, 2), b""), Err(mixed));
    // An IPv4-mapped IPv6 address is treated as the IPv4 address that it contains.
    let mapped: Ipv6Addr = Side::Right.address().to_ipv6_mapped();
    assert!(stack.udp_send_to(now, socket, (mapped, 2), b"").is_ok());
}

/// Packets with the unspecified address as their source are refused. The only exception is a
/// neighbour solicitation for duplicate address detection.
#[test]
fn packets_without_a_source_are_refused_unless_they_probe_for_an_address() {
    let mut pair = pair(&Setup { medium: Medium::Ip, ..Setup::default() });
    let own = address(Side::Right);
    let group = linerate_wire::ipv6_multicast::solicited_node(own);
    let header = |destination| NdMessage::header(Ipv6Addr::UNSPECIFIED, destination);
    let solicitation = NdMessage::NeighborSolicitation { target: own, source_mac: None };
    let probe = Icmpv6Message::NeighborDiscovery(solicitation);
    let echo = Icmpv6Message::EchoRequest(Echo { identifier: 1, sequence: 1, data: b"" });
    let stack = pair.stack(Side::Right);
    for (header, message) in [(header(own), echo), (header(group), echo), (header(group), probe)] {
        let mut packet = vec![0; Ipv6Header::LENGTH + message.length()];
        header.emit(message.length(), &mut packet);
        message.emit(&header, &mut packet[Ipv6Header::LENGTH..]);
        stack.handle_frame(Instant::ZERO, RxFrame::plain(&packet, Instant::ZERO));
    }
    let now = Instant::ZERO;
    let mut frame = [0; 1_500];
    let sent = stack.poll_transmit(now, &mut frame).unwrap();
    let packet = Ipv6Packet::parse(&frame[..sent.length]).unwrap();
    assert_eq!(packet.header.destination, linerate_wire::ipv6_multicast::ALL_NODES);
    let answer = Icmpv6Message::parse(&packet.header, packet.payload).unwrap();
    let Icmpv6Message::NeighborDiscovery(NdMessage::NeighborAdvertisement {
        target,
        is_solicited,
        ..
    }) = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!((target, is_solicited), (own, false));
    assert_eq!(stack.poll_transmit(now, &mut frame), None, "echoes need a source");
}
