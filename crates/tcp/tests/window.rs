//! Socket buffers of every size from one packet to seventeen, and windows that close.

use linerate_tcp::{Config, Profile};
use linerate_testkit::{Connections, End, Network};
use linerate_units::Duration;

const PACKET: usize = 1_448;

fn with_buffers(profile: Profile, send: usize, receive: usize) -> (Config, Config) {
    let config = profile.config();
    let sender = Config { send_buffer: send.into(), ..config };
    let receiver = Config { receive_buffer: receive.into(), ..config };
    (sender, receiver)
}

/// Transfers `bytes` from client to server, whose applications are always ready. Returns the time
/// that it took.
fn transfer(pair: &mut Connections, bytes: usize) -> Duration {
    let start = pair.now;
    let chunk = vec![0x5a; 8_192];
    let (mut written, mut read) = (0, 0);
    pair.run_until("every byte is read", |pair| {
        let now = pair.now;
        while written < bytes {
            let part = &chunk[..chunk.len().min(bytes - written)];
            match pair.client.write(now, part).expect("the connection is open") {
                0 => break,
                count => written += count,
            }
        }
        read += pair.read_all(End::Server).expect("the connection is open").len();
        read == bytes
    });
    pair.now.since(start)
}

/// The table of 1988 in virtual time: no cell may wait for a timer, so no cell may take longer than
/// one round trip for each packet.
#[test]
fn no_pair_of_buffers_waits_for_a_timer() {
    let round_trip = Duration::from_millis(2);
    for send in 1..=17 {
        for receive in 1..=17 {
            let (sender, receiver) = with_buffers(Profile::Modern, send * PACKET, receive * PACKET);
            let network = Network::clean(round_trip / 2);
            let mut pair = Connections::new(&sender, &receiver, network, 1988).established();
            let packets = 200;
            let took = transfer(&mut pair, packets * PACKET);
            let limit = round_trip * (packets as u64 + 1);
            assert!(took <= limit, "{send} × {receive} packets took {took}, more than {limit}");
            let server = pair.server().statistics();
            assert_eq!(server.delayed_ack_timeouts, 0, "{send} × {receive} packets");
            assert_eq!(pair.client.statistics().window_probes, 0, "{send} × {receive} packets");
            assert_eq!(
                pair.client.statistics().retransmitted_segments,
                0,
                "{send} × {receive} packets"
            );
        }
    }
}
