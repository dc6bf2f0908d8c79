//! Tests of the limit of buffer memory. If memory becomes scarce, the host takes unused memory back
//! from the connections that hold the most, and drops their out-of-order data. The invariants of
//! the host, which include this limit, are checked after every step.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Event, ListenHandle, ListenOptions, Medium, TcpHandle};
use linerate_tcp::Event as TcpEvent;
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::Segment;
use std::net::SocketAddrV4;

const SERVER: SocketAddrV4 = SocketAddrV4::new(Side::Right.address(), 9);

/// The value of a first data byte that makes the network drop the segment, every time it is sent.
const LOST: u8 = 0xaa;

/// Creates a pair whose right host has this limit of buffer memory.
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

/// Opens a connection. Returns its handles on the left and on the right host.
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

/// Returns data for several segments. The network always drops the first of these segments, so the
/// receiver must store the data behind it out of order.
fn holed() -> Vec<u8> {
    let mut data = vec![1; 14_000];
    data[0] = LOST;
    data
}

#[test]
fn out_of_order_data_cannot_exhaust_the_memory() {
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

    // A legitimate peer transfers all of its data during the attack.
    let (honest, server) = connection(&mut pair, listener);
    let (mut sent, mut received) = (0, 0);
    let mut into = [0; 8_192];
    let done = pair.run_until(Duration::from_secs(20), |pair| {
        let now = pair.now;
        sent += write(pair, Side::Left, honest, &vec![2; 500_000 - sent]);
        while let Ok(count @ 1..) = pair.stack(Side::Right).tcp_read(now, server, &mut into) {
            received += count;
        }
        received == 500_000
    });
    assert!(done, "{received} bytes arrived");
}

#[test]
fn acknowledged_data_is_never_dropped() {
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

/// Opens connections on which the right host writes, until no buffer memory is left. The network
/// drops their data, so it is never acknowledged and the memory stays in use.
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

/// Opens connections that try to write but get no memory, because other connections use all of it.
/// Returns the connections that wait for memory, and then the connections that use it.
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

/// Resets a connection on the right host.
fn abort(pair: &mut Pair, far: TcpHandle) {
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, far).unwrap();
}

/// Returns the connections of the right host that have got a writable event.
fn writable(pair: &mut Pair) -> Vec<TcpHandle> {
    let next = || pair.stack(Side::Right).poll_event();
    let writable = |event| match event {
        Event::Tcp(handle, TcpEvent::Writable) => Some(handle),
        _ => None,
    };
    core::iter::from_fn(next).filter_map(writable).collect()
}

#[test]
fn the_first_writer_gets_a_part_and_the_last_a_minimum() {
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
fn waiting_writers_get_memory_in_order() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 3);
    pair.run_for(Duration::from_millis(1));
    writable(&mut pair);
    // No waiting writer gets a writable event while no memory is available.
    pair.run_for(Duration::from_secs(10));
    assert_eq!(writable(&mut pair), []);
    assert_eq!(pair.stack(Side::Right).counters().tcp_extra.memory_waits, 4);
    // Ending a connection of `hogs` frees 4 KiB, which is enough for one waiting writer.
    // `writers[0]` tries to write once more before that and gets nothing, but keeps its place at
    // the head of the queue.
    let end = |pair: &mut Pair, hog| {
        abort(pair, hog);
        writable(pair)
    };
    assert_eq!(write(&mut pair, Side::Right, writers[0], &[LOST; 6]), 0);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[0]]);
    // The writable event of `writers[0]` has reserved the freed memory. So `writers[1]`, which
    // writes before `writers[0]` does, gets none of it.
    assert_eq!(write(&mut pair, Side::Right, writers[1], &[LOST; 6]), 0);
    assert_eq!(write(&mut pair, Side::Right, writers[0], &[LOST; 6]), 6);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[1]]);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), [writers[2]]);
    assert_eq!(end(&mut pair, hogs.pop().unwrap()), []);
    let (_, late) = connection(&mut pair, listener);
    assert_eq!(write(&mut pair, Side::Right, late, &[LOST; 6]), 6);
}

#[test]
fn an_unused_reservation_expires_after_a_second() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    writable(&mut pair);
    abort(&mut pair, hogs.pop().unwrap());
    assert_eq!(writable(&mut pair), [writers[0]]);
    pair.run_for(Duration::from_millis(1_001));
    assert_eq!(writable(&mut pair), [writers[1]]);
}

#[test]
fn a_closed_writer_leaves_the_queue() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    writable(&mut pair);
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, writers[0]).unwrap();
    abort(&mut pair, hogs.pop().unwrap());
    assert_eq!(writable(&mut pair), [writers[1]]);
}

/// A connection that waits for buffer memory shuts down its sending direction, so it no longer
/// needs the memory. After a while, it becomes compact. When memory is available, the host must not
/// restore its full form in order to offer the memory to it.
#[test]
fn a_writer_that_shuts_down_leaves_the_queue() {
    let (mut pair, listener) = pair(32 << 10);
    let (writers, mut hogs) = waiting(&mut pair, listener, 2);
    let now = pair.now;
    pair.stack(Side::Right).tcp_shutdown_write(now, writers[0]).unwrap();
    pair.run_for(Duration::from_secs(3));
    writable(&mut pair);
    abort(&mut pair, hogs.pop().unwrap());
    pair.stack(Side::Right).check();
    assert_eq!(writable(&mut pair), [writers[1]]);
}

/// Twenty connections write at full speed, but the buffer memory suffices for at most sixteen of
/// them. Each must make progress. A connection that gets a writable event must also get memory when
/// it then writes.
#[test]
fn continuous_writers_do_not_starve_each_other() {
    let (mut pair, listener) = pair(64 << 10);
    let ends: Vec<_> = (0..20).map(|_| connection(&mut pair, listener)).collect();
    let mut sent: Vec<usize> = vec![0; ends.len()];
    let data = [1; 100_000];
    for (index, &(_, far)) in ends.iter().enumerate() {
        sent[index] += write(&mut pair, Side::Right, far, &data);
    }
    writable(&mut pair);
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
        for writer in writable(&mut pair) {
            let index = ends.iter().position(|&(_, far)| far == writer).unwrap();
            sent[index] += write(&mut pair, Side::Right, writer, &data);
            wakes += 1;
        }
    }
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(*least > 100_000 && *most < 4 * least, "{sent:?}");
    // A connection should get at most one writable event per acknowledgement, and one per wait for
    // memory. In this test, that is less than one event per 300 bytes sent.
    assert!(wakes < sent.iter().sum::<usize>() / 300, "{wakes} wakes for {sent:?}");
}

#[test]
fn an_idle_connection_holds_no_buffer_memory() {
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
