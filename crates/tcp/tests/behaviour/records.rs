//! Tests of record boundaries (`MSG_EOR`). No segment contains data from both sides of a boundary,
//! not even a retransmitted segment.

use crate::{ms, secs};
use linerate_tcp::{Config, Connection};
use linerate_testkit::Script;

/// The TCP options that the peer offers. Each test runs twice: without options, and with the
/// options that output prediction requires. Output prediction is the fast path for sent segments.
const OFFERS: [&str; 2] = ["", " sackOK ts 100 1"];

fn established(offers: &str) -> Script {
    Script::established(&Config::modern(), &format!("S. 0:0(0) ack 1 win 65535 mss 1000{offers}"))
}

fn write_record(host: &mut Script, count: usize) {
    host.write(count);
    host.application(|connection, _| connection.end_record());
}

#[test]
fn a_record_ends_a_segment_although_more_was_written() {
    for offers in OFFERS {
        let mut host = established(offers);
        let full = host.connection.effective_mss();
        write_record(&mut host, 400);
        host.write(full);
        host.expect("P. 1:401(400) ack 1");
        host.expect(&format!("P. 401:{}({full}) ack 1", full + 401));
    }
}

/// Nagle's algorithm holds back only the last small segment of the written data. A record that ends
/// at a boundary is such a segment until more data is written. Then it is sent at once.
#[test]
fn nagle_holds_back_only_the_last_record() {
    for offers in OFFERS {
        let mut host = established(offers);
        host.write(100);
        host.expect("P. 1:101(100) ack 1");
        write_record(&mut host, 50);
        host.expect_nothing();
        write_record(&mut host, 60);
        host.expect("P. 101:151(50) ack 1");
        host.expect_nothing();
        host.send(". 1:1(0) ack 151");
        host.expect("P. 151:211(60) ack 1");
    }
}

#[test]
fn records_are_not_merged_in_retransmissions() {
    for offers in OFFERS {
        let mut host = established(offers);
        host.application(|connection, _| connection.set_no_delay(true));
        for end in [101, 201, 301] {
            write_record(&mut host, 100);
            host.expect(&format!("P. {}:{end}(100) ack 1", end - 100));
        }
        host.write(10);
        host.expect("P. 301:311(10) ack 1");
        host.pass_time(secs(2));
        let again: Vec<_> = host.take_sent().iter().map(|sent| sent.says.to_string()).collect();
        assert!(again.len() >= 2, "{again:?}");
        for says in &again {
            assert!(says.contains("(100)") || says.contains("(10)"), "{says} joins records");
        }
    }
}

/// RFC 8985 §7.3: a tail loss probe repeats the last segment in flight. Here this is a record
/// shorter than a full segment.
#[test]
fn the_probe_of_a_tail_is_the_last_record() {
    let mut host = Script::connect(&Config { no_delay: true, ..Config::modern() });
    host.expect("S 0:0(0)");
    host.pass_time(ms(50));
    host.send("S. 0:0(0) ack 1 win 65535 mss 1000 sackOK ts 100 1");
    host.expect(". 1:1(0) ack 1");
    write_record(&mut host, 700);
    write_record(&mut host, 600);
    host.expect("P. 1:701(700) ack 1");
    host.expect("P. 701:1301(600) ack 1");
    host.pass_time(secs(1));
    host.expect("P. 701:1301(600) ack 1");
}

#[test]
fn a_connection_whose_records_are_acknowledged_predicts_again() {
    let mut host = established(" sackOK ts 100 1");
    write_record(&mut host, 400);
    host.expect("P. 1:401(400) ack 1");
    host.send(". 1:1(0) ack 401");
    host.write(10);
    host.expect("P. 401:411(10) ack 1");
    host.send(". 1:1(0) ack 411");
    host.pass_time(secs(5));
    host.events();
    assert!(
        host.connection.compact().is_some(),
        "a boundary that is acknowledged is not remembered"
    );
}

#[test]
fn boundaries_are_limited_and_drops_counted() {
    let config = Config { send_buffer: 100_000.into(), ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 0 mss 1000");
    for _ in 0..1_030 {
        write_record(&mut host, 2);
        // `write_record` has already set a boundary at this position. A second one would be
        // superfluous, so this call has no effect.
        host.application(|connection, _| connection.end_record());
    }
    assert_eq!(host.connection.records_joined(), 6);
    host.send(". 1:1(0) ack 1 win 65535");
    let first = host.take_one().says.to_string();
    assert!(first.contains("1:15(14)"), "{first}: the first seven records are one");
    assert!(host.take_one().says.to_string().contains("15:17(2)"));
}

#[test]
fn a_boundary_without_data_is_ignored() {
    let mut host = established("");
    host.application(|connection, _| connection.end_record());
    host.write(10);
    host.expect("P. 1:11(10) ack 1");
    host.application(Connection::shutdown_write);
    host.expect("F. 11:11(0) ack 1");
}
