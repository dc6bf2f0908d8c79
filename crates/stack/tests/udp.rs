//! Tests of UDP between two hosts.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Event, Fragmentation, Medium, Route, UdpEvent, UdpHandle, UdpOptions};
use linerate_testkit::{Network, Pair, Setup, Side, ipv4_end};
use linerate_units::Duration;
use linerate_wire::{
    EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, Sum, UdpHeader, VlanTags,
};
use std::net::{Ipv4Addr, SocketAddrV4};

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

fn at(side: Side, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(), port)
}

fn bind(pair: &mut Pair, side: Side, port: u16) -> UdpHandle {
    pair.stack(side).udp_bind(at(side, port), &UdpOptions::default()).unwrap()
}

fn receive(
    pair: &mut Pair,
    side: Side,
    socket: UdpHandle,
) -> Result<(Vec<u8>, SocketAddrV4), Error> {
    let mut into = [0; 2_000];
    let (length, from) = pair.stack(side).udp_receive_from(socket, &mut into)?;
    Ok((into[..length].to_vec(), ipv4_end(from)))
}

#[test]
fn datagrams_are_delivered_in_both_directions() {
    let mut pair = pair();
    let (left, right) = (bind(&mut pair, Side::Left, 5), bind(&mut pair, Side::Right, 9));
    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), b"ask").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Right).poll_event(), Some(Event::Udp(right, UdpEvent::Readable)));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok((b"ask".to_vec(), at(Side::Left, 5))));
    assert_eq!(receive(&mut pair, Side::Right, right), Err(Error::WouldBlock));

    let now = pair.now;
    pair.stack(Side::Right).udp_send_to(now, right, at(Side::Left, 5), b"").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Left, left), Ok((Vec::new(), at(Side::Right, 9))));
}

#[test]
fn a_full_socket_drops_and_counts() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, 5);
    let options = UdpOptions { receive_bytes: 10 * (100 + 64), ..UdpOptions::default() };
    let right = pair.stack(Side::Right).udp_bind(at(Side::Right, 9), &options).unwrap();
    let now = pair.now;
    for _ in 0..50 {
        pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &[1; 100]).unwrap();
    }
    pair.run_for(Duration::from_millis(10));
    let counters = pair.stack(Side::Right).counters().udp;
    assert_eq!((counters.in_datagrams, counters.receive_buffer_errors), (10, 40));
    assert_eq!(std::iter::from_fn(|| receive(&mut pair, Side::Right, right).ok()).count(), 10);
}

#[test]
fn a_refused_sender_gets_an_event_when_there_is_room() {
    let mut pair = pair();
    let options = UdpOptions { send_bytes: 3_000, ..UdpOptions::default() };
    let left = pair.stack(Side::Left).udp_bind(at(Side::Left, 5), &options).unwrap();
    let now = pair.now;
    let send = |pair: &mut Pair| {
        pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &[1; 900])
    };
    assert_eq!([send(&mut pair), send(&mut pair)], [Ok(()); 2]);
    assert_eq!(send(&mut pair), Ok(()));
    assert_eq!(send(&mut pair), Err(Error::WouldBlock));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_event(), Some(Event::Udp(left, UdpEvent::Writable)));
}

/// A datagram that is larger than the send limit fails with `MessageTooLong`. `WouldBlock` would
/// promise a writable event, which never comes, because the send queue is already empty.
#[test]
fn a_datagram_beyond_the_send_limit_is_too_long() {
    let mut pair = pair();
    let now = pair.now;
    for (send_bytes, limit) in [(1_092, 1_000), (93, 1), (0, 0)] {
        let options = UdpOptions { send_bytes, ..UdpOptions::default() };
        let stack = pair.stack(Side::Left);
        let left = stack.udp_bind(at(Side::Left, 5), &options).unwrap();
        let mut send = |length| stack.udp_send_to(now, left, at(Side::Right, 9), &vec![1; length]);
        assert_eq!(send(limit + 1), Err(Error::MessageTooLong { limit }));
        assert_eq!(send(limit), Ok(()));
        assert_eq!(send(limit), Err(Error::WouldBlock));
        stack.udp_close(left).unwrap();
    }
}

#[test]
fn a_connected_socket_receives_only_from_its_peer() {
    let mut pair = pair();
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    let right = pair.stack(Side::Right).udp_bind(anywhere, &UdpOptions::default()).unwrap();
    let now = pair.now;
    pair.stack(Side::Right).udp_connect(now, right, at(Side::Left, 5)).unwrap();
    for port in [5, 6] {
        let left = bind(&mut pair, Side::Left, port);
        pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &[1]).unwrap();
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok((vec![1], at(Side::Left, 5))));
    assert_eq!(receive(&mut pair, Side::Right, right), Err(Error::WouldBlock));
    assert_eq!(pair.stack(Side::Right).counters().udp.no_ports, 1);
    assert_eq!(pair.stack(Side::Right).udp_peer_addr(right), Ok(at(Side::Left, 5).into()));
}

#[test]
fn datagrams_of_others_reach_the_socket_at_all_addresses() {
    let mut pair = pair();
    let exact = bind(&mut pair, Side::Right, 9);
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    let open = pair.stack(Side::Right).udp_bind(anywhere, &UdpOptions::default()).unwrap();
    let now = pair.now;
    pair.stack(Side::Right).udp_connect(now, exact, at(Side::Left, 5)).unwrap();
    for port in [5, 6] {
        let left = bind(&mut pair, Side::Left, port);
        pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &[1]).unwrap();
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Right, exact), Ok((vec![1], at(Side::Left, 5))));
    assert_eq!(receive(&mut pair, Side::Right, open), Ok((vec![1], at(Side::Left, 6))));
}

#[test]
fn a_writable_event_follows_each_refusal_once() {
    let mut pair = pair();
    let options = UdpOptions { send_bytes: 1_000, ..UdpOptions::default() };
    let left = pair.stack(Side::Left).udp_bind(at(Side::Left, 5), &options).unwrap();
    bind(&mut pair, Side::Right, 9);
    for refused in [0, 1, 0] {
        let now = pair.now;
        let mut send =
            || pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &[1; 900]);
        assert_eq!(send(), Ok(()));
        for _ in 0..refused {
            assert_eq!(send(), Err(Error::WouldBlock));
        }
        pair.run_for(Duration::from_millis(10));
        let told = std::iter::from_fn(|| pair.stack(Side::Left).poll_event()).count();
        assert_eq!(told, refused);
    }
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.udp.send_buffer_errors, counters.udp.out_datagrams), (1, 3));
    assert_eq!(counters.ip.out_requests, 3);
}

/// A host sends datagrams to itself. Those that exceed the limit `local_bytes` are dropped and
/// counted. The call that sends them succeeds, as it does for datagrams that are lost on a link.
#[test]
fn loopback_datagrams_beyond_the_limit_are_counted() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.local_bytes = 3_000);
    let client = bind(&mut pair, Side::Left, 5);
    let server = bind(&mut pair, Side::Left, 9);
    let now = pair.now;
    for _ in 0..10 {
        assert_eq!(
            pair.stack(Side::Left).udp_send_to(now, client, at(Side::Left, 9), &[1; 900]),
            Ok(())
        );
    }
    pair.run_for(Duration::from_millis(1));
    let received =
        std::iter::from_fn(|| receive(&mut pair, Side::Left, server).ok()).count() as u64;
    let counters = pair.stack(Side::Left).counters();
    assert!((1..10).contains(&received));
    assert_eq!((counters.ip.out_discards, counters.udp.out_datagrams), (10 - received, 10));
}

/// Returns a packet from the right host, with a datagram of four bytes to port 9 of the left host.
fn packet() -> Vec<u8> {
    let mut packet = vec![0; 20 + 12];
    let header = Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::UDP);
    header.emit(12, &mut packet);
    UdpHeader { source_port: 5, destination_port: 9 }.emit(4, &mut packet[20..]);
    let sum = Sum::of(&packet[20..]);
    UdpHeader::fill_checksum(&mut packet[20..], header.pseudo_header(12), sum);
    packet
}

/// RFC 1122 §3.3.6: if a link-layer broadcast frame contains a packet to a unicast address, the
/// host discards the packet silently.
#[test]
fn a_unicast_packet_in_a_broadcast_frame_is_dropped() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, 9);
    let own = Side::Left.mac();
    let group = MacAddress::new([1, 0, 94, 0, 0, 1]);
    for (destination, is_taken) in [(MacAddress::BROADCAST, false), (group, false), (own, true)] {
        let mut frame = vec![0; 60];
        let source = MacAddress::new([2, 0, 0, 0, 0, 66]);
        let header = EthernetHeader {
            destination,
            source,
            tags: VlanTags::NONE,
            ether_type: EtherType::IPV4,
        };
        let at = header.emit(&mut frame);
        frame[at..][..32].copy_from_slice(&packet());
        let (now, before) = (pair.now, pair.stack(Side::Left).counters().ip);
        pair.host(Side::Left).link_mut().put(now, frame);
        pair.run_for(Duration::from_millis(1));
        let counted = pair.stack(Side::Left).counters().ip;
        assert_eq!(receive(&mut pair, Side::Left, left).is_ok(), is_taken, "{destination}");
        assert_eq!(counted.in_address_errors - before.in_address_errors, u64::from(!is_taken));
        assert_eq!(pair.stack(Side::Left).counters().icmp.out_messages, 0);
    }
}

#[test]
fn invalid_datagrams_are_counted_by_cause() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, _| {});
    let (now, good) = (pair.now, packet());
    let (mut corrupt, mut short) = (good.clone(), good.clone());
    corrupt[31] ^= 1;
    short[25] = 7;
    let options = UdpOptions { receive_bytes: 100, ..UdpOptions::default() };
    pair.stack(Side::Left).udp_bind(at(Side::Left, 9), &options).unwrap();
    for (packet, errors, checksums, full) in
        [(corrupt, 1, 1, 0), (short, 2, 1, 0), (good.clone(), 2, 1, 0), (good, 3, 1, 1)]
    {
        pair.host(Side::Left).link_mut().put(now, packet);
        pair.run_for(Duration::from_millis(1));
        let counted = pair.stack(Side::Left).counters().udp;
        let seen = (counted.in_errors, counted.in_checksum_errors, counted.receive_buffer_errors);
        assert_eq!(seen, (errors, checksums, full));
    }
    assert_eq!(pair.stack(Side::Left).counters().udp.in_datagrams, 1);
}

#[test]
fn an_invalid_destination_cannot_be_connected() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, 5);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let none = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    assert_eq!(stack.udp_connect(now, left, none), Err(Error::InvalidDestination(none.into())));
    assert_eq!(stack.udp_peer_addr(left), Err(Error::NotConnected));
}

/// RFC 1122 §4.1.3.5: the application can specify the source address.
#[test]
fn a_bound_socket_sends_from_its_address() {
    let mut pair = Pair::new(&Setup::default(), |side, config| {
        if side == Side::Left {
            config.addresses.push("198.51.100.7/32".parse().unwrap());
        }
    });
    let second = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 7), 5);
    let left = pair.stack(Side::Left).udp_bind(second, &UdpOptions::default()).unwrap();
    let right = bind(&mut pair, Side::Right, 9);
    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), b"ask").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok((b"ask".to_vec(), second)));
}

#[test]
fn an_icmp_error_makes_only_a_connected_socket_readable() {
    for connected in [true, false] {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, 5);
        let now = pair.now;
        if connected {
            pair.stack(Side::Left).udp_connect(now, left, at(Side::Right, 9)).unwrap();
        }
        pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), b"hello?").unwrap();
        assert_eq!(pair.stack(Side::Left).udp_is_readable(left), Ok(false));
        pair.run_for(Duration::from_millis(1));
        assert_eq!(pair.stack(Side::Left).udp_is_readable(left), Ok(connected));
        let expected = if connected { Error::Refused } else { Error::WouldBlock };
        assert_eq!(receive(&mut pair, Side::Left, left), Err(expected));
    }
}

#[test]
fn queued_datagrams_leave_after_a_close_without_events() {
    let mut pair = pair();
    let (left, right) = (bind(&mut pair, Side::Left, 5), bind(&mut pair, Side::Right, 9));
    let now = pair.now;
    pair.stack(Side::Right).udp_send_to(now, right, at(Side::Left, 5), b"here").unwrap();
    pair.run_for(Duration::from_millis(1));
    let stack = pair.stack(Side::Left);
    for data in [b"last", b"word"] {
        stack.udp_send_to(now, left, at(Side::Right, 9), data).unwrap();
    }
    stack.udp_close(left).unwrap();
    stack.check();
    assert_eq!(stack.poll_event(), None);
    bind(&mut pair, Side::Left, 6);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_event(), None);
    for data in ["last", "word"] {
        assert_eq!(receive(&mut pair, Side::Right, right), Ok((data.into(), at(Side::Left, 5))));
    }
}

#[test]
fn datagrams_of_a_closed_socket_wait_for_arp() {
    let mut pair = pair();
    let (left, right) = (bind(&mut pair, Side::Left, 5), bind(&mut pair, Side::Right, 9));
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    assert!(!stack.holds_packets());
    stack.udp_send_to(now, left, at(Side::Right, 9), b"word").unwrap();
    stack.udp_close(left).unwrap();
    assert!(stack.holds_packets());
    pair.turn();
    // The host has sent an ARP request, and the packet waits for the reply. It cannot be sent yet,
    // but the host holds it.
    assert!(!pair.stack(Side::Left).wants_transmit() && pair.stack(Side::Left).holds_packets());
    assert!(
        pair.run_until(Duration::from_millis(1), |pair| !pair.stack(Side::Left).holds_packets())
    );
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok((b"word".into(), at(Side::Left, 5))));
}

#[test]
fn datagrams_of_closed_sockets_are_limited_like_replies() {
    let mut pair =
        Pair::new(&Setup::default(), |_, config| config.limits.reply_bytes = 2 * (100 + 92));
    let left = bind(&mut pair, Side::Left, 5);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    for _ in 0..3 {
        stack.udp_send_to(now, left, at(Side::Right, 9), &[0; 100]).unwrap();
    }
    stack.udp_close(left).unwrap();
    assert_eq!(stack.counters().ip.out_discards, 1);
}

#[test]
fn a_socket_is_a_sender_until_its_last_datagram_has_left() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, _| {});
    let left = bind(&mut pair, Side::Left, 5);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    for data in [b"1", b"2"] {
        stack.udp_send_to(now, left, at(Side::Right, 9), data).unwrap();
    }
    let mut frame = [0; 2_000];
    for more in [true, false] {
        assert!(stack.poll_transmit(now, &mut frame).is_some());
        assert_eq!(stack.wants_transmit(), more);
    }
}

/// A socket with an unread event is closed, and a new socket reuses its slot. The new socket must
/// not get the event.
#[test]
fn a_reused_slot_gets_no_events_of_a_closed_socket() {
    let mut pair = pair();
    let (left, right) = (bind(&mut pair, Side::Left, 5), bind(&mut pair, Side::Right, 9));
    let now = pair.now;
    pair.stack(Side::Right).udp_send_to(now, right, at(Side::Left, 5), b"here").unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.stack(Side::Left).udp_close(left).unwrap();
    bind(&mut pair, Side::Left, 6);
    assert_eq!(pair.stack(Side::Left).poll_event(), None);
}

#[test]
fn broadcasts_must_be_allowed_and_reach_unbound_sockets() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, 5);
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    let right = pair.stack(Side::Right).udp_bind(anywhere, &UdpOptions::default()).unwrap();
    let now = pair.now;
    let to_all = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 255), 9);
    let stack = pair.stack(Side::Left);
    assert_eq!(
        stack.udp_send_to(now, left, to_all, b"all"),
        Err(Error::BroadcastForbidden((*to_all.ip()).into()))
    );
    stack.udp_set_broadcast(left, true).unwrap();
    stack.udp_send_to(now, left, to_all, b"all").unwrap();
    stack.udp_send_to(now, left, SocketAddrV4::new(Ipv4Addr::BROADCAST, 9), b"limited").unwrap();
    pair.run_for(Duration::from_millis(1));
    for data in ["all", "limited"] {
        assert_eq!(receive(&mut pair, Side::Right, right), Ok((data.into(), at(Side::Left, 5))));
    }
}

#[test]
fn invalid_calls_are_refused_with_a_reason() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, 5);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let other = Ipv4Addr::new(192, 0, 2, 9);
    assert_eq!(
        stack.udp_bind(SocketAddrV4::new(other, 1), &UdpOptions::default()),
        Err(Error::AddressNotOurs(other.into()))
    );
    assert_eq!(
        stack.udp_bind(at(Side::Left, 5), &UdpOptions::default()),
        Err(Error::AddressInUse(at(Side::Left, 5).into()))
    );
    let far = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 9);
    assert_eq!(stack.udp_send_to(now, left, far, b""), Err(Error::NoRoute((*far.ip()).into())));
    for invalid in [at(Side::Right, 0), SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9)] {
        assert_eq!(
            stack.udp_send_to(now, left, invalid, b""),
            Err(Error::InvalidDestination(invalid.into()))
        );
    }
    let within =
        stack.udp_bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5), &UdpOptions::default()).unwrap();
    let outside = Err(Error::Loopback(Ipv4Addr::LOCALHOST.into()));
    assert_eq!(stack.udp_send_to(now, within, at(Side::Right, 9), b""), outside);
    assert_eq!(stack.udp_connect(now, within, at(Side::Right, 9)), outside);
    assert_eq!(stack.udp_send_to(now, within, at(Side::Left, 5), b""), Ok(()));
    let long = stack.udp_send_to(now, left, at(Side::Right, 9), &[0; 65_508]);
    assert_eq!(long, Err(Error::MessageTooLong { limit: 65_507 }));
    assert_eq!(stack.udp_send(now, left, b""), Err(Error::NotConnected));

    stack.udp_close(left).unwrap();
    let again = stack.udp_bind(at(Side::Left, 5), &UdpOptions::default()).unwrap();
    assert_ne!(again, left);
    assert_eq!(stack.udp_close(left), Err(Error::Closed));
}

#[test]
fn exhausted_ephemeral_ports_are_an_error() {
    let mut pair =
        Pair::new(&Setup::default(), |_, config| config.ephemeral_ports = 40_000..=40_009);
    let stack = pair.stack(Side::Left);
    let any_port = at(Side::Left, 0);
    let sockets: Vec<_> =
        (0..10).map(|_| stack.udp_bind(any_port, &UdpOptions::default()).unwrap()).collect();
    let mut ports: Vec<_> =
        sockets.iter().map(|&socket| stack.udp_local_addr(socket).unwrap().port()).collect();
    ports.sort_unstable();
    assert_eq!(ports, (40_000..=40_009).collect::<Vec<_>>());
    assert!(matches!(
        stack.udp_bind(any_port, &UdpOptions::default()),
        Err(Error::PortsExhausted(_))
    ));
}

#[test]
fn packets_to_other_networks_go_to_the_router() {
    let far = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 9);
    let mut pair = Pair::new(&Setup::default(), |side, config| match side {
        Side::Left => {
            let default = Route::via("0.0.0.0/0".parse().unwrap(), Side::Right.address());
            config.routes.push(Route { mtu: Some(1_000), ..default });
        }
        Side::Right => config.addresses.push("198.51.100.1/32".parse().unwrap()),
    });
    let options = UdpOptions { fragmentation: Fragmentation::Never, ..UdpOptions::default() };
    let left = pair.stack(Side::Left).udp_bind(at(Side::Left, 5), &options).unwrap();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let long = stack.udp_send_to(now, left, far, &[0; 973]);
    assert_eq!(long, Err(Error::MessageTooLong { limit: 972 }));
    stack.udp_send_to(now, left, far, &[7; 972]).unwrap();
    let right = pair.stack(Side::Right).udp_bind(far, &UdpOptions::default()).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok((vec![7; 972], at(Side::Left, 5))));
}

#[test]
fn sockets_of_one_host_exchange_datagrams() {
    let mut pair = pair();
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    let stack = pair.stack(Side::Left);
    let server = stack.udp_bind(anywhere, &UdpOptions::default()).unwrap();
    let client = bind(&mut pair, Side::Left, 5);
    let now = pair.now;
    let large = vec![3; 1_990];
    pair.stack(Side::Left).udp_send_to(now, client, at(Side::Left, 9), &large).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(receive(&mut pair, Side::Left, server), Ok((large, at(Side::Left, 5))));
}

#[test]
fn a_corrupt_datagram_is_dropped() {
    let network = Network { corruption: 500, ..Setup::default().network };
    let mut pair = Pair::new(&Setup { network, ..Setup::default() }, |_, _| {});
    let (left, right) = (bind(&mut pair, Side::Left, 5), bind(&mut pair, Side::Right, 9));
    let mut arrived = 0;
    for number in 0..1_000_u32 {
        let now = pair.now;
        let data = number.to_be_bytes().repeat(10);
        let _ = pair.stack(Side::Left).udp_send_to(now, left, at(Side::Right, 9), &data);
        pair.run_for(Duration::from_millis(10));
        while let Ok((received, _)) = receive(&mut pair, Side::Right, right) {
            assert!(received.chunks(4).all(|chunk| chunk == &received[..4]), "{received:?}");
            arrived += 1;
        }
    }
    assert!((300..700).contains(&arrived), "{arrived}");
}
