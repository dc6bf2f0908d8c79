//! Tests of the congestion window: its growth, and its reduction after losses.

use crate::{ms, secs};
use linerate_tcp::{Config, CongestionName, NagleRule, PacingRule};
use linerate_testkit::{Connections, End, Line, Network, Script};
use linerate_units::Rate;

const CUBIC: Config = Config { congestion: CongestionName::Cubic, ..Config::modern() };

/// Opens a connection whose segments have exactly 1,000 bytes.
fn established(config: &Config) -> Script {
    Script::established(config, "S. 0:0(0) ack 1 win 65535 mss 1000")
}

fn window(host: &Script) -> u32 {
    host.connection.information().congestion_window
}

fn threshold(host: &Script) -> u32 {
    host.connection.information().slow_start_threshold
}

/// Writes one segment per round trip, ten times. The peer acknowledges each.
fn write_one_segment_a_round_trip(host: &mut Script, start: u32) {
    for index in 1..=10 {
        host.write(1_000);
        host.take_sent();
        host.pass_time(ms(50));
        host.send(&format!(". 1:1(0) ack {}", start + index * 1_000));
    }
}

/// RFC 9438 §4.6: after a loss, CUBIC sets the threshold to 0.7 of the data in flight.
#[test]
fn cubic_keeps_seven_tenths_after_three_duplicates() {
    let mut host = established(&CUBIC);
    host.write(30_000);
    host.take_sent();
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1");
    }
    assert_eq!((threshold(&host), window(&host)), (7_000, 10_000));
    host.take_sent();
    // Twelve segments are in flight: the ten of the window, and one more for each of the first two
    // duplicate ACKs (RFC 3042). This acknowledgement covers all of them.
    host.send(". 1:1(0) ack 12001");
    assert_eq!(window(&host), 2_000, "no burst after recovery");
}

#[test]
fn data_behind_a_blocked_full_segment_requests_no_output() {
    let mut host = established(&CUBIC);
    host.write(10_500);
    host.take_sent();
    host.write(400);
    assert!(host.connection.wants_transmit(), "less than a full segment waits");
    host.take_sent();
    host.write(100);
    host.take_sent();
    host.write(5_000);
    assert!(!host.connection.wants_transmit(), "a full segment waits already");
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    assert_eq!(host.connection.statistics().bytes_sent, 16_000);
}

/// RFC 9438 §4.8: after a timeout, the window is one segment, and ssthresh is 0.7 of the data that
/// was in flight. Slow start lasts until the window reaches ssthresh.
#[test]
fn cubic_restarts_after_a_timeout_and_keeps_the_threshold() {
    let mut host = established(&CUBIC);
    host.write(30_000);
    host.take_sent();
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    assert_eq!((threshold(&host), window(&host)), (7_000, 1_000));
    host.expect_after(ms(400), ". 1:1001(1000) ack 1");
    assert_eq!((threshold(&host), window(&host)), (7_000, 1_000), "the same loss counts once");
}

/// RFC 9438 §5.8: if the application does not fill the congestion window, the window must not grow,
/// neither in slow start nor in congestion avoidance.
#[test]
fn no_controller_grows_a_window_that_the_application_does_not_fill() {
    for congestion in CongestionName::ALL {
        let mut host = established(&Config { congestion, initial_window: 10, ..Config::modern() });
        write_one_segment_a_round_trip(&mut host, 1);
        assert_eq!(window(&host), 10_000, "{congestion}");
    }
}

/// While Nagle's algorithm holds data back, the congestion window is not the limit. It must
/// therefore not grow.
#[test]
fn no_window_grows_while_nagle_holds_data_back() {
    for congestion in CongestionName::ALL {
        let config = Config {
            congestion,
            initial_window: 10,
            nagle: NagleRule::Classic,
            ..Config::modern()
        };
        let mut host = established(&config);
        let mut acked = 1;
        host.write(1_000);
        for _ in 0..9 {
            host.write(1_100);
            let last = host.take_sent().pop().unwrap();
            assert!(host.connection.information().unsent > 0, "{congestion}: a rest waits");
            host.pass_time(ms(50));
            acked = acked.max(last.says.seq + last.says.length);
            host.send(&format!(". 1:1(0) ack {acked}"));
        }
        assert_eq!(window(&host), 10_000, "{congestion}");
    }
}

/// RFC 7661 §4.2: full segments in flight fill the congestion window, so it must grow. Nagle's
/// algorithm holds back a small remainder of the data, which must not prevent this growth.
#[test]
fn a_remainder_held_by_nagle_does_not_hide_a_filled_window() {
    for congestion in [CongestionName::Reno, CongestionName::NewReno, CongestionName::Cubic] {
        let config = Config {
            congestion,
            initial_window: 10,
            nagle: NagleRule::Classic,
            ..Config::modern()
        };
        let mut host = established(&config);
        host.write(10_500);
        assert_eq!(host.take_sent().len(), 10);
        for acked in (1_001..=10_001).step_by(1_000) {
            host.send(&format!(". 1:1(0) ack {acked}"));
            host.take_sent();
        }
        assert_eq!(window(&host), 20_000, "{congestion}");
    }
}

/// Acknowledges all data in flight once per round trip, until nothing more is sent.
fn acknowledge_each_round_trip(host: &mut Script) {
    while let Some(last) = host.take_sent().pop() {
        host.pass_time(ms(50));
        host.send(&format!(". 1:1(0) ack {}", last.says.seq + last.says.length));
    }
}

/// RFC 9438 §5.8: the window of CUBIC grows with the time since the last reduction. Periods in
/// which nothing is sent do not count.
#[test]
fn a_pause_does_not_advance_the_cubic_curve() {
    let window_after = |pause| {
        let mut host = established(&Config { restart_after_idle: false, ..CUBIC });
        host.write(60_000);
        host.take_sent();
        for _ in 0..3 {
            host.send(". 1:1(0) ack 1");
        }
        host.take_sent();
        host.send(". 1:1(0) ack 12001");
        acknowledge_each_round_trip(&mut host);
        host.pass_time(pause);
        host.write(60_000);
        acknowledge_each_round_trip(&mut host);
        assert_eq!(host.connection.unacknowledged_bytes(), 0);
        window(&host)
    };
    assert_eq!(window_after(secs(30)), window_after(ms(1)));
}

/// RFC 7661 §4.2: the application fills the window once, and then writes nothing for a round trip.
/// The acknowledgements of this data must all enlarge the window, although less data is in flight
/// with each of them.
#[test]
fn every_acknowledgement_of_a_flight_that_filled_the_window_opens_it_in_slow_start() {
    for congestion in [CongestionName::Reno, CongestionName::NewReno, CongestionName::Cubic] {
        let mut host = established(&Config { congestion, initial_window: 10, ..Config::modern() });
        for (start, segments, doubled) in [(1, 10, 20_000), (10_001, 20, 40_000)] {
            host.write(segments * 1_000);
            host.take_sent();
            for index in 1..=u32::try_from(segments).unwrap() {
                host.send(&format!(". 1:1(0) ack {}", start + index * 1_000));
            }
            assert_eq!(window(&host), doubled, "{congestion}");
        }
    }
}

/// RFC 9406 §4.3: in slow start, an acknowledgement enlarges the window by at most L segments. L is
/// eight without pacing, and infinite with pacing.
#[test]
fn an_acknowledgement_opens_the_cubic_window_by_at_most_eight_segments_unless_paced() {
    for (pacing, opened) in [(PacingRule::Controller, 18_000), (PacingRule::On, 20_000)] {
        let mut host = established(&Config { pacing, ..CUBIC });
        host.write(60_000);
        host.take_sent();
        host.send(". 1:1(0) ack 10001");
        assert_eq!(window(&host), opened, "{pacing:?}");
    }
}

/// A batch of acknowledgements is processed before anything can be sent, so the data in flight
/// decreases with each of them. All must enlarge the window, because the data filled it before the
/// batch arrived.
#[test]
fn a_batch_of_acknowledgements_opens_the_window_like_single_ones() {
    for congestion in CongestionName::ALL {
        let mut host = established(&Config { congestion, initial_window: 10, ..Config::modern() });
        host.write(60_000);
        host.take_sent();
        let acks: Vec<_> =
            (1..=10).map(|index| format!(". 1:1(0) ack {}", 1 + index * 1_000)).collect();
        host.send_together(&acks.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(window(&host), 20_000, "{congestion}");
        assert_eq!(host.take_sent().len(), 20, "{congestion}");
    }
}

/// The peer's window is smaller than the congestion window and therefore limits the sender. The
/// congestion window must not grow.
#[test]
fn a_window_larger_than_the_peers_does_not_grow() {
    for congestion in CongestionName::ALL {
        let config = Config { congestion, initial_window: 10, ..Config::modern() };
        let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 4000 mss 1000");
        host.write(60_000);
        for index in 1..=20 {
            host.take_sent();
            host.pass_time(ms(50));
            host.send(&format!(". 1:1(0) ack {} win 4000", 1 + index * 1_000));
        }
        assert_eq!(window(&host), 10_000, "{congestion}");
    }
}

/// RFC 5681 §4.1: after an idle period of more than RTO, the window is reduced to the initial
/// window. It then grows in slow start until it reaches ssthresh again.
#[test]
fn after_an_idle_time_the_window_is_the_initial_one() {
    for congestion in CongestionName::ALL {
        let mut host = established(&Config { congestion, initial_window: 10, ..Config::modern() });
        host.write(60_000);
        host.take_sent();
        host.send(". 1:1(0) ack 10001");
        let mut acked = 10_001;
        while acked < 60_001 {
            host.take_sent();
            acked += 1_000;
            host.send(&format!(". 1:1(0) ack {acked}"));
        }
        assert!(window(&host) > 10_000, "{congestion}");
        let before = window(&host);
        host.pass_time(ms(150));
        host.write(1_000);
        host.take_sent();
        assert_eq!(window(&host), before, "{congestion}: that was no timeout");
        host.send(". 1:1(0) ack 61001");
        host.pass_time(secs(2));
        host.write(1_000);
        host.take_sent();
        assert_eq!(window(&host), 10_000, "{congestion}");
        assert!(threshold(&host) >= before / 4 * 3, "{congestion}: and slow start leads back");
    }
}

/// Sends 40,000 bytes. The peer acknowledges the first `ack` bytes, and then sends three duplicate
/// ACKs. An idle time follows. Returns the congestion window before and after the idle time.
fn windows_around_idleness_after_a_loss(host: &mut Script, ack: u64) -> (u32, u32) {
    let first = host.connection.statistics().bytes_acknowledged + 1;
    host.write(40_000);
    host.take_sent();
    for _ in 0..4 {
        host.send(&format!(". 1:1(0) ack {}", first + ack));
        host.take_sent();
    }
    assert_eq!(host.connection.statistics().fast_retransmissions, 1);
    for acked in (11_000..=40_000).step_by(1_000) {
        host.send(&format!(". 1:1(0) ack {}", first + acked));
        host.take_sent();
    }
    let before = window(host);
    host.pass_time(secs(2));
    host.write(20_000);
    host.take_sent();
    (before, window(host))
}

/// RFC 6928 §2: data in the first flight of a connection, or in the first flight after an idle
/// period, is lost. The initial window of ten segments is therefore too large for the path. Later
/// idle periods reduce the window to four segments.
#[test]
fn a_loss_in_a_first_flight_reduces_the_restart_window_to_four_segments() {
    for congestion in [CongestionName::Reno, CongestionName::NewReno, CongestionName::Cubic] {
        let config = Config { congestion, initial_window: 10, ..Config::modern() };
        for (idle, ack, most) in [
            (false, 0, 4_000),
            (false, 9_000, 4_000),
            (false, 10_000, 10_000),
            (true, 0, 4_000),
            (true, 10_000, 10_000),
        ] {
            let mut host = established(&config);
            if idle {
                host.write(20_000);
                for acked in [10_001, 20_001] {
                    host.take_sent();
                    host.send(&format!(". 1:1(0) ack {acked}"));
                }
                host.pass_time(secs(2));
            }
            let (before, after) = windows_around_idleness_after_a_loss(&mut host, ack);
            assert!(before > 4_000, "{congestion}: {before}");
            assert_eq!(after, before.min(most), "{congestion}, idle: {idle}, {ack} acknowledged");
        }
    }
}

#[test]
fn a_late_first_flight_does_not_reduce_the_restart_window() {
    let mut host = established(&CUBIC);
    host.write(20_000);
    host.take_sent();
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.pass_time(ms(50));
    for acked in (1_001..=20_001).step_by(1_000) {
        host.send(&format!(". 1:1(0) ack {acked}"));
        host.take_sent();
    }
    assert_eq!(host.connection.statistics().spurious_recoveries, 1);
    host.pass_time(secs(2));
    host.write(20_000);
    host.take_sent();
    assert_eq!(window(&host), 10_000);
}

/// RFC 5681 §4.1 only recommends that an idle period reduces the window. This can be disabled in
/// the configuration, for example for a dedicated path.
#[test]
fn a_window_survives_an_idle_time_if_configured() {
    let mut host =
        established(&Config { initial_window: 10, restart_after_idle: false, ..Config::modern() });
    host.write(20_000);
    host.take_sent();
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    host.send(". 1:1(0) ack 20001");
    let before = window(&host);
    assert!(before > 10_000);
    host.pass_time(secs(2));
    host.write(1_000);
    host.take_sent();
    assert_eq!(window(&host), before);
}

/// RFC 5681 §4.1: while a sender waits for the peer's window to open, it sends nothing, and the
/// path may change. The congestion window is therefore reduced as after an idle period.
#[test]
fn a_receive_window_that_reopens_late_is_not_filled_in_a_burst() {
    for congestion in CongestionName::ALL {
        let send_buffer = (256 << 10).into();
        let mut host = established(&Config {
            congestion,
            initial_window: 30,
            send_buffer,
            ..Config::modern()
        });
        host.write(30_000);
        host.take_sent();
        host.send(". 1:1(0) ack 15001");
        host.write(60_000);
        let sent = host.take_sent().len();
        let end = 30_001 + 1_000 * u32::try_from(sent).unwrap();
        assert!(window(&host) > 30_000, "{congestion}");
        host.send(&format!(". 1:1(0) ack {end} win 0"));
        host.pass_time(secs(10));
        host.take_sent();
        host.send(&format!(". 1:1(0) ack {end} win 65535"));
        assert_eq!(host.take_sent().len(), 30, "{congestion}");
        assert_eq!(window(&host), 30_000, "{congestion}");
    }
}

/// RFC 6928 §2, RFC 5681 §3.1: if one SYN is lost, the initial window stays as it is. If more SYNs
/// are lost, the path is congested, and the initial window is one segment.
#[test]
fn one_lost_syn_leaves_the_initial_window_and_two_leave_one_segment() {
    for (losses, segments) in [(0, 10), (1, 10), (2, 1), (3, 1)] {
        let mut host = Script::connect(&Config::modern());
        for loss in 0..losses {
            host.expect("S 0:0(0)");
            host.pass_time(secs(1 << loss));
        }
        host.expect("S 0:0(0)");
        host.send("S. 0:0(0) ack 1 win 65535 mss 1000");
        host.write(20_000);
        assert_eq!(host.take_sent().len(), segments, "after {losses} losses");
    }
}

/// BBR needs the delivery rate, which is measured only with SACK.
#[test]
fn bbr_falls_back_to_the_default_without_sack() {
    let mut host = established(&Config { congestion: CongestionName::Bbr, ..Config::modern() });
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10, "unpaced");
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1");
    }
    assert_eq!(threshold(&host), 7_000, "as CUBIC does");
}

/// draft-ietf-ccwg-bbr §5.4: an idle period leaves BBR's model of the path unchanged, so the window
/// is not reduced, and later data is paced.
#[test]
fn bbr_keeps_its_window_over_an_idle_time_and_paces_what_follows() {
    let config = Config { congestion: CongestionName::Bbr, ..Config::modern() };
    // The path has a limited rate. Without this limit, the window would grow until it reaches the
    // send buffer.
    let line = Some(Line { rate: Rate::from_bits_per_second(20_000_000), queue: 64 << 10 });
    let network = Network { line, ..Network::clean(ms(20)) };
    let mut pair = Connections::new(&config, &config, network, 1).established();
    let (data, end) = (vec![1; 20_000], pair.now + secs(3));
    while pair.now < end {
        let now = pair.now;
        let _ = pair.client.write(now, &data).unwrap();
        let _ = pair.read_all(End::Server).unwrap();
        assert!(pair.step());
    }
    pair.pass_time(secs(1));
    let before = pair.client.information().congestion_window;
    assert!(before > 50_000, "{before}");
    pair.pass_time(secs(3));
    let now = pair.now;
    let _ = pair.client.write(now, &data).unwrap();
    pair.pass_time(ms(1));
    assert_eq!(pair.client.information().congestion_window, before);
}

/// A fixed window, which is meant for experiments, neither grows nor shrinks.
#[test]
fn a_fixed_window_never_changes() {
    let mut host =
        established(&Config { congestion: CongestionName::Fixed(4), ..Config::modern() });
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 4);
    host.send(". 1:1(0) ack 4001");
    assert_eq!(host.take_sent().len(), 4);
    host.pass_time(secs(1));
    assert_eq!(window(&host), 4_000, "after a timeout");
    host.send(". 1:1(0) ack 8001");
    assert_eq!(host.take_sent().last().unwrap().says.seq, 11_001);
    assert_eq!(window(&host), 4_000);
}
