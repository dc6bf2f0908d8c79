//! Tests of segments that belong to no connection, such as SYNs. A turn handles only a limited
//! number of them, so that a flood of them does not delay the segments of connections.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod forged;

use forged::{SERVER, forged, invented, put};
use linerate_stack::{
    ConnectOptions, ListenHandle, ListenOptions, ListenStatistics, Medium, Route, SynCookies,
    TcpHandle,
};
use linerate_tcp::State;
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, TcpFlags};

/// Maximum number of segments without a connection that a turn handles as they arrive. If the turn
/// has segments of connections, the limit also applies to the waiting segments that it handles
/// after them.
const A_TURN: u64 = 16;

/// Maximum number of segments without a connection that wait for a later turn.
const WAITING: u64 = 128;

/// Time between two turns of a host.
const TURN: Duration = Duration::from_millis(1);

/// Creates a listener on the right host that stores no SYN, because it always uses SYN cookies.
/// Opens a connection to it from the left host. Returns the hosts, the listener, and the handles of
/// the connection on the left and on the right host.
fn serving() -> (Pair, ListenHandle, (TcpHandle, TcpHandle)) {
    let setup = Setup { medium: Medium::Ip, pause: TURN, ..Setup::default() };
    let mut pair = Pair::new(&setup, |_, config| {
        config.routes.push(Route::direct("0.0.0.0/0".parse().unwrap()));
    });
    let options = ListenOptions { syn_cookies: SynCookies::Always, ..ListenOptions::default() };
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &options).unwrap();
    let client = connect(&mut pair);
    pair.run_for(TURN * 10);
    let server = pair.stack(Side::Right).tcp_accept(listener).unwrap().0;
    (pair, listener, (client, server))
}

fn connect(pair: &mut Pair) -> TcpHandle {
    let now = pair.now;
    pair.stack(Side::Left).tcp_connect(now, SERVER, &ConnectOptions::default()).unwrap()
}

fn statistics(pair: &mut Pair, listener: ListenHandle) -> ListenStatistics {
    pair.stack(Side::Right).tcp_listen_statistics(listener).unwrap()
}

fn put_syns(pair: &mut Pair, numbers: std::ops::Range<u16>) {
    numbers.for_each(|number| put(pair, forged(invented(number), TcpFlags::SYN, 1, 0)));
}

/// Delivers the frames that the left host can send now to the server, which handles them in its
/// next turn.
fn carry(pair: &mut Pair) {
    let (now, mut frame) = (pair.now, [0; 1_500]);
    while let Some(sent) = pair.stack(Side::Left).poll_transmit(now, &mut frame) {
        put(pair, frame[..sent.length].to_vec());
    }
}

fn turn(pair: &mut Pair) {
    let now = pair.now;
    pair.host(Side::Right).turn(now).unwrap();
    pair.stack(Side::Right).check();
}

#[test]
fn the_segments_of_connections_are_handled_in_the_turn_in_which_a_flood_comes() {
    let (mut pair, listener, (client, server)) = serving();
    let before = statistics(&mut pair, listener).cookies_sent;
    put_syns(&mut pair, 0..60);
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, &[7; 1_000]).unwrap();
    carry(&mut pair);
    turn(&mut pair);
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut [0; 2_000]), Ok(1_000));
    let answered = |pair: &mut Pair| statistics(pair, listener).cookies_sent - before;
    assert!((A_TURN..=2 * A_TURN).contains(&answered(&mut pair)), "{}", answered(&mut pair));
    // No segment of a connection arrives in the next turn. So `A_TURN` does not limit this turn,
    // and the host handles all SYNs that have waited since the previous turn.
    turn(&mut pair);
    assert_eq!(answered(&mut pair), 60);
    let counted = pair.stack(Side::Right).counters().tcp_extra;
    assert!(counted.unconnected_deferred >= 60 - A_TURN);
    assert_eq!(counted.unconnected_drops, 0);
}

#[test]
fn a_flood_beside_a_busy_connection_is_answered_at_a_limited_rate_and_holds_limited_memory() {
    let (mut pair, listener, (client, server)) = serving();
    let before = statistics(&mut pair, listener).cookies_sent;
    let turns = 200;
    let (mut sent, mut received) = (0, 0);
    for number in 0..turns {
        put_syns(&mut pair, number * 50..number * 50 + 50);
        let now = pair.now;
        sent += pair.stack(Side::Left).tcp_write(now, client, &[7; 20_000]).unwrap_or(0);
        pair.run_for(TURN);
        let now = pair.now;
        let mut into = [0; 64_000];
        received += pair.stack(Side::Right).tcp_read(now, server, &mut into).unwrap_or(0);
        pair.stack(Side::Right).check();
    }
    assert!(received >= 10_000 * usize::from(turns), "{received} bytes of {sent}");
    let answered = statistics(&mut pair, listener).cookies_sent - before;
    // A turn answers at most `A_TURN` SYNs if data of the connection arrives in it. In the first
    // few turns, no data arrives, so these turns answer more SYNs. The bound allows for them by ten
    // additional turns.
    assert!(answered <= A_TURN * u64::from(turns + 10), "{answered} SYNs were answered");
    let dropped = pair.stack(Side::Right).counters().tcp_extra.unconnected_drops;
    assert!(answered + dropped + WAITING >= 50 * u64::from(turns), "{answered} and {dropped}");
    assert!(dropped > 0);
}

#[test]
fn an_acknowledgement_with_a_good_cookie_is_handled_when_a_flood_has_spent_the_turn() {
    let (mut pair, listener, (client, _)) = serving();
    let second = connect(&mut pair);
    assert!(pair.run_until(TURN * 10, |pair| {
        pair.stack(Side::Left).tcp(second).unwrap().state() == State::Established
    }));
    // The final acknowledgement of the client's handshake is in flight. The test takes it from the
    // wire, to deliver it behind a flood of SYNs.
    let packet = pair.wire.arrive(Instant::NEVER).unwrap().bytes;
    assert!(!Segment::parse(&packet[20..]).unwrap().flags().contains(TcpFlags::SYN));
    put_syns(&mut pair, 0..40);
    put(&mut pair, packet);
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, &[7; 1_000]).unwrap();
    carry(&mut pair);
    turn(&mut pair);
    // More SYNs arrived than the turn could handle, so some of them had to wait. The
    // acknowledgement behind them did not wait, because its cookie is valid.
    assert!(pair.stack(Side::Right).counters().tcp_extra.unconnected_deferred > A_TURN);
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
}
