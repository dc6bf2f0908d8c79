//! Tests of socket buffers: their growth, fixed sizes, and the release of their memory.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{BufferSize, Config, Connection, Disposition, Event, MemoryGrant, State};
use linerate_testkit::{Connections, End, Network, Script};
use linerate_units::Duration;

/// Returns a configuration that tunes both buffers, with limits that a test reaches quickly.
fn tuned() -> Config {
    let size = BufferSize::Tuned { initial: 32 << 10, most: 256 << 10 };
    Config { send_buffer: size, receive_buffer: size, ..Config::modern() }
}

/// Opens a connection over a path with a round-trip time of 20 ms. The path carries more data per
/// round trip than the initial size of the buffers.
fn long_path(config: &Config) -> Connections {
    Connections::new(config, config, Network::clean(ms(10)), 1).established()
}

/// Makes the client write and the server read for `span`. Returns the number of bytes that the
/// server has received.
fn transfer(pair: &mut Connections, span: Duration) -> u64 {
    let data = vec![7; 1 << 20];
    let end = pair.now + span;
    let before = pair.server().statistics().bytes_received;
    while pair.now < end {
        let now = pair.now;
        while pair.client.write(now, &data).is_ok_and(|taken| taken > 0) {}
        pair.pass_time(ms(1));
        pair.read_all(End::Server).expect("nothing ends the connection");
    }
    pair.server().statistics().bytes_received - before
}

#[test]
fn both_buffers_grow_with_a_long_path_until_it_is_full() {
    let mut pair = long_path(&tuned());
    transfer(&mut pair, secs(1));
    assert_eq!((pair.client.send_buffer(), pair.server().receive_buffer()), (256 << 10, 256 << 10));
    // Both buffers have grown to 256 KiB, so this amount can be transferred in each round trip of
    // 20 ms. That is 12.5 MiB per second.
    let bytes = transfer(&mut pair, secs(1));
    assert!(bytes > 12 << 20, "{bytes} in a second");
}

#[test]
fn a_size_that_was_chosen_stays() {
    let sizes =
        Config { send_buffer: 100_000.into(), receive_buffer: 90_000.into(), ..Config::modern() };
    let mut pair = long_path(&sizes);
    transfer(&mut pair, secs(1));
    assert_eq!((pair.client.send_buffer(), pair.server().receive_buffer()), (100_000, 90_000));
    // After the application has set the size of a buffer on an open connection, this buffer is no
    // longer tuned.
    let mut pair = long_path(&tuned());
    pair.client.set_send_buffer(50_000);
    pair.server().set_receive_buffer(60_000);
    transfer(&mut pair, secs(1));
    assert_eq!((pair.client.send_buffer(), pair.server().receive_buffer()), (50_000, 60_000));
}

/// A write was not accepted in full, so an event reports when the buffer has room. Another write
/// may use up this room at once. Therefore later acknowledgements cause further events, until the
/// buffer is empty.
#[test]
fn a_refused_writer_gets_events_until_the_buffer_is_empty() {
    let config = Config { send_buffer: 4_000.into(), ..Config::modern() };
    let mut host = Script::established(&config, SYN_ACK);
    host.application(|connection, _| connection.set_no_delay(true));
    let events_after = |host: &mut Script, ack: &str| {
        host.take_sent();
        host.send(ack);
        host.events()
    };
    host.write(1_000);
    assert_eq!(events_after(&mut host, ". 1:1(0) ack 1001"), [], "there was room for all");
    assert_eq!(host.try_write(5_000), Ok(4_000));
    assert_eq!(events_after(&mut host, ". 1:1(0) ack 2001"), [Event::Writable]);
    host.write(500);
    assert_eq!(events_after(&mut host, ". 1:1(0) ack 3001"), [Event::Writable]);
    assert_eq!(events_after(&mut host, ". 1:1(0) ack 5501"), [Event::Writable]);
    host.write(100);
    assert_eq!(events_after(&mut host, ". 1:1(0) ack 5601"), []);
}

/// A tuned receive buffer grows with the number of bytes that the application reads. Bytes that the
/// peer has sent, but the application has not read, do not enlarge it.
#[test]
fn an_application_that_reads_nothing_gets_no_larger_buffer() {
    let mut pair = long_path(&tuned());
    let data = vec![7; 1 << 20];
    for _ in 0..100 {
        let now = pair.now;
        let _ = pair.client.write(now, &data);
        pair.pass_time(ms(100));
    }
    assert_eq!(pair.server().receive_buffer(), 32 << 10);
    assert!(pair.server().readable_bytes() > 31 << 10);
}

#[test]
fn a_slow_conversation_keeps_the_first_size() {
    let mut pair = long_path(&tuned());
    for _ in 0..300 {
        let now = pair.now;
        pair.client.write(now, &[7; 500]).unwrap();
        pair.pass_time(ms(20));
        pair.read_all(End::Server).unwrap();
    }
    assert_eq!((pair.client.send_buffer(), pair.server().receive_buffer()), (32 << 10, 32 << 10));
}

#[test]
fn the_scale_that_is_offered_fits_the_largest_window() {
    let size = BufferSize::Tuned { initial: 10_000, most: 1 << 20 };
    let mut host = Script::connect(&Config { receive_buffer: size, ..Config::modern() });
    host.expect("S 0:0(0) win 10000 wscale 5");
}

#[test]
fn the_round_trip_is_measured_on_predicted_segments() {
    let mut pair = long_path(&tuned());
    transfer(&mut pair, secs(1));
    let server = pair.server();
    assert_eq!(server.information().receive_round_trip, Some(ms(20)));
    let prediction = &server.statistics().prediction;
    let missed: u64 = prediction.misses().map(|(_, count)| count).sum();
    assert!(missed <= 1 && prediction.data > 5_000, "{prediction:?}");
}

/// RFC 7323 §4.1: a timestamp echo of zero may mean that no timestamp is echoed. The receiver's
/// estimate of the round-trip time must not use it.
#[test]
fn an_echo_of_zero_is_not_a_round_trip() {
    let mut host = Script::established(&tuned(), "S. 0:0(0) ack 1 win 65535 mss 1460 ts 7 0");
    let mut next = 1;
    for _ in 0..10 {
        host.pass_time(ms(50));
        for _ in 0..4 {
            host.send(&format!(". {next}:{}(1000) ack 1 ts 8 0", next + 1_000));
            next += 1_000;
        }
        host.read(4_000);
    }
    let prediction = &host.connection.statistics().prediction;
    assert!(prediction.data == 40, "{prediction:?}");
    assert_eq!(host.connection.information().receive_round_trip, None);
}

#[test]
fn a_round_trip_is_measured_on_data_in_order() {
    let mut host = Script::established(&tuned(), "S. 0:0(0) ack 1 win 65535 mss 1460 ts 7 0");
    let measured = |host: &Script| host.connection.information().receive_round_trip;
    host.pass_time(ms(50));
    host.send(". 1:1001(1000) ack 1 ts 8 0");
    host.read(1_000);
    host.pass_time(ms(50));
    host.send(". 2001:3001(1000) ack 1 ts 8 2000090");
    host.send(". 1001:1001(0) ack 1 ts 8 2000090");
    assert_eq!(measured(&host), None);
    host.send(". 1001:2001(1000) ack 1 ts 8 2000070");
    assert_eq!(measured(&host), Some(ms(30)));
}

#[test]
fn a_smaller_size_takes_effect_as_the_window_is_used_up() {
    let size = Config { receive_buffer: 10_000.into(), ..Config::modern() };
    let mut host = Script::established(&size, SYN_ACK);
    host.application(|connection, _| connection.set_receive_buffer(4_000));
    // The window of 10,000 bytes was offered before the buffer was reduced. The peer may still use
    // all of it, so its data is accepted.
    for start in (1..10_001).step_by(1_000) {
        host.send(&format!(". {start}:{}(1000) ack 1", start + 1_000));
    }
    assert_eq!(host.connection.readable_bytes(), 10_000);
    host.read(10_000);
    assert_eq!(host.connection.receive_buffer(), 4_000);
    host.take_sent();
    host.send(". 10001:11001(1000) ack 1");
    host.pass_time(ms(40));
    assert_eq!(host.take_one().says.window, Some(3_000));
}

#[test]
fn memory_is_allocated_for_data_and_freed_after_an_idle_second() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    assert_eq!(host.connection.buffer_memory(), 0);
    host.write(1_000);
    host.send("P. 1:1001(1000) ack 1001");
    assert_eq!(host.connection.buffer_memory(), 2 * 4_096);
    host.pass_time(secs(5));
    assert_eq!(host.connection.buffer_memory(), 4_096, "the data is not read yet");
    host.read(1_000);
    host.pass_time(secs(1));
    assert_eq!(host.connection.buffer_memory(), 0);
}

/// A host with many short connections has many connections in TIME-WAIT, so these must not hold
/// buffer memory. If the application has released the connection, the memory is freed at the
/// transition to TIME-WAIT. Otherwise it is freed after the usual idle time.
#[test]
fn time_wait_holds_no_memory() {
    for lets_go in [true, false] {
        let mut host = Script::established(&Config::modern(), SYN_ACK);
        host.write(1_000);
        host.send("P. 1:1001(1000) ack 1001");
        host.read(1_000);
        host.application(if lets_go { Connection::close } else { Connection::shutdown_write });
        host.take_sent();
        host.send("F. 1001:1001(0) ack 1002");
        assert_eq!(host.connection.state(), State::TimeWait);
        if !lets_go {
            assert_eq!(host.connection.buffer_memory(), 2 * 4_096);
            host.pass_time(secs(1));
        }
        assert_eq!(host.connection.buffer_memory(), 0);
        host.take_sent();
        assert_eq!(host.connection.time_wait_record().is_some(), lets_go);
    }
}

#[test]
fn a_conversation_that_goes_on_keeps_its_memory() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    for turn in 0..100 {
        let at = turn * 10 + 1;
        host.send(&format!("P. {at}:{}(10) ack 1", at + 10));
        host.read(10);
        host.pass_time(ms(100));
        assert_eq!(host.connection.buffer_memory(), 4_096);
    }
}

fn grant(room: u32) -> impl FnOnce(&mut Connection, linerate_units::Instant) {
    move |connection, _| {
        connection.driver().grant_memory(MemoryGrant {
            room,
            least: 0,
            tuning: false,
            is_awaited: false,
        });
    }
}

#[test]
fn data_refused_for_lack_of_memory_is_accepted_when_retransmitted() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.application(grant(4_095));
    assert_eq!(host.judge("P. 1:1001(1000) ack 1"), Disposition::NoMemory);
    host.expect(". 1:1(0) ack 1");
    // Out-of-order data is also refused if memory is lacking. The acknowledgement then has no SACK
    // block for it, so the peer retransmits it.
    assert_eq!(host.judge("P. 2001:3001(1000) ack 1"), Disposition::NoMemory);
    host.expect(". 1:1(0) ack 1");
    assert_eq!(host.connection.statistics().memory_refusals, 2);
    host.application(grant(4_096));
    host.send("P. 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001");
}

#[test]
fn a_write_accepts_what_the_grant_permits() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.application(grant(4_096));
    let now = host.now;
    assert_eq!(host.connection.write(now, &[0; 3_000]), Ok(3_000));
    host.application(grant(0));
    assert_eq!(host.connection.write(now, &[0; 3_000]), Ok(1_096));
    assert_eq!(host.connection.write(now, &[0; 3_000]), Ok(0));
}

#[test]
fn data_beyond_a_hole_can_be_discarded_but_not_acknowledged_data() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.send("P. 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.send(". 60001:61001(1000) ack 1");
    host.expect(". 1:1(0) ack 101");
    assert_eq!(host.connection.buffer_memory(), 64 << 10);
    assert!(host.application(|connection, now| connection.driver().give_memory_back(now, true)));
    assert_eq!(host.connection.buffer_memory(), 4_096);
    assert!(!host.application(|connection, now| connection.driver().give_memory_back(now, true)));
    host.send(". 101:1101(1000) ack 1");
    host.expect(". 1:1(0) ack 1101");
    host.read(1_100);
    assert_eq!(host.connection.statistics().pruned, 1);
}

#[test]
fn an_empty_buffer_swaps_its_memory() {
    let mut host = Script::established(&Config::modern(), &format!("{SYN_ACK} sackOK"));
    let mut other = vec![1; 4_096].into_boxed_slice();
    let mut exchange = |host: &mut Script| {
        host.application(|connection, _| {
            [
                connection.driver().exchange_receive_memory(&mut other),
                connection.driver().exchange_send_memory(&mut other),
            ]
        })
    };
    assert_eq!(exchange(&mut host), [false; 2], "the buffer has no memory yet");
    host.send("P. 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    assert_eq!(exchange(&mut host), [false; 2], "the data is not read yet");
    host.read(100);
    host.send("P. 201:301(100) ack 1");
    host.expect(". 1:1(0) ack 101 sack 201-301");
    assert_eq!(exchange(&mut host), [false; 2], "it waits for what is missing");
    host.send("P. 101:201(100) ack 1");
    host.expect(". 1:1(0) ack 301");
    host.read(200);
    assert_eq!(exchange(&mut host), [true, false]);
    host.send("P. 301:401(100) ack 1");
    host.expect(". 1:1(0) ack 401");
    host.read(100);
    host.write(100);
    host.expect("P. 1:101(100) ack 401");
    assert_eq!(exchange(&mut host), [true, false], "the data may have to be retransmitted");
    host.send(". 401:401(0) ack 101");
    assert_eq!(exchange(&mut host), [true; 2]);
    assert_eq!(host.connection.buffer_memory(), 2 * 4_096);
    host.write(100);
    host.expect("P. 101:201(100) ack 401");
}
