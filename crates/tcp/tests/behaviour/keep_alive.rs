//! Tests of keep-alive (RFC 9293 §3.8.4): at the request of the application, probes are sent to an
//! idle peer.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Error, KeepAlive, State};
use linerate_testkit::Script;
use linerate_units::Duration;

fn probing(idle: Duration, interval: Duration, probes: u32) -> Script {
    let keep_alive = Some(KeepAlive { idle, interval, probes });
    Script::established(&Config { keep_alive, ..Config::modern() }, SYN_ACK)
}

#[test]
fn keep_alive_is_off_by_default_and_its_default_idle_time_is_two_hours() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    assert_eq!(host.connection.keep_alive(), None);
    host.expect_silence(secs(24 * 3_600));
    host.application(|connection, now| connection.set_keep_alive(now, Some(KeepAlive::default())));
    host.expect_after(secs(7_200), ". 0:0(0) ack 1");
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut host = probing(secs(10), secs(3), 3);
    host.expect_after(secs(10), ". 0:0(0) ack 1");
    host.expect_after(secs(3), ". 0:0(0) ack 1");
    host.expect_after(secs(3), ". 0:0(0) ack 1");
    host.expect_after(secs(3), "R. 1:1(0) ack 1");
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::TimedOut))
    );
}

#[test]
fn a_peer_that_answers_is_probed_again_after_the_next_idle_time() {
    let mut host = probing(secs(10), secs(3), 3);
    for _ in 0..20 {
        host.expect_after(secs(10), ". 0:0(0) ack 1");
        host.send(". 1:1(0) ack 1");
        host.expect_nothing();
    }
    assert_eq!(host.connection.statistics().keep_alive_probes, 20);
}

/// The peer answers every probe, so the connection must not be given up. The interval between
/// unanswered probes, 75 s, exceeds the idle time of 10 s before the first probe, and must play no
/// role here.
#[test]
fn a_peer_that_always_answers_is_never_given_up() {
    let mut host = probing(secs(10), secs(75), 3);
    let start = host.now;
    while host.now.since(start) < secs(3_600) {
        host.pass_time(secs(1));
        for sent in host.take_sent() {
            assert_eq!(sent.says.seq, 0, "{}", sent.says);
            host.send(". 1:1(0) ack 1");
        }
    }
    assert_eq!(host.connection.state(), State::Established);
}

#[test]
fn any_received_segment_postpones_the_probe() {
    let mut host = probing(secs(10), secs(3), 3);
    host.pass_time(secs(9));
    host.send("P. 1:11(10) ack 1");
    host.expect(". 1:1(0) ack 11");
    host.expect_after(secs(10), ". 0:0(0) ack 11");
    host.expect_after(secs(3), ". 0:0(0) ack 11");
    host.send("P. 11:21(10) ack 1");
    host.expect(". 1:1(0) ack 21");
    host.pass_time(secs(10));
    host.expect(". 0:0(0) ack 21");
    assert_eq!(host.connection.state(), State::Established);
}

#[test]
fn data_in_flight_replaces_the_probe() {
    let mut host = probing(secs(1), secs(1), 2);
    host.write(100);
    host.pass_time(secs(20));
    for sent in host.take_sent() {
        assert_eq!(sent.says.length, 100, "{}", sent.says);
    }
    assert_eq!(host.connection.statistics().keep_alive_probes, 0);
    assert_eq!(host.connection.state(), State::Established);
}

/// While data is in flight, no keep-alive probes are sent. The idle time before the next probe
/// starts when this data is acknowledged.
#[test]
fn idle_time_counts_again_after_data_in_flight_is_acknowledged() {
    let mut host = probing(secs(10), secs(3), 3);
    host.pass_time(secs(9));
    host.write(100);
    host.pass_time(secs(3));
    host.take_sent();
    host.send(". 1:1(0) ack 101");
    host.expect_silence(secs(10) - ms(1));
    host.expect_after(ms(1), ". 100:100(0) ack 1");
}

/// RFC 9293 §3.8.4: a keep-alive probe of the peer may be empty, or carry one byte of old data,
/// which some old TCPs require. Either kind is answered by an acknowledgement.
#[test]
fn a_peer_s_probe_is_answered() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    for probe in [". 0:0(0) ack 1", ". 0:1(1) ack 1"] {
        host.send(probe);
        host.expect(". 1:1(0) ack 1");
        host.pass_time(secs(75));
    }
    assert_eq!(host.connection.readable_bytes(), 0);
}

#[test]
fn keep_alive_can_be_disabled_again() {
    let mut host = probing(secs(10), secs(3), 3);
    host.expect_after(secs(10), ". 0:0(0) ack 1");
    host.application(|connection, now| connection.set_keep_alive(now, None));
    host.expect_silence(secs(3_600));
}

#[test]
fn a_pending_acknowledgement_is_not_a_probe() {
    let mut host = probing(ms(20), secs(3), 3);
    host.send("P. 1:11(10) ack 1");
    host.expect(". 1:1(0) ack 11");
    host.expect_after(ms(20), ". 0:0(0) ack 11");
    host.expect_nothing();
}

/// Timers may be handled late on a busy host, so that a probe and an acknowledgement are due at one
/// time. The acknowledgement must then be sent first. The test runs with and without TCP options.
#[test]
fn a_probe_due_with_an_acknowledgement_follows_it() {
    for offers in ["", " sackOK ts 100 1"] {
        let keep_alive = Some(KeepAlive { idle: ms(20), interval: secs(3), probes: 3 });
        let config = Config { keep_alive, ..Config::modern() };
        let mut host =
            Script::established(&config, &format!("S. 0:0(0) ack 1 win 65535 mss 1460{offers}"));
        host.send("P. 1:11(10) ack 1");
        host.now += ms(20);
        host.application(|connection, now| connection.driver().handle_timeout(now));
        host.expect(". 1:1(0) ack 11");
        host.expect(". 0:0(0) ack 11");
        host.expect_nothing();
    }
}
