//! TCP Fast Open between hosts (RFC 7413): cookies, the limits that a listener applies, and the
//! client's cache of cookies.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod forged;

use forged::{SERVER, invented, put};
use linerate_stack::{
    ConnectOptions, FastOpenKeys, ListenHandle, ListenOptions, ListenStatistics, Medium, Route,
    SynCookies, TcpExtraCounters, TcpHandle,
};
use linerate_tcp::{Config, State};
use linerate_testkit::{Fate, Network, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    FastOpenCookie, IcmpError, IcmpMessage, Ipv4Header, Protocol, Quote, Segment, SeqNum, Sum,
    TcpFlags, TcpHeader, TcpOptions, Unreachable,
};
use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::rc::Rc;

/// Round-trip time between the hosts. It is much longer than all other delays, so that a test can
/// count round trips.
const ROUND_TRIP: Duration = Duration::from_millis(100);

fn pair() -> Pair {
    let network = Network::clean(ROUND_TRIP / 2);
    Pair::new(&Setup { medium: Medium::Ip, network, ..Setup::default() }, |_, config| {
        config.routes.push(Route::direct("0.0.0.0/0".parse().unwrap()));
    })
}

fn listen(pair: &mut Pair, limit: usize) -> ListenHandle {
    let options = ListenOptions { fast_open: Some(limit), ..ListenOptions::default() };
    pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap()
}

/// Opens a connection with Fast Open on the left host, and writes data before the SYN is sent.
fn connect(pair: &mut Pair, data: &[u8]) -> TcpHandle {
    let now = pair.now;
    let options = ConnectOptions { fast_open: true, ..ConnectOptions::default() };
    let stack = pair.stack(Side::Left);
    let client = stack.tcp_connect(now, SERVER, &options).unwrap();
    assert_eq!(stack.tcp_write(now, client, data), Ok(data.len()));
    client
}

fn accept(pair: &mut Pair, listener: ListenHandle) -> Option<TcpHandle> {
    Some(pair.stack(Side::Right).tcp_accept(listener)?.0)
}

fn read(pair: &mut Pair, side: Side, handle: TcpHandle) -> Vec<u8> {
    let (now, mut received) = (pair.now, vec![0; 100_000]);
    let count = pair.stack(side).tcp_read(now, handle, &mut received).unwrap_or(0);
    received.truncate(count);
    received
}

fn statistics(pair: &mut Pair, listener: ListenHandle) -> ListenStatistics {
    pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap()
}

fn counted(pair: &mut Pair, side: Side) -> TcpExtraCounters {
    pair.stack(side).counters().tcp_extra
}

/// Opens and closes a connection on which the client requests and gets a cookie. Later connections
/// can then use Fast Open.
fn first_connection(pair: &mut Pair, listener: ListenHandle) {
    let client = connect(pair, b"");
    pair.run_for(ROUND_TRIP * 2);
    let server = accept(pair, listener).unwrap();
    close(pair, client, server);
}

fn close(pair: &mut Pair, client: TcpHandle, server: TcpHandle) {
    let now = pair.now;
    pair.stack(Side::Left).tcp_abort(now, client).unwrap();
    pair.run_for(ROUND_TRIP);
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, server).unwrap();
    pair.run_for(ROUND_TRIP);
}

/// A record of the segments that one host has sent: flags, length of the data in bytes, and Fast
/// Open cookie of each segment.
type Log = Rc<RefCell<Vec<(TcpFlags, usize, Option<FastOpenCookie>)>>>;

fn record(pair: &mut Pair, side: Side) -> Log {
    let log = Log::default();
    let received = Rc::clone(&log);
    pair.observe(move |_, from, packet| {
        if from == side {
            let segment = Segment::parse(&packet[20..]).unwrap();
            let cookie = segment.options().fast_open;
            received.borrow_mut().push((segment.flags(), segment.payload.len(), cookie));
        }
    });
    log
}

/// Returns a SYN from a forged source address, with a cookie and `data` bytes of data.
fn forged(source: SocketAddrV4, cookie: &[u8], data: usize) -> Vec<u8> {
    let fast_open = FastOpenCookie::new(cookie);
    with_options(source, data, |field| {
        TcpOptions { mss: Some(1_460), fast_open, ..TcpOptions::default() }.emit(field)
    })
}

fn with_options(
    source: SocketAddrV4,
    data: usize,
    emit: impl FnOnce(&mut [u8]) -> usize,
) -> Vec<u8> {
    let mut segment = vec![7; 60 + data];
    let options = emit(&mut segment[20..]);
    let header = TcpHeader {
        source_port: source.port(),
        destination_port: SERVER.port(),
        seq: SeqNum::new(1),
        flags: TcpFlags::SYN,
        window: 65_535,
        ..TcpHeader::default()
    };
    header.emit(options, &mut segment);
    segment.truncate(20 + options + data);
    let ip = Ipv4Header::new(*source.ip(), *SERVER.ip(), Protocol::TCP);
    let (pseudo, sum) = (ip.pseudo_header(segment.len()), Sum::of(&segment));
    TcpHeader::fill_checksum(&mut segment, pseudo, sum);
    let mut packet = vec![0; 20];
    ip.emit(segment.len(), &mut packet);
    packet.extend_from_slice(&segment);
    packet
}

/// The Fast Open key of two servers that share one key.
const STOLEN_KEY: [u8; 16] = [9; 16];

/// Returns the server's cookie for the address of `source`. To get it, sends a SYN that requests a
/// cookie, with this forged source address and another port.
fn stolen_cookie(pair: &mut Pair, source: SocketAddrV4) -> FastOpenCookie {
    let log = record(pair, Side::Right);
    let asking = SocketAddrV4::new(*source.ip(), source.port() + 1);
    put(pair, forged(asking, &[], 0));
    pair.run_for(Duration::from_millis(1));
    let given = log.borrow().iter().find_map(|(_, _, cookie)| *cookie);
    given.unwrap()
}

#[test]
fn the_second_connection_saves_a_round_trip() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    let mut times = Vec::new();
    for round in 0..2 {
        let began = pair.now;
        let client = connect(&mut pair, b"question");
        assert!(pair.run_until(ROUND_TRIP * 5, |pair| statistics(pair, listener).acceptable > 0));
        let server = accept(&mut pair, listener).unwrap();
        assert!(pair.run_until(ROUND_TRIP * 5, |pair| {
            pair.stack(Side::Right).tcp(server).unwrap().readable_bytes() > 0
        }));
        assert_eq!(read(&mut pair, Side::Right, server), b"question");
        let now = pair.now;
        pair.stack(Side::Right).tcp_write(now, server, b"answer").unwrap();
        assert!(pair.run_until(ROUND_TRIP * 5, |pair| {
            pair.stack(Side::Left).tcp(client).unwrap().readable_bytes() > 0
        }));
        assert_eq!(read(&mut pair, Side::Left, client), b"answer");
        times.push(pair.now.since(began));
        for (side, handle) in [(Side::Left, client), (Side::Right, server)] {
            let information = pair.stack(side).tcp(handle).unwrap().information();
            assert_eq!(information.syn_data_accepted, round == 1);
        }
        close(&mut pair, client, server);
    }
    assert!(times[0] >= ROUND_TRIP * 2 && times[0] < ROUND_TRIP * 3, "{}", times[0]);
    assert!(times[1] >= ROUND_TRIP && times[1] < ROUND_TRIP * 2, "{}", times[1]);
    let (client, server) = (counted(&mut pair, Side::Left), counted(&mut pair, Side::Right));
    assert_eq!((client.fast_opens_active, client.fast_opens_refused), (1, 0));
    assert_eq!((server.fast_open_cookies_asked, server.fast_opens_passive), (1, 1));
    assert_eq!(statistics(&mut pair, listener).opened_fast, 1);
}

#[test]
fn a_listener_without_fast_open_pauses_the_client() {
    let mut pair = pair();
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &ListenOptions::default()).unwrap();
    let log = record(&mut pair, Side::Left);
    for wait in [Duration::ZERO, Duration::ZERO, Duration::from_secs(60)] {
        pair.run_for(wait);
        let client = connect(&mut pair, b"question");
        pair.run_for(ROUND_TRIP * 3);
        let server = accept(&mut pair, listener).unwrap();
        assert_eq!(read(&mut pair, Side::Right, server), b"question");
        close(&mut pair, client, server);
    }
    let syns: Vec<_> =
        log.borrow().iter().filter(|(flags, ..)| *flags == TcpFlags::SYN).copied().collect();
    let request = Some(FastOpenCookie::REQUEST);
    assert_eq!(syns.iter().map(|syn| syn.2).collect::<Vec<_>>(), [request, None, request]);
    let client = counted(&mut pair, Side::Left);
    assert_eq!((client.fast_opens_refused, client.fast_opens_withheld), (2, 1));
    assert_eq!(counted(&mut pair, Side::Right).fast_open_cookies_asked, 0);
}

#[test]
fn a_connection_without_the_option_does_not_use_fast_open() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    first_connection(&mut pair, listener);
    let log = record(&mut pair, Side::Left);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let client = stack.tcp_connect(now, SERVER, &ConnectOptions::default()).unwrap();
    stack.tcp_write(now, client, b"question").unwrap();
    pair.run_for(ROUND_TRIP * 2);
    assert_eq!(log.borrow()[0], (TcpFlags::SYN, 0, None));
    let server = accept(&mut pair, listener).unwrap();
    assert!(!pair.stack(Side::Right).tcp(server).unwrap().information().syn_data_accepted);
}

#[test]
fn an_old_cookie_is_replaced() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    first_connection(&mut pair, listener);
    // The server changes its key every hour, and accepts cookies of the current and of the previous
    // key. The first connection, after one hour, uses a cookie of the previous key, which is
    // accepted and replaced. The second, two hours later, uses the new cookie, which is too old by
    // then: it is refused and replaced. The third uses this replacement at once.
    for (hours, fast, by_previous, wrong) in [(1, 1, 1, 0), (2, 1, 1, 1), (0, 2, 1, 1)] {
        pair.run_for(Duration::from_secs(3_600) * hours);
        let client = connect(&mut pair, b"question");
        pair.run_for(ROUND_TRIP * 3);
        let server = accept(&mut pair, listener).unwrap();
        assert_eq!(read(&mut pair, Side::Right, server), b"question");
        let counted = counted(&mut pair, Side::Right);
        assert_eq!(counted.fast_opens_passive, fast, "after {hours} hours");
        assert_eq!(counted.fast_opens_by_previous_key, by_previous);
        assert_eq!(counted.fast_opens_with_wrong_cookie, wrong);
        close(&mut pair, client, server);
    }
    assert_eq!(counted(&mut pair, Side::Left).fast_opens_refused, 0);
}

#[test]
fn servers_with_a_shared_key_make_equal_cookies() {
    let cookie_of = |keys: Option<FastOpenKeys>, seed| {
        let mut pair =
            Pair::new(&Setup { medium: Medium::Ip, seed, ..Setup::default() }, |_, config| {
                config.routes.push(Route::direct("0.0.0.0/0".parse().unwrap()));
            });
        pair.stack(Side::Right).set_fast_open_keys(keys);
        listen(&mut pair, 4);
        stolen_cookie(&mut pair, invented(1))
    };
    let shared = Some(FastOpenKeys { current: STOLEN_KEY, previous: None });
    assert_eq!(cookie_of(shared, 1), cookie_of(shared, 2));
    assert_ne!(cookie_of(None, 1), cookie_of(None, 2));
}

#[test]
fn a_flood_with_valid_cookies_is_limited_and_others_connect() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8);
    first_connection(&mut pair, listener);
    let flood: Vec<_> = (0..200).map(invented).collect();
    let cookies: Vec<_> = flood.iter().map(|&source| stolen_cookie(&mut pair, source)).collect();
    let answers = record(&mut pair, Side::Right);
    for (source, cookie) in flood.iter().zip(&cookies) {
        put(&mut pair, forged(*source, cookie.as_bytes(), 500));
    }
    pair.run_for(Duration::from_millis(1));
    let counted = counted(&mut pair, Side::Right);
    assert_eq!((counted.fast_opens_passive, counted.fast_open_overflows), (8, 192));
    assert_eq!(statistics(&mut pair, listener).pending_fast, 8);
    let sent: usize = answers.borrow().iter().map(|(_, data, _)| data).sum();
    assert_eq!((answers.borrow().len(), sent), (200, 0), "one SYN-ACK each");
    // The flood has used up the limit of pending Fast Open connections. A legitimate client with a
    // cookie must still be able to connect, by the three-way handshake.
    for _ in 0..8 {
        accept(&mut pair, listener).unwrap();
    }
    let client = connect(&mut pair, b"question");
    pair.run_for(ROUND_TRIP * 3);
    let server = accept(&mut pair, listener).unwrap();
    assert_eq!(read(&mut pair, Side::Right, server), b"question");
    assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().state(), State::Established);
}

#[test]
fn resets_count_against_the_limit_for_a_minute() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    let flood: Vec<_> = (0..20).map(invented).collect();
    let cookies: Vec<_> = flood.iter().map(|&source| stolen_cookie(&mut pair, source)).collect();
    pair.run_for(Duration::from_secs(200));
    let reset = |pair: &mut Pair, source: SocketAddrV4| {
        // The SYN and its 500 bytes of data end at sequence number 501, so the next segment has the
        // number 502. The owner of the forged source address does not know the connection, and
        // answers the SYN-ACK with a reset.
        put(pair, forged::forged(source, TcpFlags::RST, 502, 0));
        pair.run_for(Duration::from_micros(1));
    };
    for (source, cookie) in flood.iter().zip(&cookies).take(10) {
        put(&mut pair, forged(*source, cookie.as_bytes(), 500));
        pair.run_for(Duration::from_micros(1));
        reset(&mut pair, *source);
    }
    assert_eq!(counted(&mut pair, Side::Right).fast_opens_passive, 4);
    let now = statistics(&mut pair, listener);
    assert_eq!((now.pending_fast, now.acceptable), (4, 0));
    pair.run_for(Duration::from_secs(60));
    put(&mut pair, forged(flood[10], cookies[10].as_bytes(), 500));
    pair.run_for(Duration::from_micros(1));
    assert_eq!(counted(&mut pair, Side::Right).fast_opens_passive, 5);
    assert_eq!(statistics(&mut pair, listener).pending_fast, 1);
}

#[test]
fn a_completed_handshake_frees_its_place() {
    let mut pair = pair();
    let listener = listen(&mut pair, 1);
    first_connection(&mut pair, listener);
    for fast in 1..=5 {
        let client = connect(&mut pair, b"question");
        pair.run_for(ROUND_TRIP * 2);
        let server = accept(&mut pair, listener).unwrap();
        assert_eq!(statistics(&mut pair, listener).pending_fast, 0);
        assert_eq!(counted(&mut pair, Side::Right).fast_opens_passive, fast);
        close(&mut pair, client, server);
    }
}

/// Runs a turn of the right host at the present time.
fn turn(pair: &mut Pair) {
    let now = pair.now;
    pair.host(Side::Right).turn(now).unwrap();
    pair.stack(Side::Right).check();
}

/// RFC 7413 §5.1: a Fast Open connection counts against the limit until its handshake completes. If
/// a reset from the client's address ends it, it counts for a further minute. But if the server's
/// application aborts it, it stops counting at once.
#[test]
fn an_aborted_connection_frees_its_place() {
    let mut pair = pair();
    let listener = listen(&mut pair, 1);
    let cookie = stolen_cookie(&mut pair, invented(1));
    put(&mut pair, forged(invented(1), cookie.as_bytes(), 500));
    turn(&mut pair);
    let server = accept(&mut pair, listener).unwrap();
    assert_eq!(statistics(&mut pair, listener).pending_fast, 1);
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, server).unwrap();
    assert_eq!(statistics(&mut pair, listener).pending_fast, 0);
}

#[test]
fn a_reset_counts_for_exactly_a_minute() {
    let mut pair = pair();
    let listener = listen(&mut pair, 1);
    let cookie = stolen_cookie(&mut pair, invented(1));
    let source = |port| SocketAddrV4::new(*invented(1).ip(), port);
    put(&mut pair, forged(source(1), cookie.as_bytes(), 500));
    turn(&mut pair);
    put(&mut pair, forged::forged(source(1), TcpFlags::RST, 502, 0));
    turn(&mut pair);
    assert_eq!(statistics(&mut pair, listener).opened_fast, 1);
    let nanosecond = Duration::from_nanos(1);
    for (span, port, opened) in [(Duration::from_secs(60) - nanosecond, 2, 1), (nanosecond, 3, 2)] {
        pair.run_for(span);
        put(&mut pair, forged(source(port), cookie.as_bytes(), 500));
        turn(&mut pair);
        assert_eq!(statistics(&mut pair, listener).opened_fast, opened);
    }
}

/// A connection by Fast Open enters the accept queue as soon as its SYN arrives. It therefore takes
/// no place in the SYN queue.
#[test]
fn a_fast_open_takes_no_place_in_the_syn_queue() {
    let mut pair = pair();
    let syn_cookies = SynCookies::Never;
    let options = ListenOptions {
        fast_open: Some(1),
        syn_backlog: 1,
        syn_cookies,
        ..ListenOptions::default()
    };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let cookie = stolen_cookie(&mut pair, invented(1));
    assert_eq!(statistics(&mut pair, listener).half_open, 1, "the request for the cookie");
    put(&mut pair, forged(invented(1), cookie.as_bytes(), 500));
    turn(&mut pair);
    let counted = statistics(&mut pair, listener);
    assert_eq!((counted.opened_fast, counted.half_open, counted.recycled), (1, 1, 0));
}

#[test]
fn wrong_cookies_open_nothing_and_get_a_new_cookie() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8);
    let answers = record(&mut pair, Side::Right);
    for number in 0..200 {
        put(&mut pair, forged(invented(number), &[number.to_be_bytes()[1]; 8], 500));
    }
    pair.run_for(Duration::from_millis(1));
    let now = statistics(&mut pair, listener);
    assert_eq!((now.acceptable, now.pending_fast, now.opened_fast, now.half_open), (0, 0, 0, 200));
    assert_eq!(counted(&mut pair, Side::Right).fast_opens_with_wrong_cookie, 200);
    let answers = answers.borrow();
    assert_eq!(answers.len(), 200);
    assert!(
        answers
            .iter()
            .all(|(_, data, cookie)| *data == 0 && cookie.is_some_and(|given| !given.is_request()))
    );
}

#[test]
fn an_option_of_invalid_length_is_ignored() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8);
    let answers = record(&mut pair, Side::Right);
    for length in [1_u8, 2, 3, 5, 7, 9, 15, 17, 18, 30] {
        let source = invented(u16::from(length));
        let packet = with_options(source, 100, |field| {
            let whole = (usize::from(length) + 2).next_multiple_of(4);
            field[..whole].fill(1);
            field[..2].copy_from_slice(&[34, length + 2]);
            whole
        });
        put(&mut pair, packet);
    }
    pair.run_for(Duration::from_millis(1));
    let now = statistics(&mut pair, listener);
    assert_eq!((now.half_open, now.opened_fast), (10, 0));
    assert!(answers.borrow().iter().all(|(_, _, cookie)| cookie.is_none()));
    let counted = counted(&mut pair, Side::Right);
    assert_eq!((counted.fast_open_cookies_asked, counted.fast_opens_with_wrong_cookie), (0, 0));
}

#[test]
fn syn_cookies_disable_fast_open() {
    for syn_cookies in [SynCookies::UnderPressure, SynCookies::Always] {
        let mut pair = pair();
        let options =
            ListenOptions { fast_open: Some(100), syn_backlog: 4, ..ListenOptions::default() };
        let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
        first_connection(&mut pair, listener);
        if syn_cookies == SynCookies::Always {
            let now = pair.now;
            pair.stack(Side::Right).tcp_listen_close(now, listener).unwrap();
            let options = ListenOptions { syn_cookies, ..options };
            pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
        } else {
            (0..4).for_each(|number| {
                put(&mut pair, forged::forged(invented(number), TcpFlags::SYN, 1, 0));
            });
            pair.run_for(Duration::from_micros(1));
        }
        let client = connect(&mut pair, b"question");
        pair.run_for(ROUND_TRIP * 3);
        let counted = counted(&mut pair, Side::Right);
        assert_eq!((counted.fast_opens_passive, counted.syn_cookies_received), (0, 1));
        assert!(!pair.stack(Side::Left).tcp(client).unwrap().information().syn_data_accepted);
        assert_eq!(pair.stack(Side::Left).tcp(client).unwrap().unacknowledged_bytes(), 0);
    }
}

#[test]
fn fast_connections_are_limited_by_the_accept_queue() {
    let mut pair = pair();
    let options = ListenOptions { fast_open: Some(100), backlog: 3, ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    first_connection(&mut pair, listener);
    let clients: Vec<_> = (0..5).map(|_| connect(&mut pair, b"question")).collect();
    pair.run_for(ROUND_TRIP);
    let now = statistics(&mut pair, listener);
    assert_eq!((now.acceptable, now.overflows, now.dropped), (3, 2, 2));
    assert!(
        clients
            .iter()
            .filter(|&&client| {
                pair.stack(Side::Left).tcp(client).unwrap().state() == State::SynSent
            })
            .count()
            == 2
    );
}

#[test]
fn a_listener_can_close_with_pending_fast_connections() {
    let mut pair = pair();
    let listener = listen(&mut pair, 100);
    first_connection(&mut pair, listener);
    let clients: Vec<_> = (0..3).map(|_| connect(&mut pair, b"question")).collect();
    pair.run_for(ROUND_TRIP / 2);
    // Of the three connections, the application accepts one. This connection must stay open when
    // the listener is closed.
    let server = accept(&mut pair, listener).unwrap();
    let now = pair.now;
    pair.stack(Side::Right).tcp_listen_close(now, listener).unwrap();
    // A new listener on the same port must not inherit the count of pending Fast Open connections
    // from the closed listener.
    let other = listen(&mut pair, 100);
    pair.run_for(ROUND_TRIP * 2);
    assert_eq!(pair.stack(Side::Right).tcp(server).unwrap().state(), State::Established);
    assert_eq!(statistics(&mut pair, other).pending_fast, 0);
    let open = clients.iter().filter(|&&client| {
        pair.stack(Side::Left).tcp(client).unwrap().state() == State::Established
    });
    assert_eq!(open.count(), 1);
}

#[test]
fn a_path_that_drops_fast_syns_costs_one_timeout_per_pause() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    first_connection(&mut pair, listener);
    pair.set_filter(|_, side, packet| {
        let segment = Segment::parse(&packet[20..]).unwrap();
        let is_fast = segment.flags() == TcpFlags::SYN && segment.options().fast_open.is_some();
        (side == Side::Left && is_fast).then_some(Fate::Lose)
    });
    let served = |pair: &mut Pair, limit: Duration| {
        let began = pair.now;
        let client = connect(pair, b"question");
        assert!(pair.run_until(limit, |pair| statistics(pair, listener).acceptable > 0));
        let server = accept(pair, listener).unwrap();
        assert!(pair.run_until(limit, |pair| {
            pair.stack(Side::Right).tcp(server).unwrap().readable_bytes() > 0
        }));
        let took = pair.now.since(began);
        close(pair, client, server);
        took
    };
    assert!(served(&mut pair, Duration::from_secs(2)) >= Duration::from_secs(1));
    assert!(served(&mut pair, Duration::from_secs(2)) < ROUND_TRIP * 2);
    pair.run_for(Duration::from_secs(60));
    assert!(served(&mut pair, Duration::from_secs(2)) >= Duration::from_secs(1));
    pair.run_for(Duration::from_secs(60));
    assert!(served(&mut pair, Duration::from_secs(2)) < ROUND_TRIP * 2, "the pause has doubled");
    assert_eq!(counted(&mut pair, Side::Left).fast_opens_refused, 2);
}

#[test]
fn the_mss_of_the_server_is_cached_with_its_cookie() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    let log = record(&mut pair, Side::Left);
    first_connection(&mut pair, listener);
    connect(&mut pair, &[7; 3_000]);
    pair.run_for(ROUND_TRIP);
    let syns: Vec<_> =
        log.borrow().iter().filter(|(flags, ..)| *flags == TcpFlags::SYN).copied().collect();
    // The first SYN only requested a cookie. In the second SYN, the options (32 bytes) and the data
    // (1,428 bytes) together fill the cached MSS of 1,460 bytes.
    assert_eq!(syns.iter().map(|syn| syn.1).collect::<Vec<_>>(), [0, 1_428]);
}

#[test]
fn data_is_sent_before_the_handshake_completes() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    first_connection(&mut pair, listener);
    let client = connect(&mut pair, b"question");
    assert!(pair.run_until(ROUND_TRIP, |pair| statistics(pair, listener).acceptable > 0));
    let server = accept(&mut pair, listener).unwrap();
    assert_eq!(pair.stack(Side::Right).tcp(server).unwrap().state(), State::SynReceived);
    let now = pair.now;
    pair.stack(Side::Right).tcp_write(now, server, &[5; 30_000]).unwrap();
    pair.run_for(ROUND_TRIP / 2);
    assert_eq!(read(&mut pair, Side::Left, client).len(), 14_480, "ten segments, with the SYN-ACK");
    pair.run_for(ROUND_TRIP * 3);
    assert_eq!(read(&mut pair, Side::Left, client).len(), 30_000 - 14_480);
}

#[test]
fn a_duplicate_syn_opens_no_second_connection_while_the_first_exists() {
    let mut pair = pair();
    let listener = listen(&mut pair, 4);
    first_connection(&mut pair, listener);
    let packets = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&packets);
    pair.observe(move |_, side, packet| {
        if side == Side::Left {
            kept.borrow_mut().push(packet.to_vec());
        }
    });
    let client = connect(&mut pair, b"question");
    pair.run_for(ROUND_TRIP * 2);
    let syn = packets.borrow()[0].clone();
    let server = accept(&mut pair, listener).unwrap();
    put(&mut pair, syn.clone());
    pair.run_for(ROUND_TRIP);
    assert!(accept(&mut pair, listener).is_none());
    assert_eq!(read(&mut pair, Side::Right, server), b"question");
    close(&mut pair, client, server);
    // A copy of the SYN arrives after the connection has ended. The server passes the request to
    // the application a second time. With Fast Open, applications must tolerate such replays (RFC
    // 7413 §2.1).
    put(&mut pair, syn);
    pair.run_for(Duration::from_millis(1));
    let replayed = accept(&mut pair, listener).unwrap();
    assert_eq!(read(&mut pair, Side::Right, replayed), b"question");
}

#[test]
fn a_cookie_of_another_address_is_invalid() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8);
    let cookie = stolen_cookie(&mut pair, invented(1));
    put(&mut pair, forged(invented(2), cookie.as_bytes(), 100));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(statistics(&mut pair, listener).opened_fast, 0);
    put(&mut pair, forged(invented(1), cookie.as_bytes(), 100));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(statistics(&mut pair, listener).opened_fast, 1);
}

#[test]
fn syn_data_beyond_the_buffer_is_truncated() {
    let mut pair = pair();
    let config = Some(Config { receive_buffer: 1_000.into(), ..Config::modern() });
    let options = ListenOptions { fast_open: Some(8), config, ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let cookie = stolen_cookie(&mut pair, invented(1));
    put(&mut pair, forged(invented(1), cookie.as_bytes(), 9_000));
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    assert_eq!(read(&mut pair, Side::Right, server), vec![7; 1_000]);
}

#[test]
fn a_refused_connection_pauses_fast_open() {
    for is_icmp in [false, true] {
        let mut pair = pair();
        connect(&mut pair, b"question");
        if is_icmp {
            let now = pair.now;
            let host = pair.host(Side::Left);
            host.turn(now).unwrap();
            let syn = host.link_mut().fetch().unwrap();
            let error = IcmpError::Unreachable(Unreachable::Port);
            let message = IcmpMessage::Error { error, quote: Quote::of(&syn).unwrap() };
            let mut report = vec![0; 20 + message.length()];
            let header =
                Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::ICMP);
            header.emit(message.length(), &mut report);
            message.emit(&mut report[20..]);
            host.link_mut().put(now, report);
            host.turn(now).unwrap();
        } else {
            // Without the ICMP message, the SYN reaches the host on the right. This host has no
            // listener, and answers the SYN with a reset.
            pair.run_for(ROUND_TRIP * 2);
        }
        assert_eq!(counted(&mut pair, Side::Left).fast_opens_refused, 1);
        connect(&mut pair, b"question");
        assert_eq!(counted(&mut pair, Side::Left).fast_opens_withheld, 1);
    }
}

/// Each request and its answer arrive once and in order, despite loss and reordering of segments.
#[test]
fn requests_and_answers_arrive_once_over_a_lossy_path() {
    let mut fast = 0;
    for seed in 0..20 {
        let network = Network { loss: 150, reordering: 100, ..Network::clean(ROUND_TRIP / 2) };
        let mut pair =
            Pair::new(&Setup { medium: Medium::Ip, network, seed, ..Setup::default() }, |_, _| {});
        let listener = listen(&mut pair, 4);
        for request in 0_u8..10 {
            let length = usize::from(request) * 400 + 1;
            let client = connect(&mut pair, &vec![request; length]);
            let (mut server, mut received, mut answer) = (None, Vec::new(), Vec::new());
            let done = pair.run_until(Duration::from_secs(100), |pair| {
                server = server.or_else(|| accept(pair, listener));
                let Some(server) = server else { return false };
                received.extend(read(pair, Side::Right, server));
                if received.len() == length && answer.is_empty() {
                    let now = pair.now;
                    let _ = pair.stack(Side::Right).tcp_write(now, server, &received);
                    let _ = pair.stack(Side::Right).tcp_shutdown_write(now, server);
                }
                answer.extend(read(pair, Side::Left, client));
                answer.len() == length
            });
            assert!(done, "seed {seed}, request {request}");
            assert_eq!(
                (&received, &answer),
                (&vec![request; length], &vec![request; length]),
                "seed {seed}"
            );
            let now = pair.now;
            pair.stack(Side::Left).tcp_close(now, client).unwrap();
            pair.run_for(Duration::from_secs(100));
            let now = pair.now;
            pair.stack(Side::Right).tcp_close(now, server.unwrap()).unwrap();
            assert!(accept(&mut pair, listener).is_none());
        }
        fast += counted(&mut pair, Side::Left).fast_opens_active;
    }
    assert!(fast > 80, "{fast} of 200 connections were fast");
}

/// Clients older than RFC 7413 use an experimental option (kind 254, 0xF989). The server answers
/// them with an option of this kind, too.
#[test]
fn the_experimental_option_is_supported() {
    let mut pair = pair();
    let listener = listen(&mut pair, 8);
    let log = record(&mut pair, Side::Right);
    let (client, experimental) = (invented(1), FastOpenCookie::REQUEST.carried(true));
    let syn = |source, cookie, data| {
        with_options(source, data, |field| {
            let fast_open = Some(cookie);
            TcpOptions { mss: Some(1_460), fast_open, ..TcpOptions::default() }.emit(field)
        })
    };
    put(&mut pair, syn(client, experimental, 0));
    pair.run_for(Duration::from_millis(1));
    let given = log.borrow().iter().find_map(|(_, _, cookie)| *cookie).unwrap();
    assert!(given.is_experimental() && !given.is_request());
    let again = SocketAddrV4::new(*client.ip(), client.port() + 1);
    put(&mut pair, syn(again, given, 100));
    pair.run_for(Duration::from_millis(1));
    let server = accept(&mut pair, listener).unwrap();
    assert_eq!(read(&mut pair, Side::Right, server), [7; 100]);
    // The client got the cookie in the experimental option. The cookie is also valid in the
    // standard option, because its value does not depend on the option kind.
    let third = SocketAddrV4::new(*client.ip(), client.port() + 2);
    put(&mut pair, forged(third, given.as_bytes(), 50));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(statistics(&mut pair, listener).opened_fast, 2);
}
