//! A connection that nothing happens to rests in little memory, and comes back as it was.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, CongestionName, Connection, EcnRule, KeepAlive, State};
use linerate_testkit::{Connections, End, Network, Script};
use linerate_units::{Duration, Instant};

/// What a connection at rest may take, with all that it has learnt of its path; BBR learns more.
const AT_REST: usize = 380;
const WITH_BBR: usize = 490;

/// The client says much, and the server as much.
fn converse(pair: &mut Connections) {
    for (from, to) in [(End::Client, End::Server), (End::Server, End::Client)] {
        let (data, mut heard, mut written) = (vec![7; 300_000], 0, 0);
        while heard < data.len() {
            let now = pair.now;
            written +=
                pair.end(from).write(now, &data[written..]).expect("nothing ends the connection");
            pair.pass_time(ms(1));
            heard += pair.read_all(to).expect("nothing ends the connection").len();
        }
    }
}

/// Both ends have had a conversation over a path that loses and reorders, and nothing to say for a while.
fn after_a_conversation(config: &Config) -> Connections {
    let network =
        Network { loss: 5, reordering: 5, lateness: ms(5), marking: 2, ..Network::clean(ms(10)) };
    let mut pair = Connections::new(config, config, network, 7).established();
    converse(&mut pair);
    pair.pass_time(secs(3));
    // Who has not been told what happened may yet want to know.
    assert!(pair.client.rest().is_none());
    for side in [End::Client, End::Server] {
        pair.events(side);
    }
    pair
}

/// Takes the place of a connection at rest.
fn woken(connection: &Connection, most: usize, now: Instant) -> Connection {
    let resting = connection.rest().expect("nothing happens");
    let bytes = resting.memory() + size_of_val(&resting);
    assert!(bytes <= most, "{bytes} bytes");
    assert_eq!(resting.look(), *connection);
    resting.wake(now)
}

#[test]
fn whatever_it_has_lived_through_it_comes_back_the_same_and_goes_on() {
    for congestion in CongestionName::ALL {
        let config = Config { congestion, ecn: EcnRule::Request, ..Config::modern() };
        let mut pair = after_a_conversation(&config);
        let now = pair.now;
        let most = if congestion == CongestionName::Bbr { WITH_BBR } else { AT_REST };
        pair.client = woken(&pair.client, most, now);
        *pair.server() = woken(&pair.server().clone(), most, now);
        converse(&mut pair);
        assert_eq!(pair.client.state(), State::Established, "{congestion}");
    }
}

/// It may be that something happens again at once, and to wake takes more than resting has saved.
#[test]
fn one_that_was_woken_rests_again_after_a_second_and_no_sooner() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.pass_time(secs(5));
    let mut woken = host.connection.rest().expect("nothing happens").wake(host.now);
    let second = host.now + secs(1);
    for now in [host.now, second - Duration::from_nanos(1)] {
        woken.handle_timeout(now);
        assert!(woken.rest().is_none() && !woken.is_quiet());
    }
    assert_eq!(woken.poll_timeout(), second);
    woken.handle_timeout(second);
    assert!(woken.rest().is_some());
}

/// What is waited for comes while it rests as if it were awake: a probe, an end, or nothing at all.
#[test]
fn what_is_long_in_coming_is_waited_for_at_rest() {
    let keep_alive = Some(KeepAlive { idle: secs(50), interval: secs(50), probes: 3 });
    let probed = Script::established(&Config { keep_alive, ..Config::modern() }, SYN_ACK);
    let user_timeout = Some(secs(50));
    let mut patient = Script::established(&Config { user_timeout, ..Config::modern() }, SYN_ACK);
    patient.write(10);
    patient.expect("P. 1:11(10) ack 1");
    patient.send(". 1:1(0) ack 11");
    let closed = |is_held| {
        let mut host =
            Script::established(&Config { orphan_patience: secs(50), ..Config::modern() }, SYN_ACK);
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
        let resting = host.connection.rest().expect("it may be long");
        let due = host.connection.poll_timeout();
        assert!(due != Instant::NEVER && due > host.now + secs(40), "{due:?}");
        let (mut awake, mut woken) = (host.connection.clone(), resting.wake(due));
        for connection in [&mut awake, &mut woken] {
            assert!(connection.earliest_timeout() <= due);
            connection.handle_timeout(due);
            let is_over = connection.state() == State::Closed;
            assert_eq!(connection.wants_transmit() || is_over, wakes, "{:?}", connection.state());
        }
        assert_eq!(awake.state(), woken.state());
    }
}

#[test]
fn one_that_waits_for_an_answer_does_not_rest() {
    for selective_acks in [true, false] {
        let mut host = Script::established(&Config { selective_acks, ..Config::modern() }, SYN_ACK);
        host.application(Connection::shutdown_write);
        for _ in 0..20 {
            host.pass_time(ms(500));
            host.take_sent();
            host.events();
            host.application(|connection, _| connection.hasten_rest());
            assert!(!host.connection.is_quiet() && host.connection.rest().is_none());
        }
    }
}

/// Of one that holds memory somebody must look at it when it is idle.
#[test]
fn to_hasten_one_that_cannot_rest_yet_leaves_it_one_that_will() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(10);
    host.expect("P. 1:11(10) ack 1");
    host.application(|connection, _| connection.hasten_rest());
    host.send(". 1:1(0) ack 11");
    host.application(|connection, _| connection.hasten_rest());
    assert!(host.connection.buffer_memory() > 0, "more may be written at once");
    host.pass_time(secs(5));
    host.events();
    assert!(host.connection.rest().is_some());
}
