//! Tests of listeners: their queues and limits, and the effect of floods.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod forged;

use forged::{SERVER, forged, invented, put};
use linerate_stack::{
    ConnectOptions, Error, Event, ListenHandle, ListenOptions, Medium, RateLimit, SynCookies,
    TcpHandle,
};
use linerate_tcp::{Config, Event as TcpEvent, State};
use linerate_testkit::{Pair, Setup, Side, ipv4_end};
use linerate_units::Duration;
use linerate_wire::{
    IcmpError, IcmpMessage, Ipv4Header, Protocol, Quote, Segment, TcpFlags, Unreachable,
};
use std::net::{Ipv4Addr, SocketAddrV4};

fn pair() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, _| {})
}

/// Creates a pair of hosts with a default route. Without a route, they could not answer segments
/// from invented source addresses.
fn pair_with_default_route() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.routes.push(linerate_stack::Route::direct("0.0.0.0/0".parse().unwrap()));
    })
}

fn listen(pair: &mut Pair, backlog: usize, syn_backlog: usize) -> ListenHandle {
    // SYN cookies are off here: the file `syn_cookies.rs` tests them.
    let syn_cookies = SynCookies::Never;
    let options = ListenOptions { backlog, syn_backlog, syn_cookies, ..ListenOptions::default() };
    pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap()
}

fn connect(pair: &mut Pair) -> TcpHandle {
    let now = pair.now;
    pair.stack(Side::Left).tcp_connect(now, SERVER, &ConnectOptions::default()).unwrap()
}

#[test]
fn a_syn_flood_is_limited_and_honest_peers_connect() {
    let mut pair = pair_with_default_route();
    let listener = listen(&mut pair, 8, 32);
    let mut connected = 0;
    for number in 0..2_000 {
        put(&mut pair, forged(invented(number), TcpFlags::SYN, 1, 0));
        // One of a hundred SYNs comes from a legitimate client, whose round-trip time is 0.1 ms.
        // The other SYNs have invented source addresses.
        if number % 100 == 0 {
            connect(&mut pair);
        }
        pair.run_for(Duration::from_micros(10));
        connected += usize::from(pair.stack(Side::Right).tcp_accept(listener).is_some());
    }
    pair.run_for(Duration::from_millis(1));
    connected += usize::from(pair.stack(Side::Right).tcp_accept(listener).is_some());
    assert_eq!(connected, 20);
    let counters = pair.stack(Side::Right).counters();
    assert!(counters.tcp_extra.half_open_recycled > 1_900, "{counters}");
    assert_eq!(counters.tcp_extra.listen_overflows, 0);
}

#[test]
fn a_full_accept_queue_ignores_handshakes_until_an_accept() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 32);
    let clients: Vec<_> = (0..5).map(|_| connect(&mut pair)).collect();
    pair.run_for(Duration::from_millis(100));
    // All five clients are in ESTABLISHED, because they have received a SYN-ACK. But the accept
    // queue has room for two connections only, so the server has ignored the final acknowledgements
    // of the three other clients.
    for &client in &clients {
        assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().state(), State::Established);
    }
    assert_eq!(pair.stack(Side::Right).counters().tcp.currently_established, 2);
    assert!(pair.stack(Side::Right).counters().tcp_extra.listen_overflows >= 3);
    // As long as the accept queue is full, the server does not answer the SYN of a further client.
    let late = connect(&mut pair);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.stack(Side::Left).tcp(late).unwrap().state(), State::SynSent);

    let mut accepted = 0;
    assert!(pair.run_until(Duration::from_secs(30), |pair| {
        accepted += usize::from(pair.stack(Side::Right).tcp_accept(listener).is_some());
        accepted == 6
    }));
}

#[test]
fn a_full_syn_queue_replaces_the_oldest_entry() {
    let mut pair = pair_with_default_route();
    let listener = listen(&mut pair, 8, 3);
    for (number, half_open, recycled) in [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 3, 1), (4, 3, 2)] {
        put(&mut pair, forged(invented(number), TcpFlags::SYN, 1, 0));
        let now = pair.now;
        pair.host(Side::Right).turn(now).unwrap();
        let counted = pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap();
        assert_eq!((counted.half_open, counted.recycled), (half_open, recycled), "after {number}");
    }
    let counted = pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap();
    assert_eq!((counted.syns_kept, counted.dropped), (5, 0));
    let counters = pair.stack(Side::Right).counters();
    assert_eq!((counters.tcp_extra.listen_drops, counters.tcp_extra.half_open_recycled), (2, 2));
    assert_eq!((counters.tcp.passive_opens, counters.tcp.attempt_failures), (5, 2));
}

#[test]
fn a_syn_at_a_full_accept_queue_is_counted_as_dropped() {
    let mut pair = pair();
    let listener = listen(&mut pair, 1, 8);
    connect(&mut pair);
    pair.run_for(Duration::from_millis(10));
    connect(&mut pair);
    pair.run_for(Duration::from_millis(10));
    let counted = pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap();
    assert_eq!((counted.acceptable, counted.dropped, counted.overflows), (1, 1, 1));
    let counters = pair.stack(Side::Right).counters().tcp_extra;
    assert_eq!((counters.listen_drops, counters.listen_overflows), (1, 1));
}

#[test]
fn a_backlog_of_zero_admits_one_connection() {
    let mut pair = pair();
    let listener = listen(&mut pair, 0, 0);
    connect(&mut pair);
    pair.run_for(Duration::from_millis(10));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
}

#[test]
fn a_listener_needs_an_address_of_the_host() {
    let mut pair = pair();
    let other = Ipv4Addr::new(192, 0, 2, 9);
    let options = ListenOptions::default();
    let refused = pair.stack(Side::Right).tcp_listen(SocketAddrV4::new(other, 80), &options);
    assert_eq!(refused, Err(Error::AddressNotOurs(other.into())));
}

#[test]
fn a_new_configuration_applies_to_later_syns() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, 8);
    let silent = Config { timestamps: false, ..Config::modern() };
    for (rules, timestamps) in [(None, true), (Some(silent), false), (None, true)] {
        pair.stack(Side::Right).tcp_listen_configure(listener, rules).unwrap();
        connect(&mut pair);
        pair.run_for(Duration::from_millis(10));
        let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(
            pair.stack(Side::Right).tcp(server).unwrap().information().timestamps,
            timestamps
        );
    }
}

#[test]
fn events_before_the_accept_follow_it() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 2);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"early").unwrap();
    pair.stack(Side::Left).tcp_shutdown_write(now, client).unwrap();
    pair.run_for(Duration::from_millis(1));
    let stack = pair.stack(Side::Right);
    assert_eq!(stack.poll_event(), Some(Event::Incoming(listener)));
    assert_eq!(stack.poll_event(), None);
    let (server, _) = stack.tcp_accept(listener).unwrap();
    assert_eq!(stack.poll_event(), Some(Event::Tcp(server, TcpEvent::Readable)));
    assert_eq!(stack.poll_event(), Some(Event::Tcp(server, TcpEvent::EndOfStream)));
}

#[test]
fn a_compact_connection_can_be_accepted() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 2);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_secs(10));
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_write(now, server, b"late"), Ok(4));
    pair.run_for(Duration::from_millis(1));
    let (now, mut received) = (pair.now, [0; 8]);
    assert_eq!(pair.stack(Side::Left).tcp_read(now, client, &mut received), Ok(4));
}

#[test]
fn a_connection_reset_before_the_accept_is_not_accepted() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 2);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.stack(Side::Left).tcp_abort(now, client).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_none());
    assert_eq!(pair.stack(Side::Right).counters().tcp.established_resets, 1);
}

#[test]
fn closing_a_listener_resets_its_connections() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 2);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    put(&mut pair, forged(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 1), TcpFlags::SYN, 1, 0));
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.stack(Side::Right).tcp_listen_close(now, listener).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(
        pair.stack(Side::Left).tcp(client).unwrap().error(),
        Some(linerate_tcp::Error::Reset)
    );
    assert_eq!(pair.stack(Side::Right).counters().tcp.out_resets, 2);
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_none());
}

#[test]
fn a_specific_listener_precedes_a_wildcard_listener() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.addresses.push("198.51.100.1/24".parse().unwrap());
    });
    let options = ListenOptions::default();
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9);
    let general = pair.stack(Side::Right).tcp_listen(anywhere, &options).unwrap();
    let special = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.stack(Side::Right).tcp_accept(special).is_some());
    assert!(pair.stack(Side::Right).tcp_accept(general).is_none());
}

#[test]
fn resets_are_sent_at_a_limited_rate() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.limits.resets = RateLimit { per_second: 10, burst: 5 };
    });
    let lost = forged(SocketAddrV4::new(Side::Left.address(), 7), TcpFlags::ACK, 1, 1);
    for _ in 0..100 {
        put(&mut pair, lost.clone());
    }
    pair.run_for(Duration::from_millis(1));
    let counters = pair.stack(Side::Right).counters();
    assert_eq!((counters.tcp.out_resets, counters.tcp_extra.resets_limited), (5, 95));
}

#[test]
fn icmp_errors_reach_only_the_quoted_connection() {
    let mut pair = pair();
    let client = connect(&mut pair);
    let now = pair.now;
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    let syn = host.link_mut().fetch().unwrap();
    let report = |packet: &[u8]| {
        let error = IcmpError::Unreachable(Unreachable::Port);
        let message = IcmpMessage::Error { error, quote: Quote::of(packet).unwrap() };
        let mut bytes = vec![0; 20 + message.length()];
        let header = Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::ICMP);
        header.emit(message.length(), &mut bytes);
        message.emit(&mut bytes[20..]);
        bytes
    };
    // The client must ignore an ICMP error if the quoted sequence number was never sent.
    let mut forged = syn.clone();
    forged[24..28].copy_from_slice(&7_u32.to_be_bytes());
    // An ICMP error that quotes another port belongs to no connection, so it must have no effect.
    let mut strange = syn.clone();
    strange[20] ^= 1;
    for (quoted, state) in
        [(forged, State::SynSent), (strange, State::SynSent), (syn, State::Closed)]
    {
        let packet = report(&quoted);
        let host = pair.host(Side::Left);
        host.link_mut().put(now, packet);
        host.turn(now).unwrap();
        host.stack().check();
        assert_eq!(host.stack().tcp(client).unwrap().state(), state);
    }
    assert_eq!(pair.stack(Side::Left).counters().tcp_extra.unmatched_icmps, 1);
}

#[test]
fn a_reported_path_mtu_applies_to_this_and_later_connections() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, 2);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    pair.stack(Side::Right).tcp_accept(listener).unwrap();
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, &[1; 1_448]).unwrap();
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    let segment = host.link_mut().fetch().unwrap();
    assert!(Segment::parse(&segment[20..]).unwrap().payload.len() == 1_448);
    // The ICMP error makes the client retransmit the data in smaller segments. An acknowledgement
    // of one of these confirms the error. The client recognises such an acknowledgement by its
    // timestamp echo, which must differ from that of the original segment. The test therefore waits
    // until the timestamp clock has advanced.
    pair.run_for(Duration::from_millis(2));
    let now = pair.now;
    let host = pair.host(Side::Left);
    let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_200 };
    let message = IcmpMessage::Error { error, quote: Quote::of(&segment).unwrap() };
    let mut report = vec![0; 20 + message.length()];
    // The source of the ICMP error is a router, and not the peer.
    let router = Ipv4Addr::new(192, 0, 2, 254);
    Ipv4Header::new(router, Side::Left.address(), Protocol::ICMP)
        .emit(message.length(), &mut report);
    message.emit(&mut report[20..]);
    host.link_mut().put(now, report);
    let before = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().effective_mss(), 1_200 - 52);
    let before = pair.stack(Side::Left).tcp(before).unwrap();
    assert_eq!(before.effective_mss(), 1_448, "opened before the report was confirmed");
    let next = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).tcp(next).unwrap().effective_mss(), 1_200 - 52);
}

#[test]
fn challenge_acks_are_limited_for_all_connections_together() {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.limits.challenges = 10;
        // The forged segments of this test have no timestamps. A connection that uses timestamps
        // would drop them without a challenge ACK, so timestamps are off.
        config.tcp.timestamps = false;
    });
    let listener = listen(&mut pair, 100, 100);
    let clients: Vec<_> = (0..50).map(|_| connect(&mut pair)).collect();
    pair.run_for(Duration::from_millis(1));
    // A SYN on an established connection gets a challenge ACK, whatever its sequence number is (RFC
    // 5961 §4).
    for client in clients {
        let local = pair.stack(Side::Left).tcp_local_addr(client).unwrap();
        put(&mut pair, forged(ipv4_end(local), TcpFlags::SYN, 1, 0));
    }
    pair.run_for(Duration::from_millis(1));
    let counted = pair.stack(Side::Right).counters().tcp_extra;
    assert!((5..=15).contains(&counted.challenges), "{} challenges", counted.challenges);
    assert_eq!(counted.challenges + counted.challenges_limited, 50);
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
}

/// Creates a listener with deferred accept, and a client that has sent no data. The connection is
/// in ESTABLISHED at the client, but counts as half-open at the server until data arrives.
fn deferring(wait_for_data: Duration) -> (Pair, ListenHandle, TcpHandle) {
    let mut pair = pair();
    let options = ListenOptions { defer_accept: Some(wait_for_data), ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().state(), State::Established);
    (pair, listener, client)
}

#[test]
fn a_deferred_connection_is_accepted_when_data_arrives() {
    let (mut pair, listener, client) = deferring(Duration::from_secs(30));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_none());
    let counted = pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap();
    assert_eq!((counted.half_open, counted.acceptable, counted.deferred), (1, 0, 1));
    pair.run_for(Duration::from_secs(5));
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"question").unwrap();
    pair.run_for(Duration::from_millis(100));
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    let (now, mut received) = (pair.now, [0; 8]);
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut received), Ok(8));
    assert_eq!(pair.stack(Side::Right).counters().tcp.retransmitted_segments, 0);
}

#[test]
fn a_deferred_connection_is_accepted_after_the_timeout() {
    let (mut pair, listener, _) = deferring(Duration::from_secs(3));
    pair.run_for(Duration::from_millis(2_800));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_none());
    assert_eq!(pair.stack(Side::Right).counters().tcp.retransmitted_segments, 0);
    pair.run_for(Duration::from_millis(200));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
    assert_eq!(pair.stack(Side::Right).counters().tcp.retransmitted_segments, 1);
}

#[test]
fn a_deferred_connection_is_accepted_on_a_fin() {
    let (mut pair, listener, client) = deferring(Duration::from_secs(30));
    let now = pair.now;
    pair.stack(Side::Left).tcp_shutdown_write(now, client).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
}

/// With deferred accept, a connection takes a place in the SYN queue until its first data arrives.
#[test]
fn deferred_connections_are_limited_by_the_syn_queue() {
    let mut pair = pair();
    let options = ListenOptions {
        defer_accept: Some(Duration::from_secs(30)),
        syn_backlog: 3,
        syn_cookies: SynCookies::Never,
        ..ListenOptions::default()
    };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    for _ in 0..5 {
        connect(&mut pair);
        pair.run_for(Duration::from_millis(10));
    }
    let counted = pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap();
    assert_eq!((counted.half_open, counted.recycled, counted.deferred), (3, 2, 5));
}
