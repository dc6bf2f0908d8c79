//! Tests of retransmission without SACK: by the timer (RFC 6298), after three duplicate
//! acknowledgements (RFC 5681), and after partial acknowledgements (RFC 6582).

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, CongestionName, Connection, Error, Event, State};
use linerate_testkit::{Connections, Fate, Network, Script};

/// Opens a connection whose segments have exactly 1,000 bytes.
fn established(config: &Config) -> Script {
    Script::established(config, "S. 0:0(0) ack 1 win 65535 mss 1000")
}

/// Returns the modern configuration with NewReno.
fn new_reno() -> Config {
    Config { congestion: CongestionName::NewReno, ..Config::modern() }
}

/// Expects segments of 1,000 bytes, of which the first has the sequence number `start`. There must
/// be exactly `count` segments.
#[track_caller]
fn expect_segments(host: &mut Script, start: u32, count: u32) {
    for index in 0..count {
        let seq = start + index * 1_000;
        let sent = host.take_one();
        assert_eq!((sent.says.seq, sent.says.length), (seq, 1_000), "{}", sent.says);
    }
    host.expect_nothing();
}

/// Returns a connection that has sent twelve segments. The first is acknowledged and the second is
/// lost. Two duplicate ACKs for segments after it have arrived.
fn before_the_third_duplicate(congestion: CongestionName) -> Script {
    let config =
        Config { congestion, initial_window: 10, limited_transmit: false, ..Config::modern() };
    let mut host = established(&config);
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    for _ in 0..2 {
        host.send(". 1:1(0) ack 1001");
        host.expect_nothing();
    }
    host
}

#[test]
fn the_timeout_doubles_up_to_its_maximum_and_gives_up_at_r2() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    let start = host.now;
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    let mut timeout = ms(200);
    for _ in 0..10 {
        host.expect_after(timeout, "P. 1:101(100) ack 1");
        timeout = timeout * 2;
    }
    assert_eq!(host.now.since(start), ms(200) * 1_023);
    for _ in 0..5 {
        host.expect_after(secs(120), "P. 1:101(100) ack 1");
    }
    assert_eq!(host.events(), [Event::SoftError]);
    host.expect_silence(secs(120));
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::TimedOut))
    );
    assert!(host.now.since(start) >= secs(900));
    assert_eq!(host.events(), [Event::Closed]);
}

/// RFC 6298 (2.2): after the first sample R, RTO is R + 4·R/2.
#[test]
fn the_first_timeout_is_three_round_trips() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.pass_time(ms(100));
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.expect_after(ms(300), "P. 1:101(100) ack 1");
    host.expect_after(ms(600), "P. 1:101(100) ack 1");
}

/// RFC 6298 (5.3): if an acknowledgement covers only a part of the data in flight, the timer
/// restarts for the rest.
#[test]
fn an_acknowledgement_of_new_data_restarts_the_timer() {
    let mut host = established(&Config::modern());
    host.write(2_000);
    host.take_sent();
    host.pass_time(ms(150));
    host.send(". 1:1(0) ack 1001");
    // SRTT is 19 ms and RTTVAR 38 ms. RTO would be 171 ms, so its minimum of 200 ms applies.
    host.expect_after(ms(200), "P. 1001:2001(1000) ack 1");
}

#[test]
fn a_duplicate_acknowledgement_does_not_restart_the_timer() {
    let mut host = established(&Config::modern());
    host.write(2_000);
    host.take_sent();
    host.pass_time(ms(150));
    host.send(". 1:1(0) ack 1");
    host.expect_after(ms(50), ". 1:1001(1000) ack 1");
}

/// Karn's algorithm (RFC 6298 §3): an acknowledgement of a retransmitted segment gives no RTT
/// sample. After a timeout, RTO therefore stays doubled until a segment that was sent only once is
/// acknowledged.
#[test]
fn a_retransmitted_segment_gives_no_rtt_sample() {
    let mut host = established(&Config::modern());
    let before = host.connection.information();
    host.write(500);
    host.expect("P. 1:501(500) ack 1");
    host.expect_after(ms(200), "P. 1:501(500) ack 1");
    host.expect_after(ms(400), "P. 1:501(500) ack 1");
    host.pass_time(ms(300));
    host.send(". 1:1(0) ack 501");
    let after = host.connection.information();
    assert_eq!(after.smoothed_round_trip, before.smoothed_round_trip);
    assert_eq!(after.retransmission_timeout, ms(800));
    host.write(500);
    host.expect("P. 501:1001(500) ack 1");
    host.send(". 1:1(0) ack 1001");
    assert_eq!(host.connection.information().retransmission_timeout, ms(200));
}

/// RFC 7323 §4.1, §4.2: the echoed timestamp shows whether the original or the retransmission is
/// acknowledged. With timestamps, the acknowledgement of a retransmitted segment therefore gives an
/// RTT sample, but only if it acknowledges new data.
#[test]
fn with_timestamps_a_retransmitted_segment_gives_an_rtt_sample() {
    for offers in ["", " sackOK"] {
        let mut host =
            Script::established(&Config::modern(), &format!("{SYN_ACK} ts 100 1{offers}"));
        host.write(500);
        host.take_sent();
        host.expect_after(ms(200), "P. 1:501(500) ack 1");
        host.pass_time(ms(40));
        let before = host.connection.information().smoothed_round_trip;
        host.send(". 1:1(0) ack 1");
        assert_eq!(host.connection.information().smoothed_round_trip, before);
        host.send(". 1:1(0) ack 501");
        let round_trip = host.connection.information().smoothed_round_trip.unwrap();
        assert!(
            round_trip >= ms(5) && round_trip < ms(40),
            "a sample of 40 ms after one of 0 ms: {round_trip}"
        );
        assert_eq!(host.connection.information().retransmission_timeout, ms(200));
    }
}

/// The segment arrives, but its acknowledgement is lost. The acknowledgement of the retransmission
/// then echoes the timestamp of the original. An RTT sample from it would include the timeout, so
/// RTO would grow with each timeout, up to two minutes. Segments behind the retransmitted one must
/// not give such a sample either.
#[test]
fn the_wait_for_the_retransmission_timer_is_no_rtt_sample() {
    for offers in ["", " sackOK"] {
        let mut host =
            Script::established(&Config::modern(), &format!("{SYN_ACK} ts 100 1{offers}"));
        let clock = host.stamp_at(host.now);
        let before = host.connection.information().smoothed_round_trip;
        host.write(3_000);
        host.take_sent();
        host.pass_time(secs(1));
        assert!(host.connection.statistics().retransmission_timeouts > 0);
        host.take_sent();
        let timeout = host.connection.information().retransmission_timeout;
        host.pass_time(ms(10));
        host.send(&format!(". 1:1(0) ack 3001 ts 120 {clock}"));
        let after = host.connection.information();
        assert_eq!((after.smoothed_round_trip, after.retransmission_timeout), (before, timeout));
        host.write(500);
        host.take_sent();
        host.pass_time(ms(10));
        let clock = host.stamp_at(host.now - ms(10));
        host.send(&format!(". 1:1(0) ack 3501 ts 130 {clock}"));
        assert_eq!(host.connection.information().retransmission_timeout, ms(200));
    }
}

/// RFC 5681 §3.2: the lost segment is retransmitted at the third duplicate ACK, and not before.
#[test]
fn only_the_third_duplicate_retransmits_the_lost_segment() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_500, 8_500));
    // After the third duplicate ACK, 11,000 bytes are in flight. Three more duplicate ACKs enlarge
    // cwnd to 11,500 bytes, which leaves too little room for another segment.
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1001");
        host.expect_nothing();
    }
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 12_001, 1);
    host.send(". 1:1(0) ack 13001");
    expect_segments(&mut host, 13_001, 2);
    assert_eq!(host.connection.information().congestion_window, 2_000);
    assert_eq!(host.connection.statistics().retransmitted_segments, 1);
}

/// RFC 5681 §2: a duplicate ACK carries no data and does not change the window. Other segments with
/// an unchanged acknowledgement number are not counted.
#[test]
fn an_acknowledgement_with_data_or_another_window_is_no_duplicate() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send("P. 1:11(10) ack 1001");
    host.expect(". 12001:12001(0) ack 11");
    host.send(". 11:11(0) ack 1001 win 65000");
    host.expect_nothing();
    assert_eq!(host.connection.statistics().fast_retransmissions, 0);
    host.send(". 11:11(0) ack 1001 win 65000");
    expect_segments(&mut host, 1_001, 1);
}

/// RFC 6675 §2: an acknowledgement with new SACK blocks is a duplicate even if the window changes.
/// A Linux peer that tunes its receive buffer enlarges its window with each out-of-order segment.
/// Without this rule, its acknowledgements would be no duplicates, and each loss would lead to a
/// timeout.
#[test]
fn an_acknowledgement_with_new_sack_blocks_is_a_duplicate_whatever_its_window() {
    let syn_ack = "S. 0:0(0) ack 1 win 65535 mss 1000 sackOK";
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send(syn_ack);
    host.expect(". 1:1(0) ack 1");
    host.write(10_000);
    expect_segments(&mut host, 1, 10);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1001 win 61000");
    host.send(". 1:1(0) ack 1001 win 62000 sack 2001-3001");
    host.send(". 1:1(0) ack 1001 win 63000 sack 2001-4001");
    host.expect_nothing();
    host.send(". 1:1(0) ack 1001 win 64000 sack 2001-5001");
    expect_segments(&mut host, 1_001, 1);
}

/// RFC 2883: a block below the acknowledgement number is a D-SACK. An acknowledgement with only
/// such a block reports data that arrived twice. It is no sign of a loss, so it is not counted as a
/// duplicate ACK.
#[test]
fn an_acknowledgement_with_only_a_d_sack_block_is_no_duplicate() {
    let syn_ack = "S. 0:0(0) ack 1 win 65535 mss 1000 sackOK";
    let mut host = Script::established(&Config::modern(), syn_ack);
    host.write(10_000);
    expect_segments(&mut host, 1, 10);
    for window in [61_000, 62_000, 63_000, 64_000] {
        host.send(&format!(". 1:1(0) ack 1001 win {window} sack 1-1001"));
        host.expect_nothing();
    }
}

/// Limited transmit (RFC 3042): two segments are in flight, and the first is lost, so only one
/// duplicate ACK would arrive. Each of the first two duplicate ACKs causes a new segment, so that a
/// third duplicate ACK arrives.
#[test]
fn each_of_the_first_two_duplicates_sends_a_new_segment() {
    let mut host = established(&Config { initial_window: 2, ..Config::modern() });
    host.write(30_000);
    expect_segments(&mut host, 1, 2);
    for new in [2_001, 3_001] {
        host.send(". 1:1(0) ack 1");
        expect_segments(&mut host, new, 1);
    }
    host.send(". 1:1(0) ack 1");
    // The third duplicate ACK shows that the first segment is lost, so it is retransmitted. Three
    // segments have left the network, which makes room for a new segment.
    for seq in [1, 4_001] {
        assert_eq!(host.take_one().says.seq, seq);
    }
    // SSTHRESH is half of the data in flight, but at least two segments. The segments of limited
    // transmit do not count (RFC 5681 §3.2 step 2), so the minimum applies.
    assert_eq!(host.connection.information().slow_start_threshold, 2_000);
}

/// RFC 5681 §3.2 steps 4 and 5: after the third duplicate ACK, each further one shows that a
/// segment has left the network. This makes room for a new segment.
#[test]
fn each_further_duplicate_makes_room_for_a_segment() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    let mut window = host.connection.information().congestion_window;
    assert_eq!(window, 5_500 + 3_000, "half of the flight, and three segments for the duplicates");
    let mut next = 12_001;
    for _ in 0..6 {
        host.send(". 1:1(0) ack 1001");
        window += 1_000;
        assert_eq!(host.connection.information().congestion_window, window);
        while next + 1_000 <= 1_001 + window {
            assert_eq!(host.take_one().says.seq, next);
            next += 1_000;
        }
        host.expect_nothing();
    }
    assert_eq!(next, 15_001);
}

/// RFC 6582 §3.2 step 3, §4: recovery repairs one loss per round trip. Only the first partial
/// acknowledgement restarts the timer. If many segments are lost, the timer therefore expires,
/// which ends the recovery.
#[test]
fn a_long_recovery_ends_in_a_timeout() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    host.take_sent();
    host.pass_time(ms(150));
    host.send(". 1:1(0) ack 2001");
    host.take_sent();
    host.pass_time(ms(150));
    host.send(". 1:1(0) ack 3001");
    host.take_sent();
    assert_eq!(
        host.connection.statistics().retransmission_timeouts,
        0,
        "the first acknowledgement has restarted the timer"
    );
    host.pass_time(ms(150));
    assert_eq!(
        host.connection.statistics().retransmission_timeouts,
        1,
        "the second acknowledgement has not"
    );
}

/// RFC 6582 §3.2 step 3: a partial acknowledgement shows that the segment at its number is also
/// lost, so it is retransmitted.
#[test]
fn new_reno_retransmits_at_each_partial_acknowledgement() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    for hole in [4_001, 8_001] {
        host.send(&format!(". 1:1(0) ack {hole}"));
        let again = host.take_one();
        assert_eq!((again.says.seq, again.says.length), (hole, 1_000));
        for new in host.take_sent() {
            assert!(new.says.seq >= 12_001, "{} was no hole", new.says);
        }
    }
    host.send(". 1:1(0) ack 12001");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.retransmitted_segments), (1, 3));
    assert_eq!(statistics.retransmission_timeouts, 0);
}

#[test]
fn reno_ends_recovery_at_the_first_new_acknowledgement() {
    let mut host = before_the_third_duplicate(CongestionName::Reno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    host.send(". 1:1(0) ack 4001");
    host.expect_nothing();
    assert_eq!(host.connection.information().congestion_window, 5_500);
    for _ in 0..2 {
        host.send(". 1:1(0) ack 4001");
        host.expect_nothing();
    }
    host.send(". 1:1(0) ack 4001");
    expect_segments(&mut host, 4_001, 1);
}

#[test]
fn tahoe_begins_slow_start_after_the_third_duplicate() {
    let mut host = before_the_third_duplicate(CongestionName::Tahoe);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_500, 1_000));
    // After the loss, Tahoe is in slow start. There, duplicate ACKs do not enlarge the window, so
    // nothing is sent.
    for _ in 0..5 {
        host.send(". 1:1(0) ack 1001");
        host.expect_nothing();
    }
    host.send(". 1:1(0) ack 12001");
    expect_segments(&mut host, 12_001, 2);
}

/// RFC 5681 equation (4) and §3.1: a timeout sets ssthresh to half of the data in flight, and cwnd
/// to one segment. The data in flight is then retransmitted, except for data that has been
/// acknowledged.
#[test]
fn after_a_timeout_the_flight_is_retransmitted_in_slow_start() {
    let mut host = established(&Config { frto: false, ..new_reno() });
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.expect_nothing();
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_000, 1_000));
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 2);
    host.send(". 1:1(0) ack 3001");
    expect_segments(&mut host, 3_001, 3);
    // Only the first segment was lost. All other data in flight is now acknowledged, so it is not
    // retransmitted, and the next segment contains new data.
    host.send(". 1:1(0) ack 10001");
    let next = host.take_one();
    assert_eq!(next.says.seq, 10_001);
}

/// RFC 5681 §3.1: the first timeout of a segment halves ssthresh. Further timeouts of this segment
/// do not.
#[test]
fn the_same_loss_halves_the_threshold_once() {
    let mut host = established(&new_reno());
    host.write(10_000);
    host.take_sent();
    host.pass_time(ms(200) + ms(400) + ms(800));
    assert_eq!(host.connection.information().slow_start_threshold, 5_000);
}

/// Two timeouts are caused by different losses, so each of them halves ssthresh. No RTT sample was
/// taken between them, so the second timeout occurs after twice the RTO.
#[test]
fn another_loss_halves_the_threshold_again() {
    let mut host = established(&Config::modern());
    host.write(10_000);
    host.take_sent();
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 10001");
    host.write(4_000);
    host.take_sent();
    host.pass_time(ms(400));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 2);
    assert_eq!(host.connection.information().slow_start_threshold, 2_000);
}

/// RFC 6582 §3.2 step 2, §6: after a timeout, segments may be retransmitted although they have
/// arrived. The peer answers them by duplicate ACKs, which are no sign of another loss.
#[test]
fn duplicates_after_a_timeout_trigger_nothing() {
    let mut host = established(&Config { frto: false, ..Config::modern() });
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 5001");
    expect_segments(&mut host, 5_001, 2);
    for _ in 0..5 {
        host.send(". 1:1(0) ack 5001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 0);
    host.expect_nothing();
}

/// Returns a connection that sent ten segments and retransmitted the first of them after a timeout.
fn after_a_timeout() -> Script {
    let mut host = established(&new_reno());
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.expect_nothing();
    host
}

/// F-RTO, RFC 5682 §2.1 step 3 (b): after a timeout, two acknowledgements of new data show that the
/// original segments arrive, only late. The timeout is undone, and nothing more is retransmitted.
/// The late segments give RTT samples (§2.2).
#[test]
fn two_acknowledgements_of_new_data_undo_a_timeout() {
    let mut host = after_a_timeout();
    host.pass_time(ms(50));
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 2001");
    let information = host.connection.information();
    assert!(information.congestion_window >= 10_000, "{}", information.congestion_window);
    assert!(information.slow_start_threshold > 10_000, "{}", information.slow_start_threshold);
    for sent in host.take_sent() {
        assert!(sent.says.seq >= 12_001, "{} was sent again", sent.says);
    }
    host.send(". 1:1(0) ack 12001");
    host.take_sent();
    let statistics = host.connection.statistics();
    assert_eq!((statistics.retransmitted_segments, statistics.spurious_recoveries), (1, 1));
    // Since the timeout is undone, its recovery has ended. Three duplicate ACKs therefore indicate
    // another loss (RFC 5682 §2.2, "recover").
    for _ in 0..3 {
        host.send(". 1:1(0) ack 12001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
}

/// RFC 5682 §2.1 step 3 (b): here one acknowledgement shows that the timeout was spurious, and also
/// ends the recovery, because it covers the new data. Later acknowledgements must not undo the
/// timeout a second time.
#[test]
fn a_timeout_is_undone_once_if_the_acknowledgement_covers_the_new_data() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 12001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
    host.take_sent();
    host.send("P. 1:2(1) ack 14001");
    host.send(". 2:2(0) ack 15001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
}

/// RFC 5682 §2.1 step 3 (a): F-RTO has sent new data, and a duplicate ACK follows. The rest of the
/// data in flight is therefore lost. It is retransmitted in slow start, from a window of at most
/// three segments.
#[test]
fn a_duplicate_after_new_data_confirms_the_timeout() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 2);
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_000, 2_000));
    // These duplicate ACKs answer the second new segment and needless retransmissions. They
    // indicate no other loss, so nothing is sent.
    for _ in 0..4 {
        host.send(". 1:1(0) ack 1001");
        host.expect_nothing();
    }
    host.send(". 1:1(0) ack 12001");
    let next = host.take_one();
    assert_eq!(next.says.seq, 12_001);
    let statistics = host.connection.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.spurious_recoveries), (0, 0));
}

/// RFC 5682 §2.1 step 2 (a): the first acknowledgement after a timeout may not show whether the
/// original segments arrive. The timeout then counts as genuine. Such acknowledgements are
/// duplicates, acknowledgements of a part of the retransmitted segment, and acknowledgements of all
/// data in flight.
#[test]
fn an_inconclusive_acknowledgement_confirms_the_timeout() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1");
    host.expect_nothing();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 2);

    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 501");
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001, "neither the retransmitted segment nor a new one");

    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 10001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 11001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 0);
    assert_eq!(host.connection.information().slow_start_threshold, 5_000);
}

/// RFC 5682 §2.1 step 2 (b): F-RTO requires new data, and room for it in the peer's window. Without
/// them, the data in flight is retransmitted at once.
#[test]
fn without_new_data_to_send_a_timeout_is_confirmed() {
    for (written, window) in [(10_000, 65_535), (30_000, 9_000)] {
        let mut host = established(&new_reno());
        host.write(written);
        expect_segments(&mut host, 1, 10);
        host.expect_after(ms(200), ". 1:1001(1000) ack 1");
        host.send(&format!(". 1:1(0) ack 1001 win {window}"));
        let next = host.take_one();
        assert_eq!(next.says.seq, 1_001);
    }
}

/// RFC 5682 §2.1: F-RTO waits for an acknowledgement. It ignores segments that acknowledge nothing
/// new and have data or a new window.
#[test]
fn data_and_window_updates_do_not_advance_f_rto() {
    let mut host = after_a_timeout();
    host.send("P. 1:11(10) ack 1");
    host.take_sent();
    host.send(". 11:11(0) ack 1 win 65000");
    host.expect_nothing();
    host.send(". 11:11(0) ack 1001 win 65000");
    expect_segments(&mut host, 10_001, 2);
}

/// RFC 5682 §2.1 step 1: if the timer expires again for the segment at SND.UNA, F-RTO begins again.
/// A timeout of another segment during the recovery counts as genuine.
#[test]
fn f_rto_starts_again_if_the_same_segment_times_out_again() {
    let mut host = after_a_timeout();
    host.expect_after(ms(400), ". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    let mut late = host;
    late.send(". 1:1(0) ack 2001");
    assert_eq!(late.connection.statistics().spurious_recoveries, 1);

    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.expect_after(ms(400), ". 1001:2001(1000) ack 1");
    host.send(". 1:1(0) ack 2001");
    expect_segments(&mut host, 2_001, 2);
    host.send(". 1:1(0) ack 4001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 0);
}

/// The RTT of the path grows beyond RTO, which causes a spurious timeout. Without SACK and
/// timestamps, only F-RTO detects it. Thanks to F-RTO, one segment is retransmitted needlessly, and
/// not all data in flight.
#[test]
fn a_path_that_becomes_longer_costs_one_retransmission() {
    let config = Config { selective_acks: false, timestamps: false, ..new_reno() };
    let mut pair = Connections::new(&config, &config, Network::clean(ms(10)), 1);
    pair = pair.established();
    let changes = pair.now + ms(60);
    pair.set_filter(move |now, from, _| {
        (from == linerate_testkit::End::Client && now >= changes).then_some(Fate::Delay(ms(400)))
    });
    let data = vec![7; 2_000_000];
    let mut written = 0;
    let mut read = 0;
    pair.run_until("all has arrived", |pair| {
        let now = pair.now;
        written += pair.client.write(now, &data[written..]).unwrap();
        read += pair.read_all(linerate_testkit::End::Server).unwrap().len();
        read == data.len()
    });
    let statistics = pair.client.statistics();
    assert_eq!((statistics.retransmission_timeouts, statistics.spurious_recoveries), (1, 1));
    assert_eq!(statistics.retransmitted_segments, 1);
}

/// The retransmission timer of the BSD profile is counted down every 500 ms, so it expires only at
/// such a tick.
#[test]
fn the_clock_of_1988_expires_on_its_ticks() {
    let mut host = established(&Config::bsd_tahoe());
    host.pass_time(ms(130));
    host.write(1_000);
    host.expect("P. 1:1001(1000) ack 1");
    // RTO is one second, and the write is at 0.13 s, so RTO ends at 1.13 s. The timer expires at
    // the next tick of 500 ms: at 1.5 s, which is 1.37 s after the write.
    host.expect_after(ms(1_370), "P. 1:1001(1000) ack 1");
    host.expect_after(ms(2_000), "P. 1:1001(1000) ack 1");
}

/// If the peer's window is smaller than a segment, retransmissions are correspondingly smaller.
#[test]
fn retransmissions_fit_the_peer_s_window() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 400 mss 1000");
    host.application(|connection, _| connection.set_no_delay(true));
    for start in [1, 101, 201, 301] {
        host.write(100);
        host.expect(&format!("P. {start}:{}(100) ack 1", start + 100));
    }
    host.write(2_000);
    host.expect_nothing();
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1 win 400");
    }
    host.expect(". 1:401(400) ack 1");
    host.expect_nothing();
}

/// Both endpoints retransmit, because acknowledgements were lost in both directions. An
/// acknowledgement must have SND.NXT as sequence number. With the number of the retransmission, the
/// peer would discard it as old.
#[test]
fn acknowledgements_do_not_carry_the_number_of_a_retransmission() {
    for frto in [true, false] {
        let mut host = established(&Config { frto, ..Config::modern() });
        host.write(5_000);
        host.take_sent();
        host.send(". 1:1001(1000) ack 1");
        host.expect(". 5001:5001(0) ack 1001");
        host.expect_after(ms(200), ". 1:1001(1000) ack 1001");
        host.send(". 1:1001(1000) ack 1");
        host.expect(". 5001:5001(0) ack 1001");
        host.send(". 1001:2001(1000) ack 1");
        host.expect(". 5001:5001(0) ack 2001");
        host.application(Connection::abort);
        host.expect("R. 5001:5001(0) ack 2001");
    }
}

/// For a while, all pure acknowledgements of both endpoints are lost. All data must nevertheless be
/// acknowledged within a second.
#[test]
fn two_ends_recover_from_the_loss_of_all_acknowledgements() {
    let config = Config::modern();
    let mut pair = Connections::new(&config, &config, Network::clean(ms(5)), 1).established();
    let (start, outage_end) = (pair.now, pair.now + ms(100));
    pair.set_filter(move |now, _, segment| {
        (now < outage_end && segment.payload.is_empty()).then_some(Fate::Lose)
    });
    assert_eq!(pair.client.write(start, &[1; 10_000]), Ok(10_000));
    assert_eq!(pair.server().write(start, &[2; 10_000]), Ok(10_000));
    pair.run_until("all is acknowledged", |pair| {
        pair.client.unacknowledged_bytes() + pair.server().unacknowledged_bytes() == 0
    });
    assert!(pair.now.since(start) < secs(1), "{}", pair.now.since(start));
}

/// The peer has sent a window probe of one byte, and then an acknowledgement with the sequence
/// number of this byte. The acknowledgement is therefore an old segment: its acknowledgement number
/// is used, but its window is ignored.
#[test]
fn an_acknowledgement_on_an_old_segment_counts_and_its_window_does_not() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 3000 mss 1000");
    host.send(". 1:2(1) ack 1 win 3000");
    host.expect(". 1:1(0) ack 2");
    host.write(5_000);
    host.take_sent();
    host.send(". 1:1(0) ack 2001 win 60000");
    host.expect(". 3001:3001(0) ack 2");
    assert_eq!(host.connection.unacknowledged_bytes(), 3_000);
    host.expect_nothing();
    // The next two acknowledgements are ignored. The first acknowledges unsent data, and the
    // sequence number of the second is far outside the window.
    host.send(". 1:1(0) ack 3002");
    host.send(". 2000000000:2000000000(0) ack 3001");
    assert_eq!(host.connection.unacknowledged_bytes(), 3_000);
    host.send(". 2:2(0) ack 3001 win 3000");
    host.expect(". 3001:4001(1000) ack 2");
}

/// If several consecutive small segments are lost, their data is retransmitted in one larger
/// segment.
#[test]
fn lost_small_segments_are_retransmitted_as_one() {
    let mut host = established(&Config { no_delay: true, ..Config::modern() });
    for _ in 0..5 {
        host.write(100);
    }
    host.take_sent();
    host.expect_after(ms(200), "P. 1:501(500) ack 1");
    assert_eq!(host.connection.statistics().bytes_retransmitted, 500);
}

/// A retransmitted segment may also contain new data. The counter of retransmitted bytes does not
/// include this data.
#[test]
fn new_data_in_a_retransmitted_segment_do_not_count_as_retransmitted() {
    let mut host = established(&Config::modern());
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.write(300);
    host.expect_nothing();
    host.expect_after(ms(200), "P. 1:401(400) ack 1");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.bytes_retransmitted, statistics.bytes_sent), (100, 400));
}

/// Karn's algorithm (RFC 6298 §3): data after a missing segment is acknowledged only when the
/// retransmission of that segment has arrived. This acknowledgement gives no RTT sample for the
/// data, although the data was sent only once.
#[test]
fn data_beyond_a_hole_gives_no_rtt_sample() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    for _ in 0..8 {
        host.send(". 1:1(0) ack 1001");
    }
    assert!(host.take_sent().last().unwrap().says.seq > 12_000, "new data have left");
    let before = host.connection.information().smoothed_round_trip;
    host.pass_time(ms(100));
    host.send(". 1:1(0) ack 2001");
    host.take_sent();
    host.pass_time(ms(50));
    host.send(". 1:1(0) ack 13001");
    assert_eq!(host.connection.information().smoothed_round_trip, before);
}

/// Karn's algorithm also applies to a simultaneous open: the SYN-ACK counts as a retransmission of
/// the SYN.
#[test]
fn a_simultaneous_open_gives_no_rtt_sample() {
    for offers in ["", " sackOK"] {
        let mut host = Script::connect(&Config::modern());
        host.expect("S 0:0(0)");
        host.pass_time(ms(100));
        host.send(&format!("S 0:0(0) win 65535 mss 1000{offers}"));
        host.expect("S. 0:0(0) ack 1");
        host.pass_time(ms(100));
        host.send(". 1:1(0) ack 1");
        assert_eq!(host.connection.state(), State::Established);
        assert_eq!(host.connection.information().smoothed_round_trip, None);
    }
}

/// RFC 6582 §3.2 step 3: a partial acknowledgement reduces cwnd by the acknowledged bytes, and then
/// adds one segment.
#[test]
fn a_partial_acknowledgement_deflates_the_window() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    assert_eq!(host.connection.information().congestion_window, 5_500 + 3_000);
    host.take_sent();
    host.send(". 1:1(0) ack 4001");
    assert_eq!(host.connection.information().congestion_window, 5_500 + 3_000 - 3_000 + 1_000);
}

/// A retransmission is due, but its data is acknowledged before it can be sent. The retransmission
/// is then omitted.
#[test]
fn a_pending_retransmission_is_dropped_when_its_data_are_acknowledged() {
    for congestion in [CongestionName::Tahoe, CongestionName::Reno, CongestionName::NewReno] {
        let mut host = before_the_third_duplicate(congestion);
        host.send_together(&[". 1:1(0) ack 1001", ". 1:1(0) ack 12001"]);
        for sent in host.take_sent() {
            assert!(sent.says.seq >= 12_001, "{congestion}: {}", sent.says);
        }
        assert_eq!(host.connection.statistics().retransmitted_segments, 0, "{congestion}");
    }
}

/// RFC 3042 §2: limited transmit applies to the first two duplicate ACKs. At the third, Tahoe
/// retransmits a segment. It sends nothing for further duplicate ACKs.
#[test]
fn limited_transmit_ends_with_the_third_duplicate() {
    let config = Config { congestion: CongestionName::Tahoe, ..Config::modern() };
    let mut host = established(&config);
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1");
    }
    assert_eq!(host.take_sent().len(), 3);
    for _ in 0..20 {
        host.send(". 1:1(0) ack 1");
        host.expect_nothing();
    }
}

/// RFC 6582 §3.2 step 1: needless retransmissions cause duplicates of the acknowledgement that
/// ended the recovery. These trigger no recovery. Another recovery begins only after duplicates of
/// a later acknowledgement.
#[test]
fn duplicates_of_the_end_of_a_recovery_trigger_nothing() {
    let mut host = established(&Config { frto: false, ..new_reno() });
    host.write(10_000);
    expect_segments(&mut host, 1, 10);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 10001");
    host.write(10_000);
    host.take_sent();
    for _ in 0..4 {
        host.send(". 1:1(0) ack 10001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 0);
    host.send(". 1:1(0) ack 11001");
    host.take_sent();
    for _ in 0..3 {
        host.send(". 1:1(0) ack 11001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
}

/// RFC 5682 §2.1 step 3 (a), RFC 6582 §3.2 step 4: during F-RTO, new data was sent. The recovery
/// that follows lasts until this data is also acknowledged, so duplicate ACKs for it trigger
/// nothing.
#[test]
fn duplicates_of_data_that_f_rto_sent_trigger_nothing() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 1001");
    host.take_sent();
    host.send(". 1:1(0) ack 11001");
    host.take_sent();
    for _ in 0..4 {
        host.send(". 1:1(0) ack 11001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 0);
}

/// RFC 5681 §4.1: after an idle period of more than RTO, cwnd is reduced to the restart window,
/// which is the initial window.
#[test]
fn after_an_idle_period_the_window_is_the_initial_one() {
    let mut host = established(&Config { initial_window: 2, ..Config::modern() });
    host.write(14_000);
    expect_segments(&mut host, 1, 2);
    for (acknowledged, segments) in [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2)] {
        host.send(&format!(". 1:1(0) ack {}", acknowledged * 1_000 + 1));
        expect_segments(&mut host, acknowledged * 2_000 + 1, segments);
    }
    host.send(". 1:1(0) ack 14001");
    host.pass_time(secs(1));
    host.write(14_000);
    expect_segments(&mut host, 14_001, 2);
}
