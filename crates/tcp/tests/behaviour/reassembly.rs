//! Tests of the reassembly of out-of-order data (RFC 9293 §3.10.7.4) and of its limits.

use crate::{SYN_ACK, secs};
use linerate_tcp::{Config, Disposition, Event, Refusal, State};
use linerate_testkit::Script;

fn established(config: &Config) -> Script {
    Script::established(config, &format!("{SYN_ACK} sackOK"))
}

fn modern() -> Script {
    established(&Config::modern())
}

#[test]
fn data_beyond_a_hole_is_read_when_the_hole_is_filled() {
    let mut host = modern();
    host.send(". 101:201(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 101-201");
    assert_eq!((host.connection.readable_bytes(), host.events()), (0, vec![]));
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 201");
    assert_eq!(host.events(), [Event::Readable]);
    host.read(200);
}

#[test]
fn every_order_of_five_segments_gives_the_same_bytes() {
    let mut order = [0, 1, 2, 3, 4];
    permute(&mut order, 0, &mut |order| {
        let mut host = modern();
        for &index in order {
            let start = 1 + index * 100;
            host.send(&format!(". {start}:{}(100) ack 1", start + 100));
        }
        let last = host.take_sent().pop().unwrap();
        assert_eq!(last.says.ack, Some(501), "{order:?}");
        host.read(500);
    });
}

fn permute(order: &mut [i32; 5], from: usize, visit: &mut impl FnMut(&[i32; 5])) {
    if from == order.len() {
        visit(order);
    }
    for other in from..order.len() {
        order.swap(from, other);
        permute(order, from + 1, visit);
        order.swap(from, other);
    }
}

#[test]
fn overlaps_are_trimmed() {
    for overlaps in [
        [". 51:151(100) ack 1", ". 1:101(100) ack 1"],
        [". 51:151(100) ack 1", ". 1:151(150) ack 1"],
        [". 1:101(100) ack 1", ". 51:151(100) ack 1"],
        [". 101:151(50) ack 1", ". 1:151(150) ack 1"],
        [". 51:101(50) ack 1", ". 1:151(150) ack 1"],
    ] {
        let mut host = modern();
        host.send(overlaps[0]);
        host.send(overlaps[1]);
        assert_eq!(host.connection.readable_bytes(), 150, "{overlaps:?}");
        host.read(150);
        assert_eq!(host.take_sent().pop().unwrap().says.ack, Some(151));
    }
}

#[test]
fn duplicate_data_is_acknowledged_again() {
    let mut host = modern();
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.send(". 51:151(100) ack 1");
    host.expect(". 1:1(0) ack 151");
    assert_eq!(host.connection.statistics().duplicate_segments, 1);
    host.read(150);
}

/// The segment begins beyond the window. Its last byte is so far away, half of the sequence space,
/// that a comparison modulo 2^32 places it before the window. The segment must nevertheless be
/// refused.
#[test]
fn data_half_the_sequence_space_away_is_outside_the_window() {
    let config = Config { receive_buffer: 500.into(), ..Config::modern() };
    for hole in [false, true] {
        let mut host = established(&config);
        if hole {
            host.send(". 101:201(100) ack 1");
            host.expect(". 1:1(0) ack 1 sack 101-201");
        }
        for first in (1_u32 << 31) - 1_000..(1 << 31) + 1_000 {
            let answer = host.judge(&format!(". {first}:{}(1400) ack 1", first + 1_400));
            assert_eq!(answer, Disposition::Refused(Refusal::OutsideWindow), "{first}, {hole}");
            host.take_sent();
        }
    }
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let mut host = established(&Config { receive_buffer: 1_000.into(), ..Config::modern() });
    host.send(". 501:1501(1000) ack 1");
    host.expect(". 1:1(0) ack 1 sack 501-1001");
    host.send(". 1:501(500) ack 1");
    host.expect(". 1:1(0) ack 1001 win 0");
    host.read(1_000);
}

#[test]
fn the_ranges_beyond_holes_are_limited_and_drops_counted() {
    let mut host = established(&Config { reassembly_ranges: 4, ..Config::modern() });
    for index in 0..4 {
        let start = 1_001 + index * 200;
        host.send(&format!(". {start}:{}(100) ack 1", start + 100));
        host.expect(&format!(
            ". 1:1(0) ack 1 {}",
            (0..=index)
                .rev()
                .map(|i| format!("sack {}-{} ", 1_001 + i * 200, 1_101 + i * 200))
                .collect::<String>()
        ));
    }
    let verdict = host.judge(". 3001:3101(100) ack 1");
    assert_eq!(verdict, Disposition::DataRefused);
    assert_eq!(host.connection.statistics().reassembly_full, 1);
    host.take_sent();
    // The list of ranges is full. The next segments are accepted nevertheless, because they need no
    // further range: out-of-order data that joins two ranges, and in-order data.
    assert_eq!(host.judge(". 1101:1201(100) ack 1"), Disposition::Accepted);
    host.take_sent();
    assert_eq!(host.judge(". 3001:3101(100) ack 1"), Disposition::Accepted);
    host.take_sent();
    host.send(". 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1301 sack 3001-3101 sack 1601-1701 sack 1401-1501");
    host.read(1_300);
}

/// A peer can send tiny ranges all over the window. The number of stored ranges is limited, so that
/// they cost little memory and time.
#[test]
fn tiny_ranges_cost_a_bounded_amount() {
    let mut host = modern();
    for index in 0..5_000 {
        let start = 3 + index * 2;
        host.send(&format!(". {start}:{}(1) ack 1", start + 1));
    }
    let statistics = host.connection.statistics();
    let most = Config::modern().reassembly_ranges as u64;
    assert_eq!(statistics.reassembly_full, 5_000 - most);
    assert_eq!(host.take_sent().len(), 5_000);
}

/// RFC 2018 §4: the first SACK block of an acknowledgement reports the range that has most recently
/// received data.
#[test]
fn the_latest_range_is_reported_first() {
    let mut host = modern();
    host.send(". 101:201(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 101-201");
    host.send(". 301:401(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 301-401 sack 101-201");
    host.send(". 201:251(50) ack 1");
    host.expect(". 1:1(0) ack 1 sack 101-251 sack 301-401");
}

/// RFC 5681 §4.2, RFC 2018 §4: a batch of segments fills five ranges beyond holes. Each range must
/// be reported, as if the segments had arrived one by one. One SACK option has no room for five
/// ranges, so two acknowledgements are sent.
#[test]
fn each_of_five_holes_in_a_batch_is_reported() {
    let mut host = modern();
    let segments: Vec<_> =
        (1..=5).map(|n| format!(". {}:{}(100) ack 1", n * 200 + 1, n * 200 + 101)).collect();
    host.send_together(&segments.iter().map(String::as_str).collect::<Vec<_>>());
    host.expect(". 1:1(0) ack 1 sack 601-701 sack 401-501 sack 201-301");
    host.expect(". 1:1(0) ack 1 sack 1001-1101 sack 801-901 sack 601-701 sack 401-501");
    host.expect_nothing();
    // The batch extends one stored range, and adds another. One acknowledgement with both ranges
    // suffices, because the other ranges have not changed.
    host.send_together(&[". 1101:1201(100) ack 1", ". 1401:1501(100) ack 1"]);
    host.expect(". 1:1(0) ack 1 sack 1401-1501 sack 1001-1201 sack 801-901 sack 601-701");
    host.expect_nothing();
    // A batch of in-order data causes one acknowledgement.
    host.send_together(&[". 1:201(200) ack 1", ". 301:401(100) ack 1"]);
    host.expect(". 1:1(0) ack 501 sack 1401-1501 sack 1001-1201 sack 801-901 sack 601-701");
    host.expect_nothing();
}

/// RFC 5681 §3.2: a peer without SACK counts duplicate ACKs. Three segments that are received
/// together must therefore cause three duplicate ACKs. Otherwise the peer would retransmit only
/// after a timeout.
#[test]
fn a_peer_without_sack_gets_a_duplicate_ack_per_segment_beyond_a_hole() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    let beyond = [". 101:201(100) ack 1", ". 201:301(100) ack 1", ". 301:401(100) ack 1"];
    host.send_together(&beyond);
    for _ in beyond {
        host.expect(". 1:1(0) ack 1");
    }
    host.expect_nothing();
    // An acknowledgement with data does not count as a duplicate ACK. The acknowledgement for the
    // out-of-order segment is therefore also sent as a pure ACK.
    host.send(". 401:501(100) ack 1");
    host.write(10);
    host.expect("P. 1:11(10) ack 1");
    host.expect(". 11:11(0) ack 1");
    host.expect_nothing();
    // The third segment fills the hole at 1, which one acknowledgement reports. No second one may
    // follow, because the peer would count it as a duplicate ACK for another loss.
    host.send_together(&[". 601:701(100) ack 11", ". 701:801(100) ack 11", ". 1:101(100) ack 11"]);
    host.expect(". 11:11(0) ack 501");
    host.expect_nothing();
}

#[test]
fn a_duplicate_is_reported_once() {
    let mut host = modern();
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101 sack 1-101");
    host.send(". 301:401(100) ack 1");
    host.expect(". 1:1(0) ack 101 sack 301-401");
    host.send(". 51:101(50) ack 1");
    host.expect(". 1:1(0) ack 101 sack 51-101 sack 301-401");
    host.read(100);
}

/// RFC 2883 §4.1.2: out-of-order data arrives a second time. The first block, the D-SACK, reports
/// this data. The second block is the range that contains it, and blocks of other ranges follow.
#[test]
fn a_duplicate_beyond_a_hole_is_followed_by_its_range() {
    let mut host = modern();
    host.send(". 501:701(200) ack 1");
    host.expect(". 1:1(0) ack 1 sack 501-701");
    host.send(". 901:1001(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 901-1001 sack 501-701");
    host.send(". 601:701(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 601-701 sack 501-701 sack 901-1001");
}

#[test]
fn an_early_fin_waits_for_the_data_before_it() {
    let mut host = modern();
    host.send("FP. 101:201(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 101-201");
    assert_eq!(host.connection.state(), State::Established);
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 202");
    assert_eq!(host.connection.state(), State::CloseWait);
    assert_eq!(host.events(), [Event::Readable, Event::EndOfStream]);
    host.read(200);
    assert_eq!(host.read_nothing(), Ok(0));
}

#[test]
fn an_early_fin_without_data_waits() {
    let mut host = modern();
    host.send("F. 201:201(0) ack 1");
    host.expect(". 1:1(0) ack 1");
    host.send(". 101:201(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 101-201");
    host.send(". 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 202");
    assert_eq!(host.connection.state(), State::CloseWait);
}

#[test]
fn data_behind_a_fin_is_ignored() {
    let mut host = modern();
    host.send("F. 101:101(0) ack 1");
    host.take_sent();
    host.send(". 102:202(100) ack 1");
    host.send(". 51:151(100) ack 1");
    host.take_sent();
    host.send(". 1:101(100) ack 1");
    assert_eq!(host.connection.state(), State::CloseWait);
    host.read(100);
    assert_eq!(host.read_nothing(), Ok(0));
    let mut host = modern();
    host.send("F. 1:1(0) ack 1");
    host.send(". 2:102(100) ack 1");
    assert_eq!((host.connection.state(), host.connection.readable_bytes()), (State::CloseWait, 0));
}

#[test]
fn a_fin_before_received_data_is_ignored() {
    let mut host = modern();
    host.send(". 101:201(100) ack 1");
    host.send("F. 51:51(0) ack 1");
    host.send("F. 1:1(0) ack 1");
    host.send(". 1:101(100) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    host.read(200);
}

#[test]
fn the_first_of_two_contradictory_fins_counts() {
    let mut host = modern();
    host.send("F. 101:101(0) ack 1");
    host.send("F. 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    host.send(". 1:101(100) ack 1");
    assert_eq!(host.connection.state(), State::CloseWait);
    host.read(100);
    assert_eq!(host.read_nothing(), Ok(0));
}

/// RFC 9293 §3.4: sequence numbers are compared modulo 2^32. Here they wrap to zero within the
/// missing data.
#[test]
fn a_hole_across_the_wrap_of_sequence_numbers_is_filled() {
    let mut host = modern();
    host.send(". 501:601(100) ack 1");
    host.expect(". 1:1(0) ack 1 sack 501-601");
    host.send(". 1:501(500) ack 1");
    host.expect(". 1:1(0) ack 601");
    host.read(600);
    host.expect_silence(secs(60));
}
