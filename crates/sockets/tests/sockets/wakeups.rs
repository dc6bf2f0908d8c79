//! Nobody sleeps through what he waits for, and nobody is woken for what is another's.

use crate::networks::{LEFT, connection, networks, until_waits};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[test]
fn a_ball_goes_to_and_fro_and_nobody_misses_it() {
    const ROUNDS: u64 = 20_000;
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    let before = (left.activity().waits, right.activity().waits);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut ball = [0];
            for _ in 0..ROUNDS {
                near.read_exact(&mut ball).unwrap();
                near.write_all(&ball).unwrap();
            }
        });
        let mut ball = [7];
        for _ in 0..ROUNDS {
            far.write_all(&ball).unwrap();
            far.read_exact(&mut ball).unwrap();
        }
    });
    // One for each ball, at most; a thread that was quick had not to wait at all.
    assert!(left.activity().waits - before.0 <= ROUNDS, "{:?}", left.activity());
    assert!(right.activity().waits - before.1 <= ROUNDS, "{:?}", right.activity());
}

#[test]
fn an_event_wakes_one_thread_of_many() {
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
                // An empty datagram sends a reader home.
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
    // Each datagram wakes one reader, who waits again. If each woke all, it would be sixteen times that.
    let waits = left.activity().waits;
    assert!(waits <= 2 * (DATAGRAMS + 2 * READERS), "{waits} waits for {DATAGRAMS} datagrams");
}

#[test]
fn many_readers_and_writers_of_one_stream_share_it_to_the_end() {
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
fn many_threads_that_accept_get_each_connection_once() {
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

/// What comes with one turn of the host is one event, however much it is.
#[test]
fn of_many_that_accept_one_each_none_waits_while_a_connection_does() {
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
fn who_waits_for_a_datagram_hears_that_the_peer_refuses_what_another_sends() {
    let (_left, right) = networks();
    let far = right.bind_udp("0.0.0.0:0").unwrap();
    // Nobody is there.
    far.connect((LEFT, 9)).unwrap();
    thread::scope(|scope| {
        let before = right.activity().waits;
        let reader = scope.spawn(|| far.recv(&mut [0]).unwrap_err().kind());
        until_waits(&right, before + 1);
        far.send(b"anybody?").unwrap();
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
    // Questions that change nothing need no turn.
    for _ in 0..10_000 {
        near.information().unwrap();
        near.statistics().unwrap();
        left.counters().unwrap();
    }
    let after = left.activity();
    assert_eq!(after.rings, before.rings);
    assert!(after.turns - before.turns < 100, "{before:?} {after:?}");
}
