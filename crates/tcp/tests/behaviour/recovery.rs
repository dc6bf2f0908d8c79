//! Tests of loss recovery with SACK (RFC 2018). RACK detects losses (RFC 8985). During the
//! retransmissions, recovery limits the data in flight (RFC 6675, RFC 6937).

use crate::ms;
use linerate_tcp::{Config, CongestionName, RecoveryState};
use linerate_testkit::Script;
use linerate_units::Duration;

/// Opens a connection with SACK, segments of 1,000 bytes, and a round-trip time of 10 ms.
pub(crate) fn established(config: &Config) -> Script {
    established_with(config, "")
}

/// Opens a connection as [`established`] does, with further options on the SYN-ACK of the peer.
pub(crate) fn established_with(config: &Config, options: &str) -> Script {
    open(ms(10), config, options)
}

/// Opens a connection as [`established`] does, with another round-trip time.
pub(crate) fn established_over(round_trip: Duration, config: &Config) -> Script {
    open(round_trip, config, "")
}

fn open(round_trip: Duration, config: &Config, options: &str) -> Script {
    let mut host = Script::connect(config);
    host.expect("S 0:0(0)");
    host.pass_time(round_trip);
    host.send(&format!("S. 0:0(0) ack 1 win 65535 mss 1000 sackOK{options}"));
    host.expect(". 1:1(0) ack 1");
    host
}

pub(crate) fn new_reno() -> Config {
    Config { congestion: CongestionName::NewReno, ..Config::modern() }
}

/// Expects segments of 1,000 bytes with these sequence numbers, and nothing else.
#[track_caller]
pub(crate) fn expect_segments(host: &mut Script, starts: &[u32]) {
    for &start in starts {
        let sent = host.take_one();
        assert_eq!((sent.says.seq, sent.says.length), (start, 1_000), "{}", sent.says);
    }
    host.expect_nothing();
}

/// Returns a connection that sent ten segments 10 ms ago and has more data to send.
pub(crate) fn ten_out(config: &Config) -> Script {
    let mut host = established(config);
    host.write(30_000);
    expect_segments(&mut host, &[1, 1_001, 2_001, 3_001, 4_001, 5_001, 6_001, 7_001, 8_001, 9_001]);
    host.pass_time(ms(10));
    host
}

#[test]
fn a_timeout_sends_the_segment_again_at_once() {
    let mut host = established(&new_reno());
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.expect_after(ms(200), "P. 1:101(100) ack 1");
    host.expect_after(ms(400), "P. 1:101(100) ack 1");
}

/// RFC 8985 §6.2: when three segments that were sent after a missing segment have arrived, the
/// missing segment is lost. No timer is needed.
#[test]
fn three_later_deliveries_cause_a_retransmission() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 1 sack 1001-3001");
    // The first two segments that the peer reports in SACK blocks each permit a new segment (RFC
    // 3042).
    expect_segments(&mut host, &[10_001, 11_001]);
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    let information = host.connection.information();
    assert_eq!(information.slow_start_threshold, 5_000, "half of the ten that were in flight");
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
}

/// RFC 5681 §3.2 step 6, RFC 6937 §3: the acknowledgement that ends a recovery sets the window to
/// SSTHRESH. It covers more data than a window, but does not enlarge the window further. The next
/// acknowledgement does.
#[test]
fn the_acknowledgement_that_ends_recovery_leaves_the_window_at_the_threshold() {
    for congestion in [CongestionName::NewReno, CongestionName::Cubic] {
        let mut host = ten_out(&Config { congestion, ..Config::modern() });
        for right in [4_001, 5_001, 6_001, 7_001, 8_001, 9_001, 10_001] {
            host.send(&format!(". 1:1(0) ack 1 sack 1001-{right}"));
        }
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 10001");
        let information = host.connection.information();
        assert_eq!(information.recovery, RecoveryState::Open);
        assert_eq!(information.congestion_window, information.slow_start_threshold, "{congestion}");
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 15001");
        assert!(host.connection.information().congestion_window > information.congestion_window);
    }
}

/// RFC 8985 §6.2 step 4: fewer than three later segments have arrived. A missing segment then
/// counts as lost only after the reordering window, a quarter of the round-trip time.
#[test]
fn an_overtaken_segment_is_awaited_for_a_quarter_of_the_round_trip() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    expect_segments(&mut host, &[10_001]);
    let sent = host.expect_after(ms(10) / 4, ". 1:1001(1000) ack 1");
    assert_eq!(sent.says.length, 1_000);
}

#[test]
fn a_segment_within_the_reordering_window_is_not_lost() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    expect_segments(&mut host, &[10_001]);
    host.pass_time(ms(1));
    host.send(". 1:1(0) ack 2001");
    host.take_sent();
    let statistics = host.connection.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.retransmitted_segments), (0, 0));
}

/// RFC 6675 §5: SACK blocks show every missing segment. Each is retransmitted once, as soon as the
/// limit of data in flight permits it.
#[test]
fn several_holes_are_filled_in_one_round_trip() {
    let mut host = ten_out(&new_reno());
    // The first, third and fifth segments are lost.
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 1 sack 3001-4001 sack 1001-2001");
    expect_segments(&mut host, &[10_001, 11_001]);
    host.send(". 1:1(0) ack 1 sack 5001-6001 sack 3001-4001 sack 1001-2001");
    expect_segments(&mut host, &[1]);
    for right in [7_001, 8_001, 9_001, 10_001] {
        host.send(&format!(". 1:1(0) ack 1 sack 5001-{right} sack 3001-4001 sack 1001-2001"));
    }
    let again: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert!(again.starts_with(&[2_001, 4_001]), "{again:?}");
    let retransmitted = host.connection.statistics().retransmitted_segments;
    assert_eq!(retransmitted, 3);
}

/// RFC 6937: during recovery, about one segment is sent for every two segments delivered. So the
/// window has shrunk to SSTHRESH when the recovery ends.
#[test]
fn the_window_shrinks_as_data_is_delivered() {
    let mut host = ten_out(&new_reno());
    for right in (2..11).map(|index| index * 1_000 + 1) {
        host.send(&format!(". 1:1(0) ack 1 sack 1001-{right}"));
    }
    let sent: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert_eq!(
        sent,
        [10_001, 11_001, 1, 12_001, 13_001],
        "two before it was certain, then every other"
    );
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10001");
    let information = host.connection.information();
    assert!(information.congestion_window <= 5_000 && information.slow_start_threshold == 5_000);
    for right in [11_001, 12_001, 13_001, 14_001] {
        host.send(&format!(". 1:1(0) ack {right}"));
    }
    assert_eq!(host.connection.information().congestion_window / 1_000, 5);
}

/// Jacobson 1988, appendix B: Tahoe begins slow start after each loss, even if SACK shows the
/// missing data.
#[test]
fn tahoe_fills_the_holes_in_slow_start() {
    let mut host = ten_out(&Config { congestion: CongestionName::Tahoe, ..Config::modern() });
    // The first, third and fifth segments are lost.
    host.send(". 1:1(0) ack 1 sack 5001-10001 sack 3001-4001 sack 1001-2001");
    expect_segments(&mut host, &[1]);
    let information = host.connection.information();
    assert_eq!((information.congestion_window, information.slow_start_threshold), (1_000, 5_000));
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 2001 sack 5001-10001 sack 3001-4001");
    expect_segments(&mut host, &[2_001, 4_001]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10001");
    assert!(host.connection.information().congestion_window <= 5_000);
    assert_eq!(host.connection.statistics().retransmitted_segments, 3);
}

/// Tahoe retransmits the first missing segment at once. Its window of one segment would not permit
/// this, because more data is in flight.
#[test]
fn tahoe_retransmits_the_first_hole_whatever_is_in_flight() {
    let mut host = ten_out(&Config { congestion: CongestionName::Tahoe, ..Config::modern() });
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    assert_eq!(host.connection.information().congestion_window, 1_000);
}

/// The loss is detected by the reordering timer, and not by three segments in SACK blocks. Tahoe
/// reduces its window to one segment in this case as well.
#[test]
fn tahoe_begins_slow_start_after_a_reordering_timeout() {
    let mut host = ten_out(&Config { congestion: CongestionName::Tahoe, ..Config::modern() });
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    expect_segments(&mut host, &[10_001]);
    host.pass_time(ms(10) / 4);
    expect_segments(&mut host, &[1]);
    assert_eq!(host.connection.information().congestion_window, 1_000);
}

/// RFC 6675 §5 (C): a segment is sent only if the limit of data in flight has room for all of it.
/// In this recovery, each acknowledgement makes room for half a segment, so only every second one
/// permits a segment.
#[test]
fn half_a_segment_of_room_admits_none() {
    let mut host = established(&new_reno());
    host.write(40_000);
    assert_eq!(host.take_sent().len(), 10);
    for acked in (1_001..=10_001).step_by(1_000) {
        host.send(&format!(". 1:1(0) ack {acked}"));
    }
    assert_eq!(host.take_sent().len(), 20);
    host.pass_time(ms(10));
    // The first four segments are lost.
    host.send(". 1:1(0) ack 10001 sack 14001-17001");
    let mut sent = Vec::new();
    for right in (17_001..=21_001).step_by(1_000) {
        host.send(&format!(". 1:1(0) ack 10001 sack 14001-{right}"));
        sent.push(host.take_sent().len());
    }
    assert_eq!(sent, [2, 0, 1, 0, 1]);
}

/// RFC 6937bis: while less than SSTHRESH is in flight, an acknowledgement that advances SND.UNA and
/// reports no further loss permits more data in flight, as in slow start. An acknowledgement with
/// only new SACK blocks permits just as much data as has arrived.
#[test]
fn an_emptied_pipe_grows_only_by_what_is_acknowledged_in_order() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 6001-9001");
    expect_segments(&mut host, &[1, 1_001, 2_001]);
    host.send(". 1:1(0) ack 1 sack 6001-10001");
    expect_segments(&mut host, &[3_001]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1001 sack 6001-10001");
    expect_segments(&mut host, &[4_001, 5_001]);
}

/// RFC 5681 §3.1: a timeout is followed by slow start. It may enlarge the window beyond SSTHRESH
/// before all data is acknowledged. The end of the recovery must then not reduce the window.
#[test]
fn the_end_of_rto_recovery_does_not_reduce_the_window() {
    let mut host = established(&Config { frto: false, initial_window: 14, ..new_reno() });
    host.write(60_000);
    assert_eq!(host.take_sent().len(), 14);
    host.pass_time(ms(300));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 1);
    for acked in (1_001..=15_001).step_by(1_000) {
        host.take_sent();
        host.send(&format!(". 1:1(0) ack {acked}"));
    }
    let information = host.connection.information();
    assert_eq!(information.recovery, RecoveryState::Open);
    assert!(information.congestion_window > information.slow_start_threshold);
}

/// RFC 8985 §3.3: a segment that was sent after a retransmission arrives, but the retransmission
/// does not. The retransmission is therefore lost, and is repeated without waiting for a timeout.
#[test]
fn a_lost_retransmission_is_repeated_without_a_timeout() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.send(". 1:1(0) ack 1 sack 1001-9001");
    let after: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert_eq!(after, [10_001, 11_001, 12_001]);
    host.pass_time(ms(11));
    host.send(". 1:1(0) ack 1 sack 1001-11001");
    let again = host.take_one();
    assert_eq!((again.says.seq, again.says.length), (1, 1_000));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 0);
}

/// RFC 8985 §6.3: a timeout marks data as lost, except for data in SACK blocks, and data sent so
/// recently that it cannot have arrived yet.
#[test]
fn after_a_timeout_only_missing_data_is_retransmitted() {
    let mut host = established(&new_reno());
    host.write(5_000);
    expect_segments(&mut host, &[1, 1_001, 2_001, 3_001, 4_001]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1 sack 2001-3001");
    host.expect_nothing();
    host.pass_time(ms(3));
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(200));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 1);
    expect_segments(&mut host, &[1]);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[1_001, 3_001]);
}

/// RFC 2018 §8: the peer may discard data that it has SACKed. When this becomes evident, the data
/// is retransmitted.
#[test]
fn reneged_data_is_retransmitted() {
    let mut host = established(&new_reno());
    host.write(4_000);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(10));
    // The hole is filled, but the acknowledgement does not cover the data after it, which the peer
    // has reported in SACK blocks. The peer has therefore discarded this data.
    host.send(". 1:1(0) ack 1001");
    host.expect_nothing();
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1_001]);
    assert_eq!(host.connection.statistics().reneged, 1);
    host.send(". 1:1(0) ack 2001");
    expect_segments(&mut host, &[2_001, 3_001]);
}

/// RFC 8985 §6.2 step 3: data that arrives after data sent later shows reordering. Here the peer
/// has reported data in SACK blocks, discarded it, and acknowledged it later. This must not count
/// as reordering.
#[test]
fn reneging_is_not_mistaken_for_reordering() {
    let mut host = established(&new_reno());
    host.write(5_000);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1 sack 1001-5001");
    expect_segments(&mut host, &[1]);
    host.send(". 1:1(0) ack 1001");
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1_001]);
    host.send(". 1:1(0) ack 3001");
    let counted = host.connection.statistics();
    assert_eq!((counted.reneged, counted.reorderings), (1, 0));
}

/// RFC 8985 §7: if the last segments are not acknowledged, a tail loss probe is sent after two
/// round-trip times. The retransmission timeout would come much later.
#[test]
fn the_last_segment_is_probed_before_the_timeout() {
    let mut host = established(&new_reno());
    host.write(3_000);
    expect_segments(&mut host, &[1, 1_001, 2_001]);
    let probe = host.expect_after(ms(20), "P. 2001:3001(1000) ack 1");
    assert_eq!(probe.says.length, 1_000);
    assert_eq!(host.connection.statistics().tail_probes, 1);
    host.pass_time(ms(10));
    // The probe has repeated the third segment, which this SACK block reports. The first two
    // segments were sent before it and are missing, so they are lost.
    host.send(". 1:1(0) ack 1 sack 2001-3001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1001 sack 2001-3001");
    expect_segments(&mut host, &[1_001]);
    assert_eq!(host.connection.statistics().retransmission_timeouts, 0);
}

/// RFC 8985 §7.2: a segment before SACKed data is missing. The reordering timer will detect its
/// loss, so no probe is sent.
#[test]
fn no_probe_is_sent_while_a_hole_is_known() {
    let mut host = established(&new_reno());
    host.write(3_000);
    expect_segments(&mut host, &[1, 1_001, 2_001]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1 sack 2001-3001");
    host.expect_nothing();
    host.expect_after(ms(10) / 4, ". 1:1001(1000) ack 1");
    host.expect_silence(ms(190));
    let statistics = host.connection.statistics();
    assert_eq!((statistics.tail_probes, statistics.retransmission_timeouts), (0, 0));
}

/// RFC 8985 §7.2: if only one segment is in flight, the peer may delay its acknowledgement. The
/// probe then waits for 200 ms in addition to two round-trip times.
#[test]
fn the_probe_of_a_single_segment_waits_for_a_delayed_acknowledgement() {
    for (segments, waits) in [(1, ms(800)), (2, ms(600))] {
        let mut host = established_over(ms(300), &new_reno());
        host.write(segments * 1_000);
        host.take_sent();
        let last = (segments - 1) * 1_000 + 1;
        host.expect_after(waits, &format!("P. {last}:{}(1000) ack 1", last + 1_000));
        assert_eq!(host.connection.statistics().tail_probes, 1);
    }
}

/// RFC 8985 §7.3: if a probe is not answered, the timeout follows.
#[test]
fn an_unanswered_tail_is_probed_once() {
    let mut host = established(&new_reno());
    host.write(3_000);
    host.take_sent();
    host.expect_after(ms(20), "P. 2001:3001(1000) ack 1");
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.tail_probes, statistics.retransmission_timeouts), (1, 1));
}

/// RFC 8985 §7.3: after a probe, no other probe is sent before there is a new RTT sample. The
/// acknowledgement of the probed segment gives none, because it may answer the original or the
/// probe.
#[test]
fn no_second_probe_is_sent_without_a_round_trip_sample() {
    for options in ["", " ts 100 1"] {
        let mut host = open(ms(300), &new_reno(), options);
        host.write(500);
        host.expect("P. 1:501(500) ack 1");
        host.expect_after(ms(800), "P. 1:501(500) ack 1");
        host.send(". 1:1(0) ack 501");
        host.send(". 1:1(0) ack 501 sack 1-501");
        host.write(500);
        host.expect("P. 501:1001(500) ack 1");
        host.pass_time(ms(300));
        host.expect_silence(ms(590));
        host.send(". 1:1(0) ack 1001");
        assert_eq!(host.connection.statistics().tail_probes, 1);
        let smoothed = host.connection.information().smoothed_round_trip.unwrap();
        host.write(1_200);
        assert_eq!(host.take_sent().len(), 2);
        host.pass_time(smoothed * 2);
        assert_eq!(host.take_sent().len(), 1);
        assert_eq!(host.connection.statistics().tail_probes, 2);
    }
}

/// RFC 8985 §7.3: a probe carries new data, even beyond the congestion window. It repeats a segment
/// only if there is no new data.
#[test]
fn a_probe_carries_new_data_if_there_is_any() {
    let mut host = established(&new_reno());
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10);
    let probe = host.expect_after(ms(20), ". 10001:11001(1000) ack 1");
    assert_eq!(probe.says.seq, 10_001);
}

/// RFC 8985 §7.4.2 case 3: the peer acknowledges the probed segment, but does not report it as a
/// duplicate. The original was therefore lost and the probe has repaired this loss, so the window
/// is reduced.
#[test]
fn a_loss_repaired_by_the_probe_reduces_the_window() {
    let mut host = established(&new_reno());
    host.write(10_000);
    assert_eq!(host.take_sent().len(), 10);
    host.expect_after(ms(20), "P. 9001:10001(1000) ack 1");
    host.write(1_000);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 11001");
    assert!(host.connection.information().slow_start_threshold < 10_000);
}

/// RFC 8985 §7.4.2 case 2: the peer reports the probed segment as a duplicate. The original and the
/// probe have both arrived, so the window is not reduced.
#[test]
fn a_duplicated_probe_does_not_reduce_the_window() {
    let mut host = established(&new_reno());
    host.write(10_000);
    host.take_sent();
    let before = host.connection.information();
    host.expect_after(ms(20), "P. 9001:10001(1000) ack 1");
    host.send(". 1:1(0) ack 10001");
    host.send(". 1:1(0) ack 10001 sack 9001-10001");
    let after = host.connection.information();
    assert_eq!(after.slow_start_threshold, before.slow_start_threshold);
    assert_eq!(host.connection.statistics().duplicates_reported, 1);
}

/// RFC 3522: after a timeout, the acknowledgement echoes the timestamp of the original segment. The
/// original has arrived, so the timeout is undone.
#[test]
fn an_echo_of_the_original_undoes_the_timeout() {
    let mut host = established_with(&new_reno(), " ts 100 1");
    host.write(20_000);
    assert_eq!(host.take_sent().len(), 10);
    let before = host.connection.information();
    let stamp = host.clock();
    host.pass_time(ms(230));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 1);
    let probes = host.connection.statistics().tail_probes;
    assert_eq!(probes, 1, "the tail was probed first");
    host.take_sent();
    host.send(&format!(". 1:1(0) ack 989 ts 200 {stamp}"));
    let after = host.connection.information();
    assert!(after.congestion_window >= before.congestion_window);
    assert_eq!(after.slow_start_threshold, before.slow_start_threshold);
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
}

/// RFC 5682: without timestamps, F-RTO undoes a timeout. It was spurious if data that was not
/// retransmitted is acknowledged.
#[test]
fn originals_delivered_after_a_timeout_undo_it() {
    let mut host = established(&new_reno());
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10);
    let before = host.connection.information();
    host.pass_time(ms(20));
    assert_eq!(host.take_sent().len(), 1, "the probe");
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1]);
    // This acknowledges the retransmission, or its original. Step 2 of F-RTO then permits two new
    // segments instead of retransmissions.
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 2001");
    let after = host.connection.information();
    assert!(after.congestion_window >= before.congestion_window);
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
    // This acknowledges data that was sent only once, before the timeout. The timeout was spurious,
    // so the acknowledgement gives an RTT sample, although it arrives late (RFC 5682 §2.2).
    host.send(". 1:1(0) ack 3001");
    assert!(host.connection.information().smoothed_round_trip > before.smoothed_round_trip);
}

/// RFC 5682 §3.1 step 1: F-RTO starts from its first step again if the timer expires again for the
/// same data.
#[test]
fn a_second_timeout_restarts_frto() {
    let mut host = established(&new_reno());
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(20));
    assert_eq!(host.take_sent().len(), 1, "the probe");
    host.pass_time(ms(200) + ms(400));
    assert_eq!(host.take_sent().len(), 2, "the first segment twice");
    assert_eq!(host.connection.statistics().retransmission_timeouts, 2);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 2001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
}

/// RFC 5682 §3.1: F-RTO requires new data. Here there is none, so the missing data is retransmitted
/// in slow start.
#[test]
fn a_genuine_timeout_leads_to_slow_start() {
    let mut host = established(&new_reno());
    host.write(10_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(20));
    host.take_sent();
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1]);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[1_001, 2_001]);
    assert_eq!(host.connection.statistics().spurious_recoveries, 0);
}

/// RFC 2883, RFC 3708: the peer reports every retransmission as a duplicate. All originals have
/// therefore arrived, so the window is restored.
#[test]
fn duplicates_of_every_retransmission_restore_the_window() {
    let mut host = ten_out(&new_reno());
    let before = host.connection.information();
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    assert!(host.connection.information().slow_start_threshold < before.slow_start_threshold);
    host.send(". 1:1(0) ack 10001 sack 1-1001");
    let after = host.connection.information();
    assert_eq!(after.slow_start_threshold, before.slow_start_threshold);
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
}

/// RFC 2883 §5: two acknowledgements are reordered. When the one with the SACK block arrives, the
/// block lies below SND.UNA, like a D-SACK. It reported no duplicate when it was sent, so it must
/// not count as one.
#[test]
fn a_late_acknowledgement_with_sack_reports_no_duplicate() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 4001");
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    assert_eq!(host.connection.statistics().duplicates_reported, 0);
    host.send(". 1:1(0) ack 4001 sack 1001-2001");
    assert_eq!(host.connection.statistics().duplicates_reported, 1);
}

/// RFC 6675 §5 (A): during a recovery, the peer may SACK data that was sent after the recovery
/// began. These SACKs must outlast the recovery, because they reveal another loss.
#[test]
fn a_second_loss_beyond_the_first_begins_a_recovery_of_its_own() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 1 sack 1001-3001");
    expect_segments(&mut host, &[10_001, 11_001]);
    host.send(". 1:1(0) ack 1 sack 1001-10001");
    let sent: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert_eq!(sent, [1, 12_001, 13_001]);
    host.pass_time(ms(10));
    // This acknowledgement ends the first recovery. Its SACK block reports the segment from 13001,
    // so the segment before it, from 12001, is lost.
    host.send(". 1:1(0) ack 12001 sack 13001-14001");
    let again: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert!(again.starts_with(&[12_001]) && !again.contains(&13_001), "{again:?}");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.retransmission_timeouts), (2, 0));
    let threshold = host.connection.information().slow_start_threshold;
    assert!(threshold < 5_000, "{threshold} after the two losses, 5,000 after the first");
}

/// RFC 6675 §5.1: a timeout schedules all missing data for retransmission. Data that is SACKed
/// later is not retransmitted.
#[test]
fn data_sacked_after_a_timeout_is_not_retransmitted() {
    let mut host = established(&new_reno());
    host.write(6_000);
    host.take_sent();
    host.pass_time(ms(20));
    expect_segments(&mut host, &[5_001]);
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1001 sack 2001-5001");
    let again: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
    assert_eq!(again, [1_001, 5_001]);
}

/// RFC 6675 §5.1: a timeout replaces a recovery. Until all data sent before the timeout is
/// acknowledged, missing segments are retransmitted, but begin no new recovery.
#[test]
fn a_timeout_ends_recovery_and_later_holes_begin_no_other() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
    host.pass_time(ms(250));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 1);
    host.take_sent();
    let threshold = host.connection.information().slow_start_threshold;
    host.send(". 1:1(0) ack 4001");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 4001 sack 5001-9001");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 9001");
    host.take_sent();
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
    assert_eq!(host.connection.information().slow_start_threshold, threshold);
}

/// SACK blocks that report data never sent, or that are empty or reversed, have no effect.
#[test]
fn impossible_sack_blocks_are_ignored() {
    let mut host = ten_out(&new_reno());
    for sack in ["20001-30001", "9001-30001", "3001-2001", "5001-5001"] {
        host.send(&format!(". 1:1(0) ack 1 sack {sack}"));
        host.expect_nothing();
    }
    assert_eq!(host.connection.information().in_flight, 10_000);
}
