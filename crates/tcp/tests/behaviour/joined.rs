//! Segments that a link has joined to one: they are taken as one, and count as what the peer has sent.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{AckRule, Config, Disposition};
use linerate_testkit::Script;

/// Nothing is acknowledged at once only because the connection is young.
fn config() -> Config {
    let acks = AckRule::Modern { quick: 0 };
    Config { acks, receive_buffer: (256 << 10).into(), ..Config::modern() }
}

/// Segments that have come after the answer to our SYN.
fn received(host: &Script) -> u64 {
    host.connection.statistics().segments_received - 1
}

fn modern() -> Script {
    Script::established(&config(), &format!("{SYN_ACK} sackOK"))
}

#[test]
fn they_take_the_fast_path_and_one_acknowledgement_answers_all() {
    let mut host = modern();
    assert_eq!(host.send_joined(". 1:29201(29200) ack 1", 1_460), Disposition::Accepted);
    host.expect(". 1:1(0) ack 29201");
    let counted = host.connection.statistics();
    assert_eq!((received(&host), counted.prediction.data), (20, 1));
    assert_eq!(counted.data_segments_received(), 20);
    host.read(29_200);
    assert_eq!(host.connection.statistics().bytes_received, 29_200);
}

#[test]
fn the_largest_packet_that_there_is_is_taken_whole() {
    let mut host = modern();
    assert_eq!(host.send_joined(". 1:65484(65483) ack 1", 1_448), Disposition::Accepted);
    assert_eq!(received(&host), 46);
    // A window that is full is told of when it opens again.
    host.read(65_483);
    host.expect(". 1:1(0) ack 65484");
}

#[test]
fn the_second_segment_after_them_is_acknowledged_as_before() {
    let mut host = modern();
    let _ = host.send_joined(". 1:14601(14600) ack 1", 1_460);
    host.expect(". 1:1(0) ack 14601");
    host.read(14_600);
    host.send(". 14601:16061(1460) ack 1");
    host.expect_nothing();
    host.send(". 16061:17521(1460) ack 1");
    host.expect(". 1:1(0) ack 17521");
}

#[test]
fn one_that_is_no_more_than_a_segment_waits_like_one() {
    let mut host = modern();
    let _ = host.send_joined(". 1:1461(1460) ack 1", 1_460);
    assert_eq!(received(&host), 1);
    host.expect_after(ms(40), ". 1:1(0) ack 1461");
    host.expect_silence(secs(60));
}

#[test]
fn what_of_them_lies_outside_the_window_is_cut() {
    let config = Config { receive_buffer: 10_000.into(), ..config() };
    let mut host = Script::established(&config, &format!("{SYN_ACK} sackOK"));
    let _ = host.send_joined(". 1:14601(14600) ack 1", 1_460);
    host.expect(". 1:1(0) ack 10001 win 0");
    host.read(10_000);
}

#[test]
fn what_had_arrived_before_is_told_of_once_and_the_rest_is_taken() {
    let mut host = modern();
    let _ = host.send_joined(". 1:2921(2920) ack 1", 1_460);
    host.expect(". 1:1(0) ack 2921");
    let _ = host.send_joined(". 1:5841(5840) ack 1", 1_460);
    host.expect(". 1:1(0) ack 5841 sack 1-2921");
    assert_eq!(host.send_joined(". 1:2921(2920) ack 1", 1_460), Disposition::Duplicate);
    host.expect(". 1:1(0) ack 5841 sack 1-2921");
    assert_eq!(host.connection.statistics().duplicate_segments, 2);
    host.read(5_840);
}

#[test]
fn beyond_a_hole_they_are_one_stretch() {
    let mut host = modern();
    let _ = host.send_joined(". 1461:7301(5840) ack 1", 1_460);
    host.expect(". 1:1(0) ack 1 sack 1461-7301");
    assert_eq!(host.connection.statistics().out_of_order_segments, 4);
    host.send(". 1:1461(1460) ack 1");
    host.expect(". 1:1(0) ack 7301");
    host.read(7_300);
}

#[test]
fn beyond_a_hole_each_of_them_is_a_duplicate_for_a_peer_that_counts() {
    let mut host = Script::established(&config(), SYN_ACK);
    let _ = host.send_joined(". 1461:5841(4380) ack 1", 1_460);
    for _ in 0..3 {
        host.expect(". 1:1(0) ack 1");
    }
    host.expect_nothing();
}

#[test]
fn a_fin_comes_with_the_last_of_them() {
    let mut host = modern();
    let _ = host.send_joined("F. 1:2001(2000) ack 1", 1_460);
    host.expect(". 1:1(0) ack 2002");
    assert_eq!(received(&host), 2);
    host.read(2_000);
}

#[test]
fn a_size_that_cannot_be_breaks_nothing() {
    for size in [1, u16::MAX] {
        let mut host = modern();
        assert_eq!(host.send_joined(". 1:1461(1460) ack 1", size), Disposition::Accepted);
        host.pass_time(ms(40));
        host.expect(". 1:1(0) ack 1461");
        host.read(1_460);
    }
    let mut host = modern();
    let _ = host.send_joined(". 1:1(0) ack 1", 1_460);
    assert_eq!(received(&host), 1);
}
