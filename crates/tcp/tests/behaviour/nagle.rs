//! Tests of Nagle's algorithm (RFC 9293 §3.7.4, RFC 896): a small segment is held back while
//! earlier data is unacknowledged.

use crate::{SYN_ACK, secs};
use linerate_tcp::{Config, Connection, NagleRule};
use linerate_testkit::Script;

fn established(nagle: NagleRule) -> Script {
    Script::established(&Config { nagle, ..Config::modern() }, SYN_ACK)
}

#[test]
fn small_writes_wait_for_the_acknowledgement_and_are_sent_together() {
    for rule in [NagleRule::Classic, NagleRule::Minshall] {
        let mut host = established(rule);
        host.write(1);
        host.expect("P. 1:2(1) ack 1");
        for _ in 0..9 {
            host.write(1);
            host.expect_nothing();
        }
        host.send(". 1:1(0) ack 2");
        host.expect("P. 2:11(9) ack 1");
    }
}

#[test]
fn full_segments_never_wait() {
    for rule in [NagleRule::Classic, NagleRule::Minshall] {
        let mut host = established(rule);
        host.write(10);
        host.expect("P. 1:11(10) ack 1");
        host.write(1_459);
        host.expect_nothing();
        host.write(1);
        host.expect("P. 11:1471(1460) ack 1");
    }
}

#[test]
fn without_delay_everything_is_sent_at_once() {
    let mut host = established(NagleRule::Classic);
    host.application(|connection, _| connection.set_no_delay(true));
    for start in 1..10 {
        host.write(1);
        host.expect(&format!("P. {start}:{}(1) ack 1", start + 1));
    }
}

#[test]
fn enabling_no_delay_sends_waiting_data() {
    let mut host = established(NagleRule::Classic);
    host.write(1);
    host.expect("P. 1:2(1) ack 1");
    host.write(10);
    host.expect_nothing();
    host.application(|connection, _| connection.set_no_delay(true));
    host.expect("P. 2:12(10) ack 1");
}

/// A large write ends with a remainder smaller than a segment. RFC 896 holds the remainder back
/// until the full segments before it are acknowledged, and the peer may delay this acknowledgement.
/// Minshall's variation sends the remainder at once, because no other small segment is in flight.
#[test]
fn the_tail_of_a_large_write_waits_under_the_classic_rule_alone() {
    let mut classic = established(NagleRule::Classic);
    classic.write(2_000);
    classic.expect(". 1:1461(1460) ack 1");
    classic.expect_nothing();
    classic.send(". 1:1(0) ack 1461");
    classic.expect("P. 1461:2001(540) ack 1");

    let mut minshall = established(NagleRule::Minshall);
    minshall.write(2_000);
    minshall.expect(". 1:1461(1460) ack 1");
    minshall.expect("P. 1461:2001(540) ack 1");
    minshall.write(540);
    minshall.expect_nothing();
    minshall.send(". 1:1(0) ack 1461");
    minshall.expect_nothing();
    minshall.send(". 1:1(0) ack 2001");
    minshall.expect("P. 2001:2541(540) ack 1");
}

#[test]
fn a_fin_sends_waiting_data() {
    let mut host = established(NagleRule::Classic);
    host.write(1);
    host.expect("P. 1:2(1) ack 1");
    host.write(10);
    host.expect_nothing();
    host.application(Connection::shutdown_write);
    host.expect("FP. 2:12(10) ack 1");
}

/// RFC 9293 §3.8.6.2.1 (3): Nagle's algorithm does not hold back data that fills half of the
/// largest window that the peer has offered.
#[test]
fn half_of_a_small_peer_s_window_never_waits() {
    let mut host = Script::established(
        &Config { nagle: NagleRule::Classic, ..Config::modern() },
        "S. 0:0(0) ack 1 win 800 mss 1460",
    );
    host.write(300);
    host.expect("P. 1:301(300) ack 1");
    host.write(399);
    host.expect_nothing();
    host.write(1);
    host.expect("P. 301:701(400) ack 1");
}

#[test]
fn waiting_data_is_sent_eventually() {
    let mut host = established(NagleRule::Classic);
    host.write(1);
    host.expect("P. 1:2(1) ack 1");
    host.write(10);
    host.pass_time(secs(1));
    let again = host.take_sent();
    assert!(again.iter().all(|sent| sent.says.seq == 1), "{again:?}");
    host.send(". 1:1(0) ack 12");
    host.expect_nothing();
}
