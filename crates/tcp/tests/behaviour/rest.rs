//! A connection that nothing happens to rests in little memory, and comes back as it was.

use crate::{ms, secs};
use linerate_tcp::{Config, CongestionName, Connection, EcnRule, State};
use linerate_testkit::{Connections, End, Network};
use linerate_units::Instant;

/// What a connection at rest may take, with all that it has learnt of its path; BBR learns more.
const AT_REST: usize = 380;
const WITH_BBR: usize = 490;

/// The client says much, and the server as much.
fn converse(pair: &mut Connections) {
    for (from, to) in [(End::Client, End::Server), (End::Server, End::Client)] {
        let (data, mut heard, mut written) = (vec![7; 300_000], 0, 0);
        while heard < data.len() {
            let now = pair.now;
            written += pair.end(from).write(now, &data[written..]).expect("nothing ends the connection");
            pair.pass_time(ms(1));
            heard += pair.read_all(to).expect("nothing ends the connection").len();
        }
    }
}

/// Both ends have had a conversation over a path that loses and reorders, and nothing to say for a while.
fn after_a_conversation(config: &Config) -> Connections {
    let network = Network { loss: 5, reordering: 5, lateness: ms(5), marking: 2, ..Network::clean(ms(10)) };
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
