//! Tests of tail loss probes (RFC 8985 §7.3, §7.4): the data that a probe carries, and the meaning
//! of the peer's answers to it.

use crate::ms;
use crate::recovery::{established, expect_segments, new_reno};
use linerate_tcp::{Config, IcmpReport};
use linerate_testkit::Script;

/// Returns a connection that sent five segments and repeated the last of them as a probe.
fn probed() -> Script {
    let mut host = established(&new_reno());
    host.write(5_000);
    assert_eq!(host.take_sent().len(), 5);
    host.expect_after(ms(20), "P. 4001:5001(1000) ack 1");
    host
}

fn threshold(host: &Script) -> u32 {
    host.connection.information().slow_start_threshold
}

/// RFC 8985 §7.4.2: the first acknowledgement without data answers the original, and the second one
/// answers the probe. Both copies have arrived, so the probe has repaired no loss. A later
/// acknowledgement of new data must therefore not reduce ssthresh.
#[test]
fn a_repeated_acknowledgement_shows_that_both_copies_arrived() {
    let mut host = probed();
    let before = threshold(&host);
    host.send(". 1:1(0) ack 5001");
    host.write(1_000);
    host.expect("P. 5001:6001(1000) ack 1");
    host.send(". 1:1(0) ack 5001");
    host.send(". 1:1(0) ack 6001");
    assert_eq!(threshold(&host), before);
}

/// The peer reports the probed segment as a duplicate (RFC 2883). The original and the probe have
/// therefore both arrived, and nothing was lost.
#[test]
fn a_duplicate_report_of_the_probe_shows_that_both_copies_arrived() {
    for together in [false, true] {
        let mut host = probed();
        let before = threshold(&host);
        host.write(1_000);
        host.expect("P. 5001:6001(1000) ack 1");
        if !together {
            host.send(". 1:1(0) ack 5001 sack 4001-5001");
        }
        host.send(". 1:1(0) ack 6001 sack 4001-5001");
        assert_eq!(threshold(&host), before, "{together}");
    }
}

/// Not every segment that acknowledges the probed segment is an answer to the probe. A data segment
/// is none, and neither is an acknowledgement whose SACK block reports later segments.
#[test]
fn other_segments_do_not_answer_a_probe() {
    for other in ["P. 1:101(100) ack 5001", ". 1:1(0) ack 5001 sack 6001-7001"] {
        let mut host = probed();
        let before = threshold(&host);
        host.send(". 1:1(0) ack 5001");
        host.write(2_000);
        expect_segments(&mut host, &[5_001, 6_001]);
        host.pass_time(ms(10));
        host.send(other);
        host.take_sent();
        host.send(". 101:101(0) ack 7001");
        assert!(threshold(&host) < before, "{other}");
        assert_eq!(host.connection.statistics().fast_retransmissions, 0);
    }
}

/// A probe that carries new data repeats no segment, so it cannot repair a loss. Later
/// acknowledgements must therefore not reduce ssthresh.
#[test]
fn a_probe_of_new_data_repairs_no_loss() {
    let mut host = established(&new_reno());
    host.write(12_000);
    assert_eq!(host.take_sent().len(), 10);
    let before = threshold(&host);
    host.expect_after(ms(20), ". 10001:11001(1000) ack 1");
    host.send(". 1:1(0) ack 2001");
    host.expect("P. 11001:12001(1000) ack 1");
    host.send(". 1:1(0) ack 12001");
    assert_eq!(threshold(&host), before);
}

/// RFC 8985 §7.3: until the peer has answered a probe, no other probe is sent.
#[test]
fn an_unanswered_probe_is_the_only_one() {
    let mut host = probed();
    host.send(". 1:1(0) ack 5001");
    host.write(2_000);
    expect_segments(&mut host, &[5_001, 6_001]);
    host.expect_silence(ms(190));
    assert_eq!(host.connection.statistics().tail_probes, 1);
}

/// RFC 8985 §7.3: any kind of answer to a probe permits another probe.
#[test]
fn each_answer_to_a_probe_permits_the_next() {
    for answer in ["ack 5001", "ack 5001 sack 4001-5001", "ack 6001 sack 4001-5001", "ack 6001"] {
        let mut host = probed();
        host.send(". 1:1(0) ack 5001");
        host.write(1_000);
        host.expect("P. 5001:6001(1000) ack 1");
        host.send(&format!(". 1:1(0) {answer}"));
        if answer.starts_with("ack 5001") {
            host.send(". 1:1(0) ack 6001");
        }
        host.write(2_000);
        expect_segments(&mut host, &[6_001, 7_001]);
        host.pass_time(ms(100));
        assert_eq!(host.connection.statistics().tail_probes, 2, "{answer}");
    }

    let mut host = established(&new_reno());
    host.write(11_000);
    assert_eq!(host.take_sent().len(), 10);
    host.expect_after(ms(20), "P. 10001:11001(1000) ack 1");
    host.send(". 1:1(0) ack 11001");
    host.write(2_000);
    expect_segments(&mut host, &[11_001, 12_001]);
    host.pass_time(ms(100));
    assert_eq!(host.connection.statistics().tail_probes, 2, "new data");
}

/// The answer to the probe reveals a loss, and recovery reduces the window. A loss that the probe
/// itself has repaired would also reduce it (RFC 8985 §7.4.2). Here the window must not be reduced
/// a second time.
#[test]
fn a_loss_revealed_by_the_probe_reduces_the_window_once() {
    let mut host = probed();
    host.write(2_000);
    expect_segments(&mut host, &[5_001, 6_001]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1 sack 4001-5001");
    host.take_sent();
    assert_eq!(threshold(&host), 3_500, "half of the seven");
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 6001");
    host.send(". 1:1(0) ack 7001");
    assert_eq!(threshold(&host), 3_500);
}

/// RFC 8985 §7.3: a probe should carry new data. If the peer's window has no room for it, the probe
/// repeats the last segment.
#[test]
fn a_probe_respects_the_peers_window() {
    let mut host = Script::connect(&new_reno());
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send("S. 0:0(0) ack 1 win 3000 mss 1000 sackOK");
    host.expect(". 1:1(0) ack 1");
    host.write(5_000);
    expect_segments(&mut host, &[1, 1_001, 2_001]);
    host.expect_after(ms(20), ". 2001:3001(1000) ack 1");
}

/// RFC 8985 §7.3: the probe repeats only the last segment, even if that segment is short.
#[test]
fn a_short_last_segment_is_probed_alone() {
    let mut host = established(&Config { no_delay: true, ..new_reno() });
    host.write(1_000);
    host.expect("P. 1:1001(1000) ack 1");
    host.pass_time(ms(1));
    host.write(500);
    host.expect("P. 1001:1501(500) ack 1");
    host.pass_time(ms(50));
    host.expect("P. 1001:1501(500) ack 1");
    assert_eq!(host.connection.statistics().tail_probes, 1);
}

/// RFC 8985 §7.2: the probe is sent two round-trip times after new data was last sent, because each
/// transmission of new data restarts the timer.
#[test]
fn a_probe_waits_for_two_round_trips_after_the_newest_data() {
    let mut host = established(&new_reno());
    host.write(2_000);
    expect_segments(&mut host, &[1, 1_001]);
    for next in [2_001, 3_001, 4_001] {
        host.pass_time(ms(15));
        host.write(1_000);
        expect_segments(&mut host, &[next]);
    }
    host.expect_after(ms(20), "P. 4001:5001(1000) ack 1");
    assert_eq!(host.connection.statistics().tail_probes, 1);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
}

/// RFC 8985 §7.2: an acknowledgement of new data restarts the timer of the probe. A duplicate
/// acknowledgement does not.
#[test]
fn a_probe_waits_for_two_round_trips_after_an_acknowledgement_of_new_data() {
    for (ack, waits) in [(". 1:1(0) ack 1001", 20), (". 1:1(0) ack 1", 10)] {
        let mut host = established(&new_reno());
        host.write(3_000);
        expect_segments(&mut host, &[1, 1_001, 2_001]);
        host.pass_time(ms(10));
        host.send(ack);
        host.expect_after(ms(waits), "P. 2001:3001(1000) ack 1");
    }
}

/// RFC 8985 §7.2 (TCP_RTO_expiration), RFC 6298 (5.1): each transmission of new data postpones the
/// probe. It does not postpone the retransmission timeout, which therefore comes first here.
#[test]
fn new_data_does_not_postpone_the_timeout() {
    let mut host = established(&Config { initial_window: 30, ..new_reno() });
    for written in 0..20 {
        host.write(1_000);
        let new = host.take_one();
        assert_eq!(new.says.seq, 1 + 1_000 * written);
        host.pass_time(ms(10));
    }
    let again = host.take_one();
    assert_eq!((again.says.seq, again.at), (1, host.now), "200 ms after the first");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.tail_probes, statistics.retransmission_timeouts), (0, 1));
}

/// RFC 8985 §7.2: a SACK block arrives late and reveals a missing segment. The segment is
/// retransmitted by recovery, and the scheduled probe is cancelled.
#[test]
fn a_late_sack_block_cancels_the_probe() {
    let mut host = established(&new_reno());
    host.write(3_000);
    expect_segments(&mut host, &[1, 1_001, 2_001]);
    host.pass_time(ms(18));
    host.send(". 1:1(0) ack 1 sack 2001-3001");
    host.expect_after(ms(18) / 4, ". 1:1001(1000) ack 1");
    assert_eq!(host.connection.statistics().tail_probes, 0);
}

/// A segment is lost, according to an ICMP report, because it is too large for the path. Its data
/// is retransmitted from the beginning, as far as the congestion window permits. No probe is sent.
#[test]
fn data_reported_as_lost_is_retransmitted_instead_of_a_probe() {
    let mut host = established(&Config { initial_window: 2, ..new_reno() });
    host.write(2_000);
    expect_segments(&mut host, &[1, 1_001]);
    let report = IcmpReport::PacketTooBig { quoted: host.number(1), mtu_payload: 620 };
    host.application(|connection, now| connection.driver().handle_icmp(now, report));
    host.expect(". 1:601(600) ack 1");
    host.expect(". 601:1201(600) ack 1");
    host.expect_silence(ms(100));
    host.send(". 1:1(0) ack 1201");
    host.expect(". 1201:1801(600) ack 1");
    host.expect("P. 1801:2001(200) ack 1");
    assert_eq!(host.connection.statistics().tail_probes, 0);
}

/// RFC 8985 §7.3: if an acknowledgement and a probe are due at one time, only the probe is sent. It
/// carries the acknowledgement.
#[test]
fn a_probe_due_with_an_acknowledgement_carries_it() {
    for offers in ["sackOK", "sackOK ts 100 1"] {
        let mut host = Script::established(
            &new_reno(),
            &format!("S. 0:0(0) ack 1 win 65535 mss 1460 {offers}"),
        );
        host.write(3_000);
        let full = host.take_one().says.length;
        host.now += ms(10);
        host.send("P. 1:101(100) ack 1");
        host.send("P. 101:201(100) ack 1");
        host.take_sent();
        host.send("P. 201:301(100) ack 1");
        host.now += ms(300);
        host.application(|connection, now| connection.driver().handle_timeout(now));
        let probe = host.take_one().says;
        assert_eq!(
            (probe.seq, probe.length, probe.ack),
            (3_001 - full, full, Some(301)),
            "{offers}"
        );
        assert_eq!(host.connection.statistics().tail_probes, 1);
    }
}
