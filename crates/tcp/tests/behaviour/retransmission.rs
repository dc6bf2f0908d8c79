//! What was lost is sent again: by the timer (RFC 6298), after three duplicates (RFC 5681), and hole
//! by hole (RFC 6582).

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, CongestionName, Connection, Error, Event, State};
use linerate_testkit::{Connections, Fate, Network, Script};

/// Established with segments of exactly 1,000 bytes.
fn established(config: &Config) -> Script {
    Script::established(config, "S. 0:0(0) ack 1 win 65535 mss 1000")
}

/// The profile with the window rules of RFC 5681.
fn new_reno() -> Config {
    Config { congestion: CongestionName::NewReno, ..Config::modern() }
}

/// `count` segments of 1,000 bytes from `start` on, and nothing else, have left.
#[track_caller]
fn expect_segments(host: &mut Script, start: u32, count: u32) {
    for index in 0..count {
        let seq = start + index * 1_000;
        let sent = host.take_one();
        assert_eq!((sent.says.seq, sent.says.length), (seq, 1_000), "{}", sent.says);
    }
    host.expect_nothing();
}

/// Eleven segments are out, the first was acknowledged, the second was lost, and two duplicates have
/// come.
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

/// RFC 6298 (2.2): after the first measurement R, RTO = R + 4·R/2.
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

/// RFC 6298 (5.3): what is acknowledged gives the rest a whole timeout.
#[test]
fn an_acknowledgement_of_new_data_restarts_the_timer() {
    let mut host = established(&Config::modern());
    host.write(2_000);
    host.take_sent();
    host.pass_time(ms(150));
    host.send(". 1:1(0) ack 1001");
    // The round trip that was just measured: SRTT 19 ms, RTTVAR 38 ms; the minimum rules.
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

/// Karn's rule: an acknowledgement of something sent twice measures nothing, and the doubled timeout
/// stays until something that was sent once is acknowledged.
#[test]
fn what_was_sent_twice_measures_no_round_trip() {
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

/// RFC 7323 §4.2: a timestamp tells which copy is meant, and measures only what acknowledges something new (§4.1).
#[test]
fn a_timestamp_measures_even_what_was_sent_twice() {
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
            "one of 40 ms after one of 0: {round_trip}"
        );
        assert_eq!(host.connection.information().retransmission_timeout, ms(200));
    }
}

/// The first copy arrived, its acknowledgement did not, and the peer echoes what it had noted then. Taken
/// for a round trip, each timeout in vain would make the next one longer, and a path of milliseconds ended
/// at two minutes. The same with segments that were sent once, behind the one that was sent again.
#[test]
fn a_wait_for_our_own_timer_measures_no_round_trip() {
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

#[test]
fn the_third_duplicate_and_no_other_sends_the_lost_segment_again() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_500, 8_500));
    // Flight 11,000: two more that have left the network are not yet a window's worth.
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

#[test]
fn a_repetition_is_no_duplicate_if_it_says_anything_else() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send("P. 1:11(10) ack 1001");
    host.expect(". 12001:12001(0) ack 11");
    host.send(". 11:11(0) ack 1001 win 65000");
    host.expect_nothing();
    assert_eq!(host.connection.statistics().fast_retransmissions, 0);
    host.send(". 11:11(0) ack 1001 win 65000");
    expect_segments(&mut host, 1_001, 1);
}

/// RFC 6675 §2. A Linux that tunes its buffer opens the window with every segment beyond the hole; it
/// was never received to repeat itself, and each loss cost a timeout.
#[test]
fn a_peer_that_names_its_hole_repeats_itself_whatever_its_window() {
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

/// RFC 2883: a block below the acknowledgement tells of data that came twice, which is no loss.
#[test]
fn a_peer_that_got_something_twice_does_not_name_a_hole() {
    let syn_ack = "S. 0:0(0) ack 1 win 65535 mss 1000 sackOK";
    let mut host = Script::established(&Config::modern(), syn_ack);
    host.write(10_000);
    expect_segments(&mut host, 1, 10);
    for window in [61_000, 62_000, 63_000, 64_000] {
        host.send(&format!(". 1:1(0) ack 1001 win {window} sack 1-1001"));
        host.expect_nothing();
    }
}

/// RFC 3042: a window of two segments would never see three duplicates without them.
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
    // The lost one, and one more that three segments which have left the network make room for.
    for seq in [1, 4_001] {
        assert_eq!(host.take_one().says.seq, seq);
    }
    // Flight was two segments, without the two that were let go.
    assert_eq!(host.connection.information().slow_start_threshold, 2_000);
}

/// RFC 5681 §3.2 steps 4 and 5: each segment that is seen to have arrived makes room for a new one.
#[test]
fn each_further_duplicate_makes_room_for_a_segment() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 1);
    let mut window = host.connection.information().congestion_window;
    assert_eq!(
        window,
        5_500 + 3_000,
        "half of what was in flight, and the three that have arrived"
    );
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

/// RFC 6582 §3.2 step 3, §4: the first partial acknowledgement restarts the timer and later ones do not, so
/// that many holes are not filled at one a round trip for ever.
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
        "the first has restarted it"
    );
    host.pass_time(ms(150));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 1, "the second has not");
}

/// RFC 6582: each partial acknowledgement shows the next hole, which is filled at once.
#[test]
fn new_reno_fills_a_hole_at_each_partial_acknowledgement() {
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
    // What is left in the network does not inflate the window.
    for _ in 0..5 {
        host.send(". 1:1(0) ack 1001");
        host.expect_nothing();
    }
    host.send(". 1:1(0) ack 12001");
    expect_segments(&mut host, 12_001, 2);
}

/// RFC 5681 equation (4) and §3.1: half of what was in flight, and one segment. What the acknowledgements
/// show to have arrived is left out.
#[test]
fn after_a_timeout_everything_goes_again_in_slow_start() {
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
    // The rest had arrived.
    host.send(". 1:1(0) ack 10001");
    let next = host.take_one();
    assert_eq!(next.says.seq, 10_001);
}

/// Equation (4) speaks of the flight at the first loss: what times out again has not halved it twice.
#[test]
fn the_same_loss_halves_the_threshold_once() {
    let mut host = established(&new_reno());
    host.write(10_000);
    host.take_sent();
    host.pass_time(ms(200) + ms(400) + ms(800));
    assert_eq!(host.connection.information().slow_start_threshold, 5_000);
}

/// The timeout stays doubled until something is measured, and yet the next loss is another one.
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

/// RFC 6582 §3.2 step 2, §6: duplicates that our own repetitions cause are no new loss.
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

/// Ten segments are out, and the first has timed out and gone again.
fn after_a_timeout() -> Script {
    let mut host = established(&new_reno());
    host.write(30_000);
    expect_segments(&mut host, 1, 10);
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.expect_nothing();
    host
}

/// RFC 5682 §2.1 step 3 (b): two new segments show that what was in flight arrives after all. Nothing else
/// is sent again, and the window is what it was. What is measured of the late ones holds (§2.2).
#[test]
fn what_arrives_in_order_after_a_timeout_takes_it_back() {
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
    // The next loss is one: three duplicates are received (RFC 5682 §2.2, "recover").
    for _ in 0..3 {
        host.send(". 1:1(0) ack 12001");
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
}

/// RFC 5682 §2.1 step 3 (b): the acknowledgement that shows the timeout to be spurious may also cover
/// the new data, which ends the recovery. Later acknowledgements answer no timeout.
#[test]
fn a_timeout_is_taken_back_once_if_the_proof_covers_the_new_data_too() {
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

/// RFC 5682 §2.1 step 3 (a): a duplicate says that the rest is missing, and it goes again in slow start, from
/// no more than three segments.
#[test]
fn a_duplicate_that_answers_new_data_says_that_the_rest_is_lost() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 2);
    let information = host.connection.information();
    assert_eq!((information.slow_start_threshold, information.congestion_window), (5_000, 2_000));
    // Neither does the other new one make the loss another one, nor what is repeated needlessly.
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

/// RFC 5682 §2.1 step 2 (a): a duplicate, an acknowledgement of a part of what was sent again, or of all
/// that was in flight, shows nothing of the rest.
#[test]
fn an_inconclusive_answer_confirms_the_timeout() {
    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 1");
    host.expect_nothing();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, 1_001, 2);

    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 501");
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001, "what was sent again just now is not, and nothing new");

    let mut host = after_a_timeout();
    host.send(". 1:1(0) ack 10001");
    expect_segments(&mut host, 10_001, 2);
    host.send(". 1:1(0) ack 11001");
    assert_eq!(host.connection.statistics().spurious_recoveries, 0);
    assert_eq!(host.connection.information().slow_start_threshold, 5_000);
}

/// RFC 5682 §2.1 step 2 (b): without new data, or room for it, what is missing goes again at once.
#[test]
fn without_new_data_nothing_is_asked_after_a_timeout() {
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

/// Anything else that comes, a window or data, is no answer (RFC 5682 §2.1).
#[test]
fn what_acknowledges_nothing_and_repeats_nothing_is_no_answer_to_a_timeout() {
    let mut host = after_a_timeout();
    host.send("P. 1:11(10) ack 1");
    host.take_sent();
    host.send(". 11:11(0) ack 1 win 65000");
    host.expect_nothing();
    host.send(". 11:11(0) ack 1001 win 65000");
    expect_segments(&mut host, 10_001, 2);
}

/// RFC 5682 §2.1, step 1: if the same segment times out again, the question is asked again; if another one
/// does, its timeout is believed.
#[test]
fn a_further_timeout_of_the_same_segment_asks_again_and_one_of_another_does_not() {
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

/// A path that has become longer than the timeout, and a peer without options: one segment goes again, and
/// not the window.
#[test]
fn a_path_that_becomes_longer_costs_one_repetition() {
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

#[test]
fn the_clock_of_1988_expires_on_its_ticks() {
    let mut host = established(&Config::bsd_tahoe());
    host.pass_time(ms(130));
    host.write(1_000);
    host.expect("P. 1:1001(1000) ack 1");
    // RTO is one second; the tick after it is at half a second.
    host.expect_after(ms(1_370), "P. 1:1001(1000) ack 1");
    host.expect_after(ms(2_000), "P. 1:1001(1000) ack 1");
}

/// A peer with a window smaller than a segment never gets more than it has room for, lost or not.
#[test]
fn what_goes_again_fits_the_peer_s_window() {
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

/// Each end's acknowledgements were lost, and each sends again what the other has. What they answer
/// must not bear the old numbers, or neither would ever listen.
#[test]
fn acknowledgements_do_not_go_back_with_what_is_sent_again() {
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

/// The same between two of us: for a while nothing arrives but data.
#[test]
fn two_ends_that_lose_each_other_s_acknowledgements_find_together() {
    let config = Config::modern();
    let mut pair = Connections::new(&config, &config, Network::clean(ms(5)), 1).established();
    let (start, deaf_until) = (pair.now, pair.now + ms(100));
    pair.set_filter(move |now, _, segment| {
        (now < deaf_until && segment.payload.is_empty()).then_some(Fate::Lose)
    });
    assert_eq!(pair.client.write(start, &[1; 10_000]), Ok(10_000));
    assert_eq!(pair.server().write(start, &[2; 10_000]), Ok(10_000));
    pair.run_until("all is acknowledged", |pair| {
        pair.client.unacknowledged_bytes() + pair.server().unacknowledged_bytes() == 0
    });
    assert!(pair.now.since(start) < secs(1), "{}", pair.now.since(start));
}

/// Found by the laws: a peer has probed our window with a byte, and acknowledges from before it.
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
    // It confirms neither a number that was never sent, nor one from far away.
    host.send(". 1:1(0) ack 3002");
    host.send(". 2000000000:2000000000(0) ack 3001");
    assert_eq!(host.connection.unacknowledged_bytes(), 3_000);
    host.send(". 2:2(0) ack 3001 win 3000");
    host.expect(". 3001:4001(1000) ack 2");
}

#[test]
fn small_segments_that_were_lost_go_again_as_large_ones() {
    let mut host = established(&Config { no_delay: true, ..Config::modern() });
    for _ in 0..5 {
        host.write(100);
    }
    host.take_sent();
    host.expect_after(ms(200), "P. 1:501(500) ack 1");
    assert_eq!(host.connection.statistics().bytes_retransmitted, 500);
}

/// What was never sent before does not count as sent again, though it leaves in one segment with what was.
#[test]
fn new_data_behind_what_goes_again_are_not_counted_as_repeated() {
    let mut host = established(&Config::modern());
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.write(300);
    host.expect_nothing();
    host.expect_after(ms(200), "P. 1:401(400) ack 1");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.bytes_retransmitted, statistics.bytes_sent), (100, 400));
}

/// Karn's rule, RFC 6298 §3: what left behind a hole and is acknowledged with it has waited for the hole to be filled,
/// which is no round trip.
#[test]
fn what_has_waited_for_a_hole_to_be_filled_measures_no_round_trip() {
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

/// Karn's rule holds for a SYN that goes again as SYN-ACK, where both ends have opened.
#[test]
fn a_syn_that_went_again_as_the_answer_to_another_measures_no_round_trip() {
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

/// RFC 6582 §3.2 step 3: what a partial acknowledgement covers is taken out of the window, and a segment is put back.
#[test]
fn a_partial_acknowledgement_deflates_the_window() {
    let mut host = before_the_third_duplicate(CongestionName::NewReno);
    host.send(". 1:1(0) ack 1001");
    assert_eq!(host.connection.information().congestion_window, 5_500 + 3_000);
    host.take_sent();
    host.send(". 1:1(0) ack 4001");
    assert_eq!(host.connection.information().congestion_window, 5_500 + 3_000 - 3_000 + 1_000);
}

/// What is acknowledged before its repetition could leave does not go again.
#[test]
fn a_repetition_that_has_not_left_is_forgotten_when_its_data_are_acknowledged() {
    for congestion in [CongestionName::Tahoe, CongestionName::Reno, CongestionName::NewReno] {
        let mut host = before_the_third_duplicate(congestion);
        host.send_together(&[". 1:1(0) ack 1001", ". 1:1(0) ack 12001"]);
        for sent in host.take_sent() {
            assert!(sent.says.seq >= 12_001, "{congestion}: {}", sent.says);
        }
        assert_eq!(host.connection.statistics().retransmitted_segments, 0, "{congestion}");
    }
}

/// RFC 3042 §2: the first two duplicates let new segments go, and those after Tahoe's repetition none.
#[test]
fn duplicates_after_the_third_let_nothing_go_where_slow_start_has_begun() {
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

/// RFC 6582 §3.2 step 1: three duplicates of the number at which a recovery ended may be of what it sent for nothing.
/// It must have been passed.
#[test]
fn duplicates_of_the_number_where_a_timeout_was_made_up_for_trigger_nothing() {
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

/// RFC 5682 §2.1 step 3 (a), RFC 6582 §3.2 step 4: a timeout that is believed after new data were sent is made up for
/// when these are acknowledged, too.
#[test]
fn duplicates_before_the_end_of_what_asked_after_a_timeout_trigger_nothing() {
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

/// RFC 5681 §4.1: a window that was not used for a timeout says nothing about the path now.
#[test]
fn after_a_pause_the_window_is_the_initial_one() {
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
