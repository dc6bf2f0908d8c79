//! What is taken back of an answer to a loss that was none, and what is not: an echo from before the repetition (RFC
//! 3522), duplicates of all that was sent again (RFC 3708), and originals that arrive after a timeout (RFC 5682).

use crate::ms;
use crate::recovery::{established, established_with, expect_segments, new_reno, ten_out};
use linerate_testkit::Script;

fn threshold(host: &Script) -> u32 {
    host.connection.information().slow_start_threshold
}

fn taken_back(host: &Script) -> u64 {
    host.connection.statistics().spurious_recoveries
}

/// RFC 3708 §2: one duplicate explains one repetition. While another is unexplained, something was lost.
#[test]
fn a_duplicate_of_one_of_two_repetitions_takes_nothing_back() {
    for both in [false, true] {
        let mut host = ten_out(&new_reno());
        host.send(". 1:1(0) ack 1 sack 3001-6001 sack 1001-2001");
        host.send(". 1:1(0) ack 1 sack 3001-10001 sack 1001-2001");
        let sent: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
        assert!(sent.starts_with(&[1, 2_001]), "{sent:?}");
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 10001 sack 1-1001");
        assert_eq!(taken_back(&host), 0);
        if both {
            host.send(". 1:1(0) ack 10001 sack 2001-3001");
        }
        assert_eq!(taken_back(&host), u64::from(both));
    }
}

/// What came twice before, or after, explains no repetition of this recovery: networks duplicate, too.
#[test]
fn a_duplicate_of_something_else_explains_no_repetition() {
    for other in ["ack 11001 sack 1-1001", "ack 12001 sack 11001-12001"] {
        let mut host = established(&new_reno());
        host.write(1_000);
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1001");
        host.write(10_000);
        assert_eq!(host.take_sent().len(), 10);
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1001 sack 2001-11001");
        expect_segments(&mut host, &[1_001]);
        host.write(1_000);
        expect_segments(&mut host, &[11_001]);
        host.pass_time(ms(10));
        host.send(&format!(". 1:1(0) {other}"));
        assert_eq!(host.connection.statistics().duplicates_told, 1, "{other}");
        assert_eq!((taken_back(&host), threshold(&host)), (0, 5_000), "{other}");
    }
}

/// RFC 3522 §3.2 step 4: it is asked of the first acknowledgement of something new. What only names more beyond the
/// hole echoes what came before the hole (RFC 7323 §4.3), and answers no repetition.
#[test]
fn what_names_more_beyond_a_hole_answers_no_repetition() {
    for late in [false, true] {
        let mut host = established_with(&new_reno(), " ts 100 1");
        let clock = host.stamp_at(host.now);
        host.write(9_880);
        assert_eq!(host.take_sent().len(), 10);
        host.pass_time(ms(10));
        host.send(&format!(". 1:1(0) ack 1 sack 989-3953 ts 120 {clock}"));
        let again = host.take_one();
        assert_eq!(again.says.seq, 1);
        host.pass_time(ms(1));
        host.send(&format!(". 1:1(0) ack 1 sack 989-4941 ts 121 {clock}"));
        assert_eq!(taken_back(&host), 0);
        host.pass_time(ms(9));
        let echoed = if late { clock } else { host.stamp_at(again.at) };
        host.send(&format!(". 1:1(0) ack 9881 ts 130 {echoed}"));
        assert_eq!(taken_back(&host), u64::from(late));
    }
}

/// Thirty segments are written, the first ten are out and a probe, and the first has gone again after a timeout.
fn timed_out() -> Script {
    timed_out_with(65_535)
}

/// The same in a window of the peer that ends there.
fn timed_out_with(window: u32) -> Script {
    let mut host = Script::connect(&new_reno());
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send(&format!("S. 0:0(0) ack 1 win {window} mss 1000 sackOK"));
    host.expect(". 1:1(0) ack 1");
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(20));
    assert_eq!(host.take_sent().len(), 1, "the probe");
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1]);
    host
}

/// RFC 5682 §3.1 step 3: what was sent since the timeout shows nothing of what was sent before.
#[test]
fn new_data_that_arrive_do_not_make_a_timeout_spurious() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 1001 sack 11001-12001");
    assert_eq!(taken_back(&host), 0);
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001, "what was in flight is lost");
}

/// RFC 5682 §3.1 step 2 (a): a repetition of the last acknowledgement answers nothing, and the timeout is believed.
#[test]
fn a_repetition_after_a_timeout_leaves_it_believed() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1");
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[1_001, 2_001]);
    host.send(". 1:1(0) ack 3001");
    assert_eq!(taken_back(&host), 0);
}

/// RFC 5682 §3.1: new data that the peer's window has no room for cannot ask anything.
#[test]
fn where_the_peer_has_no_room_for_new_data_a_timeout_is_believed() {
    let mut host = timed_out_with(11_000);
    host.send(". 1:1(0) ack 1001 win 10000");
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001);
}

/// RFC 5681 equation (4): the same loss is reckoned with once, however often the timer finds it.
#[test]
fn a_second_timeout_of_the_same_loss_leaves_the_threshold() {
    let mut host = timed_out();
    let before = threshold(&host);
    host.pass_time(ms(400));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 2);
    assert_eq!(threshold(&host), before);
}

/// RFC 2883 §4: a duplicate of what lies beyond a hole stands before the block that it is a part of.
#[test]
fn a_duplicate_beyond_a_hole_is_told_inside_the_next_block() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 1 sack 1001-2001 sack 3001-4001");
    assert_eq!(host.connection.statistics().duplicates_told, 0);
    host.send(". 1:1(0) ack 1 sack 3001-4001 sack 3001-5001");
    assert_eq!(host.connection.statistics().duplicates_told, 1);
}
