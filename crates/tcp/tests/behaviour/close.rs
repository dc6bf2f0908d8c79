//! Tests of closing a connection (RFC 9293 §3.6): the order in which both endpoints close, losses
//! of FINs, and connections that the application has released.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Connection, Disposition, Error, Event, Refusal, State};
use linerate_testkit::Script;
use linerate_units::Duration;

const NANOSECOND: Duration = Duration::from_nanos(1);

fn established() -> Script {
    Script::established(&Config::modern(), SYN_ACK)
}

/// Returns a connection in FIN-WAIT-2: its FIN has been acknowledged.
fn half_closed() -> Script {
    let mut host = established();
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::FinWait1);
    host.send(". 1:1(0) ack 2");
    assert_eq!(host.connection.state(), State::FinWait2);
    host
}

fn in_time_wait() -> Script {
    let mut host = half_closed();
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
    host
}

/// Expects that the connection ends exactly `span` from now, without output and without an error.
#[track_caller]
fn expect_end_after(host: &mut Script, span: Duration) {
    host.expect_silence(span - NANOSECOND);
    assert_ne!(host.connection.state(), State::Closed, "too early");
    host.expect_silence(NANOSECOND);
    assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
    assert!(host.connection.is_released());
}

/// `TCP_LINGER2`: after an application has released its connection, the connection stays in
/// FIN-WAIT-2 for at most this time.
#[test]
fn the_orphan_timeout_is_set_by_the_application() {
    for (own, end) in [(Some(secs(5)), 5), (None, 60)] {
        let mut host = Script::established(&Config::modern(), SYN_ACK);
        host.application(|connection, now| {
            connection.set_orphan_timeout(own);
            connection.close(now);
        });
        host.expect("F. 1:1(0) ack 1");
        host.send(". 1:1(0) ack 2");
        host.pass_time(secs(end - 1));
        assert_eq!(host.connection.state(), State::FinWait2);
        host.pass_time(secs(1));
        assert_eq!(host.connection.state(), State::Closed);
    }
}

#[test]
fn the_end_that_closes_first_waits_for_two_msl() {
    let mut host = in_time_wait();
    assert_eq!(host.read_nothing(), Ok(0), "the end of the stream");
    expect_end_after(&mut host, secs(60));
    assert_eq!(host.events(), [Event::EndOfStream, Event::Closed]);
}

#[test]
fn the_end_that_closes_last_is_done_with_the_last_acknowledgement() {
    let mut host = established();
    host.send("F. 1:1(0) ack 1");
    host.expect(". 1:1(0) ack 2");
    assert_eq!(host.connection.state(), State::CloseWait);
    assert_eq!((host.events(), host.read_nothing()), (vec![Event::EndOfStream], Ok(0)));
    host.write(10);
    host.expect("P. 1:11(10) ack 2");
    host.send(". 2:2(0) ack 11");
    host.application(Connection::shutdown_write);
    host.expect("F. 11:11(0) ack 2");
    assert_eq!(host.connection.state(), State::LastAck);
    host.send(". 2:2(0) ack 12");
    assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
    assert!(host.connection.is_released());
}

#[test]
fn the_last_data_and_the_fin_share_a_segment() {
    let mut host = established();
    host.write(100);
    host.application(Connection::shutdown_write);
    host.expect("FP. 1:101(100) ack 1");
    assert_eq!(host.try_write(1), Err(Error::Shutdown));
    assert_eq!(host.connection.writable_bytes(), 0);
    host.send(". 1:1(0) ack 101");
    assert_eq!(host.connection.state(), State::FinWait1, "the FIN is not acknowledged");
    host.send(". 1:1(0) ack 102");
    assert_eq!(host.connection.state(), State::FinWait2);
}

#[test]
fn after_our_fin_the_peer_can_go_on_sending() {
    let mut host = half_closed();
    for start in (1..5_001).step_by(1_000) {
        let end = start + 1_000;
        host.send(&format!(". {start}:{end}(1000) ack 2"));
        host.expect(&format!(". 2:2(0) ack {end}"));
        host.read(1_000);
        host.take_sent();
    }
    host.send("F. 5001:5001(0) ack 2");
    host.expect(". 2:2(0) ack 5002");
    assert_eq!(host.connection.state(), State::TimeWait);
}

#[test]
fn after_the_peer_s_fin_we_can_go_on_sending() {
    let mut host = established();
    host.send("F. 1:1(0) ack 1");
    host.expect(". 1:1(0) ack 2");
    host.write(3_000);
    host.expect(". 1:1461(1460) ack 2");
    host.expect(". 1461:2921(1460) ack 2");
    host.send(". 2:2(0) ack 2921");
    host.expect("P. 2921:3001(80) ack 2");
    host.send(". 2:2(0) ack 3001");
    assert_eq!(host.connection.state(), State::CloseWait);
    host.expect_silence(secs(3_600));
}

#[test]
fn both_ends_can_close_at_the_same_time() {
    let mut host = established();
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 1");
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::Closing);
    host.send(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
    expect_end_after(&mut host, secs(60));
}

#[test]
fn the_peer_s_fin_can_acknowledge_ours() {
    let mut host = established();
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut host = established();
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.expect_after(ms(200), "F. 1:1(0) ack 1");
    host.expect_after(ms(400), "F. 1:1(0) ack 1");
    // Both endpoints close simultaneously: the peer's FIN does not acknowledge ours. The state is
    // then CLOSING, in which our FIN is still retransmitted.
    host.send("F. 1:1(0) ack 1");
    host.expect(". 2:2(0) ack 2");
    host.expect_after(ms(800), "F. 1:1(0) ack 2");
    host.send(". 2:2(0) ack 2");
    expect_end_after(&mut host, secs(60));
}

#[test]
fn a_lost_fin_in_last_ack_is_retransmitted() {
    let mut host = established();
    host.send("F. 1:1(0) ack 1");
    host.expect(". 1:1(0) ack 2");
    host.application(Connection::close);
    host.expect("F. 1:1(0) ack 2");
    host.expect_after(ms(200), "F. 1:1(0) ack 2");
    host.send(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::Closed);
}

#[test]
fn a_repeated_fin_is_acknowledged_again_and_starts_time_wait_anew() {
    let mut host = in_time_wait();
    host.expect_silence(secs(30));
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    expect_end_after(&mut host, secs(60));
}

#[test]
fn an_acknowledgement_does_not_start_time_wait_anew() {
    let mut host = in_time_wait();
    host.expect_silence(secs(30));
    host.send(". 2:2(0) ack 2");
    expect_end_after(&mut host, secs(30));
}

/// RFC 9293 §3.10.7.4 (first): no data follows the peer's FIN. A segment after the FIN is therefore
/// not acceptable, although it lies inside the window.
#[test]
fn a_segment_beyond_the_fin_is_answered_in_time_wait_and_does_not_start_it_anew() {
    for beyond in
        [". 3:3(0) ack 2", "P. 2:102(100) ack 2", "P. 500:600(100) ack 2", "F. 2:2(0) ack 2"]
    {
        let mut host = in_time_wait();
        host.expect_silence(secs(30));
        assert_eq!(host.judge(beyond), Disposition::Refused(Refusal::OutsideWindow), "{beyond}");
        host.expect(". 2:2(0) ack 2");
        host.expect_nothing();
        expect_end_after(&mut host, secs(30));
    }
}

/// RFC 5961 §7: if two endpoints disagree about sequence numbers, each could answer the other's
/// acknowledgements for ever. The number of such answers must therefore be limited.
#[test]
fn answers_to_empty_segments_beyond_the_fin_are_limited_in_time_wait() {
    let mut host = in_time_wait();
    host.pass_time(secs(1));
    for _ in 0..100 {
        host.send(". 3:3(0) ack 2");
    }
    host.expect(". 2:2(0) ack 2");
    host.expect_nothing();
}

#[test]
fn a_repeated_fin_is_acknowledged_again_while_the_application_has_not_closed() {
    let mut host = established();
    host.send("F. 1:1(0) ack 1");
    host.expect(". 1:1(0) ack 2");
    host.send("F. 1:1(0) ack 1");
    host.expect(". 1:1(0) ack 2");
    assert_eq!(host.connection.state(), State::CloseWait);
}

#[test]
fn a_new_syn_ends_time_wait_if_its_number_lies_beyond_the_last() {
    let mut host = in_time_wait();
    assert_eq!(host.judge("S 1000:1000(0) win 1000 mss 1460"), Disposition::OpenAgain);
    let mut host = in_time_wait();
    for old in ["S 1:1(0) win 1000", "S 2:2(0) win 1000"] {
        assert_ne!(host.judge(old), Disposition::OpenAgain, "{old}");
    }
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
    let mut host = in_time_wait();
    assert_ne!(host.judge("S. 1000:1000(0) ack 2 win 1000"), Disposition::OpenAgain);
}

/// RFC 6191: a new SYN usually ends TIME-WAIT because its sequence number is higher. After a fast
/// connection, however, the sequence number of the new SYN may be lower. Then only a later
/// timestamp distinguishes the SYN from an old duplicate.
#[test]
fn a_new_syn_ends_time_wait_if_its_timestamp_is_later() {
    let mut host = Script::established(&Config::modern(), &format!("{SYN_ACK} ts 1000 0"));
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 2 ts 1005 0");
    host.expect(". 2:2(0) ack 2");
    let old = "S 0:0(0) win 1000 mss 1460";
    assert_ne!(host.judge(&format!("{old} bare")), Disposition::OpenAgain);
    assert_ne!(host.judge(&format!("{old} ts 1005 0")), Disposition::OpenAgain);
    assert_eq!(host.judge(&format!("{old} ts 1006 0")), Disposition::OpenAgain);
}

#[test]
fn closing_with_unread_data_resets_the_connection() {
    let mut host = established();
    host.send("P. 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.application(Connection::close);
    host.expect("R. 1:1(0) ack 101");
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::Aborted))
    );
    assert!(host.connection.is_released());
}

/// RFC 2525 §2.17: if the application releases a connection with unread data, the peer gets a
/// reset. It shows the peer that this data was not read.
#[test]
fn releasing_unread_data_resets_the_connection_even_when_both_directions_are_closed() {
    let mut host = established();
    host.send("FP. 1:101(100) ack 1");
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 102");
    assert_eq!(host.connection.state(), State::LastAck);
    host.application(Connection::close);
    host.expect("R. 2:2(0) ack 102");
}

#[test]
fn closing_after_everything_was_read_sends_a_fin() {
    let mut host = established();
    host.send("P. 1:101(100) ack 1");
    host.expect(". 1:1(0) ack 101");
    host.read(100);
    host.application(Connection::close);
    host.expect("F. 1:1(0) ack 101");
}

#[test]
fn data_after_the_release_resets_the_connection() {
    let mut waiting = established();
    waiting.application(Connection::close);
    waiting.expect("F. 1:1(0) ack 1");
    let mut half_closed = half_closed();
    half_closed.application(Connection::close);
    for mut host in [waiting, half_closed] {
        host.send("P. 1:101(100) ack 2");
        host.expect("R. 2:2(0) ack 1");
        assert_eq!(host.connection.error(), Some(Error::DataAfterClose));
        assert!(host.connection.is_released());
    }
}

#[test]
fn data_written_before_the_close_is_sent() {
    let mut host = established();
    host.write(3_000);
    host.application(Connection::close);
    host.expect(". 1:1461(1460) ack 1");
    host.expect(". 1461:2921(1460) ack 1");
    host.expect("FP. 2921:3001(80) ack 1");
    host.send(". 1:1(0) ack 3002");
    assert_eq!(host.connection.state(), State::FinWait2);
}

#[test]
fn a_linger_of_zero_resets_at_once() {
    let mut host =
        Script::established(&Config { linger: Some(Duration::ZERO), ..Config::modern() }, SYN_ACK);
    host.write(100);
    host.application(Connection::close);
    host.expect("R. 1:1(0) ack 1");
    assert!(host.connection.is_released());
    host.expect_silence(secs(600));
}

#[test]
fn unacknowledged_data_is_delivered_during_the_linger_time() {
    let mut host = established();
    host.application(|connection, _| connection.set_linger(Some(secs(5))));
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.application(Connection::close);
    host.expect("F. 101:101(0) ack 1");
    host.pass_time(secs(5) - NANOSECOND);
    assert_eq!(host.connection.state(), State::FinWait1);
    host.take_sent();
    host.pass_time(NANOSECOND);
    host.expect("R. 102:102(0) ack 1");
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
}

#[test]
fn a_linger_time_that_suffices_has_no_effect() {
    let mut host = established();
    host.application(|connection, _| connection.set_linger(Some(secs(5))));
    host.write(100);
    host.application(Connection::close);
    host.expect("FP. 1:101(100) ack 1");
    host.send(". 1:1(0) ack 102");
    host.expect_silence(secs(30));
    host.send("F. 1:1(0) ack 102");
    host.expect(". 102:102(0) ack 2");
    expect_end_after(&mut host, secs(60));
}

#[test]
fn a_released_connection_does_not_wait_for_ever_in_fin_wait_2() {
    let mut host = half_closed();
    host.expect_silence(secs(7_200));
    assert_eq!(host.connection.state(), State::FinWait2, "an application still reads");
    host.application(Connection::close);
    expect_end_after(&mut host, secs(60));
}

#[test]
fn a_release_in_time_wait_does_not_shorten_it() {
    let mut host = half_closed();
    host.send("FP. 1:101(100) ack 2");
    host.expect(". 2:2(0) ack 102");
    assert_eq!(host.connection.state(), State::TimeWait);
    host.expect_silence(secs(10));
    host.application(Connection::close);
    expect_end_after(&mut host, secs(50));
}

#[test]
fn a_connection_that_was_closed_before_it_opened_opens_and_closes() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.write(10);
    host.application(Connection::shutdown_write);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1 win 5840");
    host.expect("FP. 1:11(10) ack 1");
    assert_eq!(host.connection.state(), State::FinWait1);
}

#[test]
fn an_abort_sends_a_reset_and_discards_all_data() {
    let mut host = established();
    host.write(100);
    host.application(Connection::abort);
    host.expect("R. 1:1(0) ack 1");
    assert_eq!(host.connection.error(), Some(Error::Aborted));
    assert_eq!(
        (host.try_write(1), host.read_nothing()),
        (Err(Error::Aborted), Err(Error::Aborted))
    );
    assert_eq!(host.events(), [Event::Closed]);
    host.expect_silence(secs(600));
}

/// RFC 9293 §3.10.5: whether an abort sends a reset depends on the state. Data and acknowledgements
/// that wait to be sent are discarded.
#[test]
fn an_abort_resets_only_a_peer_that_waits_for_something() {
    let closed_by_peer = || {
        let mut host = established();
        host.send("F. 1:1(0) ack 1");
        host
    };
    let closing = |mut host: Script, fin: &str| {
        host.application(Connection::shutdown_write);
        host.expect(fin);
        host
    };
    let opening = Script::connect(&Config::modern());
    let mut has_asked = Script::connect(&Config::modern());
    has_asked.expect("S 0:0(0)");
    let answering = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    let mut has_answered = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    has_answered.expect("S. 0:0(0) ack 1");
    let mut at_the_same_time = closing(established(), "F. 1:1(0) ack 1");
    at_the_same_time.send("F. 1:1(0) ack 1");
    let mut with_a_rest = closed_by_peer();
    with_a_rest.expect(". 1:1(0) ack 2");
    with_a_rest.send(". 2:2(0) ack 1 win 0");
    with_a_rest.write(100);
    with_a_rest.application(Connection::shutdown_write);
    for (mut host, state, told) in [
        (opening, State::SynSent, None),
        (has_asked, State::SynSent, None),
        (answering, State::SynReceived, Some("R. 0:0(0) ack 1")),
        (has_answered, State::SynReceived, Some("R. 1:1(0) ack 1")),
        (closing(established(), "F. 1:1(0) ack 1"), State::FinWait1, Some("R. 2:2(0) ack 1")),
        (half_closed(), State::FinWait2, Some("R. 2:2(0) ack 1")),
        (closed_by_peer(), State::CloseWait, Some("R. 1:1(0) ack 2")),
        (at_the_same_time, State::Closing, None),
        (closing(closed_by_peer(), "F. 1:1(0) ack 2"), State::LastAck, None),
        (with_a_rest, State::LastAck, Some("R. 1:1(0) ack 2")),
    ] {
        assert_eq!(host.connection.state(), state);
        host.application(Connection::abort);
        if let Some(reset) = told {
            host.expect(reset);
        }
        host.expect_silence(secs(600));
        assert_eq!(
            (host.connection.state(), host.connection.error()),
            (State::Closed, Some(Error::Aborted))
        );
        assert_eq!(host.connection.unacknowledged_bytes(), 0, "in {state:?}");
    }
}

#[test]
fn a_connection_that_has_ended_has_nothing_in_flight() {
    for offers in ["", " sackOK", " sackOK ts 100 1"] {
        let mut host = Script::established(&Config::modern(), &format!("{SYN_ACK}{offers}"));
        host.write(50_000);
        host.application(Connection::shutdown_write);
        host.take_sent();
        host.application(Connection::abort);
        let told = host.connection.information();
        assert_eq!((told.in_flight, told.unsent, told.repeated_in_flight), (0, 0, 0), "{offers}");
    }
}

/// RFC 9293 §3.10.5: the reset carries SND.NXT as sequence number, which the peer expects. SND.NXT
/// does not include the byte of the window probe. The number after this byte would be outside the
/// peer's closed window.
#[test]
fn an_abort_while_a_closed_window_is_probed_fits_that_window() {
    let mut host = established();
    host.send(". 1:1(0) ack 1 win 0");
    host.write(100);
    host.pass_time(secs(3));
    host.take_sent();
    host.application(Connection::abort);
    host.expect("R. 1:1(0) ack 1");
}

#[test]
fn a_reset_acknowledges_received_data_and_nothing_else_is_sent() {
    let mut host = established();
    host.send("P. 1:101(100) ack 1");
    host.take_sent();
    host.read(100);
    host.send("P. 101:201(100) ack 1");
    host.application(Connection::close);
    host.expect("R. 1:1(0) ack 201");
    host.expect_silence(secs(600));
}

#[test]
fn a_closed_connection_does_not_end_again() {
    let mut done = established();
    done.send("F. 1:1(0) ack 1");
    done.application(Connection::shutdown_write);
    done.take_sent();
    done.send(". 2:2(0) ack 2");
    let mut reset = established();
    reset.send("R 1:1(0)");
    for (mut host, error) in [(done, None), (reset, Some(Error::Reset))] {
        host.application(|connection, _| connection.set_linger(Some(secs(5))));
        assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, error));
        host.events();
        host.application(Connection::abort);
        host.application(Connection::close);
        assert_eq!((host.connection.error(), host.events()), (error, vec![]));
        host.expect_silence(secs(600));
    }
}

/// RFC 9293 §3.10.5: in TIME-WAIT, both endpoints have closed already. An abort therefore sends no
/// reset, and reports no error.
#[test]
fn an_abort_in_time_wait_sends_no_reset() {
    let mut host = in_time_wait();
    host.application(Connection::abort);
    host.expect_nothing();
    assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
    assert_eq!(host.read_nothing(), Ok(0), "the end of the stream");
}

#[test]
fn data_in_a_shut_down_direction_is_acknowledged_and_discarded() {
    let config = Config { receive_buffer: 4_096.into(), ..Config::modern() };
    let mut host = Script::established(&config, SYN_ACK);
    host.application(Connection::shutdown_read);
    for start in (1..20_001).step_by(1_000) {
        let end = start + 1_000;
        host.send(&format!(". {start}:{end}(1000) ack 1"));
        host.pass_time(ms(40));
        let sent = host.take_sent().pop().expect("an acknowledgement");
        assert_eq!(sent.says.ack, Some(end));
        assert!(
            sent.says.window >= Some(2_048),
            "the window closes if the application does not read: {sent:?}"
        );
    }
    assert_eq!(host.read_nothing(), Ok(0));
}

/// RFC 1337 §1: in TIME-WAIT, an old segment is acknowledged. The peer, which has lost the
/// connection's state, answers with a reset. If this reset ended TIME-WAIT, later old segments
/// could damage a new connection: they could be accepted by it (hazard H1), confuse it (H2) or end
/// it (H3).
#[test]
fn a_reset_does_not_assassinate_time_wait() {
    let mut host = established();
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    host.pass_time(secs(10));
    host.send(". 1:1(0) ack 1");
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.judge("R 2:2(0)"), Disposition::Refused(Refusal::ResetInTimeWait));
    host.expect_nothing();
    assert_eq!(host.connection.state(), State::TimeWait);
    // TIME-WAIT still lasts, because another old data segment is answered by an acknowledgement.
    host.send("P. 1:101(100) ack 1");
    host.expect(". 2:2(0) ack 2");
    expect_end_after(&mut host, secs(50));
}

#[test]
fn a_reset_ends_time_wait_if_configured_as_in_1988() {
    let config = Config { time_wait_outlives_resets: false, ..Config::modern() };
    let mut host = Script::established(&config, SYN_ACK);
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    host.send("R 2:2(0)");
    assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
}
