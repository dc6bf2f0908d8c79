//! What comes in another order than it left (RFC 8985 §6): how long it is waited for, and what is not believed of an
//! acknowledgement that could mean either of two copies.

use crate::ms;
use crate::recovery::{established, established_with, expect_segments, new_reno};
use linerate_tcp::{Config, CongestionName, RecoveryState};
use linerate_testkit::Script;
use linerate_units::Duration;

/// A quarter of the round trip.
const QUARTER: Duration = Duration::from_micros(2_500);

/// Ten segments leave, and ten milliseconds pass.
fn ten_more(host: &mut Script) {
    host.write(10_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(10));
}

fn again(host: &Script) -> u64 {
    host.connection.statistics().retransmitted_segments
}

/// Ten segments are out behind ten that have arrived, and the second of those has overtaken the first.
fn reordered() -> Script {
    let mut host = established(&new_reno());
    ten_more(&mut host);
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 10001");
    assert!(host.connection.information().reordering_seen);
    ten_more(&mut host);
    host
}

/// §6.2 step 4: where segments have changed places, three that have overtaken another are no proof.
#[test]
fn where_segments_have_changed_places_three_that_overtake_are_waited_for_too() {
    let mut host = reordered();
    host.send(". 1:1(0) ack 10001 sack 11001-15001");
    host.expect_nothing();
    host.pass_time(QUARTER);
    expect_segments(&mut host, &[10_001]);
}

/// RFC 5681 §3.1: what is found lost while another loss is made up for belongs to the same window, which is reduced
/// once; also where a wait shows it.
#[test]
fn what_a_wait_finds_lost_in_recovery_reduces_the_window_no_further() {
    let mut host = reordered();
    host.send(". 1:1(0) ack 10001 sack 11001-13001");
    host.pass_time(QUARTER);
    assert_eq!(host.take_sent()[0].says.seq, 10_001);
    let threshold = host.connection.information().slow_start_threshold;
    host.send(". 1:1(0) ack 10001 sack 14001-18001 sack 11001-13001");
    host.take_sent();
    host.pass_time(ms(5));
    assert_eq!(host.connection.information().lost_in_total, 2_000);
    assert_eq!(host.connection.information().slow_start_threshold, threshold);
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
}

/// §6.2 step 2: an older segment that arrives after a newer one takes nothing back of what the newer one has shown.
#[test]
fn a_late_segment_does_not_hide_what_the_newest_has_shown() {
    let mut host = established(&new_reno());
    ten_more(&mut host);
    host.send(". 1:1(0) ack 1 sack 9001-10001");
    host.send(". 1:1(0) ack 1 sack 1001-2001 sack 9001-10001");
    host.expect_nothing();
    host.pass_time(QUARTER);
    host.take_sent();
    assert_eq!(
        host.connection.information().lost_in_total,
        8_000,
        "all but the two that were named"
    );
}

/// A repetition whose first copy had only been late, as the peer's duplicate shows.
fn repeat_in_vain(host: &mut Script, first: u32) {
    ten_more(host);
    host.send(&format!(". 1:1(0) ack {first} sack {}-{}", first + 1_000, first + 4_000));
    expect_segments(host, &[first]);
    host.send(&format!(". 1:1(0) ack {} sack {first}-{}", first + 10_000, first + 1_000));
    host.expect_nothing();
}

/// §6.2 step 4: a segment that came twice was waited for too short a time. The next may take twice as long.
#[test]
fn after_a_repetition_in_vain_twice_as_much_is_borne() {
    let mut host = established(&new_reno());
    repeat_in_vain(&mut host, 1);
    ten_more(&mut host);
    host.send(". 1:1(0) ack 10001 sack 11001-12001");
    host.pass_time(QUARTER);
    host.expect_nothing();
    host.pass_time(QUARTER);
    expect_segments(&mut host, &[10_001]);
}

/// A loss that three segments show, and its end; all that was written has been acknowledged.
fn lose_the_first_of_ten(host: &mut Script, first: u32) {
    ten_more(host);
    host.send(&format!(". 1:1(0) ack {first} sack {}-{}", first + 1_000, first + 10_000));
    expect_segments(host, &[first]);
    host.pass_time(ms(10));
    host.send(&format!(". 1:1(0) ack {}", first + 10_000));
}

/// §6.2 step 4 (RACK.reo_wnd_persist): sixteen recoveries later, or sixteen after another duplicate, no more is borne
/// than at first.
#[test]
fn after_sixteen_recoveries_without_a_duplicate_a_quarter_is_borne_again() {
    let fixed = Config { congestion: CongestionName::Fixed(10), ..new_reno() };
    for (before, after, borne) in
        [(0, 15, QUARTER * 2), (0, 16, QUARTER), (10, 10, QUARTER * 3), (10, 16, QUARTER)]
    {
        let mut host = established(&fixed);
        repeat_in_vain(&mut host, 1);
        let mut next = 10_001;
        for _ in 0..before {
            lose_the_first_of_ten(&mut host, next);
            next += 10_000;
        }
        if before > 0 {
            repeat_in_vain(&mut host, next);
            next += 10_000;
        }
        for _ in 0..after {
            lose_the_first_of_ten(&mut host, next);
            next += 10_000;
        }
        ten_more(&mut host);
        host.send(&format!(". 1:1(0) ack {next} sack {}-{}", next + 1_000, next + 2_000));
        host.expect_after(borne, &format!(". {next}:{}(1000) ack 1", next + 1_000));
    }
}

/// §6.2 step 4: a recovery from a timeout counts among the sixteen.
#[test]
fn a_recovery_from_a_timeout_counts_as_one_without_a_duplicate() {
    for (timeouts, borne) in [(0, QUARTER * 2), (1, QUARTER)] {
        let mut host = established(&Config { congestion: CongestionName::Fixed(10), ..new_reno() });
        repeat_in_vain(&mut host, 1);
        let mut next = 10_001;
        for _ in 0..15 {
            lose_the_first_of_ten(&mut host, next);
            next += 10_000;
        }
        for _ in 0..timeouts {
            host.write(1_000);
            host.pass_time(ms(600));
            host.take_sent();
            assert_eq!(host.connection.information().recovery, RecoveryState::Loss);
            next += 1_000;
            host.send(&format!(". 1:1(0) ack {next}"));
        }
        ten_more(&mut host);
        host.send(&format!(". 1:1(0) ack {next} sack {}-{}", next + 1_000, next + 2_000));
        host.expect_after(borne, &format!(". {next}:{}(1000) ack 1", next + 1_000));
    }
}

/// §6.2 steps 4 and 5: a duplicate widens the window before it is asked what is lost, so that what came with it is judged by
/// the wider window.
#[test]
fn a_duplicate_widens_the_window_for_what_comes_with_it() {
    for (blocks, lost) in [("sack 11001-12001", 1_000), ("sack 9001-10001 sack 11001-12001", 0)] {
        let mut host = reordered();
        host.send(". 1:1(0) ack 10001 sack 11001-12001");
        host.now += QUARTER;
        host.send(&format!(". 1:1(0) ack 10001 {blocks}"));
        assert_eq!(host.connection.information().lost_in_total, lost, "{blocks}");
    }
}

/// §6.2 step 2: an acknowledgement that comes later than the shortest round trip after a repetition, and echoes a time
/// before it, was of the first copy: it tells nothing of what left in between.
#[test]
fn an_echo_from_before_a_repetition_shows_no_order() {
    let mut host = established_with(&new_reno(), " ts 100 1");
    let clock = host.stamp_at(host.now);
    host.write(9_880);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(20));
    let probe = host.take_one();
    assert_eq!(host.connection.statistics().tail_probes, 1);
    let (left, right) = (probe.says.seq, probe.says.seq + probe.says.length);
    host.pass_time(ms(12));
    host.send(&format!(". 1:1(0) ack 1 sack {left}-{right} ts 130 {clock}"));
    host.expect_nothing();
    assert_eq!(again(&host), 1, "the probe alone");
    assert_eq!(host.connection.information().lost, 0);
}

/// Karn's rule holds for the shortest round trip, too: an acknowledgement that comes right after a repetition is of
/// the first copy.
#[test]
fn an_acknowledgement_right_after_a_repetition_makes_the_path_no_shorter() {
    let mut host = established(&new_reno());
    ten_more(&mut host);
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(1));
    host.send(". 1:1(0) ack 10001");
    assert_eq!(host.connection.information().shortest_round_trip, Some(ms(10)));
}
