//! Tests of compact connections. An idle connection is converted to a compact form, which needs
//! little memory. The connection that is restored from it must be unchanged.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, CongestionName, Connection, EcnRule, KeepAlive, State};
use linerate_testkit::{Connections, End, Network, Script};
use linerate_units::{Duration, Instant};

/// The maximum size in bytes of a compact connection, including statistics of its path. `WITH_BBR`
/// applies to connections with BBR.
const AT_REST: usize = 380;
const WITH_BBR: usize = 490;

/// Sends 300,000 bytes from the client to the server, and then as many bytes in reply.
fn converse(pair: &mut Connections) {
    for (from, to) in [(End::Client, End::Server), (End::Server, End::Client)] {
        let (data, mut received, mut written) = (vec![7; 300_000], 0, 0);
        while received < data.len() {
            let now = pair.now;
            written +=
                pair.end(from).write(now, &data[written..]).expect("nothing ends the connection");
            pair.pass_time(ms(1));
            received += pair.read_all(to).expect("nothing ends the connection").len();
        }
    }
}

/// Returns two idle connections that have exchanged data over a lossy and reordering path.
fn after_a_conversation(config: &Config) -> Connections {
    let network =
        Network { loss: 5, reordering: 5, lateness: ms(5), marking: 2, ..Network::clean(ms(10)) };
    let mut pair = Connections::new(config, config, network, 7).established();
    converse(&mut pair);
    pair.pass_time(secs(3));
    // A connection with events that the application has not taken cannot be compacted.
    assert!(pair.client.compact().is_none());
    for side in [End::Client, End::Server] {
        pair.events(side);
    }
    pair
}

/// Compacts the connection to at most `most` bytes, and returns the restored connection.
fn restored(connection: &Connection, most: usize, now: Instant) -> Connection {
    let compact = connection.compact().expect("nothing happens");
    let bytes = compact.memory() + size_of_val(&compact);
    assert!(bytes <= most, "{bytes} bytes");
    assert_eq!(compact.look(), *connection);
    compact.wake(now)
}

#[test]
fn a_compact_connection_is_restored_unchanged_and_continues() {
    for congestion in CongestionName::ALL {
        let config = Config { congestion, ecn: EcnRule::Request, ..Config::modern() };
        let mut pair = after_a_conversation(&config);
        let now = pair.now;
        let most = if congestion == CongestionName::Bbr { WITH_BBR } else { AT_REST };
        pair.client = restored(&pair.client, most, now);
        *pair.server() = restored(&pair.server().clone(), most, now);
        converse(&mut pair);
        assert_eq!(pair.client.state(), State::Established, "{congestion}");
    }
}

/// When an event has restored a compact connection, it keeps its full form for a second. More
/// events may follow soon, and compacting the connection between them would cost more time than the
/// saved memory is worth.
#[test]
fn a_restored_connection_is_compacted_again_after_a_second() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.pass_time(secs(5));
    let mut restored = host.connection.compact().expect("nothing happens").wake(host.now);
    let second = host.now + secs(1);
    for now in [host.now, second - Duration::from_nanos(1)] {
        restored.driver().handle_timeout(now);
        assert!(restored.compact().is_none() && !restored.can_compact());
    }
    assert_eq!(restored.poll_timeout(), second);
    restored.driver().handle_timeout(second);
    assert!(restored.compact().is_some());
}

/// Timers expire in a compact connection as in a full connection. In this test, timers trigger a
/// keep-alive probe, end the connection, or have no effect.
#[test]
fn long_timers_run_in_a_compact_connection() {
    let keep_alive = Some(KeepAlive { idle: secs(50), interval: secs(50), probes: 3 });
    let probed = Script::established(&Config { keep_alive, ..Config::modern() }, SYN_ACK);
    let user_timeout = Some(secs(50));
    let mut patient = Script::established(&Config { user_timeout, ..Config::modern() }, SYN_ACK);
    patient.write(10);
    patient.expect("P. 1:11(10) ack 1");
    patient.send(". 1:1(0) ack 11");
    let closed = |is_held| {
        let mut host =
            Script::established(&Config { orphan_timeout: secs(50), ..Config::modern() }, SYN_ACK);
        host.application(if is_held { Connection::shutdown_write } else { Connection::close });
        host.expect("F. 1:1(0) ack 1");
        host.send(". 1:1(0) ack 2");
        host
    };
    let orphan = closed(false);
    let mut waiting = closed(true);
    waiting.send("F. 1:1(0) ack 2");
    waiting.expect(". 2:2(0) ack 2");
    for (mut host, wakes) in [(probed, true), (patient, false), (orphan, true), (waiting, true)] {
        host.pass_time(secs(5));
        host.events();
        let compact = host.connection.compact().expect("the connection is idle");
        let due = host.connection.poll_timeout();
        assert!(due != Instant::NEVER && due > host.now + secs(40), "{due:?}");
        let (mut awake, mut restored) = (host.connection.clone(), compact.wake(due));
        for connection in [&mut awake, &mut restored] {
            assert!(connection.earliest_timeout() <= due);
            connection.driver().handle_timeout(due);
            let is_over = connection.state() == State::Closed;
            assert_eq!(connection.wants_transmit() || is_over, wakes, "{:?}", connection.state());
        }
        assert_eq!(awake.state(), restored.state());
    }
}

#[test]
fn a_connection_that_awaits_an_answer_cannot_be_compacted() {
    for selective_acks in [true, false] {
        let mut host = Script::established(&Config { selective_acks, ..Config::modern() }, SYN_ACK);
        host.application(Connection::shutdown_write);
        for _ in 0..20 {
            host.pass_time(ms(500));
            host.take_sent();
            host.events();
            host.application(|connection, _| connection.driver().end_idle_period());
            assert!(!host.connection.can_compact() && host.connection.compact().is_none());
        }
    }
}

/// The host ends the idle period early, while the connection has data in flight or buffer memory.
/// This has no effect, so the connection is compacted only when the idle period ends by its timer.
#[test]
fn ending_the_idle_period_of_a_busy_connection_has_no_effect() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(10);
    host.expect("P. 1:11(10) ack 1");
    host.application(|connection, _| connection.driver().end_idle_period());
    host.send(". 1:1(0) ack 11");
    host.application(|connection, _| connection.driver().end_idle_period());
    assert!(host.connection.buffer_memory() > 0, "more may be written at once");
    host.pass_time(secs(5));
    host.events();
    assert!(host.connection.compact().is_some());
}
