//! What is taken back of an answer to a loss that was none, and what is not: an echo from before the repetition (RFC
//! 3522), duplicates of all that was sent again (RFC 3708), and originals that arrive after a timeout (RFC 5682).

use crate::ms;
use crate::recovery::{established, established_with, expect_segments, new_reno, ten_out};
use linerate_tcp::{Config, CongestionName, EcnRule, RecoveryState};
use linerate_testkit::Script;

fn threshold(host: &Script) -> u32 {
    host.connection.information().slow_start_threshold
}

fn undone_recoveries(host: &Script) -> u64 {
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
        assert_eq!(undone_recoveries(&host), 0);
        if both {
            host.send(". 1:1(0) ack 10001 sack 2001-3001");
        }
        assert_eq!(undone_recoveries(&host), u64::from(both));
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
        assert_eq!(host.connection.statistics().duplicates_reported, 1, "{other}");
        assert_eq!((undone_recoveries(&host), threshold(&host)), (0, 5_000), "{other}");
    }
}

/// So many segments of 988 bytes beside timestamps were written, ten have left, and ten milliseconds have passed.
fn timestamped(segments: usize) -> Script {
    let mut host = established_with(&new_reno(), " ts 100 1");
    host.write(988 * segments);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(10));
    host
}

/// The number with which segment `index` begins, from 0 on.
const fn at(index: u32) -> u32 {
    1 + 988 * index
}

/// An acknowledgement of the segments before `ack` that names those from `left` up to `right`.
fn naming(ack: u32, left: u32, right: u32, echo: u32) -> String {
    format!(". 1:1(0) ack {} sack {}-{} ts 120 {echo}", at(ack), at(left), at(right))
}

/// RFC 3522 §3.2 steps 3 and 4: the first acceptable acknowledgement is judged. One that only names more beyond the hole
/// echoes what came before the hole (RFC 7323 §4.3), and answers no retransmission.
#[test]
fn what_names_more_beyond_a_hole_answers_no_repetition() {
    for is_late in [false, true] {
        let mut host = timestamped(12);
        let original = host.stamp_at(host.now - ms(10));
        host.send(&naming(0, 1, 4, original));
        let again =
            host.take_sent().into_iter().find(|sent| sent.says.seq == 1).expect("a retransmission");
        host.pass_time(ms(1));
        host.send(&naming(0, 1, 5, original));
        assert_eq!(undone_recoveries(&host), 0);
        host.pass_time(ms(9));
        let echoed = if is_late { original } else { host.stamp_at(again.at) };
        host.send(&format!(". 1:1(0) ack {} ts 130 {echoed}", at(10)));
        assert_eq!(undone_recoveries(&host), u64::from(is_late));
        assert_eq!(
            host.connection.information().reordering_seen,
            is_late,
            "an original came behind others"
        );
    }
}

/// RFC 3522 §3.2 step 5: an acknowledgement of the whole flight may also come because all others were lost. A peer that has
/// reported duplicates would report the retransmission, too.
#[test]
fn an_acknowledgement_of_the_whole_flight_counts_with_duplicate_reports() {
    for (reports, duplicate, undone) in [(false, false, 0), (true, false, 1), (true, true, 0)] {
        let mut host = timestamped(10);
        let original = host.stamp_at(host.now - ms(10));
        let first = u32::from(reports);
        if reports {
            host.send(&format!(". 1:1(0) ack {} ts 120 {original}", at(1)));
            host.send(&naming(1, 0, 1, original));
        }
        host.send(&naming(first, first + 1, first + 4, original));
        let again = host.take_one();
        assert_eq!(again.says.seq, at(first));
        host.pass_time(ms(5));
        // A duplicate of something that was not sent again explains nothing.
        let block = if duplicate { format!(" sack {}-{}", at(7), at(8)) } else { String::new() };
        host.send(&format!(". 1:1(0) ack {}{block} ts 130 {original}", at(10)));
        assert_eq!(undone_recoveries(&host), undone, "{reports} {duplicate}");
    }
}

/// RFC 3522 §3.2: only the retransmission of the oldest outstanding segment is asked about. Here the second recovery begins
/// while a retransmission of the first is under way; its answer is older, and says nothing of the second, whether it comes
/// alone or covers both.
#[test]
fn an_answer_to_a_retransmission_of_the_previous_recovery_proves_nothing() {
    for together in [false, true] {
        let mut host = established_with(&fixed(20), " ts 100 1");
        let original = host.stamp_at(host.now);
        host.write(988 * 60);
        assert_eq!(host.take_sent().len(), 20);
        host.pass_time(ms(10));
        host.send(&naming(0, 1, 4, original));
        is_retransmitted(&mut host, 0);
        host.pass_time(ms(5));
        host.send(&format!("{} sack {}-{}", naming(0, 11, 14, original), at(1), at(10)));
        is_retransmitted(&mut host, 10);
        host.pass_time(ms(5));
        // Segment 20 left in the first recovery, is found lost in it, and goes again.
        host.send(&format!("{} sack {}-{}", naming(10, 21, 25, original + 10), at(11), at(20)));
        let twentieth = is_retransmitted(&mut host, 20);
        host.pass_time(ms(5));
        host.send(&naming(20, 21, 25, original + 15));
        assert_eq!(
            host.connection.information().recovery,
            RecoveryState::Disorder,
            "the first has ended"
        );
        host.pass_time(ms(1));
        host.send(&format!("{} sack {}-{}", naming(20, 26, 30, original + 15), at(21), at(25)));
        is_retransmitted(&mut host, 25);
        assert_eq!(host.connection.statistics().fast_retransmissions, 2);
        host.pass_time(ms(9));
        let end = if together { 30 } else { 25 };
        host.send(&naming(end, 31, 32, twentieth));
        assert_eq!(
            (undone_recoveries(&host), host.connection.information().recovery),
            (0, RecoveryState::Recovery)
        );
    }
}

/// Segment `index` is sent again; the timestamp that it bears. What else leaves is of no interest.
#[track_caller]
fn is_retransmitted(host: &mut Script, index: u32) -> u32 {
    let again = host
        .take_sent()
        .into_iter()
        .find(|sent| sent.says.seq == at(index))
        .expect("a retransmission");
    host.stamp_at(again.at)
}

/// A window of so many segments, whatever is lost.
fn fixed(segments: u16) -> Config {
    Config { congestion: CongestionName::Fixed(segments), ..Config::modern() }
}

/// RFC 3708 §2: a duplicate of a segment that was not sent again was made by the network, and explains no retransmission.
#[test]
fn a_duplicate_that_the_network_made_explains_no_repetition() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    for (block, undone) in [("3001-4001", 0), ("1-1001", 1)] {
        host.send(&format!(". 1:1(0) ack 10001 sack {block}"));
        assert_eq!(undone_recoveries(&host), undone, "{block}");
    }
}

/// A duplicate that comes late takes back the recovery that it is about, and nothing that was reduced since: for the loss
/// that a probe has repaired (RFC 8985 §7.4.2), or for a congestion mark.
#[test]
fn a_late_duplicate_takes_back_nothing_that_came_after_its_recovery() {
    for (echo, waits, undone) in [(".", false, 1), (".", true, 0), ("E.", false, 0)] {
        let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..new_reno() });
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send("SE. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
        host.expect(". 1:1(0) ack 1");
        host.write(10_000);
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1 sack 1001-4001");
        expect_segments(&mut host, &[1]);
        host.send(". 1:1(0) ack 10001");
        host.write(3_000);
        assert_eq!(host.take_sent().len(), 3);
        host.pass_time(ms(if waits { 20 } else { 10 }));
        assert_eq!(host.connection.statistics().tail_probes, u64::from(waits));
        host.write(1_000);
        host.take_sent();
        host.send(&format!("{echo} 1:1(0) ack 13001"));
        host.send(". 1:1(0) ack 14001");
        let reduced = threshold(&host);
        host.send(". 1:1(0) ack 14001 sack 1-1001");
        assert_eq!(undone_recoveries(&host), undone, "{echo} {waits}");
        assert_eq!(threshold(&host) > reduced, undone > 0, "{echo} {waits}");
    }
}

/// RFC 4015: an original that is late takes nothing back if a router has marked what came.
#[test]
fn a_congestion_mark_keeps_what_a_late_original_would_take_back() {
    for (echo, undone) in [(".", 1), ("E.", 0)] {
        let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..new_reno() });
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send("SE. 0:0(0) ack 1 win 65535 mss 1000 sackOK ts 100 1");
        host.expect(". 1:1(0) ack 1");
        host.write(988 * 12);
        host.take_sent();
        let original = host.stamp_at(host.now);
        host.pass_time(ms(10));
        host.send(&naming(0, 1, 4, original));
        is_retransmitted(&mut host, 0);
        let reduced = threshold(&host);
        host.pass_time(ms(1));
        host.send(&format!("{echo} 1:1(0) ack {} ts 121 {original}", at(4)));
        assert_eq!(
            (undone_recoveries(&host), threshold(&host) > reduced),
            (undone, undone > 0),
            "{echo}"
        );
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
    assert_eq!(undone_recoveries(&host), 0);
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001, "what was in flight is lost");
}

/// RFC 5682 §3.1 step 2: a repetition of the last acknowledgement is no answer to the retransmission, nor are data. What it
/// names is noted, and the answer is waited for.
#[test]
fn what_comes_before_the_answer_to_a_timeout_is_none() {
    for other in [". 1:1(0) ack 1", ". 1:1(0) ack 1 sack 2001-3001", "P. 1:101(100) ack 1"] {
        let mut host = timed_out();
        host.send(other);
        host.send(". 1:1(0) ack 1001");
        let data = host.take_sent().into_iter().filter(|sent| sent.says.length > 0);
        assert!(data.map(|sent| sent.says.seq).eq([11_001, 12_001]), "{other}");
        host.send(". 1:1(0) ack 2001");
        assert_eq!(undone_recoveries(&host), 1, "{other}");
    }
}

/// RFC 5682 §3.1 step 3: data that acknowledge nothing new answer no new data.
#[test]
fn data_between_the_answers_to_a_timeout_are_none() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send("P. 1:101(100) ack 1001");
    host.send(". 101:101(0) ack 2001");
    assert_eq!(undone_recoveries(&host), 1);
}

/// RFC 5682 §3.1 step 3 (a): what covers new data shows nothing, although it also names originals: their acknowledgements may
/// have been lost before the timeout.
#[test]
fn an_acknowledgement_of_new_data_and_originals_confirms_the_timeout() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 1001 sack 11001-12001 sack 5001-9001");
    assert_eq!(undone_recoveries(&host), 0);
}

/// RFC 5682 §3.1 step 1: a timeout after the first answer finds a recovery under way, and is believed. What left after the
/// first timeout would look like an original.
#[test]
fn a_second_timeout_after_an_answer_is_genuine() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.pass_time(ms(400));
    expect_segments(&mut host, &[1_001]);
    host.send(". 1:1(0) ack 2001");
    host.send(". 1:1(0) ack 2001 sack 11001-12001");
    assert_eq!(undone_recoveries(&host), 0);
}

/// RFC 5682 §3.1: new data that the peer's window has no room for cannot ask anything.
#[test]
fn without_room_for_new_data_a_timeout_is_genuine() {
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
    assert_eq!(host.connection.statistics().duplicates_reported, 0);
    host.send(". 1:1(0) ack 1 sack 3001-4001 sack 3001-5001");
    assert_eq!(host.connection.statistics().duplicates_reported, 1);
}
