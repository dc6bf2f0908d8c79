//! Tests of the deferred handshake (`TCP_DEFER_ACCEPT`). The connection does not open when the peer
//! acknowledges the SYN-ACK, but only when data of the peer arrives.

use crate::{ms, secs};
use linerate_tcp::{Config, Connection, State};
use linerate_testkit::Script;
use linerate_wire::Segment;

#[test]
fn a_deferred_handshake_is_completed_by_data() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1400 sackOK ts 77 0");
    host.expect("S. 0:0(0) ack 1");
    host.pass_time(ms(10));
    let bare = |host: &mut Script, text| {
        let (now, bytes) = (host.now, host.bytes_of(text));
        let segment = Segment::parse(&bytes).unwrap();
        host.application(|connection, _| {
            connection.driver().defer_handshake(now, &segment, secs(3))
        })
    };
    assert!(bare(&mut host, ". 1:1(0) ack 1"));
    assert_eq!(host.connection.state(), State::SynReceived);
    assert!(bare(&mut host, ". 1:1(0) ack 1"), "each repetition is ignored, too");
    for other in [
        ". 1:11(10) ack 1",
        "F. 1:1(0) ack 1",
        ". 1:1(0) ack 2",
        ". 5:5(0) ack 1",
        "R. 1:1(0) ack 1",
    ] {
        assert!(!bare(&mut host, other), "{other}");
    }
    host.pass_time(secs(2));
    host.expect_nothing();
    host.send(". 1:11(10) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(
        host.connection.information().smoothed_round_trip,
        Some(ms(10)),
        "and not two seconds"
    );
    host.read(10);
}

#[test]
fn a_handshake_deferred_for_too_long_is_completed() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1400");
    host.expect("S. 0:0(0) ack 1");
    let (now, bytes) = (host.now, host.bytes_of(". 1:1(0) ack 1"));
    let segment = Segment::parse(&bytes).unwrap();
    let defer = |connection: &mut Connection, now| {
        connection.driver().defer_handshake(now, &segment, secs(3))
    };
    assert!(host.application(defer));
    host.expect_after(secs(3), "S. 0:0(0) ack 1");
    assert!(!host.application(defer) && host.now > now);
    host.send(". 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
}
