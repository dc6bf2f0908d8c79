//! The user timeout: unacknowledged data ends the connection after a time set by the application or
//! the peer (RFC 9293 §3.9.1.1, RFC 5482).

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
fn it_is_kept_to_the_moment_whatever_the_retransmission_timer_does() {
    let mut host = patient(secs(5));
    host.write(100);
    // Retransmissions occur at 0.2, 0.6, 1.4, 3 and 6.2 seconds; the timeout is between two of
    // them.
    host.pass_time(secs(4));
    host.take_sent();
    expect_end_after(&mut host, secs(1));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 4);
    // A silent peer gets no reset (RFC 9293 §3.10.8).
    host.expect_silence(secs(600));
}

#[test]
fn it_may_be_longer_than_r2() {
    let mut host = patient(secs(3_600));
    host.write(100);
    expect_end_after(&mut host, secs(3_600));
}

#[test]
fn what_is_acknowledged_starts_it_anew() {
    let mut host = patient(secs(5));
    host.write(3_000);
    host.pass_time(secs(4));
    host.send(". 1:1(0) ack 1461");
    host.take_sent();
    expect_end_after(&mut host, secs(5));
}

#[test]
fn an_idle_connection_is_not_ended_and_its_past_does_not_count() {
    let mut host = patient(secs(5));
    host.write(100);
    host.send(". 1:1(0) ack 101");
    host.take_sent();
    host.expect_silence(secs(3_600));
    host.write(100);
    expect_end_after(&mut host, secs(5));
}

#[test]
fn a_window_that_stays_closed_is_no_excuse() {
    let mut host = patient(secs(30));
    host.write(100);
    host.send(". 1:1(0) ack 101 win 0");
    host.write(100);
    host.take_sent();
    let end = host.now + secs(30);
    while host.connection.state() != State::Closed {
        host.pass_time(ms(100));
        assert!(host.now <= end, "it was not ended");
        // Every probe is answered, which without a user timeout would go on for ever.
        for _ in host.take_sent() {
            host.send(". 1:1(0) ack 101 win 0");
        }
    }
    assert_eq!((host.now, host.connection.error()), (end, Some(Error::TimedOut)));
}

/// The user timeout is shorter than the time until the first window probe.
#[test]
fn what_could_not_leave_at_all_counts() {
    let mut host = patient(ms(100));
    host.send(". 1:1(0) ack 1 win 0");
    host.take_sent();
    host.write(100);
    expect_end_after(&mut host, ms(100));
    assert_eq!(host.connection.statistics().window_probes, 0);
}

#[test]
fn it_can_be_set_changed_and_lifted_while_data_waits() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(100);
    host.pass_time(secs(2));
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(1))));
    host.application(|connection, now| connection.set_user_timeout(now, None));
    host.pass_time(secs(60));
    assert_eq!(host.connection.state(), State::Established);
    // The next retransmission, which also checks the user timeout, would be forty seconds away.
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(20))));
    expect_end_after(&mut host, secs(20));
}

/// RFC 9293 §3.9.1.1: the user timeout also applies to data written after the peer has closed, and
/// to a released socket, in each synchronized state.
#[test]
fn it_counts_for_what_is_written_after_the_peer_has_closed_and_for_a_fin() {
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

/// RFC 1122 §4.2.3.9: at a user timeout, the application learns of an ICMP error received before.
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
fn keep_alive_neither_ends_before_it_nor_goes_on_after_it() {
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
fn it_is_said_on_the_syn_on_the_first_segment_after_it_and_when_it_changes() {
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

/// RFC 9293 §3.7.1, MUST-16: options reduce the data of a segment.
#[test]
fn the_segment_that_says_it_is_no_larger_than_others() {
    let mut host = Script::established(&telling(), SYN_ACK);
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(90))));
    host.write(4_000);
    host.expect(". 1:1457(1456) ack 1 uto 90s");
    host.expect(". 1457:2917(1460) ack 1");
}

#[test]
fn it_is_not_said_unless_that_is_configured() {
    let mut host = Script::connect(&Config { user_timeout: Some(secs(9)), ..Config::modern() });
    assert_eq!(host.take_one().says.options.user_timeout, None);
    host.send("S. 0:0(0) ack 1 win 65535 mss 1460 uto 90s");
    assert_eq!(host.take_one().says.options.user_timeout, None);
    assert_eq!(host.connection.peer_user_timeout(), None);
}

/// USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)).
#[test]
fn what_the_peer_says_is_adopted_within_limits() {
    let adopted = |config: Config, said: &str| {
        let host = Script::established(&config, &format!("{SYN_ACK} uto {said}"));
        host.connection.user_timeout()
    };
    let short = Config { give_up_after: secs(120), ..telling() };
    assert_eq!(adopted(short, "300s"), Some(secs(300)));
    assert_eq!(adopted(short, "10s"), Some(secs(120)), "the larger of both counts");
    assert_eq!(adopted(short, "500m"), Some(secs(3_600)), "not without limit");
    let shorter = Config { give_up_after: secs(10), ..telling() };
    assert_eq!(adopted(shorter, "10s"), Some(secs(100)), "not at the mercy of a short break");
    let own = Config { user_timeout: Some(secs(7)), ..telling() };
    assert_eq!(adopted(own, "300s"), Some(secs(7)), "the application has set it");
    // An adopted timeout is not advertised: ADV_UTO remains our own.
    let mut host = Script::connect(&short);
    host.expect("S 0:0(0) uto 120s");
    host.send(&format!("{SYN_ACK} uto 300s"));
    host.expect(". 1:1(0) ack 1 uto 120s");
}

#[test]
fn a_change_that_the_peer_asks_for_later_counts_for_data_that_waits() {
    let mut host = Script::established(&Config { give_up_after: secs(120), ..telling() }, SYN_ACK);
    host.write(100);
    host.send(". 1:1(0) ack 1 uto 10m");
    assert_eq!(host.connection.peer_user_timeout(), Some(secs(600)));
    expect_end_after(&mut host, secs(600));
}

/// RFC 5482 §3.1: the adopted timeout is at least RTO, so that a slow path allows at least one
/// retransmission.
#[test]
fn what_is_adopted_is_never_less_than_the_retransmission_timeout() {
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

/// RFC 5482 §3.3: a connection attempt has its own time limit.
#[test]
fn it_does_not_count_before_the_handshake_ends() {
    let mut host = Script::connect(&Config { user_timeout: Some(secs(5)), ..Config::modern() });
    host.write(100);
    host.pass_time(secs(60));
    assert_eq!(host.connection.state(), State::SynSent);
}
