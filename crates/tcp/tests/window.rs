//! Tests of transfers with socket buffers from one to seventeen packets, in every combination of
//! the two sizes.

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

/// Transfers `bytes` bytes from the client to the server, which write and read whenever possible.
/// Returns the duration of the transfer.
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

/// Jacobson's experiment of 1988 in virtual time: one transfer for every pair of a send buffer and
/// a receive buffer. No transfer may wait for a timer, so each must end within one round trip per
/// packet.
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
