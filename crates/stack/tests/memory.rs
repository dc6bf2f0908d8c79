//! The memory for the buffers of all connections has a limit, and who makes the host hold data for nothing
//! loses it first. After every step of every test the host's own check asserts the limit.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Event, ListenHandle, ListenOptions, Medium, TcpHandle};
use linerate_tcp::Event as TcpEvent;
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::Segment;
use std::net::SocketAddrV4;

const SERVER: SocketAddrV4 = SocketAddrV4::new(Side::Right.address(), 9);

/// The first byte of a segment that the network never delivers.
const LOST: u8 = 0xaa;

/// A pair whose right host may hold so much.
fn pair(buffer_bytes: usize) -> (Pair, ListenHandle) {
    let mut pair = Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |side, config| {
        if side == Side::Right {
            config.limits.buffer_bytes = buffer_bytes;
        }
    });
    pair.set_filter(|_, _, frame| {
        let payload = Segment::parse(&frame[20..]).ok().map(|segment| segment.payload);
        let is_lost = payload.is_some_and(|payload| payload.first() == Some(&LOST));
        is_lost.then_some(linerate_testkit::Fate::Lose)
    });
    let listener = pair.stack(Side::Right).tcp_listen(SERVER, &ListenOptions::default()).unwrap();
    (pair, listener)
}

/// A connection: its left end and its right one.
fn connection(pair: &mut Pair, listener: ListenHandle) -> (TcpHandle, TcpHandle) {
    let now = pair.now;
    let near = pair.stack(Side::Left).tcp_connect(now, SERVER, &ConnectOptions::default()).unwrap();
    pair.run_for(Duration::from_millis(1));
    (near, pair.stack(Side::Right).tcp_accept(listener).unwrap().0)
}

fn write(pair: &mut Pair, side: Side, handle: TcpHandle, data: &[u8]) -> usize {
    let now = pair.now;
    pair.stack(side).tcp_write(now, handle, data).unwrap()
}

/// Data whose first segment never arrives.
fn holed() -> Vec<u8> {
    let mut data = vec![1; 14_000];
    data[0] = LOST;
    data
}

#[test]
fn who_sends_what_lies_beyond_holes_cannot_take_the_memory_of_others() {
    let (mut pair, listener) = pair(256 << 10);
    let attackers: Vec<_> = (0..60).map(|_| connection(&mut pair, listener)).collect();
    for &(attacker, _) in &attackers {
        assert_eq!(write(&mut pair, Side::Left, attacker, &holed()), 14_000);
        pair.run_for(Duration::from_micros(10));
    }
    pair.run_for(Duration::from_millis(1));
    let counters = pair.stack(Side::Right).counters().tcp_extra;
    assert!(counters.pruned > 0 && counters.memory_pressures > 0, "{counters}");
    assert!(pair.stack(Side::Right).buffer_memory() <= 256 << 10);

    // An honest peer gets all of its data through, while theirs goes on.
    let (honest, server) = connection(&mut pair, listener);
    let (mut sent, mut heard) = (0, 0);
    let mut into = [0; 8_192];
    let done = pair.run_until(Duration::from_secs(20), |pair| {
        let now = pair.now;
        sent += write(pair, Side::Left, honest, &vec![2; 500_000 - sent]);
        while let Ok(count @ 1..) = pair.stack(Side::Right).tcp_read(now, server, &mut into) {
            heard += count;
        }
        heard == 500_000
    });
    assert!(done, "{heard} bytes arrived");
}

#[test]
fn what_was_acknowledged_is_never_taken_away() {
    let (mut pair, listener) = pair(64 << 10);
    let (near, far) = connection(&mut pair, listener);
    assert_eq!(write(&mut pair, Side::Left, near, &[3; 30_000]), 30_000);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.stack(Side::Left).tcp(near).unwrap().unacknowledged_bytes(), 0);
    for _ in 0..10 {
        let (attacker, _) = connection(&mut pair, listener);
        write(&mut pair, Side::Left, attacker, &holed());
        pair.run_for(Duration::from_millis(1));
    }
    let mut into = [0; 40_000];
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_read(now, far, &mut into), Ok(30_000));
    assert!(into[..30_000].iter().all(|&byte| byte == 3));
}

#[test]
fn a_writer_for_whom_there_is_no_memory_is_told_when_there_is_some() {
    let (mut pair, listener) = pair(32 << 10);
    let (_, hog) = connection(&mut pair, listener);
    let (_, modest) = connection(&mut pair, listener);
    let mut data = vec![LOST; 100_000];
    data[1] = 0;
    assert_eq!(write(&mut pair, Side::Right, hog, &data), 32 << 10);
    assert_eq!(write(&mut pair, Side::Right, modest, b"me too"), 0);
    pair.run_for(Duration::from_millis(1));
    while pair.stack(Side::Right).poll_event().is_some() {}
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, hog).unwrap();
    pair.run_for(Duration::from_millis(1));
    let told = core::iter::from_fn(|| pair.stack(Side::Right).poll_event());
    assert!(told.into_iter().any(|event| event == Event::Tcp(modest, TcpEvent::Writable)));
    assert_eq!(write(&mut pair, Side::Right, modest, b"me too"), 6);
}

#[test]
fn an_established_connection_that_is_idle_holds_nothing() {
    let (mut pair, listener) = pair(1 << 20);
    for _ in 0..20 {
        let (near, far) = connection(&mut pair, listener);
        write(&mut pair, Side::Left, near, &[1; 5_000]);
        write(&mut pair, Side::Right, far, &[1; 5_000]);
        pair.run_for(Duration::from_millis(1));
        let now = pair.now;
        assert_eq!(pair.stack(Side::Right).tcp_read(now, far, &mut [0; 9_000]), Ok(5_000));
    }
    assert!(pair.stack(Side::Right).buffer_memory() > 0);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.stack(Side::Right).buffer_memory(), 0);
}
