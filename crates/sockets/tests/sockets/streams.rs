//! Streams behave like those of `std::net`.

use crate::networks::{
    ByHand, LEFT, RIGHT, cable, config, connection, networks, networks_with, until_waits,
};
use crate::pattern;
use linerate_sockets::{
    Config, ConnectOptions, KeepAlive, ListenOptions, Net, Profile, State, TimeLimits,
};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

#[test]
fn data_passes_in_both_directions() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    let mut received = [0; 5];
    for _ in 0..1_000 {
        far.write_all(b"hello").unwrap();
        near.read_exact(&mut received).unwrap();
        near.write_all(&received).unwrap();
        far.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello");
    }
}

#[test]
fn both_ends_report_the_same_addresses() {
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
    assert_eq!(near.peer_addr().unwrap(), far.local_addr().unwrap());
    assert_eq!(near.local_addr().unwrap().ip(), LEFT);
}

#[test]
fn a_long_transfer_in_both_directions_at_once_arrives_intact() {
    const BYTES: u64 = 64 << 20;
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    thread::scope(|scope| {
        for stream in [&near, &far] {
            scope.spawn(move || {
                pattern::send(stream, BYTES);
                stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || pattern::receive(stream, BYTES));
        }
    });
    for stream in [near, far] {
        let statistics = stream.statistics().unwrap();
        assert_eq!((statistics.bytes_sent, statistics.bytes_received), (BYTES, BYTES));
    }
}

#[test]
fn closing_one_direction_leaves_the_other_usable() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.write_all(b"request").unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(far.write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut request = String::new();
    near.read_to_string(&mut request).unwrap();
    assert_eq!(request, "request");
    assert_eq!(near.read(&mut [0]).unwrap(), 0, "the end of the stream is permanent");
    near.write_all(b"answer").unwrap();
    drop(near);
    let mut answer = String::new();
    far.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

#[test]
fn a_waiting_reader_is_woken_when_its_direction_is_closed() {
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(|| (&far).read(&mut [0]).unwrap()));
        far.shutdown(Shutdown::Read).unwrap();
        assert_eq!(readers.map(|reader| reader.join().unwrap()), [0; 3]);
    });
    drop(near);
}

#[test]
fn a_waiting_writer_is_woken_when_its_direction_is_closed() {
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            loop {
                if let Err(error) = (&far).write(&[7; 100_000]) {
                    break error.kind();
                }
            }
        });
        // The peer does not read. So the writer fills the peer's receive buffer and its own send
        // buffer, and then waits. This loop ends when the peer's receive buffer is full, which
        // closes the window.
        while far.tcp_info().unwrap().send_window > 0 {
            thread::yield_now();
        }
        far.shutdown(Shutdown::Both).unwrap();
        assert_eq!(writer.join().unwrap(), ErrorKind::BrokenPipe);
    });
    drop(near);
}

#[test]
fn a_waiting_writer_continues_when_its_buffer_grows() {
    const SMALL: usize = 10_000;
    let (left, right) = cable();
    let mut left = ByHand::new(left);
    let mut rules = config(RIGHT);
    rules.tcp.send_buffer = SMALL.into();
    let right = Net::builder(right, rules).start().unwrap();
    let (_near, mut far) = left.accept(&right);
    // The left host makes no turn, so it acknowledges nothing. The first write fills the send
    // buffer, so the second one has to wait.
    assert_eq!(far.write(&[9; SMALL]).unwrap(), SMALL);
    let before = right.activity().waits;
    thread::scope(|scope| {
        let writer = scope.spawn(|| (&far).write(b"more").unwrap());
        until_waits(&right, before + 1);
        far.set_send_buffer(2 * SMALL).unwrap();
        assert_eq!(writer.join().unwrap(), 4);
    });
}

#[test]
fn empty_reads_and_writes_do_not_wait() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    assert_eq!(near.read(&mut []).unwrap(), 0);
    assert_eq!(near.read_vectored(&mut []).unwrap(), 0);
    assert_eq!(near.peek(&mut []).unwrap(), 0);
    assert_eq!(near.write(&[]).unwrap(), 0);
    assert_eq!(near.write_vectored(&[IoSlice::new(&[]), IoSlice::new(&[])]).unwrap(), 0);
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!(near.write(&[]).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(far.read(&mut []).unwrap(), 0);
}

#[test]
fn a_peek_leaves_the_data_in_the_buffer() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.write_all(b"twice").unwrap();
    let mut received = [0; 5];
    assert!(near.peek(&mut received).unwrap() > 0);
    received = [0; 5];
    near.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"twice");
}

#[test]
fn vectored_reads_and_writes_keep_the_order() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    let pieces = [IoSlice::new(b"in"), IoSlice::new(b""), IoSlice::new(b" pieces")];
    assert_eq!(far.write_vectored(&pieces).unwrap(), 9);
    far.shutdown(Shutdown::Write).unwrap();
    let (mut first, mut second) = ([0; 4], [0; 9]);
    let mut length = 0;
    while length < 9 {
        assert_eq!(near.peek(&mut second).unwrap().cmp(&0), std::cmp::Ordering::Greater);
        length = near.peek(&mut second).unwrap();
    }
    let read = near.read_vectored(&mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)]);
    assert_eq!(read.unwrap(), 9);
    assert_eq!((&first, &second[..5]), (b"in p", &b"ieces"[..]));
}

#[test]
fn one_write_takes_at_most_256_kib() {
    let (left, right) = networks_with(|config| config.tcp.send_buffer = (4 << 20).into());
    let (near, mut far) = connection(&left, &right);
    assert_eq!(far.write(&vec![1; 1 << 20]).unwrap(), 256 << 10);
    drop(near);
}

#[test]
fn a_reset_by_a_peer_that_discards_data_is_a_permanent_error() {
    let (left, right) = networks();
    let (near, mut far) = connection(&left, &right);
    far.write_all(b"unread").unwrap();
    let mut received = [0; 6];
    while near.peek(&mut received).unwrap() < 6 {}
    drop(near);
    for _ in 0..2 {
        assert_eq!(far.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(far.write(&[0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(far.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(far.shutdown(Shutdown::Both).unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(far.state().unwrap(), State::Closed);
}

#[test]
fn data_received_before_a_reset_is_read_before_the_error() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    near.write_all(b"last words").unwrap();
    let mut received = [0; 10];
    while far.peek(&mut received).unwrap() < 10 {}
    near.set_linger(Some(Duration::ZERO)).unwrap();
    drop(near);
    while far.take_error().unwrap().is_none() {
        thread::yield_now();
    }
    far.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"last words");
    assert_eq!(far.read(&mut received).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_lingering_close_returns_when_all_data_is_acknowledged() {
    const BYTES: usize = 100_000;
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.set_linger(Some(Duration::from_secs(600))).unwrap();
    far.write_all(&[9; BYTES]).unwrap();
    drop(far);
    near.set_nonblocking(true).unwrap();
    let mut received = vec![0; BYTES + 1];
    let mut length = 0;
    while length < BYTES {
        // Because of the linger time, `drop` has waited until the peer had acknowledged all data.
        // So the receive buffer contains all of it, and a read cannot fail with `WouldBlock`.
        length += near.read(&mut received[length..]).unwrap();
    }
    assert_eq!(near.read(&mut received).unwrap(), 0);
}

#[test]
fn a_lingering_close_resets_the_connection_after_its_timeout() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.set_nonblocking(true).unwrap();
    // The peer does not read. Once the buffers of both endpoints are full, the peer cannot
    // acknowledge the rest of the data. So closing below waits until the linger time has passed.
    while far.write(&[9; 100_000]).is_ok() || far.tcp_info().unwrap().send_window > 0 {}
    far.set_linger(Some(Duration::from_millis(1))).unwrap();
    drop(far);
    assert_eq!(near.read_to_end(&mut Vec::new()).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn options_return_the_values_they_were_set_to() {
    let (left, right) = networks();
    let (_near, far) = connection(&left, &right);
    assert!(!far.nodelay().unwrap());
    far.set_nodelay(true).unwrap();
    assert!(far.nodelay().unwrap());
    assert_eq!(far.linger().unwrap(), None);
    far.set_linger(Some(Duration::from_secs(3))).unwrap();
    assert_eq!(far.linger().unwrap(), Some(Duration::from_secs(3)));
    far.set_linger(None).unwrap();
    let keep_alive = KeepAlive { probes: 3, ..KeepAlive::default() };
    far.set_keep_alive(Some(keep_alive)).unwrap();
    assert_eq!(far.keep_alive().unwrap(), Some(keep_alive));
    far.set_max_pacing_rate(Some(1_000_000)).unwrap();
    assert_eq!(far.max_pacing_rate().unwrap(), Some(1_000_000));
    let refused = far.set_max_pacing_rate(Some(0)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    far.set_max_pacing_rate(None).unwrap();
    assert_eq!(far.max_pacing_rate().unwrap(), None);
    let clone = far.try_clone().unwrap();
    clone.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(far.read_timeout().unwrap(), Some(Duration::from_secs(5)));
    assert_eq!(far.write_timeout().unwrap(), None);
}

#[test]
fn a_connection_can_have_its_own_configuration() {
    let (left, right) = networks();
    let tahoe = Config { receive_buffer: 8_192.into(), ..Profile::BsdTahoe.config() };
    let options = ListenOptions { config: Some(tahoe), ..ListenOptions::default() };
    let listener = left.bind_with((LEFT, 0), &options).unwrap();
    let options = ConnectOptions {
        config: Some(Config { send_buffer: 3_000.into(), ..Config::modern() }),
        local: Some("10.0.0.2:4321".parse().unwrap()),
        ..ConnectOptions::default()
    };
    let mut far = right.connect_with(listener.local_addr().unwrap(), &options).unwrap();
    let (near, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), 4321);
    assert_eq!(far.tcp_info().unwrap().send_window, 8_192);
    assert_eq!(far.tcp_info().unwrap().effective_mss, 1_460, "Tahoe has no timestamps");
    assert_eq!(far.write(&[0; 5_000]).unwrap(), 3_000);
    drop(near);
}

/// Creates networks whose persist timer expires after an hour. When this timer expires, corked data
/// is sent. With the usual times, this could happen during a test on a slow machine.
fn networks_with_long_timeouts() -> (Net, Net) {
    let hour = Duration::from_secs(3_600).into();
    networks_with(|config| {
        config.tcp = Config { persist: TimeLimits { min: hour, max: hour }, ..Config::modern() }
    })
}

#[test]
fn corked_writes_leave_together() {
    let (left, right) = networks_with_long_timeouts();
    let (mut near, mut far) = connection(&left, &right);
    near.set_cork(true).unwrap();
    assert!(near.cork().unwrap());
    near.write_all(b"a").unwrap();
    near.write_all(b"b").unwrap();
    far.write_all(b"x").unwrap();
    near.read_exact(&mut [0]).unwrap();
    assert_eq!(near.tcp_info().unwrap().unsent, 2);
    near.set_cork(false).unwrap();
    let mut received = [0; 8];
    assert_eq!(far.read(&mut received).unwrap(), 2);
}

#[test]
fn a_write_with_more_to_follow_leaves_with_the_next() {
    let (left, right) = networks_with_long_timeouts();
    let (mut near, mut far) = connection(&left, &right);
    assert_eq!(near.write_more(b"head").unwrap(), 4);
    far.write_all(b"x").unwrap();
    near.read_exact(&mut [0]).unwrap();
    assert_eq!(near.tcp_info().unwrap().unsent, 4);
    near.write_all(b"body").unwrap();
    let mut received = [0; 16];
    assert_eq!(far.read(&mut received).unwrap(), 8);
}

#[test]
fn records_are_sent_in_separate_segments() {
    let (left, right) = networks_with_long_timeouts();
    let (near, mut far) = connection(&left, &right);
    near.set_cork(true).unwrap();
    for record in [&b"one"[..], b"two", b"three"] {
        assert_eq!(near.write_record(record).unwrap(), record.len());
    }
    near.set_cork(false).unwrap();
    far.read_exact(&mut [0; 11]).unwrap();
    assert_eq!(near.statistics().unwrap().data_segments_sent, 3);
}

#[test]
fn the_limit_of_unsent_data_blocks_writes() {
    let buffers =
        Config { send_buffer: (1 << 20).into(), receive_buffer: 50_000.into(), ..Config::modern() };
    let (left, right) = networks_with(|config| config.tcp = buffers);
    let (near, _far) = connection(&left, &right);
    near.set_unsent_low_water(Some(1_000)).unwrap();
    assert_eq!(near.unsent_low_water().unwrap(), Some(1_000));
    near.set_nonblocking(true).unwrap();
    let mut written = 0;
    // The peer does not read, so its window closes when its receive buffer of 50,000 bytes is full.
    // After that, writes must stop at 1,000 unsent bytes, although the send buffer of 1 MiB has
    // room for more.
    while near.tcp_info().unwrap().send_window > 0 || near.tcp_info().unwrap().unsent < 1_000 {
        written += (&near).write(&[7; 4_096]).unwrap_or(0);
    }
    assert!(written <= 51_000, "{written} bytes were taken");
    near.set_unsent_low_water(None).unwrap();
    assert!((&near).write(&[7; 100_000]).unwrap() > 50_000);
}

#[test]
fn the_fin_wait_2_timeout_of_a_dropped_stream_can_be_set() {
    let (left, right) = networks();
    let (near, _far) = connection(&left, &right);
    let usual = near.orphan_timeout().unwrap();
    near.set_orphan_timeout(Some(Duration::from_secs(3))).unwrap();
    assert_eq!(near.orphan_timeout().unwrap(), Duration::from_secs(3));
    near.set_orphan_timeout(None).unwrap();
    assert_eq!(near.orphan_timeout().unwrap(), usual);
}
