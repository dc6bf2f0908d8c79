//! Tests of the user timeout (RFC 9293 §3.9.1.1, RFC 5482): if data is not acknowledged within this
//! time, the connection ends. The application or the peer sets the time.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Connection, Error, IcmpReport, KeepAlive, State, TimeLimits};
use linerate_testkit::Script;
use linerate_units::Duration;

fn patient(timeout: Duration) -> Script {
    Script::established(&Config { user_timeout: Some(timeout), ..Config::modern() }, SYN_ACK)
}

/// Expects that the connection ends exactly `span` from now.
#[track_caller]
fn expect_end_after(host: &mut Script, span: Duration) {
    host.pass_time(span - ms(1));
    assert_ne!(host.connection.state(), State::Closed, "too early");
    host.pass_time(ms(1));
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::TimedOut))
    );
}

#[test]
fn the_user_timeout_is_exact_whatever_the_retransmission_timer_does() {
    let mut host = patient(secs(5));
    host.write(100);
    // The user timeout of 5 seconds needs a timer of its own, because no retransmission occurs at
    // this time. Retransmissions occur after 0.2, 0.6, 1.4, 3 and 6.2 seconds.
    host.pass_time(secs(4));
    host.take_sent();
    expect_end_after(&mut host, secs(1));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 4);
    // RFC 9293 §3.10.8: when the user timeout ends the connection, no reset is sent, and nothing
    // else follows.
    host.expect_silence(secs(600));
}

#[test]
fn the_user_timeout_may_be_longer_than_r2() {
    let mut host = patient(secs(3_600));
    host.write(100);
    expect_end_after(&mut host, secs(3_600));
}

#[test]
fn an_acknowledgement_of_new_data_restarts_the_user_timeout() {
    let mut host = patient(secs(5));
    host.write(3_000);
    host.pass_time(secs(4));
    host.send(". 1:1(0) ack 1461");
    host.take_sent();
    expect_end_after(&mut host, secs(5));
}

#[test]
fn an_idle_connection_is_not_ended_and_its_idle_time_does_not_count() {
    let mut host = patient(secs(5));
    host.write(100);
    host.send(". 1:1(0) ack 101");
    host.take_sent();
    host.expect_silence(secs(3_600));
    host.write(100);
    expect_end_after(&mut host, secs(5));
}

#[test]
fn the_user_timeout_also_applies_while_the_window_is_closed() {
    let mut host = patient(secs(30));
    host.write(100);
    host.send(". 1:1(0) ack 101 win 0");
    host.write(100);
    host.take_sent();
    let end = host.now + secs(30);
    while host.connection.state() != State::Closed {
        host.pass_time(ms(100));
        assert!(host.now <= end, "it was not ended");
        // The peer answers every window probe. Without a user timeout, the connection would
        // therefore stay open.
        for _ in host.take_sent() {
            host.send(". 1:1(0) ack 101 win 0");
        }
    }
    assert_eq!((host.now, host.connection.error()), (end, Some(Error::TimedOut)));
}

/// The peer's window is closed, so no data is in flight. The user timeout expires before the first
/// window probe, and nevertheless ends the connection.
#[test]
fn the_user_timeout_also_applies_to_data_that_was_never_sent() {
    let mut host = patient(ms(100));
    host.send(". 1:1(0) ack 1 win 0");
    host.take_sent();
    host.write(100);
    expect_end_after(&mut host, ms(100));
    assert_eq!(host.connection.statistics().window_probes, 0);
}

#[test]
fn the_user_timeout_can_be_set_changed_and_lifted_while_data_waits() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(100);
    host.pass_time(secs(2));
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(1))));
    host.application(|connection, now| connection.set_user_timeout(now, None));
    host.pass_time(secs(60));
    assert_eq!(host.connection.state(), State::Established);
    // The user timeout ends the connection after 20 s, although the next retransmission is due only
    // after 40 s. The timeout must therefore have its own timer.
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(20))));
    expect_end_after(&mut host, secs(20));
}

/// RFC 9293 §3.9.1.1: the user timeout applies in each synchronized state. The test checks it for
/// data in CLOSE-WAIT, and for an unacknowledged FIN.
#[test]
fn the_user_timeout_applies_to_data_after_the_peer_has_closed_and_to_a_fin() {
    let mut host = patient(secs(5));
    host.send("F. 1:1(0) ack 1");
    host.write(100);
    host.take_sent();
    expect_end_after(&mut host, secs(5));
    for peer_closes in [false, true] {
        let mut host = patient(secs(5));
        if peer_closes {
            host.send("F. 1:1(0) ack 1");
        }
        host.pass_time(secs(60));
        host.application(Connection::shutdown_write);
        host.take_sent();
        expect_end_after(&mut host, secs(5));
    }
}

/// RFC 1122 §4.2.3.9: if an ICMP error was received before the user timeout ends the connection,
/// this error is reported as the cause.
#[test]
fn a_user_timeout_reports_an_icmp_error() {
    let mut host = patient(secs(5));
    host.write(100);
    host.take_sent();
    let quoted = host.number(1);
    host.application(|connection, now| {
        connection.driver().handle_icmp(now, IcmpReport::SoftError { quoted });
    });
    host.pass_time(secs(5));
    assert_eq!(host.connection.error(), Some(Error::Unreachable));
}

#[test]
fn with_keep_alive_the_user_timeout_determines_when_the_connection_ends() {
    let keep_alive = Some(KeepAlive { idle: secs(10), interval: secs(10), probes: 3 });
    let ended = |timeout| {
        let config = Config { keep_alive, user_timeout: timeout, ..Config::modern() };
        let mut host = Script::established(&config, SYN_ACK);
        let start = host.now;
        while host.connection.state() != State::Closed {
            host.pass_time(secs(1));
        }
        assert_eq!(host.connection.error(), Some(Error::TimedOut));
        host.now.since(start)
    };
    assert_eq!(ended(None), secs(40));
    assert_eq!(ended(Some(secs(100))), secs(100));
    assert_eq!(ended(Some(secs(15))), secs(20));
    assert_eq!(
        ended(Some(secs(5))),
        secs(20),
        "the connection ends only after an unanswered probe"
    );
}

fn telling() -> Config {
    Config { user_timeout_option: true, ..Config::modern() }
}

#[test]
fn the_option_is_on_the_syn_on_the_next_segment_and_after_a_change() {
    for offers in ["", " sackOK ts 9 0"] {
        let mut host = Script::connect(&telling());
        host.expect("S 0:0(0) uto 900s");
        host.send(&format!("{SYN_ACK}{offers}"));
        host.expect(". 1:1(0) ack 1 uto 900s");
        host.write(100);
        assert_eq!(host.take_one().says.options.user_timeout, None);
        host.send(". 1:1(0) ack 101");
        host.application(|connection, now| connection.set_user_timeout(now, Some(secs(40_000))));
        host.write(100);
        host.expect("P. 101:201(100) ack 1 uto 667m");
        host.send(". 1:1(0) ack 201");
        host.write(100);
        assert_eq!(host.take_one().says.options.user_timeout, None, "{offers}");
    }
}

/// RFC 9293 §3.7.1, MUST-16: a segment with the User Timeout option carries correspondingly less
/// data, so it is no larger than other segments.
#[test]
fn a_segment_with_the_option_is_no_larger_than_others() {
    let mut host = Script::established(&telling(), SYN_ACK);
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(90))));
    host.write(4_000);
    host.expect(". 1:1457(1456) ack 1 uto 90s");
    host.expect(". 1457:2917(1460) ack 1");
}

#[test]
fn the_option_is_not_sent_unless_configured() {
    let mut host = Script::connect(&Config { user_timeout: Some(secs(9)), ..Config::modern() });
    assert_eq!(host.take_one().says.options.user_timeout, None);
    host.send("S. 0:0(0) ack 1 win 65535 mss 1460 uto 90s");
    assert_eq!(host.take_one().says.options.user_timeout, None);
    assert_eq!(host.connection.peer_user_timeout(), None);
}

/// RFC 5482 §3.1: the connection adopts the timeout that the peer advertises, within limits:
/// USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)).
#[test]
fn the_user_timeout_of_the_peer_is_adopted_within_limits() {
    let adopted = |config: Config, said: &str| {
        let host = Script::established(&config, &format!("{SYN_ACK} uto {said}"));
        host.connection.user_timeout()
    };
    let short = Config { give_up_after: secs(120), ..telling() };
    assert_eq!(adopted(short, "300s"), Some(secs(300)));
    assert_eq!(adopted(short, "10s"), Some(secs(120)), "the larger of both counts");
    assert_eq!(adopted(short, "500m"), Some(secs(3_600)), "not without limit");
    let shorter = Config { give_up_after: secs(10), ..telling() };
    assert_eq!(adopted(shorter, "10s"), Some(secs(100)), "not less than the lower limit");
    let own = Config { user_timeout: Some(secs(7)), ..telling() };
    assert_eq!(adopted(own, "300s"), Some(secs(7)), "the application has set it");
    // We adopt the peer's timeout of 300 s, but the timeout that we advertise (ADV_UTO) is still
    // our own.
    let mut host = Script::connect(&short);
    host.expect("S 0:0(0) uto 120s");
    host.send(&format!("{SYN_ACK} uto 300s"));
    host.expect(". 1:1(0) ack 1 uto 120s");
}

#[test]
fn a_later_option_of_the_peer_applies_to_data_that_waits() {
    let mut host = Script::established(&Config { give_up_after: secs(120), ..telling() }, SYN_ACK);
    host.write(100);
    host.send(". 1:1(0) ack 1 uto 10m");
    assert_eq!(host.connection.peer_user_timeout(), Some(secs(600)));
    expect_end_after(&mut host, secs(600));
}

/// RFC 5482 §3.1: an adopted timeout that is shorter than RTO is raised to RTO. Otherwise, a slow
/// path would leave no time for a retransmission.
#[test]
fn an_adopted_user_timeout_is_at_least_the_retransmission_timeout() {
    let limits = TimeLimits { min: secs(1), max: secs(3_600) };
    let config = Config { give_up_after: secs(1), user_timeout_limits: limits, ..telling() };
    let mut host = Script::connect(&Config { timestamps: false, ..config });
    host.take_sent();
    host.pass_time(ms(990));
    host.send(&format!("{SYN_ACK} uto 1s"));
    let timeout = host.connection.information().retransmission_timeout;
    assert!(timeout > ms(2_900));
    assert_eq!(host.connection.user_timeout(), Some(timeout));
}

/// RFC 5482 §3.3: before the connection is established, only the handshake timeout applies, and not
/// the user timeout.
#[test]
fn the_user_timeout_does_not_apply_before_the_handshake_ends() {
    let mut host = Script::connect(&Config { user_timeout: Some(secs(5)), ..Config::modern() });
    host.write(100);
    host.pass_time(secs(60));
    assert_eq!(host.connection.state(), State::SynSent);
}
