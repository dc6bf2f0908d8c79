//! Tests of SYN cookies. With them, a listener answers a SYN without storing it. The tests include
//! floods of SYNs, forged cookies, and acknowledgements that arrive late.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod forged;

use forged::{SERVER, forged, invented, put};
use linerate_stack::{
    ConnectOptions, ListenHandle, ListenOptions, ListenStatistics, Medium, Route, SynCookies,
    TcpHandle,
};
use linerate_tcp::{Config, EcnRule, State};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{Ecn, Ipv4Packet, Segment, Sum, TcpFlags, TcpHeader};
use std::cell::RefCell;
use std::rc::Rc;

/// Creates a pair of hosts with a default route. Without a route, they could not answer segments
/// from invented source addresses.
fn pair() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |_, config| {
        config.routes.push(Route::direct("0.0.0.0/0".parse().unwrap()));
    })
}

fn listen(pair: &mut Pair, syn_backlog: usize, syn_cookies: SynCookies) -> ListenHandle {
    let options =
        ListenOptions { backlog: 4, syn_backlog, syn_cookies, ..ListenOptions::default() };
    pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap()
}

fn connect_with(pair: &mut Pair, config: &Config) -> TcpHandle {
    let now = pair.now;
    let options = ConnectOptions { config: Some(*config), ..ConnectOptions::default() };
    pair.stack(Side::Left).tcp_connect(now, SERVER, &options).unwrap()
}

fn connect(pair: &mut Pair) -> TcpHandle {
    connect_with(pair, &Config::modern())
}

fn accept(pair: &mut Pair, listener: ListenHandle) -> Option<TcpHandle> {
    Some(pair.stack(Side::Right).tcp_accept(listener)?.0)
}

fn statistics(pair: &mut Pair, listener: ListenHandle) -> ListenStatistics {
    pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap()
}

/// Sends `count` SYNs from invented addresses to the server. They fill the SYN queue of its
/// listener, unless it has more places.
fn fill(pair: &mut Pair, count: u16) {
    (0..count).for_each(|number| put(pair, forged(invented(number), TcpFlags::SYN, 1, 0)));
    pair.run_for(Duration::from_micros(1));
}

/// Records every packet that the left host sends.
fn record(pair: &mut Pair) -> Rc<RefCell<Vec<Vec<u8>>>> {
    let packets = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&packets);
    pair.observe(move |_, side, packet| {
        if side == Side::Left {
            log.borrow_mut().push(packet.to_vec());
        }
    });
    packets
}

/// Opens a connection, and intercepts the client's final ACK of the handshake before it reaches the
/// server. Returns the client's handle and the intercepted packet.
fn lost_acknowledgement(pair: &mut Pair, config: &Config) -> (TcpHandle, Vec<u8>) {
    let packets = record(pair);
    let client = connect_with(pair, config);
    assert!(pair.run_until(Duration::from_millis(1), |pair| {
        pair.stack(Side::Left).tcp(client).unwrap().state() == State::Established
    }));
    while pair.wire.arrive(linerate_units::Instant::NEVER).is_some() {}
    let lost = packets.borrow().last().unwrap().clone();
    assert!(!Segment::parse(&lost[20..]).unwrap().flags().contains(TcpFlags::SYN));
    (client, lost)
}

/// Returns a copy of the packet with the TCP flags `flags` and a valid checksum.
fn with_flags(mut packet: Vec<u8>, flags: TcpFlags) -> Vec<u8> {
    let pseudo = Ipv4Packet::parse(&packet).unwrap().header.pseudo_header(packet.len() - 20);
    let [words, low] = flags.bits().to_be_bytes();
    packet[32] = packet[32] & 0xf0 | words;
    packet[33] = low;
    packet[36..38].fill(0);
    let sum = Sum::of(&packet[20..]);
    TcpHeader::fill_checksum(&mut packet[20..], pseudo, sum);
    packet
}

/// Returns a copy of the packet with the ECN codepoint `ecn` and a valid header checksum.
fn with_ecn(mut packet: Vec<u8>, ecn: Ecn) -> Vec<u8> {
    let mut header = Ipv4Packet::parse(&packet).unwrap().header;
    header.type_of_service = header.type_of_service.with_ecn(ecn);
    header.emit(packet.len() - 20, &mut packet);
    packet
}

#[test]
fn honest_peers_connect_during_a_flood() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::UnderPressure);
    let mut connected = 0;
    for number in 0..5_000 {
        // In each round-trip time of the legitimate clients, the flood sends fifty SYNs.
        put(&mut pair, forged(invented(number), TcpFlags::SYN, 1, 0));
        if number % 250 == 0 {
            connect(&mut pair);
        }
        pair.run_for(Duration::from_micros(2));
        connected += usize::from(accept(&mut pair, listener).is_some());
        assert!(statistics(&mut pair, listener).half_open <= 8);
    }
    pair.run_for(Duration::from_millis(1));
    connected += usize::from(accept(&mut pair, listener).is_some());
    assert_eq!(connected, 20);
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.recycled, counted.dropped, counted.overflows), (0, 0, 0));
    assert_eq!(counted.cookies_sent, 5_020 - counted.syns_kept);
    let counters = pair.stack(Side::Right).counters();
    assert_eq!(counters.tcp_extra.syn_cookies_sent, counted.cookies_sent);
    assert_eq!(counters.tcp_extra.syn_cookies_received, counted.cookies_taken);
    assert_eq!(counters.tcp_extra.syn_cookies_failed, 0);
}

#[test]
fn a_listener_that_always_sends_cookies_stores_no_syn() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    fill(&mut pair, 500);
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.half_open, counted.syns_kept, counted.cookies_sent), (0, 0, 500));
    assert_eq!(pair.stack(Side::Right).counters().tcp.passive_opens, 0);
    // If the host had stored any of the SYNs, a retransmission timer would be set for it.
    assert_eq!(pair.stack(Side::Right).poll_timeout(), linerate_units::Instant::NEVER);
}

#[test]
fn a_connection_by_cookie_equals_one_by_a_stored_syn() {
    let information = |cookies| {
        let mut pair = pair();
        let listener = listen(&mut pair, 8, cookies);
        let client = connect(&mut pair);
        pair.run_for(Duration::from_millis(1));
        let server = accept(&mut pair, listener).unwrap();
        let now = pair.now;
        pair.stack(Side::Left).tcp_write(now, client, &[7; 30_000]).unwrap();
        pair.stack(Side::Right).tcp_write(now, server, &[8; 30_000]).unwrap();
        pair.run_for(Duration::from_millis(100));
        let mut received = vec![0; 40_000];
        let now = pair.now;
        assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut received), Ok(30_000));
        assert_eq!(pair.stack(Side::Left).tcp_read(now, client, &mut received), Ok(30_000));
        assert_eq!(
            statistics(&mut pair, listener).cookies_taken,
            u64::from(cookies == SynCookies::Always)
        );
        let of = |pair: &mut Pair, side, handle| {
            let information = pair.stack(side).tcp(handle).unwrap().information();
            let shifts = (information.send_shift, information.receive_shift);
            (shifts, information.effective_mss, information.send_window, information.receive_window)
        };
        (of(&mut pair, Side::Left, client), of(&mut pair, Side::Right, server))
    };
    assert_eq!(information(SynCookies::Always), information(SynCookies::Never));
}

#[test]
fn without_timestamps_a_cookie_loses_the_options() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let client = connect_with(&mut pair, &Config { timestamps: false, ..Config::modern() });
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    for (side, handle) in [(Side::Left, client), (Side::Right, server)] {
        let information = pair.stack(side).tcp(handle).unwrap().information();
        assert_eq!((information.send_shift, information.receive_shift), (0, 0));
        assert_eq!(information.effective_mss, 1_460);
    }
}

/// RFC 7323 §3.2: a peer sends timestamps only if the SYN-ACK has one. A cookie stores the options
/// of the SYN in the timestamp that the peer echoes. Without timestamps, it therefore cannot store
/// them.
#[test]
fn a_listener_without_timestamps_stores_no_options_in_a_cookie() {
    let mut pair = pair();
    let config = Some(Config { timestamps: false, ..Config::modern() });
    let options =
        ListenOptions { syn_cookies: SynCookies::Always, config, ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    for (side, handle) in [(Side::Left, client), (Side::Right, server)] {
        let information = pair.stack(side).tcp(handle).unwrap().information();
        assert!(!information.timestamps);
        assert_eq!((information.send_shift, information.receive_shift), (0, 0));
    }
}

#[test]
fn a_connection_by_cookie_is_a_passive_open() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    accept(&mut pair, listener).unwrap();
    assert_eq!(pair.stack(Side::Right).counters().tcp.passive_opens, 1);
}

/// A cookie is valid for at most two periods of 64 seconds. If a listener has sent no cookie in
/// this time, it does not check acknowledgements for cookies. An attacker can therefore guess
/// cookies only during a flood, or shortly after it.
#[test]
fn acknowledgements_are_checked_for_two_periods_after_a_cookie() {
    for (seconds, refused) in [(127, 1), (129, 0)] {
        let mut pair = pair();
        let listener = listen(&mut pair, 8, SynCookies::Always);
        fill(&mut pair, 1);
        pair.run_for(Duration::from_secs(seconds));
        put(&mut pair, forged(invented(9), TcpFlags::ACK, 1, 1));
        pair.run_for(Duration::from_millis(1));
        assert_eq!(statistics(&mut pair, listener).cookies_refused, refused, "after {seconds} s");
    }
}

#[test]
fn the_timestamp_of_a_cookie_is_no_round_trip_sample() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    // The low bits of the SYN-ACK's timestamp store options, so they are not a time. An RTT sample
    // from it would be wrong by up to 63 ms. The handshake must therefore give no sample.
    let measured = |pair: &mut Pair| {
        pair.stack(Side::Right).tcp(server).unwrap().information().smoothed_round_trip
    };
    assert_eq!(measured(&mut pair), None);
    let now = pair.now;
    pair.stack(Side::Right).tcp_write(now, server, b"timed").unwrap();
    pair.run_for(Duration::from_millis(100));
    assert!(measured(&mut pair).unwrap() < Duration::from_millis(50));
}

#[test]
fn data_opens_the_connection_after_a_lost_ack() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let client = connect(&mut pair);
    assert!(pair.run_until(Duration::from_millis(1), |pair| {
        pair.stack(Side::Left).tcp(client).unwrap().state() == State::Established
    }));
    // The client's acknowledgement, which contains the cookie, is in flight. The loop removes it
    // from the wire, so that it is lost.
    while pair.wire.arrive(linerate_units::Instant::NEVER).is_some() {}
    pair.run_for(Duration::from_millis(1));
    assert!(accept(&mut pair, listener).is_none());
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"question").unwrap();
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    let mut received = [0; 16];
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut received), Ok(8));
}

#[test]
fn a_forged_ack_is_answered_by_a_reset() {
    let mut pair = pair();
    let listener = listen(&mut pair, 2, SynCookies::UnderPressure);
    // The listener has sent no cookie yet, so it does not check acknowledgements for cookies.
    put(&mut pair, forged(invented(7), TcpFlags::ACK, 2, 77));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(statistics(&mut pair, listener).cookies_refused, 0);
    fill(&mut pair, 3);
    for guess in 0..100 {
        put(&mut pair, forged(invented(7), TcpFlags::ACK, 2, guess * 0x0101_0101));
    }
    pair.run_for(Duration::from_millis(1));
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.cookies_refused, counted.cookies_taken, counted.acceptable), (100, 0, 0));
    let counters = pair.stack(Side::Right).counters();
    assert_eq!((counters.tcp_extra.syn_cookies_failed, counters.tcp.out_resets), (100, 101));
}

#[test]
fn a_cookie_expires_after_two_minutes() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let (client, late) = lost_acknowledgement(&mut pair, &Config::modern());
    assert_eq!(Segment::parse(&late[20..]).unwrap().flags(), TcpFlags::ACK);
    pair.run_for(Duration::from_secs(130));
    // A listener checks acknowledgements for cookies only if it has recently sent a cookie. The new
    // SYN here makes it send one. The late acknowledgement is therefore checked, and refused
    // because its cookie is too old.
    fill(&mut pair, 1);
    put(&mut pair, late);
    pair.run_for(Duration::from_millis(1));
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.cookies_refused, counted.cookies_taken), (1, 0));
    assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().state(), State::Closed);
}

#[test]
fn a_replayed_cookie_is_refused() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let packets = record(&mut pair);
    let client = connect(&mut pair);
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    let first = packets.borrow().last().unwrap().clone();
    let now = pair.now;
    pair.stack(Side::Left).tcp_abort(now, client).unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.stack(Side::Right).tcp_close(now, server).unwrap();
    put(&mut pair, first);
    pair.run_for(Duration::from_millis(1));
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.cookies_taken, counted.cookies_replayed, counted.acceptable), (1, 1, 0));
}

#[test]
fn a_full_accept_queue_keeps_the_cookie_valid() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let clients: Vec<_> = (0..6).map(|_| connect(&mut pair)).collect();
    pair.run_for(Duration::from_millis(1));
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.acceptable, counted.overflows, counted.cookies_refused), (4, 2, 0));
    while accept(&mut pair, listener).is_some() {}
    let now = pair.now;
    for client in clients {
        pair.stack(Side::Left).tcp_write(now, client, b"still here").unwrap();
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(statistics(&mut pair, listener).acceptable, 2);
}

/// RFC 9768 §5.1: the flags of the acknowledgement show whether the client has requested accurate
/// ECN. The cookie therefore need not store this request.
#[test]
fn a_connection_by_cookie_has_the_negotiated_ecn_mode() {
    for (client_rule, server_rule, classic, accurate) in [
        (EcnRule::Request, EcnRule::Accept, true, true),
        (EcnRule::Request, EcnRule::Off, true, false),
        (EcnRule::Off, EcnRule::Accept, false, false),
    ] {
        for timestamps in [true, false] {
            let mut pair = pair();
            let config = Config { accurate_ecn: server_rule, ..Config::modern() };
            let options = ListenOptions {
                syn_cookies: SynCookies::Always,
                config: Some(config),
                ..ListenOptions::default()
            };
            let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
            let config = Config { accurate_ecn: client_rule, timestamps, ..Config::modern() };
            let client = connect_with(&mut pair, &config);
            pair.run_for(Duration::from_millis(1));
            let server = accept(&mut pair, listener).unwrap();
            let both = [(Side::Left, client), (Side::Right, server)];
            for (side, handle) in both {
                let information = pair.stack(side).tcp(handle).unwrap().information();
                // The ECN mode of RFC 3168 is lost without timestamps, because the cookie then has
                // no room for it.
                let expected = (accurate || (classic && timestamps), accurate);
                assert_eq!(
                    (information.ecn, information.accurate_ecn.is_some()),
                    expected,
                    "{side:?}"
                );
            }
        }
    }
}

/// Opens a connection by a cookie, but changes the flags of the client's acknowledgement to
/// `flags`. Returns whether the server then uses ECN, and whether it uses accurate ECN.
fn modes_by_acknowledgement(
    server_rule: EcnRule,
    client: &Config,
    flags: TcpFlags,
) -> (bool, bool) {
    let mut pair = pair();
    let config = Some(Config { accurate_ecn: server_rule, ..Config::modern() });
    let options =
        ListenOptions { syn_cookies: SynCookies::Always, config, ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let (_, lost) = lost_acknowledgement(&mut pair, client);
    put(&mut pair, with_flags(lost, flags));
    pair.run_for(Duration::from_micros(1));
    let server = accept(&mut pair, listener).unwrap();
    let information = pair.stack(Side::Right).tcp(server).unwrap().information();
    (information.ecn, information.accurate_ecn.is_some())
}

/// RFC 9768 §5.1: the ACE field of the acknowledgement shows whether the client has requested
/// accurate ECN. A listener must evaluate this field only if it would have accepted the request in
/// its SYN-ACK.
#[test]
fn ack_flags_enable_accurate_ecn_only_if_the_listener_supports_it() {
    let client = Config { ecn: EcnRule::Off, ..Config::modern() };
    for (server_rule, ace, modes) in [
        (EcnRule::Off, 2, (false, false)),
        (EcnRule::Accept, 2, (true, true)),
        (EcnRule::Accept, 1, (false, false)),
    ] {
        let flags = TcpFlags::ACK | TcpFlags::of_ace(ace);
        assert_eq!(
            modes_by_acknowledgement(server_rule, &client, flags),
            modes,
            "{server_rule:?}, with the counter {ace}"
        );
    }
}

/// RFC 9768 §5.1: if a cookie stores a request for the ECN of RFC 3168, the connection uses this
/// mode, whatever flags the acknowledgement has.
#[test]
fn a_cookie_with_classic_ecn_is_not_overruled_by_ack_flags() {
    let client = Config { ecn: EcnRule::Request, ..Config::modern() };
    for ace in 0..8 {
        let flags = TcpFlags::ACK | TcpFlags::of_ace(ace);
        let modes = modes_by_acknowledgement(EcnRule::Accept, &client, flags);
        assert_eq!(modes, (true, false), "with the counter {ace}");
    }
}

/// A segment with SYN and ACK cannot be the third segment of a handshake, so the listener looks for
/// no cookie in it. It answers with a reset, as to any acknowledgement in LISTEN (RFC 9293
/// §3.10.7.2).
#[test]
fn a_syn_ack_carries_no_cookie() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8, SynCookies::Always);
    let (_, lost) = lost_acknowledgement(&mut pair, &Config::modern());
    put(&mut pair, with_flags(lost.clone(), TcpFlags::SYN | TcpFlags::ACK));
    pair.run_for(Duration::from_micros(1));
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.cookies_taken, counted.cookies_refused), (0, 0));
    assert_eq!(pair.stack(Side::Right).counters().tcp.out_resets, 1);
    // `lost` itself, without SYN, is the third segment of the handshake. The listener accepts its
    // cookie.
    put(&mut pair, lost);
    pair.run_for(Duration::from_micros(1));
    assert_eq!(statistics(&mut pair, listener).cookies_taken, 1);
}

/// RFC 9768 §3.1.1, table 2: the flags of the SYN-ACK report the ECN codepoint with which the SYN
/// has arrived.
#[test]
fn the_codepoint_of_a_syn_is_reported_with_and_without_a_cookie() {
    for cookies in [SynCookies::Never, SynCookies::Always] {
        for (ecn, reported) in [(Ecn::NotEct, 2), (Ecn::Ect1, 3), (Ecn::Ect0, 4), (Ecn::Ce, 6)] {
            let mut pair = pair();
            let config = Some(Config { accurate_ecn: EcnRule::Accept, ..Config::modern() });
            let options =
                ListenOptions { syn_cookies: cookies, config, ..ListenOptions::default() };
            pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
            put(&mut pair, with_ecn(forged(invented(1), TcpFlags::SYN | TcpFlags::ACE, 1, 0), ecn));
            let now = pair.now;
            let host = pair.host(Side::Right);
            host.turn(now).unwrap();
            let answer = host.link_mut().fetch().unwrap();
            let flags = Segment::parse(&answer[20..]).unwrap().flags();
            assert_eq!(flags.ace(), reported, "of {ecn:?}, {cookies:?}");
        }
    }
}
