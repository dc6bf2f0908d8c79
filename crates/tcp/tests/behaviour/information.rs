//! Tests of the status information of a connection: the factors that limit the sender, and the
//! state of loss recovery. Segments do not show this information, so it is tested separately.

use crate::ms;
use linerate_tcp::{BufferSize, Config, CongestionName, RecoveryState};
use linerate_testkit::Script;
use linerate_units::Duration;

/// Returns three times in milliseconds: the time in which the sender was busy, and its parts in
/// which the peer's window or the send buffer was the limit.
fn busy(host: &Script) -> [u64; 3] {
    let (busy, now) = (host.connection.information().busy, host.now);
    [busy.total(now), busy.for_peer_window(now), busy.for_send_buffer(now)].map(Duration::as_millis)
}

#[test]
fn a_sender_is_busy_until_everything_is_acknowledged() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1000");
    host.pass_time(ms(50));
    assert_eq!(busy(&host), [0, 0, 0]);
    host.write(2_000);
    host.expect(". 1:1001(1000) ack 1");
    host.expect("P. 1001:2001(1000) ack 1");
    host.pass_time(ms(30));
    assert_eq!(busy(&host), [30, 0, 0], "the time up to now counts");
    host.send(". 1:1(0) ack 1001 win 65535");
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 2001 win 65535");
    host.pass_time(ms(100));
    assert_eq!(busy(&host), [40, 0, 0]);
}

#[test]
fn a_small_peer_window_is_distinguished_from_a_busy_path() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 1000 mss 1000");
    host.write(2_000);
    host.expect(". 1:1001(1000) ack 1");
    host.expect_nothing();
    host.pass_time(ms(20));
    assert_eq!(busy(&host), [20, 20, 0]);
    host.send(". 1:1(0) ack 1001 win 1000");
    host.expect("P. 1001:2001(1000) ack 1");
    host.expect_nothing();
    host.pass_time(ms(20));
    assert_eq!(busy(&host), [40, 20, 0], "everything has left");
}

#[test]
fn the_send_buffer_is_the_limit_only_when_everything_was_sent() {
    let config =
        Config { send_buffer: BufferSize::Fixed(4_096), no_delay: true, ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 4000 mss 1024");
    assert_eq!(host.try_write(5_000), Ok(4_096));
    for seq in [1, 1_025, 2_049] {
        host.expect(&format!(". {seq}:{}(1024) ack 1", seq + 1_024));
    }
    host.expect_nothing();
    host.pass_time(ms(10));
    assert_eq!(busy(&host), [10, 10, 0], "the peer's window is the limit");
    host.send(". 1:1(0) ack 1 win 65535");
    host.expect("P. 3073:4097(1024) ack 1");
    host.expect_nothing();
    host.pass_time(ms(20));
    assert_eq!(busy(&host), [30, 10, 20], "the send buffer is the limit");
    host.send(". 1:1(0) ack 4097 win 65535");
    host.expect_nothing();
    host.pass_time(ms(40));
    assert_eq!(busy(&host), [30, 10, 20]);
}

#[test]
fn the_send_buffer_is_also_the_limit_when_the_nagle_algorithm_holds_its_rest() {
    let config = Config { send_buffer: BufferSize::Fixed(4_096), ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 1000");
    assert_eq!(host.try_write(5_000), Ok(4_096));
    for seq in [1, 1_001, 2_001, 3_001] {
        host.expect(&format!(". {seq}:{}(1000) ack 1", seq + 1_000));
    }
    host.expect("P. 4001:4097(96) ack 1");
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 501 win 65535");
    assert_eq!(host.try_write(5_000), Ok(500));
    host.expect_nothing();
    host.pass_time(ms(20));
    assert_eq!(
        busy(&host),
        [30, 0, 30],
        "500 bytes wait for more data, for which there is no room"
    );
}

#[test]
fn data_held_by_the_nagle_algorithm_in_a_buffer_with_room_is_not_limited_by_the_buffer() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1000");
    host.write(96);
    host.expect("P. 1:97(96) ack 1");
    host.write(96);
    host.expect_nothing();
    host.pass_time(ms(20));
    assert_eq!(busy(&host), [20, 0, 0]);
}

/// As in Linux's TCP_INFO: after a duplicate acknowledgement the state is `Disorder`, during a fast
/// retransmission `Recovery`, and after a timeout `Loss`.
#[test]
fn the_recovery_state_follows_the_evidence() {
    for offers in ["", " sackOK"] {
        let config = Config { congestion: CongestionName::NewReno, ..Config::modern() };
        let mut host =
            Script::established(&config, &format!("S. 0:0(0) ack 1 win 65535 mss 1000{offers}"));
        let state = |host: &Script| host.connection.information().recovery;
        host.write(10_000);
        host.take_sent();
        host.pass_time(ms(10));
        assert_eq!(state(&host), RecoveryState::Open);
        let named =
            |right| if offers.is_empty() { String::new() } else { format!(" sack 1001-{right}") };
        host.send(&format!(". 1:1(0) ack 1{}", named(2_001)));
        assert_eq!(state(&host), RecoveryState::Disorder, "{offers}");
        for right in [3_001, 4_001] {
            host.send(&format!(". 1:1(0) ack 1{}", named(right)));
        }
        assert_eq!(state(&host), RecoveryState::Recovery, "{offers}");
        host.pass_time(ms(300));
        assert_eq!(state(&host), RecoveryState::Loss, "{offers}");
    }
}
