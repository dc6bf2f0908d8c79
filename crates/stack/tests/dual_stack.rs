//! Sockets of both IP versions (RFC 3493 §3.7, §5.3, RFC 4291 §2.5.5.2), and zones of link-local
//! addresses (RFC 4007).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    ConnectOptions, Destinations, Error, Event, FIRST_INTERFACE, ForwardEvent, ForwardOptions,
    ListenHandle, ListenOptions, Medium, Opening, SynCookies, TcpHandle, UdpHandle, UdpOptions,
    Verdict,
};
use linerate_tcp::{Error as TcpError, State};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    EtherType, EthernetFrame, Ipv6Header, Ipv6Packet, Protocol, Sum, TcpFlags, TcpHeader, UdpHeader,
};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

fn ipv6(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, side as u16 + 1)
}

fn link_local(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, side as u16 + 1)
}

/// Returns the IPv4 address of a host as an IPv4-mapped IPv6 address.
fn mapped(side: Side) -> Ipv6Addr {
    side.address().to_ipv6_mapped()
}

fn end(address: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(address.into(), port)
}

/// Returns a socket address with the link-local address of a host and this zone.
fn zoned(side: Side, port: u16, zone: u32) -> SocketAddr {
    SocketAddrV6::new(link_local(side), port, 0, zone).into()
}

fn parse(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Creates two hosts with addresses of both IP versions.
fn pair_over(medium: Medium) -> Pair {
    Pair::new(&Setup { medium, ..Setup::default() }, |side, config| {
        config.addresses.push(format!("{}/64", ipv6(side)).parse().unwrap());
    })
}

fn pair() -> Pair {
    pair_over(Medium::Ethernet)
}

const ONLY_V6: ListenOptions = ListenOptions { only_v6: true, ..LISTEN };

const LISTEN: ListenOptions = ListenOptions {
    backlog: 16,
    syn_backlog: 16,
    config: None,
    syn_cookies: SynCookies::UnderPressure,
    fast_open: None,
    defer_accept: None,
    only_v6: false,
};

fn listen(pair: &mut Pair, local: SocketAddr, options: &ListenOptions) -> ListenHandle {
    pair.stack(Side::Right).tcp_listen(local, options).unwrap()
}

fn connect(pair: &mut Pair, remote: SocketAddr) -> TcpHandle {
    let now = pair.now;
    let client = pair.stack(Side::Left).tcp_connect(now, remote, &ConnectOptions::default());
    pair.run_for(Duration::from_secs(1));
    client.unwrap()
}

/// Returns the local and the remote address of a connection.
fn ends(pair: &mut Pair, side: Side, connection: TcpHandle) -> (SocketAddr, SocketAddr) {
    let stack = pair.stack(side);
    (stack.tcp_local_addr(connection).unwrap(), stack.tcp_peer_addr(connection).unwrap())
}

fn bind(pair: &mut Pair, side: Side, local: SocketAddr) -> UdpHandle {
    pair.stack(side).udp_bind(local, &UdpOptions::default()).unwrap()
}

fn send(pair: &mut Pair, side: Side, socket: UdpHandle, to: SocketAddr) -> Result<(), Error> {
    let now = pair.now;
    let sent = pair.stack(side).udp_send_to(now, socket, to, b"data");
    pair.run_for(Duration::from_millis(10));
    sent
}

/// Receives the next datagram, and returns the address of its sender.
fn received(pair: &mut Pair, side: Side, socket: UdpHandle) -> Result<SocketAddr, Error> {
    let mut bytes = [0; 16];
    let (length, from) = pair.stack(side).udp_receive_from(socket, &mut bytes)?;
    assert_eq!(&bytes[..length], b"data");
    Ok(from)
}

/// Counts the IPv6 packets that both hosts send from now on. Asserts that none of them has an
/// IPv4-mapped address.
fn count_ipv6(pair: &mut Pair) -> Rc<Cell<u32>> {
    let counted = Rc::new(Cell::new(0));
    let count = Rc::clone(&counted);
    pair.observe(move |_, _, frame| {
        let frame = EthernetFrame::parse(frame).unwrap();
        if frame.header.ether_type != EtherType::IPV6 {
            return;
        }
        let header = Ipv6Packet::parse(frame.payload).unwrap().header;
        for address in [header.source, header.destination] {
            assert_eq!(address.to_ipv4_mapped(), None, "{address}");
        }
        if !header.destination.is_multicast() {
            count.set(count.get() + 1);
        }
    });
    counted
}

#[test]
fn a_listener_at_all_addresses_accepts_both_versions() {
    for syn_cookies in [SynCookies::Never, SynCookies::Always] {
        let mut pair = pair();
        count_ipv6(&mut pair);
        let options = ListenOptions { syn_cookies, ..LISTEN };
        let listener = listen(&mut pair, parse("[::]:80"), &options);
        let local = pair.stack(Side::Right).tcp_listen_addr(listener);
        assert_eq!(local, Ok(parse("[::]:80")));
        for (remote, shown) in [
            (end(Side::Right.address(), 80), end(mapped(Side::Right), 80)),
            (end(ipv6(Side::Right), 80), end(ipv6(Side::Right), 80)),
        ] {
            let client = connect(&mut pair, remote);
            let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
            let (own, to) = ends(&mut pair, Side::Left, client);
            assert_eq!(to, remote, "the client has the form that it has given");
            let seen = match own {
                SocketAddr::V4(own) => end(own.ip().to_ipv6_mapped(), own.port()),
                SocketAddr::V6(_) => own,
            };
            assert_eq!((peer, ends(&mut pair, Side::Right, server)), (seen, (shown, seen)));
        }
    }
}

#[test]
fn a_listener_for_ipv6_only_refuses_ipv4() {
    let mut pair = pair();
    let listener = listen(&mut pair, parse("[::]:80"), &ONLY_V6);
    assert_eq!(pair.stack(Side::Right).tcp_listen_only_v6(listener), Ok(true));
    let refused = connect(&mut pair, end(Side::Right.address(), 80));
    let error = pair.stack(Side::Left).tcp(refused).unwrap().error();
    assert_eq!(error, Some(TcpError::Refused));
    connect(&mut pair, end(ipv6(Side::Right), 80));
    let (_, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    assert_eq!(peer.ip(), ipv6(Side::Left));

    let ipv4 = listen(&mut pair, parse("0.0.0.0:80"), &LISTEN);
    connect(&mut pair, end(Side::Right.address(), 80));
    let (_, peer) = pair.stack(Side::Right).tcp_accept(ipv4).unwrap();
    assert_eq!(peer.ip(), Side::Left.address(), "a listener of IPv4 shows IPv4 addresses");
    let stack = pair.stack(Side::Right);
    let not_ipv6 = Err(Error::NotIpv6(parse("0.0.0.0:80")));
    assert_eq!(stack.tcp_listen_only_v6(ipv4), not_ipv6);
}

#[test]
fn a_connection_to_a_mapped_address_is_one_of_ipv4() {
    let mut pair = pair();
    let ipv6_packets = count_ipv6(&mut pair);
    let listener = listen(&mut pair, end(Side::Right.address(), 80), &LISTEN);
    let client = connect(&mut pair, end(mapped(Side::Right), 80));
    let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    assert_eq!(ipv6_packets.get(), 0);
    let shown = (end(mapped(Side::Left), peer.port()), end(mapped(Side::Right), 80));
    assert_eq!(ends(&mut pair, Side::Left, client), shown);
    assert_eq!(peer.ip(), Side::Left.address());
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"line rate").unwrap();
    pair.run_for(Duration::from_secs(1));
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut [0; 16]), Ok(9));
}

/// A connection reports its addresses either as IPv4-mapped IPv6 addresses or as IPv4 addresses.
/// When it becomes compact, the host must remember which of the two forms it uses.
#[test]
fn an_idle_connection_keeps_the_form_of_its_addresses() {
    let mut pair = pair();
    let listener = listen(&mut pair, parse("[::]:80"), &LISTEN);
    let client = connect(&mut pair, end(mapped(Side::Right), 80));
    let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    let before = ends(&mut pair, Side::Left, client);
    pair.run_for(Duration::from_secs(3_600));
    assert_eq!(ends(&mut pair, Side::Left, client), before);
    assert_eq!(ends(&mut pair, Side::Right, server), (before.1, peer));
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"awake").unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(ends(&mut pair, Side::Left, client), before);
    assert_eq!(ends(&mut pair, Side::Right, server), (before.1, peer));
}

/// A slot in the table of connections is reused after a connection with IPv4-mapped addresses. The
/// new connection must report IPv4 addresses as such.
#[test]
fn a_reused_slot_forgets_the_form_of_its_addresses() {
    let mut pair = pair();
    let listener = listen(&mut pair, end(Side::Right.address(), 80), &LISTEN);
    for remote in [end(mapped(Side::Right), 80), end(Side::Right.address(), 80)] {
        let client = connect(&mut pair, remote);
        assert_eq!(ends(&mut pair, Side::Left, client).1, remote);
        let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(peer.ip(), Side::Left.address());
        let now = pair.now;
        pair.stack(Side::Left).tcp_abort(now, client).unwrap();
        pair.stack(Side::Right).tcp_abort(now, server).unwrap();
        pair.run_for(Duration::from_secs(1));
    }
}

#[test]
fn a_bound_mapped_address_receives_ipv4_only() {
    let mut pair = pair();
    for local in [end(mapped(Side::Right), 80), parse("[::ffff:0.0.0.0]:81")] {
        let listener = listen(&mut pair, local, &LISTEN);
        assert_eq!(pair.stack(Side::Right).tcp_listen_addr(listener), Ok(local));
        connect(&mut pair, end(Side::Right.address(), local.port()));
        let (_, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(peer.ip(), mapped(Side::Left));
        let refused = connect(&mut pair, end(ipv6(Side::Right), local.port()));
        let error = pair.stack(Side::Left).tcp(refused).unwrap().error();
        assert_eq!(error, Some(TcpError::Refused));
    }
}

/// Two sockets with overlapping local addresses conflict in the cases in which they conflict on
/// Linux, with one exception. Here, a socket with one address does not conflict with a socket for
/// all addresses of its IP version.
#[test]
fn two_sockets_cannot_receive_the_same_packets() {
    let both = (parse("[::]:7"), false);
    let only_v6 = (parse("[::]:7"), true);
    let all_ipv4 = (parse("0.0.0.0:7"), false);
    let all_mapped = (parse("[::ffff:0.0.0.0]:7"), false);
    let ipv4 = (end(Side::Left.address(), 7), false);
    let one_mapped = (end(mapped(Side::Left), 7), false);
    let one_ipv6 = (end(ipv6(Side::Left), 7), false);
    let conflicts = [
        (both, &[both, only_v6, all_ipv4, all_mapped][..]),
        (only_v6, &[both, only_v6]),
        (all_ipv4, &[both, all_ipv4, all_mapped]),
        (all_mapped, &[both, all_ipv4, all_mapped]),
        (ipv4, &[ipv4, one_mapped]),
        (one_mapped, &[ipv4, one_mapped]),
        (one_ipv6, &[one_ipv6]),
    ];
    let all = conflicts.map(|(socket, _)| socket);
    for (first, refused) in conflicts {
        for second in all {
            let expected = refused.contains(&second).then_some(Error::AddressInUse(second.0));
            let mut pair = pair();
            let stack = pair.stack(Side::Left);
            let mut listen = |(local, only_v6)| {
                stack.tcp_listen(local, &ListenOptions { only_v6, ..LISTEN }).err()
            };
            assert_eq!((listen(first), listen(second)), (None, expected), "{first:?} {second:?}");
            let mut bind = |(local, only_v6)| {
                stack.udp_bind(local, &UdpOptions { only_v6, ..UdpOptions::default() }).err()
            };
            assert_eq!((bind(first), bind(second)), (None, expected), "{first:?} {second:?}");
            stack.check();
        }
    }
}

#[test]
fn a_closed_socket_leaves_both_versions() {
    let mut pair = pair();
    let listener = listen(&mut pair, parse("[::]:80"), &LISTEN);
    let socket = bind(&mut pair, Side::Right, parse("[::]:80"));
    let now = pair.now;
    let stack = pair.stack(Side::Right);
    stack.tcp_listen_close(now, listener).unwrap();
    stack.udp_close(socket).unwrap();
    stack.check();
    for local in ["0.0.0.0:80", "[::]:80"] {
        let options = UdpOptions { only_v6: true, ..UdpOptions::default() };
        stack.tcp_listen(parse(local), &ONLY_V6).unwrap();
        stack.udp_bind(parse(local), &options).unwrap();
    }
}

#[test]
fn a_chosen_port_is_free_in_both_versions() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.ephemeral_ports = 50..=52);
    let stack = pair.stack(Side::Left);
    stack.tcp_listen(parse("0.0.0.0:51"), &LISTEN).unwrap();
    stack.udp_bind(parse("0.0.0.0:51"), &UdpOptions::default()).unwrap();
    let any = parse("[::]:0");
    let mut listening: Vec<_> = (0..2)
        .map(|_| {
            let listener = stack.tcp_listen(any, &LISTEN).unwrap();
            stack.tcp_listen_addr(listener).unwrap().port()
        })
        .collect();
    listening.sort_unstable();
    assert_eq!(listening, [50, 52]);
    assert_eq!(stack.tcp_listen(any, &LISTEN), Err(Error::PortsExhausted(any)));
    let options = UdpOptions::default();
    let mut bound: Vec<_> = (0..2)
        .map(|_| {
            let socket = stack.udp_bind(any, &options).unwrap();
            stack.udp_local_addr(socket).unwrap().port()
        })
        .collect();
    bound.sort_unstable();
    assert_eq!(bound, [50, 52]);
    assert_eq!(stack.udp_bind(any, &options), Err(Error::PortsExhausted(any)));
}

#[test]
fn datagrams_of_both_versions_reach_a_socket_at_all_addresses() {
    let mut pair = pair();
    count_ipv6(&mut pair);
    let right = bind(&mut pair, Side::Right, parse("[::]:9"));
    for (own, to, shown) in [
        (end(Side::Left.address(), 5), end(Side::Right.address(), 9), end(mapped(Side::Left), 5)),
        (end(ipv6(Side::Left), 5), end(ipv6(Side::Right), 9), end(ipv6(Side::Left), 5)),
    ] {
        let left = bind(&mut pair, Side::Left, own);
        send(&mut pair, Side::Left, left, to).unwrap();
        assert_eq!(received(&mut pair, Side::Right, right), Ok(shown));
        send(&mut pair, Side::Right, right, shown).unwrap();
        assert_eq!(received(&mut pair, Side::Left, left), Ok(to));
        // The application may also give the destination as an IPv4 address, instead of an
        // IPv4-mapped IPv6 address.
        send(&mut pair, Side::Right, right, own).unwrap();
        assert_eq!(received(&mut pair, Side::Left, left), Ok(to));
    }
}

#[test]
fn a_socket_at_all_addresses_can_be_connected_to_a_mapped_address() {
    let mut pair = pair();
    let right = bind(&mut pair, Side::Right, parse("[::]:9"));
    let peer = end(mapped(Side::Left), 5);
    let now = pair.now;
    let stack = pair.stack(Side::Right);
    stack.udp_connect(now, right, peer).unwrap();
    assert_eq!(stack.udp_peer_addr(right), Ok(peer));
    assert_eq!(stack.udp_local_addr(right), Ok(end(mapped(Side::Right), 9)));
    assert_eq!(stack.udp_path_mtu(now, right), Ok(1_500));
    stack.udp_send(now, right, b"data").unwrap();
    for (own, to) in [
        (end(Side::Left.address(), 5), end(Side::Right.address(), 9)),
        (end(Side::Left.address(), 6), end(Side::Right.address(), 9)),
        (end(ipv6(Side::Left), 5), end(ipv6(Side::Right), 9)),
    ] {
        let left = bind(&mut pair, Side::Left, own);
        send(&mut pair, Side::Left, left, to).unwrap();
        let is_peer = own == end(Side::Left.address(), 5);
        let expected = if is_peer { Ok(peer) } else { Err(Error::WouldBlock) };
        assert_eq!(received(&mut pair, Side::Right, right), expected, "{own}");
        let sent = if is_peer { Ok(to) } else { Err(Error::WouldBlock) };
        assert_eq!(received(&mut pair, Side::Left, left), sent, "{own}");
    }
}

#[test]
fn errors_of_both_versions_reach_a_socket_at_all_addresses() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, parse("[::]:5"));
    for closed in [end(mapped(Side::Right), 9), end(ipv6(Side::Right), 9)] {
        send(&mut pair, Side::Left, left, closed).unwrap();
        let stack = pair.stack(Side::Left);
        assert!(matches!(stack.poll_event(), Some(Event::Udp(_, _))), "{closed}");
        assert_eq!(stack.udp_take_error(left), Ok(Some(Error::Refused)), "{closed}");
        assert_eq!(stack.udp_take_error(left), Ok(None));
    }
}

#[test]
fn several_datagrams_of_a_mapped_sender_are_received_together() {
    let mut pair = pair();
    let right = bind(&mut pair, Side::Right, parse("[::]:9"));
    let left = bind(&mut pair, Side::Left, parse("[::]:5"));
    let now = pair.now;
    let to = end(mapped(Side::Right), 9);
    let segment = 4.try_into().unwrap();
    pair.stack(Side::Left).udp_send_segments(now, left, to, b"onetwo  3", segment).unwrap();
    pair.run_for(Duration::from_millis(10));
    let segments = pair.stack(Side::Right).udp_receive_segments(right, &mut [0; 64]).unwrap();
    let received = (segments.length, segments.segment, segments.from);
    assert_eq!(received, (9, 4, end(mapped(Side::Left), 5)));
}

#[test]
fn a_socket_for_one_version_does_not_use_the_other() {
    let mut pair = pair();
    let now = pair.now;
    let ipv4 = Side::Right.address().into();
    let stack = pair.stack(Side::Left);
    let options = UdpOptions { only_v6: true, ..UdpOptions::default() };
    let only_v6 = stack.udp_bind(parse("[::]:5"), &options).unwrap();
    assert_eq!(stack.udp_only_v6(only_v6), Ok(true));
    for to in [end(mapped(Side::Right), 9), end(ipv4, 9)] {
        let refused = Err(Error::OnlyIpv6(ipv4));
        assert_eq!(stack.udp_send_to(now, only_v6, to, b""), refused);
        assert_eq!(stack.udp_connect(now, only_v6, to), refused);
    }
    assert_eq!(stack.udp_join(now, only_v6, GROUP, None), Err(Error::OnlyIpv6(GROUP.into())));
    let one = stack.udp_bind(end(ipv6(Side::Left), 6), &UdpOptions::default()).unwrap();
    assert_eq!(stack.udp_only_v6(one), Ok(true), "it is bound to an IPv6 address, as on Linux");
    let refused = stack.udp_send_to(now, one, end(mapped(Side::Right), 9), b"");
    assert_eq!(refused, Err(Error::OnlyIpv6(ipv4)), "it is bound to an IPv6 address");
    let given = end(mapped(Side::Left), 7);
    assert_eq!(stack.udp_bind(given, &options), Err(Error::MappedBind(given)));
    assert_eq!(stack.tcp_listen(given, &ONLY_V6), Err(Error::MappedBind(given)));
    let foreign = Error::AddressNotOurs(ipv4);
    assert_eq!(stack.tcp_listen(end(mapped(Side::Right), 7), &LISTEN), Err(foreign));
}

#[test]
fn a_socket_at_all_addresses_receives_ipv4_groups_and_broadcasts() {
    let mut pair = pair();
    let right = bind(&mut pair, Side::Right, parse("[::]:9"));
    let options = UdpOptions { broadcast: true, ..UdpOptions::default() };
    let left = pair.stack(Side::Left).udp_bind(parse("[::]:5"), &options).unwrap();
    let now = pair.now;
    pair.stack(Side::Right).udp_join(now, right, GROUP, None).unwrap();
    pair.run_for(Duration::from_secs(1));
    for to in [Ipv4Addr::new(192, 0, 2, 255), GROUP] {
        send(&mut pair, Side::Left, left, end(to.to_ipv6_mapped(), 9)).unwrap();
        let shown = end(mapped(Side::Left), 5);
        assert_eq!(received(&mut pair, Side::Right, right), Ok(shown), "{to}");
    }
}

/// Returns an IPv6 packet that carries a SYN if `protocol` is TCP, and otherwise an empty UDP
/// datagram.
fn packet(source: Ipv6Addr, destination: Ipv6Addr, protocol: Protocol) -> Vec<u8> {
    let length = if protocol == Protocol::TCP { TcpHeader::LENGTH } else { UdpHeader::LENGTH };
    let header = Ipv6Header::new(source, destination, protocol);
    let mut packet = vec![0; Ipv6Header::LENGTH + length];
    header.emit(length, &mut packet);
    let payload = &mut packet[Ipv6Header::LENGTH..];
    let pseudo = header.pseudo_header(protocol, length);
    if protocol == Protocol::TCP {
        let (flags, window) = (TcpFlags::SYN, 1_000);
        let ports = TcpHeader { source_port: 5, destination_port: 80, ..TcpHeader::default() };
        TcpHeader { flags, window, ..ports }.emit(0, payload);
        let sum = Sum::of(payload);
        TcpHeader::fill_checksum(payload, pseudo, sum);
    } else {
        UdpHeader { source_port: 5, destination_port: 80 }.emit(0, payload);
        let sum = Sum::of(payload);
        UdpHeader::fill_checksum(payload, pseudo, sum);
    }
    packet
}

/// Packets with an IPv4-mapped IPv6 address are invalid, and dropped
/// (draft-itojun-v6ops-v4mapped-harmful). They would evade filters for IPv4 addresses, and a
/// dual-stack socket would report an IPv4 sender for them.
#[test]
fn mapped_addresses_in_packets_are_dropped() {
    let other = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
    for is_forwarding in [false, true] {
        for protocol in [Protocol::TCP, Protocol::UDP] {
            let mut pair = pair_over(Medium::Ip);
            listen(&mut pair, parse("[::]:80"), &LISTEN);
            let socket = bind(&mut pair, Side::Right, parse("[::]:80"));
            if is_forwarding {
                let (options, accept) = (ForwardOptions::default(), |_: &Opening| Verdict::Accept);
                let stack = pair.stack(Side::Right);
                stack.forward(Destinations::EVERYTHING, &options, accept).unwrap();
            }
            for (source, destination) in [
                (mapped(Side::Left), ipv6(Side::Right)),
                (mapped(Side::Left), mapped(Side::Right)),
                (ipv6(Side::Left), mapped(Side::Right)),
                (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), ipv6(Side::Right)),
                (ipv6(Side::Left), Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
            ] {
                let answers = pair.answers(Side::Right, packet(source, destination, protocol));
                assert!(answers.iter().all(|answer| is_report(answer)), "{source} {destination}");
            }
            let stack = pair.stack(Side::Right);
            let counted = stack.counters().ip;
            assert_eq!(counted.in_header_errors + counted.in_address_errors, 5);
            assert_eq!(counted.in_delivers, 0);
            assert_eq!(received(&mut pair, Side::Right, socket), Err(Error::WouldBlock));
            // A packet with valid addresses, also made by the function `packet`, is accepted. So
            // the five packets before it were dropped because of their addresses, and not for
            // another defect.
            pair.answers(Side::Right, packet(other, ipv6(Side::Right), protocol));
            assert_eq!(pair.stack(Side::Right).counters().ip.in_delivers, 1);
        }
    }
}

/// Is this packet a multicast membership report? The host sends such reports by itself, so they do
/// not count as answers to the test's packets.
fn is_report(packet: &[u8]) -> bool {
    Ipv6Packet::parse(packet).is_ok_and(|packet| packet.header.destination.is_multicast())
}

#[test]
fn link_local_addresses_have_the_zone_of_their_interface() {
    let mut pair = pair();
    let listener = listen(&mut pair, zoned(Side::Right, 80, 0), &LISTEN);
    let shown = zoned(Side::Right, 80, FIRST_INTERFACE);
    assert_eq!(pair.stack(Side::Right).tcp_listen_addr(listener), Ok(shown));
    for zone in [0, FIRST_INTERFACE] {
        let client = connect(&mut pair, zoned(Side::Right, 80, zone));
        let (server, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(peer, zoned(Side::Left, peer.port(), FIRST_INTERFACE));
        assert_eq!(ends(&mut pair, Side::Left, client), (peer, shown));
        assert_eq!(ends(&mut pair, Side::Right, server), (shown, peer));
    }
}

#[test]
fn datagrams_of_link_local_addresses_have_a_zone() {
    let mut pair = pair();
    let right = bind(&mut pair, Side::Right, zoned(Side::Right, 9, FIRST_INTERFACE));
    let left = bind(&mut pair, Side::Left, parse("[::]:5"));
    let (from, to) =
        (zoned(Side::Left, 5, FIRST_INTERFACE), zoned(Side::Right, 9, FIRST_INTERFACE));
    for zone in [0, FIRST_INTERFACE] {
        send(&mut pair, Side::Left, left, zoned(Side::Right, 9, zone)).unwrap();
        assert_eq!(received(&mut pair, Side::Right, right), Ok(from));
    }
    send(&mut pair, Side::Right, right, from).unwrap();
    assert_eq!(received(&mut pair, Side::Left, left), Ok(to));
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    stack.udp_connect(now, left, to).unwrap();
    assert_eq!(stack.udp_peer_addr(left), Ok(to));
    assert_eq!(stack.udp_local_addr(left), Ok(from));
    assert_eq!(pair.stack(Side::Right).udp_local_addr(right), Ok(to));
}

#[test]
fn an_unknown_zone_is_refused() {
    let mut pair = pair();
    let now = pair.now;
    let there = zoned(Side::Right, 9, 2);
    let refused = |side| Error::UnknownZone { address: link_local(side), zone: 2 };
    let stack = pair.stack(Side::Left);
    let connected = stack.tcp_connect(now, there, &ConnectOptions::default());
    assert_eq!(connected, Err(refused(Side::Right)));
    let socket = stack.udp_bind(parse("[::]:5"), &UdpOptions::default()).unwrap();
    assert_eq!(stack.udp_send_to(now, socket, there, b""), Err(refused(Side::Right)));
    assert_eq!(stack.udp_connect(now, socket, there), Err(refused(Side::Right)));
    let own = zoned(Side::Left, 9, 2);
    assert_eq!(stack.tcp_listen(own, &LISTEN), Err(refused(Side::Left)));
    assert_eq!(stack.udp_bind(own, &UdpOptions::default()), Err(refused(Side::Left)));
    let options = ConnectOptions { local: Some(own), ..ConnectOptions::default() };
    let connected = stack.tcp_connect(now, zoned(Side::Right, 9, 0), &options);
    assert_eq!(connected, Err(refused(Side::Left)));
    // The zone of an address is ignored if the address is not link-local, as in Linux.
    let global = SocketAddrV6::new(ipv6(Side::Right), 9, 0, 2);
    assert_eq!(stack.udp_connect(now, socket, global), Ok(()));
    assert_eq!(stack.udp_peer_addr(socket), Ok(end(ipv6(Side::Right), 9)));
}

/// A forwarder reports the addresses of an IPv4 flow as IPv4 addresses, and never as IPv4-mapped
/// ones. The destinations that a forwarder accepts belong to one IP version or to both.
#[test]
fn a_forwarder_for_everything_accepts_both_versions_and_one_for_ipv6_only_ipv6() {
    let far_ipv4 = end(Ipv4Addr::new(192, 0, 2, 77), 80);
    let far_ipv6 = end(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x77), 80);
    let both = Destinations::EVERYTHING.with_ports(80..=80);
    let only_v6 = Destinations::network("::/0".parse().unwrap()).with_ports(80..=80);
    for (destinations, accepts_ipv4) in [(both, true), (only_v6, false)] {
        let mut pair = pair_over(Medium::Ip);
        let (options, defer) = (ForwardOptions::default(), |_: &Opening| Verdict::Defer);
        pair.stack(Side::Right).forward(destinations, &options, defer).unwrap();
        for (remote, is_accepted) in [(far_ipv4, accepts_ipv4), (far_ipv6, true)] {
            let now = pair.now;
            let stack = pair.stack(Side::Left);
            let client = stack.tcp_connect(now, remote, &ConnectOptions::default()).unwrap();
            pair.run_for(Duration::from_millis(10));
            let event = pair.stack(Side::Right).poll_forward();
            assert_eq!(event.is_some(), is_accepted, "{remote}");
            let Some(ForwardEvent::Deferred(handle, opening)) = event else { continue };
            let (own, _) = ends(&mut pair, Side::Left, client);
            assert_eq!((opening.source, opening.destination), (own, remote));
            let now = pair.now;
            let server = pair.stack(Side::Right).forward_accept(now, handle).unwrap();
            assert_eq!(ends(&mut pair, Side::Right, server), (remote, own));
            pair.run_for(Duration::from_millis(10));
            let client = pair.stack(Side::Left).tcp(client).unwrap().state();
            assert_eq!(client, State::Established);
        }
    }
}

/// A host without a global address sends from its link-local address, even to a global destination.
/// The forwarder must then report the address of this client with a zone.
#[test]
fn a_link_local_client_of_a_forwarder_has_a_zone() {
    let mut pair = pair_over(Medium::Ip);
    let far = end(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x77), 80);
    let (options, accept) = (ForwardOptions::default(), |_: &Opening| Verdict::Defer);
    pair.stack(Side::Right).forward(Destinations::EVERYTHING, &options, accept).unwrap();
    let own = zoned(Side::Left, 5, FIRST_INTERFACE);
    let socket = bind(&mut pair, Side::Left, own);
    send(&mut pair, Side::Left, socket, far).unwrap();
    let Some(ForwardEvent::Datagrams(flow, opening)) = pair.stack(Side::Right).poll_forward()
    else {
        panic!("no flow");
    };
    assert_eq!((opening.source, opening.destination), (own, far));
    assert_eq!(pair.stack(Side::Right).udp_peer_addr(flow), Ok(own));
}
