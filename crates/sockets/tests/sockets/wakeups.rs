//! Tests of wake-ups: none is lost, and an event wakes no more threads than necessary.

use crate::networks::{LEFT, connection, networks, until_waits};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[test]
fn no_wake_up_is_lost_in_many_round_trips() {
    const ROUNDS: u64 = 20_000;
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    let before = (left.activity().waits, right.activity().waits);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            for _ in 0..ROUNDS {
                near.read_exact(&mut byte).unwrap();
                near.write_all(&byte).unwrap();
            }
        });
        let mut byte = [7];
        for _ in 0..ROUNDS {
            far.write_all(&byte).unwrap();
            far.read_exact(&mut byte).unwrap();
        }
    });
    // Each thread reads one byte per round, so it waits at most once per round. It does not wait if
    // the byte has already arrived.
    assert!(left.activity().waits - before.0 <= ROUNDS, "{:?}", left.activity());
    assert!(right.activity().waits - before.1 <= ROUNDS, "{:?}", right.activity());
}

#[test]
fn an_event_wakes_one_of_many_threads() {
    const DATAGRAMS: u64 = 2_000;
    const READERS: u64 = 16;
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    let far = right.bind_udp("0.0.0.0:0").unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                // A thread reads datagrams until it receives an empty one.
                while near.recv(&mut [0]).unwrap() > 0 {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until_waits(&left, READERS);
        for sent in 1..=DATAGRAMS {
            far.send(&[1]).unwrap();
            while taken.load(Ordering::Relaxed) < sent {
                thread::yield_now();
            }
        }
        for _ in 0..READERS {
            far.send(&[]).unwrap();
        }
    });
    // Each datagram should wake one reader, which takes it and waits for the next one. This makes
    // one wait per datagram. The limit is about twice that number, to leave room for chance. If
    // each datagram woke all 16 readers, there would be about 16 waits per datagram.
    let waits = left.activity().waits;
    assert!(waits <= 2 * (DATAGRAMS + 2 * READERS), "{waits} waits for {DATAGRAMS} datagrams");
}

#[test]
fn many_readers_and_writers_share_one_stream() {
    const BYTES: usize = 4 << 20;
    const THREADS: usize = 8;
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    let read = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut piece = [0; 3_000];
                loop {
                    let length = (&near).read(&mut piece).unwrap();
                    if length == 0 {
                        break;
                    }
                    assert!(piece[..length].iter().all(|&byte| byte == 0xA5));
                    read.fetch_add(length as u64, Ordering::Relaxed);
                }
            });
        }
        let writers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (&far).write_all(&vec![0xA5; BYTES / THREADS]).unwrap()))
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        far.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(read.into_inner(), BYTES as u64);
}

#[test]
fn many_accepting_threads_get_each_connection_once() {
    const CALLS: usize = 400;
    const ACCEPTORS: usize = 8;
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..ACCEPTORS {
            scope.spawn(|| {
                while let Ok((mut stream, _)) = listener.accept() {
                    accepted.fetch_add(1, Ordering::Relaxed);
                    stream.write_all(b"!").unwrap();
                }
            });
        }
        for _ in 0..CALLS {
            let mut stream = right.connect(address).unwrap();
            assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 1);
        }
        listener.shutdown().unwrap();
    });
    assert_eq!(accepted.into_inner(), CALLS as u64);
}

/// All connections that arrive in one turn of the host cause a single event, which wakes one
/// thread. After this thread has accepted a connection, it must wake the next one. Otherwise
/// threads would wait although connections are queued, and this test would never end.
#[test]
fn no_accepting_thread_waits_while_a_connection_is_queued() {
    const ACCEPTORS: usize = 8;
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..200 {
        thread::scope(|scope| {
            for _ in 0..ACCEPTORS {
                scope.spawn(|| listener.accept().unwrap());
                scope.spawn(|| right.connect(address).unwrap());
            }
        });
    }
}

#[test]
fn a_waiting_receiver_gets_the_error_of_another_threads_send() {
    let (_left, right) = networks();
    let far = right.bind_udp("0.0.0.0:0").unwrap();
    // No socket is bound to port 9. So the datagram below causes an ICMP message "port
    // unreachable".
    far.connect((LEFT, 9)).unwrap();
    thread::scope(|scope| {
        let before = right.activity().waits;
        let reader = scope.spawn(|| far.recv(&mut [0]).unwrap_err().kind());
        until_waits(&right, before + 1);
        far.send(b"anyone?").unwrap();
        assert_eq!(reader.join().unwrap(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn an_idle_network_sleeps() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.write_all(b"x").unwrap();
    near.read_exact(&mut [0]).unwrap();
    let before = left.activity();
    // These calls only read the state of the host, so they must not wake the reactor.
    for _ in 0..10_000 {
        near.tcp_info().unwrap();
        near.statistics().unwrap();
        left.counters().unwrap();
    }
    let after = left.activity();
    assert_eq!(after.wake_ups, before.wake_ups);
    assert!(after.turns - before.turns < 100, "{before:?} {after:?}");
}
