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
    assert!(counters.pruned > 0 && counters.memory_refusals > 0, "{counters}");
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
    let (mut pair, listener) = pair(700 << 10);
    let (near, far) = connection(&mut pair, listener);
    assert_eq!(write(&mut pair, Side::Left, near, &[3; 30_000]), 30_000);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.stack(Side::Left).tcp(near).unwrap().unacknowledged_bytes(), 0);
    for _ in 0..60 {
        let (attacker, _) = connection(&mut pair, listener);
        write(&mut pair, Side::Left, attacker, &holed());
        pair.run_for(Duration::from_millis(1));
    }
    let mut into = [0; 40_000];
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_read(now, far, &mut into), Ok(30_000));
    assert!(into[..30_000].iter().all(|&byte| byte == 3));
}

/// Connections whose right end has written all that there is memory for, into a network that loses it.
fn hogs(pair: &mut Pair, listener: ListenHandle) -> Vec<TcpHandle> {
    let mut hogs = Vec::new();
    loop {
        let (_, far) = connection(pair, listener);
        if write(pair, Side::Right, far, &[LOST; 100_000]) == 0 {
            abort(pair, far);
            return hogs;
        }
        hogs.push(far);
    }
}

/// So many connections whose right end has something to write, and gets no memory for it; and the hogs that
/// have it.
fn waiting(
    pair: &mut Pair,
    listener: ListenHandle,
    count: usize,
) -> (Vec<TcpHandle>, Vec<TcpHandle>) {
    let writers: Vec<_> = (0..count).map(|_| connection(pair, listener).1).collect();
    let hogs = hogs(pair, listener);
    for &writer in &writers {
        assert_eq!(write(pair, Side::Right, writer, &[LOST; 6]), 0);
    }
    (writers, hogs)
}

/// The right end of a connection is no more.
fn abort(pair: &mut Pair, far: TcpHandle) {
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, far).unwrap();
}

/// Those that are told on the right that they can write.
fn told(pair: &mut Pair) -> Vec<TcpHandle> {
    let next = || pair.stack(Side::Right).poll_event();
    let writable = |event| match event {
        Event::Tcp(handle, TcpEvent::Writable) => Some(handle),
        _ => None,
    };
    core::iter::from_fn(next).filter_map(writable).collect()
}

#[test]
fn the_first_who_writes_gets_no_more_than_a_part_and_the_last_a_little() {
    let (mut pair, listener) = pair(160 << 10);
    let mut left = 160 << 10;
    let written: Vec<_> = (0..17)
        .map(|_| {
            let (_, far) = connection(&mut pair, listener);
            let written = write(&mut pair, Side::Right, far, &[LOST; 100_000]);
            assert!(written <= 4_096 || written <= left / 17);
            left -= written;
            written >> 10
        })
        .collect();
    assert_eq!(written, [8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
}

#[test]
fn writers_for_whom_there_is_no_memory_are_told_in_their_order_when_there_is_some() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 3);
    pair.run_for(Duration::from_millis(1));
    told(&mut pair);
    // Nobody is told before there is some, however long that takes.
    pair.run_for(Duration::from_secs(10));
    assert_eq!(told(&mut pair), []);
    assert_eq!(pair.stack(Side::Right).counters().tcp_extra.memory_waits, 4);
    // Each hog holds 4 KiB: enough for one. Who asks again in vain keeps its place.
    let end = |pair: &mut Pair, hog| {
        abort(pair, hog);
        told(pair)
    };
    assert_eq!(write(&mut pair, Side::Right, writers[0], &[LOST; 6]), 0);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[0]]);
    // What it was told of is its own, also when another one asks first.
    assert_eq!(write(&mut pair, Side::Right, writers[1], &[LOST; 6]), 0);
    assert_eq!(write(&mut pair, Side::Right, writers[0], &[LOST; 6]), 6);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[1]]);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[2]]);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), []);
    let (_, late) = connection(&mut pair, listener);
    assert_eq!(write(&mut pair, Side::Right, late, &[LOST; 6]), 6);
}

#[test]
fn who_was_told_and_does_not_write_keeps_others_waiting_for_a_second_at_most() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    told(&mut pair);
    abort(&mut pair, hogs.pop().unwrap());
    assert_eq!(told(&mut pair), [writers[0]]);
    pair.run_for(Duration::from_millis(1_001));
    assert_eq!(told(&mut pair), [writers[1]]);
}

#[test]
fn who_waits_and_lets_go_waits_no_longer() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    told(&mut pair);
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, writers[0]).unwrap();
    abort(&mut pair, hogs.pop().unwrap());
    assert_eq!(told(&mut pair), [writers[1]]);
}

/// It rests after a while, as others do, and nobody wakes it for what it does not want any more.
#[test]
fn who_waits_and_says_that_it_writes_no_more_waits_no_longer() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    let now = pair.now;
    pair.stack(Side::Right).tcp_shutdown_write(now, writers[0]).unwrap();
    pair.run_for(Duration::from_secs(3));
    told(&mut pair);
    abort(&mut pair, hogs.pop().unwrap());
    pair.stack(Side::Right).check();
    assert_eq!(told(&mut pair), [writers[1]]);
}

/// Twenty connections write as fast as they can, and there is memory for sixteen at most: each has its turn
/// again and again, and none is told that it can write when it cannot.
#[test]
fn writers_that_never_stop_do_not_starve_each_other() {
    let (mut pair, listener) = pair(64 << 10);
    let ends: Vec<_> = (0..20).map(|_| connection(&mut pair, listener)).collect();
    let mut sent: Vec<usize> = vec![0; ends.len()];
    let data = [1; 100_000];
    for (index, &(_, far)) in ends.iter().enumerate() {
        sent[index] += write(&mut pair, Side::Right, far, &data);
    }
    told(&mut pair);
    let mut into = [0; 100_000];
    let mut wakes = 0;
    for _ in 0..1_000 {
        pair.run_for(Duration::from_micros(100));
        let now = pair.now;
        for &(near, _) in &ends {
            while pair.stack(Side::Left).tcp_read(now, near, &mut into).is_ok_and(|count| count > 0)
            {
            }
        }
        for writer in told(&mut pair) {
            let index = ends.iter().position(|&(_, far)| far == writer).unwrap();
            sent[index] += write(&mut pair, Side::Right, writer, &data);
            wakes += 1;
        }
    }
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(*least > 100_000 && *most < 4 * least, "{sent:?}");
    // One for what is acknowledged, and one for a wait: no more than a few a segment.
    assert!(wakes < sent.iter().sum::<usize>() / 300, "{wakes} wakes for {sent:?}");
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
