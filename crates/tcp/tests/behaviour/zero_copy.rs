//! Tests of zero-copy access. The application reads and writes the memory of the socket buffers
//! directly, or passes its own memory to the connection by reference.

use crate::{ms, secs};
use bytes::Bytes;
use linerate_tcp::{Config, Connection, Error, Event, MemoryGrant, Path};
use linerate_testkit::{Connections, End, Fate, Network, Script, pattern};
use linerate_units::Instant;
use std::sync::Arc;

fn pair() -> Connections {
    pair_with(&Config::modern())
}

fn pair_with(config: &Config) -> Connections {
    Connections::new(config, config, Network::clean(ms(1)), 1).established()
}

/// Reads all received data of the endpoint `end` by borrowing it.
fn take_borrowed(pair: &mut Connections, end: End) -> Result<Vec<u8>, Error> {
    let now = pair.now;
    let mut data = Vec::new();
    pair.end(end).read_with(now, |bytes| {
        data.extend_from_slice(bytes);
        bytes.len()
    })?;
    Ok(data)
}

#[test]
fn data_written_in_place_is_read_in_place() {
    let mut pair = pair();
    let now = pair.now;
    let written = pair.client.write_with(now, 5, |room| {
        room.copy_from_slice(b"hello");
        room.len()
    });
    assert_eq!(written, Ok(5));
    pair.pass_time(ms(10));
    assert_eq!(take_borrowed(&mut pair, End::Server), Ok(b"hello".to_vec()));
    assert_eq!(take_borrowed(&mut pair, End::Server), Err(Error::WouldBlock));
}

/// An emptied buffer is filled again from the start of its memory. This part of the memory is
/// probably still in the CPU's cache, and a segment written there is contiguous.
#[test]
fn an_emptied_buffer_reuses_the_start_of_its_memory() {
    let mut pair = pair();
    let places: Vec<_> = (0..3)
        .map(|_| {
            let now = pair.now;
            assert_eq!(pair.client.write(now, b"hello"), Ok(5));
            pair.pass_time(ms(10));
            let (now, mut place) = (pair.now, None);
            let taken = pair.server().read_with(now, |bytes| {
                place = Some(bytes.as_ptr());
                bytes.len()
            });
            assert_eq!(taken, Ok(5));
            place
        })
        .collect();
    assert_eq!(places, [places[0]; 3]);
}

#[test]
fn writing_nothing_sends_nothing_and_taking_nothing_keeps_the_data() {
    let mut pair = pair();
    let (now, sent) = (pair.now, pair.client.statistics().segments_sent);
    assert_eq!(pair.client.write_with(now, 100, |_| 0), Ok(0));
    pair.pass_time(ms(500));
    assert_eq!(
        (pair.client.unacknowledged_bytes(), pair.client.statistics().segments_sent),
        (0, sent)
    );

    let now = pair.now;
    assert_eq!(pair.client.write(now, b"look"), Ok(4));
    pair.pass_time(ms(10));
    let now = pair.now;
    assert_eq!(pair.server().read_with(now, |bytes| usize::from(bytes != b"look")), Ok(0));
    assert_eq!(pair.server().read_with(now, |_| 1), Ok(1));
    assert_eq!(take_borrowed(&mut pair, End::Server), Ok(b"ook".to_vec()));
}

/// An application may claim to have used more bytes than were lent to it. All lent bytes then count
/// as used, and no others.
#[test]
fn claims_beyond_the_borrowed_bytes_are_limited() {
    let mut pair = pair();
    let now = pair.now;
    let claim = |room: &mut [u8]| {
        room.fill(b'x');
        usize::MAX
    };
    assert_eq!(pair.client.write_with(now, 7, claim), Ok(7));
    pair.pass_time(ms(10));
    let now = pair.now;
    assert_eq!(pair.server().read_with(now, |_| usize::MAX), Ok(7));
    assert_eq!(pair.server().read_with(now, |_| usize::MAX), Err(Error::WouldBlock));
}

#[test]
fn the_end_of_the_stream_is_shown_as_nothing() {
    let mut pair = pair();
    let now = pair.now;
    assert_eq!(pair.server().read_shared(now, 0), Ok(Bytes::new()), "a read of zero bytes");
    assert_eq!(pair.client.write(now, b"last"), Ok(4));
    pair.client.shutdown_write(now);
    assert_eq!(
        pair.client.write_with(now, 1, |_| unreachable!("it is closed")),
        Err(Error::Shutdown)
    );
    pair.pass_time(ms(10));
    assert_eq!(take_borrowed(&mut pair, End::Server), Ok(b"last".to_vec()));
    let (now, mut shown) = (pair.now, None);
    let taken = pair.server().read_with(now, |bytes| {
        shown = Some(bytes.len());
        1
    });
    assert_eq!((taken, shown), (Ok(0), Some(0)), "an empty view is passed if there is no data");
    assert_eq!(pair.server().read_shared(now, 1), Ok(Bytes::new()));
}

/// After each kind of read, the announced window is larger. A read of zero bytes has no effect.
#[test]
fn every_kind_of_read_opens_the_window() {
    type Read = fn(&mut Connection, Instant, usize) -> Result<usize, Error>;
    let methods: [Read; 3] = [
        |connection, now, most| connection.read(now, &mut vec![0; most]),
        |connection, now, most| connection.read_with(now, |bytes| most.min(bytes.len())),
        |connection, now, most| connection.read_shared(now, most).map(|bytes| bytes.len()),
    ];
    let tell = |read: Read| {
        let config =
            Config { receive_buffer: 10_000.into(), timestamps: false, ..Config::modern() };
        let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
        for at in 0..10 {
            host.send(&format!("P. {}:{}(1000) ack 1", at * 1_000 + 1, at * 1_000 + 1_001));
        }
        host.take_sent();
        assert_eq!(host.application(|connection, now| read(connection, now, 0)), Ok(0));
        host.expect_nothing();
        let windows = [500, 4_000, 9_000].map(|most| {
            assert_eq!(
                host.application(|connection, now| read(connection, now, most)),
                Ok(most.min(5_500))
            );
            host.take_sent().iter().map(|sent| sent.says.window).collect::<Vec<_>>()
        });
        host.pass_time(secs(5));
        (windows, host.connection.buffer_memory())
    };
    let copied = tell(methods[0]);
    assert_eq!(copied.0[0], []);
    assert_eq!((copied.0[1].len(), copied.0[2].len(), copied.1), (1, 1, 0));
    assert_eq!(tell(methods[1]), copied);
    assert_eq!(tell(methods[2]), copied);
}

/// A writable event follows only if a write was not accepted in full. Here the application writes
/// by passing a reference to its own memory.
#[test]
fn only_a_refused_shared_write_gets_an_event() {
    for (length, is_told) in [(10_000, false), (10_001, true)] {
        let mut pair = pair_with(&Config { send_buffer: 10_000.into(), ..Config::modern() });
        let (_owner, mut data) = owned(length);
        pair.events(End::Client);
        let now = pair.now;
        assert_eq!(pair.client.write_shared(now, &mut data), Ok(10_000));
        pair.pass_time(ms(100));
        assert_eq!(pair.events(End::Client).contains(&Event::Writable), is_told);
    }
}

#[test]
fn a_full_buffer_is_not_borrowed_and_reports_room() {
    let mut pair = pair_with(&Config { send_buffer: 3_000.into(), ..Config::modern() });
    pair.events(End::Client);
    let now = pair.now;
    assert_eq!(pair.client.write_with(now, 10_000, |room| room.len()), Ok(3_000));
    assert_eq!(pair.client.write_with(now, 1, |_| unreachable!("there is no room")), Ok(0));
    assert_eq!(pair.events(End::Client), []);
    pair.pass_time(ms(50));
    assert_eq!(pair.events(End::Client), [Event::Writable]);
    // The buffer is empty, so the application is offered memory from the beginning of the buffer,
    // where all 3,000 bytes are contiguous.
    assert_eq!(pair.client.write_with(now, 10_000, |room| room.len()), Ok(3_000));
}

/// A write borrows free space of a ring of 4 KiB. If the space continues at the start of the ring,
/// the write gets only the part before the end. A single byte, written by copying, follows each
/// such write, so that the positions vary. The server reads by borrowing as well.
#[test]
fn non_contiguous_memory_is_borrowed_in_parts() {
    let config =
        Config { send_buffer: 4_096.into(), receive_buffer: 4_096.into(), ..Config::modern() };
    let mut pair = pair_with(&config);
    let (mut written, mut read, mut parts) = (0, 0, 0);
    while read < 40_000 {
        let now = pair.now;
        let fill = |room: &mut [u8]| {
            for (place, position) in room.iter_mut().zip(written..) {
                *place = pattern(position);
            }
            room.len()
        };
        let count = pair.client.write_with(now, 3_000, fill).unwrap();
        parts += usize::from(count > 0 && count < 3_000);
        written += count;
        written += pair.client.write(now, &[pattern(written)]).unwrap();
        pair.pass_time(ms(5));
        let data = take_borrowed(&mut pair, End::Server).unwrap_or_default();
        for &byte in &data {
            assert_eq!(byte, pattern(read));
            read += 1;
        }
    }
    assert!(parts > 5, "{parts} writes had less room than they wanted");
}

/// Returns shared data of `length` bytes, and its owner. The owner's reference count shows whether
/// a connection still refers to the data.
fn owned(length: usize) -> (Arc<[u8]>, Bytes) {
    let owner: Arc<[u8]> = (0..length).map(pattern).collect();
    (Arc::clone(&owner), Bytes::from_owner(owner))
}

/// Opens a connection over a path with the largest MTU. The buffers have room for many segments.
fn wide_pair() -> Connections {
    let config = Config {
        receive_buffer: (1 << 20).into(),
        send_buffer: (1 << 20).into(),
        ..Config::modern()
    };
    let network = Network::clean(ms(1));
    Connections::new(&config, &config, network, 1).over(&config, Path::ipv4(65_535)).established()
}

#[test]
fn shared_data_is_kept_until_acknowledged_and_counts_with_its_length() {
    let mut pair = pair();
    let (owner, mut data) = owned(10_000);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(10_000));
    assert!(data.is_empty());
    drop(data);
    assert_eq!((Arc::strong_count(&owner), pair.client.buffer_memory()), (2, 10_000));
    pair.pass_time(ms(50));
    assert_eq!((Arc::strong_count(&owner), pair.client.buffer_memory()), (1, 0));
    assert_eq!(pair.read_all(End::Server).as_deref(), Ok(&*owner));
}

#[test]
fn shared_data_is_retransmitted_in_place() {
    let mut pair = pair();
    let mut count = 0;
    pair.set_filter(move |_, from, segment| {
        count += usize::from(from == End::Client && !segment.payload.is_empty());
        (count == 2 && !segment.payload.is_empty()).then_some(Fate::Lose)
    });
    let (owner, mut data) = owned(9_000);
    let now = pair.now;
    assert_eq!(pair.client.write(now, b"before"), Ok(6));
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(9_000));
    assert_eq!(pair.client.write(now, b"behind"), Ok(6));
    pair.pass_time(secs(3));
    assert!(pair.client.statistics().retransmitted_segments > 0);
    assert_eq!(pair.read_all(End::Server), Ok([b"before", &*owner, b"behind"].concat()));
}

#[test]
fn a_shared_write_accepts_what_there_is_room_for() {
    let mut pair = pair_with(&Config { send_buffer: 10_000.into(), ..Config::modern() });
    let (owner, mut data) = owned(12_000);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(10_000));
    assert_eq!(data, owner[10_000..]);
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(0));
    pair.pass_time(ms(50));
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(2_000));
    pair.client.shutdown_write(now);
    assert_eq!(pair.client.write_shared(now, &mut data), Err(Error::Shutdown));
}

/// A write by reference of less than 4,096 bytes is copied, because recording the reference would
/// cost more. Larger data is also copied if a record cannot be allocated, or if other connections
/// wait for memory.
#[test]
fn small_pieces_are_copied_and_so_is_everything_while_memory_is_short() {
    let mut pair = pair();
    let (owner, mut data) = owned(4_095);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(4_095));
    drop(data);
    assert_eq!((Arc::strong_count(&owner), pair.client.buffer_memory()), (1, 4_096));
    pair.pass_time(ms(50));

    let (_, mut data) = owned(10_000);
    let (now, short) = (pair.now, MemoryGrant { room: 4_000, ..MemoryGrant::UNLIMITED });
    pair.client.driver().grant_memory(short);
    assert_eq!(
        pair.client.write_shared(now, &mut data),
        Ok(4_096),
        "what the buffer holds already"
    );
    assert_eq!((data.len(), pair.client.buffer_memory()), (5_904, 4_096));
    pair.pass_time(ms(50));
    let now = pair.now;
    pair.client.driver().grant_memory(MemoryGrant { is_awaited: true, ..MemoryGrant::UNLIMITED });
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(0), "others wait for memory");
}

#[test]
fn large_segments_stay_in_the_link_memory_until_read() {
    let mut pair = wide_pair();
    let (owner, mut data) = owned(60_000);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(60_000));
    pair.pass_time(ms(10));
    assert_eq!(pair.server().buffer_memory(), 60_000, "no ring");
    let now = pair.now;
    let first = pair.server().read_shared(now, 100).unwrap();
    let second = pair.server().read_shared(now, 100_000).unwrap();
    assert_eq!([&first[..], &second].concat(), &*owner);
    assert_eq!(first.as_ptr().wrapping_add(100), second.as_ptr(), "parts of one memory");
    assert_eq!(
        (pair.server().buffer_memory(), pair.server().read_shared(now, 9)),
        (0, Err(Error::WouldBlock))
    );
    pair.client.shutdown_write(now);
    pair.pass_time(ms(10));
    let now = pair.now;
    assert_eq!(pair.server().read_shared(now, 9), Ok(Bytes::new()));
}

/// In-order data of large segments is kept by reference. Out-of-order data, and the data that fills
/// the hole before it, is copied to its place in the ring.
#[test]
fn large_out_of_order_segments_are_copied() {
    let mut pair = wide_pair();
    let mut large = 0;
    pair.set_filter(move |_, from, segment| {
        large += usize::from(from == End::Client && segment.payload.len() > 10_000);
        (large == 4 && !segment.payload.is_empty()).then_some(Fate::Lose)
    });
    let (owner, mut data) = owned(900_000);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(900_000));
    let mut received = Vec::new();
    while received.len() < 900_000 {
        pair.pass_time(ms(1));
        received.extend(pair.read_all(End::Server).unwrap());
    }
    assert_eq!(received, &*owner);
    assert!(pair.server().statistics().out_of_order_segments > 0);
}

#[test]
fn a_connection_with_unread_shared_data_cannot_be_compacted() {
    let mut pair = wide_pair();
    let (_, mut data) = owned(50_000);
    let now = pair.now;
    assert_eq!(pair.client.write_shared(now, &mut data), Ok(50_000));
    pair.pass_time(secs(30));
    for end in [End::Client, End::Server] {
        pair.events(end);
    }
    assert!(pair.client.can_compact() && !pair.server().can_compact());
    pair.read_all(End::Server).unwrap();
    pair.pass_time(secs(30));
    pair.events(End::Server);
    assert!(pair.server().can_compact());
}
