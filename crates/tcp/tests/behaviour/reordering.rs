//! Tests of reordering (RFC 8985 §6): the time after which an overtaken segment counts as lost, and
//! acknowledgements that may answer an original or a retransmission.

use crate::ms;
use crate::recovery::{established, established_with, expect_segments, new_reno};
use linerate_tcp::{Config, CongestionName, RecoveryState};
use linerate_testkit::Script;
use linerate_units::Duration;

/// A quarter of the round-trip time of 10 ms, which is the initial reordering window.
const QUARTER: Duration = Duration::from_micros(2_500);

/// Sends ten segments, and waits for 10 ms.
fn ten_more(host: &mut Script) {
    host.write(10_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(10));
}

fn again(host: &Script) -> u64 {
    host.connection.statistics().retransmitted_segments
}

/// Returns a connection that has detected reordering: it sent ten segments, and the second arrived
/// before the first. All ten have arrived. Ten more segments were sent 10 ms ago, and are in
/// flight.
fn reordered() -> Script {
    let mut host = established(&new_reno());
    ten_more(&mut host);
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 10001");
    assert!(host.connection.information().reordering_seen);
    ten_more(&mut host);
    host
}

/// RFC 8985 §6.2 step 4: if the path has reordered segments before, three later segments that
/// arrive do not suffice to detect a loss. The missing segment is lost only after the reordering
/// window.
#[test]
fn after_reordering_three_overtaking_segments_are_no_proof() {
    let mut host = reordered();
    host.send(". 1:1(0) ack 10001 sack 11001-15001");
    host.expect_nothing();
    host.pass_time(QUARTER);
    expect_segments(&mut host, &[10_001]);
}

/// RFC 5681 §3.1: recovery has reduced the congestion window. Another loss in the same window of
/// data is then detected during the recovery, here by the reordering timer. It causes no second
/// reduction.
#[test]
fn a_loss_detected_during_recovery_does_not_reduce_the_window_again() {
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

/// RFC 8985 §6.2 step 2: RACK stores the transmission time of that delivered segment which was sent
/// most recently. If an earlier segment arrives after it, this time does not go back.
#[test]
fn a_late_segment_does_not_revert_rack_state() {
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

/// Sends ten segments, of which the first arrives late. The connection has then retransmitted it
/// needlessly, and the peer reports the duplicate.
fn retransmit_needlessly(host: &mut Script, first: u32) {
    ten_more(host);
    host.send(&format!(". 1:1(0) ack {first} sack {}-{}", first + 1_000, first + 4_000));
    expect_segments(host, &[first]);
    host.send(&format!(". 1:1(0) ack {} sack {first}-{}", first + 10_000, first + 1_000));
    host.expect_nothing();
}

/// RFC 8985 §6.2 step 4: a D-SACK shows that a retransmission was needless, because the reordering
/// window was too small. This window grows by a quarter of the round-trip time.
#[test]
fn a_needless_retransmission_widens_the_reordering_window() {
    let mut host = established(&new_reno());
    retransmit_needlessly(&mut host, 1);
    ten_more(&mut host);
    host.send(". 1:1(0) ack 10001 sack 11001-12001");
    host.pass_time(QUARTER);
    host.expect_nothing();
    host.pass_time(QUARTER);
    expect_segments(&mut host, &[10_001]);
}

/// Sends ten segments, of which the first is lost and then retransmitted. All ten are acknowledged.
fn lose_the_first_of_ten(host: &mut Script, first: u32) {
    ten_more(host);
    host.send(&format!(". 1:1(0) ack {first} sack {}-{}", first + 1_000, first + 10_000));
    expect_segments(host, &[first]);
    host.pass_time(ms(10));
    host.send(&format!(". 1:1(0) ack {}", first + 10_000));
}

/// RFC 8985 §6.2 step 4 (RACK.reo_wnd_persist): a D-SACK has enlarged the reordering window. After
/// sixteen recoveries without another D-SACK, it returns to its initial size.
#[test]
fn sixteen_recoveries_without_a_duplicate_reset_the_reordering_window() {
    let fixed = Config { congestion: CongestionName::Fixed(10), ..new_reno() };
    for (before, after, borne) in
        [(0, 15, QUARTER * 2), (0, 16, QUARTER), (10, 10, QUARTER * 3), (10, 16, QUARTER)]
    {
        let mut host = established(&fixed);
        retransmit_needlessly(&mut host, 1);
        let mut next = 10_001;
        for _ in 0..before {
            lose_the_first_of_ten(&mut host, next);
            next += 10_000;
        }
        if before > 0 {
            retransmit_needlessly(&mut host, next);
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

/// RFC 8985 §6.2 step 4: the enlarged reordering window returns to its initial size after sixteen
/// recoveries without a D-SACK. A recovery after a timeout counts as one of them.
#[test]
fn a_recovery_from_a_timeout_counts_as_one_without_a_duplicate() {
    for (timeouts, borne) in [(0, QUARTER * 2), (1, QUARTER)] {
        let mut host = established(&Config { congestion: CongestionName::Fixed(10), ..new_reno() });
        retransmit_needlessly(&mut host, 1);
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

/// RFC 8985 §6.2 steps 4 and 5: an acknowledgement has a D-SACK and new SACK blocks. The D-SACK
/// first enlarges the reordering window. Losses are then detected with the enlarged window.
#[test]
fn a_duplicate_widens_the_reordering_window_for_its_acknowledgement() {
    for (blocks, lost) in [("sack 11001-12001", 1_000), ("sack 9001-10001 sack 11001-12001", 0)] {
        let mut host = reordered();
        host.send(". 1:1(0) ack 10001 sack 11001-12001");
        host.now += QUARTER;
        host.send(&format!(". 1:1(0) ack 10001 {blocks}"));
        assert_eq!(host.connection.information().lost_in_total, lost, "{blocks}");
    }
}

/// RFC 8985 §6.2 step 2: an acknowledgement arrives long enough after a retransmission to be its
/// answer. But the echoed timestamp is older than the retransmission, so the acknowledgement
/// answers the original. It therefore does not show that data sent after the original is lost.
#[test]
fn an_echo_of_the_original_does_not_advance_rack() {
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

/// Karn's algorithm also applies to the minimum round-trip time. An acknowledgement soon after a
/// retransmission answers the original segment. A sample from it would be too small, so none is
/// taken.
#[test]
fn an_acknowledgement_right_after_a_retransmission_does_not_reduce_the_minimum_round_trip() {
    let mut host = established(&new_reno());
    ten_more(&mut host);
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(1));
    host.send(". 1:1(0) ack 10001");
    assert_eq!(host.connection.information().shortest_round_trip, Some(ms(10)));
}
