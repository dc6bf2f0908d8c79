//! Tests of coalesced segments (GRO): several received segments are processed as one segment, but
//! each is counted.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{AckRule, Config, Disposition};
use linerate_testkit::Script;

/// Returns a configuration that delays acknowledgements of all segments, including the first of a
/// connection.
fn config() -> Config {
    let acks = AckRule::Modern { quick: 0 };
    Config { acks, receive_buffer: (256 << 10).into(), ..Config::modern() }
}

/// Returns the number of segments received after the SYN-ACK.
fn received(host: &Script) -> u64 {
    host.connection.statistics().segments_received - 1
}

fn modern() -> Script {
    Script::established(&config(), &format!("{SYN_ACK} sackOK"))
}

#[test]
fn coalesced_segments_take_the_fast_path_and_get_one_acknowledgement() {
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
fn the_largest_packet_is_accepted_whole() {
    let mut host = modern();
    assert_eq!(host.send_joined(". 1:65484(65483) ack 1", 1_448), Disposition::Accepted);
    assert_eq!(received(&host), 46);
    // The data has filled the buffer. As soon as it is read, an acknowledgement announces a larger
    // window.
    host.read(65_483);
    host.expect(". 1:1(0) ack 65484");
}

#[test]
fn the_second_segment_after_coalesced_ones_is_acknowledged() {
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
fn a_coalesced_packet_of_one_segment_delays_its_acknowledgement() {
    let mut host = modern();
    let _ = host.send_joined(". 1:1461(1460) ack 1", 1_460);
    assert_eq!(received(&host), 1);
    host.expect_after(ms(40), ". 1:1(0) ack 1461");
    host.expect_silence(secs(60));
}

#[test]
fn coalesced_data_outside_the_window_is_cut_off() {
    let config = Config { receive_buffer: 10_000.into(), ..config() };
    let mut host = Script::established(&config, &format!("{SYN_ACK} sackOK"));
    let _ = host.send_joined(". 1:14601(14600) ack 1", 1_460);
    host.expect(". 1:1(0) ack 10001 win 0");
    host.read(10_000);
}

#[test]
fn a_duplicate_part_is_reported_once_and_the_rest_accepted() {
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
fn coalesced_segments_beyond_a_hole_are_one_range() {
    let mut host = modern();
    let _ = host.send_joined(". 1461:7301(5840) ack 1", 1_460);
    host.expect(". 1:1(0) ack 1 sack 1461-7301");
    assert_eq!(host.connection.statistics().out_of_order_segments, 4);
    host.send(". 1:1461(1460) ack 1");
    host.expect(". 1:1(0) ack 7301");
    host.read(7_300);
}

#[test]
fn each_coalesced_segment_beyond_a_hole_gets_a_duplicate_ack_without_sack() {
    let mut host = Script::established(&config(), SYN_ACK);
    let _ = host.send_joined(". 1461:5841(4380) ack 1", 1_460);
    for _ in 0..3 {
        host.expect(". 1:1(0) ack 1");
    }
    host.expect_nothing();
}

#[test]
fn a_fin_on_the_last_coalesced_segment_is_processed() {
    let mut host = modern();
    let _ = host.send_joined("F. 1:2001(2000) ack 1", 1_460);
    host.expect(". 1:1(0) ack 2002");
    assert_eq!(received(&host), 2);
    host.read(2_000);
}

#[test]
fn an_impossible_segment_size_is_harmless() {
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
