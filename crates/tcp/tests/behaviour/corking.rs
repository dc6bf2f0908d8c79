//! Tests of corking (`TCP_CORK`, `MSG_MORE`): at the request of the application, small segments are
//! held back, but only for a limited time.

use crate::{ms, secs};
use linerate_tcp::{Config, Connection};
use linerate_testkit::Script;

/// The TCP options that the peer offers. Each test runs twice: without options, and with the
/// options that output prediction requires. Output prediction is the fast path for sent segments.
const OFFERS: [&str; 2] = ["", " sackOK ts 100 1"];

fn established(offers: &str) -> Script {
    Script::established(&Config::modern(), &format!("S. 0:0(0) ack 1 win 65535 mss 1000{offers}"))
}

fn cork(host: &mut Script, on: bool) {
    host.application(|connection, _| connection.set_cork(on));
}

/// Writes `count` bytes, and announces that more will follow.
fn write_more(host: &mut Script, count: usize) {
    host.write(count);
    host.application(|connection, _| connection.expect_more());
}

#[test]
fn corked_small_writes_are_sent_together() {
    for offers in OFFERS {
        let mut host = established(offers);
        let full = host.connection.effective_mss();
        cork(&mut host, true);
        assert!(host.connection.cork());
        host.write(40);
        host.pass_time(ms(50));
        host.write(40);
        host.expect_nothing();
        // With the next write, more than a full segment waits. The full segment is sent at once,
        // and the last 80 bytes wait until corking ends.
        host.write(full);
        host.expect(&format!(". 1:{}({full}) ack 1", full + 1));
        host.expect_nothing();
        cork(&mut host, false);
        host.expect(&format!("P. {}:{}(80) ack 1", full + 1, full + 81));
        host.write(10);
        host.send(&format!(". 1:1(0) ack {}", full + 81));
        host.expect(&format!("P. {}:{}(10) ack 1", full + 81, full + 91));
    }
}

#[test]
fn a_cork_ends_after_a_timeout_without_data_in_flight() {
    for offers in OFFERS {
        let mut host = established(offers);
        cork(&mut host, true);
        host.write(40);
        host.expect_after(ms(200), "P. 1:41(40) ack 1");
        host.send(". 1:1(0) ack 41");
        host.write(40);
        host.expect_after(ms(200), "P. 41:81(40) ack 1");
    }
}

#[test]
fn an_acknowledgement_does_not_end_a_cork() {
    let mut host = established("");
    cork(&mut host, true);
    host.write(1_500);
    host.expect(". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 1001");
    host.expect_nothing();
    host.expect_after(ms(200), "P. 1001:1501(500) ack 1");
}

#[test]
fn a_fin_does_not_wait_under_a_cork() {
    for offers in OFFERS {
        let mut host = established(offers);
        cork(&mut host, true);
        host.write(40);
        host.application(Connection::shutdown_write);
        host.expect("FP. 1:41(40) ack 1");
    }
}

#[test]
fn no_delay_releases_corked_data_once() {
    for offers in OFFERS {
        let mut host = established(offers);
        cork(&mut host, true);
        host.write(40);
        host.expect_nothing();
        host.application(|connection, _| connection.set_no_delay(true));
        host.expect("P. 1:41(40) ack 1");
        host.write(40);
        host.expect_nothing();
        host.expect_silence(ms(50));
        host.send(". 1:1(0) ack 41");
        host.expect_after(ms(200), "P. 41:81(40) ack 1");
    }
}

#[test]
fn data_waits_for_a_write_without_msg_more() {
    for offers in OFFERS {
        let mut host = established(offers);
        host.application(|connection, _| connection.set_no_delay(true));
        write_more(&mut host, 100);
        host.expect_nothing();
        write_more(&mut host, 160);
        host.expect_nothing();
        host.write(5);
        host.expect("P. 1:266(265) ack 1");
        host.write(5);
        host.expect("P. 266:271(5) ack 1");
    }
}

#[test]
fn data_written_with_msg_more_is_sent_and_pushed_after_a_timeout() {
    for offers in OFFERS {
        let mut host = established(offers);
        host.application(|connection, _| connection.set_no_delay(true));
        write_more(&mut host, 40);
        host.expect_after(ms(200), "P. 1:41(40) ack 1");
    }
}

/// If a segment ends with data written with `MSG_MORE`, it has no PSH flag. More data will follow,
/// and the peer's application may wait for it.
#[test]
fn an_acknowledgement_releases_data_written_with_msg_more_without_push() {
    let mut host = established("");
    host.application(|connection, _| connection.set_no_delay(true));
    write_more(&mut host, 1_050);
    host.expect(". 1:1001(1000) ack 1");
    write_more(&mut host, 50);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1001");
    host.expect(". 1001:1101(100) ack 1");
    // The acknowledgement has released the data that was written before it arrived. Data that is
    // written later waits for the next acknowledgement.
    write_more(&mut host, 3);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1101");
    host.expect(". 1101:1104(3) ack 1");
}

#[test]
fn no_delay_releases_data_written_with_msg_more() {
    let mut host = established("");
    write_more(&mut host, 80);
    host.expect_nothing();
    host.application(|connection, _| connection.set_no_delay(true));
    host.expect(". 1:81(80) ack 1");
}

#[test]
fn a_full_segment_is_sent_despite_msg_more() {
    let mut host = established("");
    write_more(&mut host, 3_100);
    host.expect(". 1:1001(1000) ack 1");
    host.expect(". 1001:2001(1000) ack 1");
    host.expect(". 2001:3001(1000) ack 1");
    host.expect_nothing();
}

#[test]
fn a_compact_connection_keeps_its_cork() {
    let mut host = established(" sackOK ts 100 1");
    cork(&mut host, true);
    host.write(40);
    host.expect_after(ms(200), "P. 1:41(40) ack 1");
    host.send(". 1:1(0) ack 41");
    host.pass_time(secs(5));
    host.events();
    let compact = host.connection.compact().expect("nothing waits");
    assert!(compact.look().cork());
}
