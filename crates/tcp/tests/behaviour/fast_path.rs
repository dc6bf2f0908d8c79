//! Tests of header prediction: its hit rate, and the reason that is counted for each miss.

use crate::{SYN_ACK, ms};
use linerate_tcp::{BufferSize, Config, Connection, MissReason};
use linerate_testkit::{Connections, End, Network, Script, pattern};

/// Writes `bytes` bytes at the client, and runs until the server has read all of them.
fn transfer(pair: &mut Connections, bytes: usize) {
    let chunk: Vec<u8> = (0..65_536).map(pattern).collect();
    let (mut written, mut read) = (0, 0);
    pair.run_until("every byte is read", |pair| {
        let now = pair.now;
        if written < bytes {
            let at = written % chunk.len();
            let end = chunk.len().min(at + bytes - written);
            written += pair.client.write(now, &chunk[at..end]).expect("the connection is open");
        }
        for byte in pair.read_all(End::Server).expect("the connection is open") {
            assert_eq!(byte, pattern(read % chunk.len()));
            read += 1;
        }
        read == bytes
    });
}

/// Returns the share of the received segments that took the fast path, in thousandths.
fn hits(connection: &Connection) -> u64 {
    let statistics = connection.statistics();
    statistics.prediction.hits() * 1_000 / statistics.segments_received
}

#[test]
fn a_clean_bulk_transfer_takes_the_fast_path_at_both_ends() {
    for timestamps in [true, false] {
        let config = Config { timestamps, ..Config::modern() };
        let mut pair = Connections::new(&config, &config, Network::clean(ms(2)), 1).established();
        transfer(&mut pair, 4_000_000);
        let (sender, receiver) = (hits(&pair.client), hits(pair.server()));
        assert!(sender >= 950, "sender {sender} ‰: {:?}", pair.client.statistics().prediction);
        assert!(
            receiver >= 950,
            "receiver {receiver} ‰: {:?}",
            pair.server().statistics().prediction
        );
    }
}

#[test]
fn every_size_of_buffer_takes_the_fast_path() {
    for (send, receive) in [(1, 1), (1, 17), (17, 1), (2, 3), (5, 5), (17, 17)] {
        let config = Config {
            send_buffer: (send * 1_448).into(),
            receive_buffer: (receive * 1_448).into(),
            ..Config::modern()
        };
        let mut pair = Connections::new(&config, &config, Network::clean(ms(1)), 1).established();
        transfer(&mut pair, 400_000);
        let (sender, receiver) = (hits(&pair.client), hits(pair.server()));
        assert!(sender >= 950 && receiver >= 950, "{send} × {receive}: {sender} ‰, {receiver} ‰");
    }
}

/// A loss makes segments take the slow path until it is repaired. One loss can therefore affect all
/// segments in flight, here up to 256 KiB. This command prints which share of segments took the
/// fast path:
///
/// ```text
/// cargo test -p linerate-tcp --test behaviour most_segments_take_the_fast_path -- --nocapture
/// ```
#[test]
fn most_segments_take_the_fast_path_despite_losses() {
    for (loss, bytes, least) in [(0, 4_000_000, 950), (1, 20_000_000, 800), (10, 4_000_000, 400)] {
        let network = Network { loss, ..Network::clean(ms(2)) };
        let size = BufferSize::Fixed(256 << 10);
        let config = Config { send_buffer: size, receive_buffer: size, ..Config::modern() };
        let mut pair = Connections::new(&config, &config, network, 7).established();
        transfer(&mut pair, bytes);
        assert_eq!(
            pair.client.statistics().fast_retransmissions > 0,
            loss > 0,
            "a figure of losses wants some"
        );
        let (sender, receiver) = (hits(&pair.client), hits(pair.server()));
        println!("{loss} ‰ lost: sender {sender} ‰, receiver {receiver} ‰ by the fast path");
        for (side, end) in [("sender", End::Client), ("receiver", End::Server)] {
            for (reason, count) in
                pair.end(end).statistics().prediction.misses().filter(|miss| miss.1 > 0)
            {
                println!("  {side} missed {count:>5} for {}", reason.name());
            }
        }
        assert!(sender >= least && receiver >= least, "{sender} ‰, {receiver} ‰");
    }
}

/// Sends `segment`, and checks that it causes one miss, which is counted as `reason`.
#[track_caller]
fn misses_for(reason: MissReason, host: &mut Script, segment: &str) {
    let before = host.connection.statistics().prediction.clone();
    host.send(segment);
    let after = &host.connection.statistics().prediction;
    for (each, count) in after.misses() {
        let expected = before.missed(each) + u64::from(each == reason);
        assert_eq!(count, expected, "misses for {} after {segment}", each.name());
    }
    assert_eq!(before.hits(), after.hits());
}

#[track_caller]
fn hits_for(host: &mut Script, segment: &str) {
    let before = host.connection.statistics().prediction.hits();
    host.send(segment);
    assert_eq!(host.connection.statistics().prediction.hits(), before + 1, "{segment}");
}

fn established() -> Script {
    Script::established(&Config::modern(), SYN_ACK)
}

fn stamped() -> Script {
    Script::established(&Config::modern(), &format!("{SYN_ACK} ts 1000 0"))
}

#[test]
fn data_and_acknowledgements_are_both_predicted() {
    for mut host in [established(), stamped()] {
        hits_for(&mut host, ". 1:101(100) ack 1");
        hits_for(&mut host, "P. 101:201(100) ack 1");
        host.write(2_000);
        host.take_sent();
        hits_for(&mut host, ". 201:201(0) ack 1001");
        hits_for(&mut host, ". 201:201(0) ack 1001 win 50000");
        hits_for(&mut host, ". 201:201(0) ack 2001");
        let prediction = &host.connection.statistics().prediction;
        assert_eq!((prediction.data, prediction.acks), (2, 3));
    }
}

#[test]
fn a_miss_is_counted_under_its_reason() {
    misses_for(MissReason::Flags, &mut established(), "FP. 1:101(100) ack 1");
    misses_for(MissReason::Flags, &mut established(), "UP. 1:101(100) ack 1 urg 5");
    misses_for(MissReason::Flags, &mut established(), "EP. 1:101(100) ack 1");
    misses_for(MissReason::Options, &mut established(), ". 1:1(0) ack 1 sack 1-2");
    misses_for(MissReason::Options, &mut stamped(), ". 1:101(100) ack 1 bare");
    misses_for(MissReason::Sequence, &mut established(), ". 101:201(100) ack 1");
    misses_for(MissReason::Timestamp, &mut stamped(), ". 1:101(100) ack 1 ts 999 0");
    misses_for(MissReason::Acknowledgement, &mut established(), ". 1:1(0) ack 1");
    misses_for(MissReason::Acknowledgement, &mut established(), ". 1:1(0) ack 500");
}

#[test]
fn a_miss_while_opening_or_closing_is_counted_as_state() {
    let mut host = Script::connect(&Config::modern());
    misses_for(MissReason::State, &mut host, SYN_ACK);
    host.application(Connection::shutdown_write);
    misses_for(MissReason::State, &mut host, ". 1:101(100) ack 1");
}

#[test]
fn a_miss_beside_a_hole_is_counted_as_reassembly() {
    let mut host = established();
    host.send(". 101:201(100) ack 1");
    misses_for(MissReason::Reassembly, &mut host, ". 1:101(100) ack 1");
    hits_for(&mut host, ". 201:301(100) ack 1");
}

#[test]
fn a_miss_during_recovery_is_counted_as_recovery() {
    let mut host = established();
    host.write(20_000);
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1");
    }
    misses_for(MissReason::Recovery, &mut host, ". 1:1(0) ack 1461");
}

#[test]
fn data_with_a_new_acknowledgement_is_predicted() {
    for mut host in [established(), stamped()] {
        host.write(200);
        host.take_sent();
        hits_for(&mut host, "P. 1:101(100) ack 101 win 50000");
        hits_for(&mut host, "P. 101:201(100) ack 201");
        let prediction = &host.connection.statistics().prediction;
        assert_eq!((prediction.data, prediction.acks, prediction.both), (0, 0, 2));
        assert_eq!(host.connection.statistics().data_segments_received(), 2);
        assert_eq!(
            (host.connection.readable_bytes(), host.connection.unacknowledged_bytes()),
            (200, 0)
        );
        misses_for(MissReason::Acknowledgement, &mut host, "P. 201:301(100) ack 301");
    }
}

#[test]
fn a_shut_down_direction_is_counted_as_state() {
    let mut host = established();
    host.application(Connection::shutdown_read);
    misses_for(MissReason::State, &mut host, ". 1:101(100) ack 1");
}

#[test]
fn data_beyond_the_room_is_counted_as_room() {
    let mut host =
        Script::established(&Config { receive_buffer: 1_000.into(), ..Config::modern() }, SYN_ACK);
    misses_for(MissReason::Room, &mut host, ". 1:1201(1200) ack 1");
}

#[test]
fn disabled_prediction_always_misses() {
    let mut host =
        Script::established(&Config { header_prediction: false, ..Config::modern() }, SYN_ACK);
    misses_for(MissReason::Disabled, &mut host, ". 1:101(100) ack 1");
    host.application(|connection, _| connection.set_header_prediction(true));
    hits_for(&mut host, ". 101:201(100) ack 1");
}

/// A miss has no lasting effect: once its cause has disappeared, the next segment takes the fast
/// path.
#[test]
fn the_segment_after_a_miss_hits_again() {
    let mut host = established();
    host.send("UP. 1:101(100) ack 1 urg 0");
    hits_for(&mut host, ". 101:201(100) ack 1");
    host.write(20_000);
    host.take_sent();
    for _ in 0..3 {
        host.send(". 201:201(0) ack 1");
    }
    host.take_sent();
    host.send(". 201:201(0) ack 17521");
    hits_for(&mut host, ". 201:201(0) ack 18981");
    host.take_sent();
    host.pass_time(ms(300));
    host.send(". 201:201(0) ack 20001");
    host.write(100);
    host.take_sent();
    host.send(". 201:201(0) ack 20101");
    hits_for(&mut host, ". 201:301(100) ack 20101");
}
