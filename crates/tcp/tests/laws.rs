//! Property tests of transfers. Whatever the network does, and in whatever sizes the applications
//! write and read, exactly the written bytes are read, in their order. The test kit also checks
//! that the fast path and the slow path process each segment alike.

use linerate_tcp::{
    Config, CongestionName, EcnRule, Error, KeepAlive, PacingRule, Path, PathSearch, Profile, State,
};
use linerate_testkit::{Access, Connections, End, Fate, Narrow, Network};
use linerate_units::Duration;
use proptest::prelude::*;

/// The bytes of one direction of a transfer, and the sizes in which they are written and read.
#[derive(Clone, Debug)]
struct Flow {
    bytes: usize,
    write_size: usize,
    read_size: usize,
}

/// Returns the byte at a position of the stream. Two bytes whose distance is a usual packet or
/// buffer size differ. So data that is displaced by this distance is detected.
fn pattern(position: usize) -> u8 {
    (position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// The application at one endpoint, and its progress in writing and reading.
struct Application {
    side: End,
    sends: Flow,
    receives: Flow,
    written: usize,
    read: usize,
    received_end: bool,
    failed: Option<Error>,
}

impl Application {
    fn new(side: End, sends: &Flow, receives: &Flow) -> Self {
        Self {
            side,
            sends: sends.clone(),
            receives: receives.clone(),
            written: 0,
            read: 0,
            received_end: false,
            failed: None,
        }
    }

    fn is_done(&self) -> bool {
        self.failed.is_some() || self.written == self.sends.bytes && self.received_end
    }

    /// Reads and writes once, if possible. Returns whether it has read or written.
    fn turn(&mut self, pair: &mut Connections) -> bool {
        if self.failed.is_some() || self.side == End::Server && pair.server.is_none() {
            return false;
        }
        let before = (self.written, self.read, self.received_end, self.failed);
        let now = pair.now;
        let end = pair.end(self.side);
        let mut part = vec![0; self.receives.read_size];
        match Access::at(self.read).read(end, now, &mut part) {
            Ok(0) => self.received_end = true,
            Ok(count) => {
                for (index, &byte) in part[..count].iter().enumerate() {
                    assert_eq!(
                        byte,
                        pattern(self.read + index),
                        "byte {} is wrong",
                        self.read + index
                    );
                }
                self.read += count;
            }
            Err(Error::WouldBlock) => {}
            Err(error) => self.failed = Some(error),
        }
        if self.written < self.sends.bytes {
            let count = self.sends.write_size.min(self.sends.bytes - self.written);
            let part: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
            match Access::at(self.written).write(end, now, &part) {
                Ok(count) => self.written += count,
                Err(error) => self.failed = Some(error),
            }
        }
        if self.failed.is_none() && self.written == self.sends.bytes {
            end.shutdown_write(now);
        }
        before != (self.written, self.read, self.received_end, self.failed)
    }
}

fn converse(pair: &mut Connections, up: &Flow, down: &Flow) {
    let mut client = Application::new(End::Client, up, down);
    let mut server = Application::new(End::Server, down, up);
    while !(client.is_done() && server.is_done()) {
        let busy = client.turn(pair) | server.turn(pair);
        let happened = pair.step();
        assert!(busy || happened, "nothing happens any more, and bytes are missing: {pair:?}");
    }
    assert_eq!((client.failed, server.failed), (None, None));
    assert_eq!((client.read, server.read), (down.bytes, up.bytes));
    pair.run_to_silence();
    assert_eq!(pair.client.state(), State::Closed);
    assert_eq!(pair.server().state(), State::Closed);
}

/// Runs a transfer over a network that may lose too many segments, and that loses all after the
/// first `segments` segments. Each endpoint must either receive all data and the end of the stream,
/// or report an error.
fn converse_or_fail(pair: &mut Connections, up: &Flow, down: &Flow, segments: u32) {
    let mut sent = 0_u32;
    pair.set_filter(move |_, _, _| {
        sent += 1;
        (sent > segments).then_some(Fate::Lose)
    });
    let mut client = Application::new(End::Client, up, down);
    let mut server = Application::new(End::Server, down, up);
    loop {
        let busy = client.turn(pair) | server.turn(pair);
        if !pair.step() && !busy {
            break;
        }
    }
    // The server has no connection if no SYN has reached it. Only the client is checked then.
    for end in [&client, &server]
        .into_iter()
        .filter(|end| end.side == End::Client || pair.server.is_some())
    {
        match end.failed {
            None => assert!(
                end.is_done() && end.read == end.receives.bytes,
                "{:?} was told nothing",
                end.side
            ),
            Some(error) => {
                assert!(matches!(error, Error::TimedOut | Error::Reset), "{:?}: {error}", end.side);
            }
        }
    }
}

fn flow() -> impl Strategy<Value = Flow> {
    let bytes = prop_oneof![Just(0_usize), 1_usize..4_000, 4_000_usize..200_000];
    let size = || prop_oneof![1_usize..20, 100_usize..10_000];
    (bytes, size(), size()).prop_map(|(bytes, write_size, read_size)| {
        // Transfers with tiny writes or reads are slow, and test nothing new after some thousand of
        // them. The number of bytes is therefore limited.
        let bytes = bytes.min(write_size.min(read_size) * 2_000);
        Flow { bytes, write_size, read_size }
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(Profile::ALL.to_vec())
}

fn config(profile: impl Strategy<Value = Profile>) -> impl Strategy<Value = Config> {
    let buffer = || prop_oneof![1_usize..3_000, 3_000_usize..30_000, 30_000_usize..300_000];
    let congestion = prop::option::of(prop::sample::select(CongestionName::ALL.to_vec()));
    let all = (profile, buffer(), buffer(), congestion, any::<[bool; 5]>());
    all.prop_map(|(profile, send, receive, congestion, switches)| {
        let config = profile.config();
        Config {
            congestion: congestion.unwrap_or(config.congestion),
            send_buffer: send.into(),
            receive_buffer: receive.into(),
            no_delay: switches[0],
            timestamps: config.timestamps && switches[1],
            window_scaling: config.window_scaling && switches[2],
            selective_acks: config.selective_acks && switches[3],
            pacing: if switches[4] { PacingRule::On } else { config.pacing },
            ..config
        }
    })
}

fn network() -> impl Strategy<Value = Network> {
    (1_u64..50_000, 0_u32..100, 0_u32..100, 0_u32..150, 1_u64..30_000).prop_map(
        |(latency, loss, duplication, reordering, lateness)| Network {
            loss,
            duplication,
            reordering,
            lateness: Duration::from_micros(lateness),
            ..Network::clean(Duration::from_micros(latency))
        },
    )
}

/// Returns the number of cases per property: 64, which take some seconds, or `PROPTEST_CASES`.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_byte_arrives_over_any_network(
        client in config(profile()),
        server in config(profile()),
        network in network(),
        up in flow(),
        down in flow(),
        seed in any::<u64>(),
    ) {
        let mut pair = Connections::new(&client, &server, network, seed);
        converse(&mut pair, &up, &down);
    }

    /// RFC 7413: the server may accept data on the SYN or refuse it, and the SYN may be lost. In
    /// each case, the written bytes are read once and in order.
    #[test]
    fn every_byte_arrives_when_the_first_come_with_the_syn(
        client in config(profile()),
        server in config(profile()),
        network in network(),
        up in flow(),
        down in flow(),
        lets_in in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut pair = Connections::new(&client, &server, network, seed).opened_fast(lets_in);
        converse(&mut pair, &up, &down);
    }

    #[test]
    fn every_byte_arrives_or_an_error_says_why_not(
        client in config(profile()),
        server in config(profile()),
        network in network(),
        (loss, segments) in (0_u32..=1_000, prop_oneof![Just(u32::MAX), 0_u32..300]),
        (up, down) in (flow(), flow()),
        seed in any::<u64>(),
    ) {
        // An endpoint that has nothing more to send has no retransmission timeout. Only keep-alive
        // then detects that the peer is gone.
        let asks = |config| Config { keep_alive: Some(KeepAlive::default()), ..config };
        let network = Network { loss, duplication: network.duplication / 2, ..network };
        let pair = Connections::new(&asks(client), &asks(server), network, seed);
        let mut pair = match seed % 3 {
            0 => pair.opened_fast(seed % 2 == 0),
            _ => pair,
        };
        converse_or_fail(&mut pair, &up, &down, segments);
    }

    #[test]
    fn every_byte_arrives_whatever_controls_the_window(
        congestion in prop::sample::select(CongestionName::ALL.to_vec()),
        network in network(),
        up in flow(),
        seed in any::<u64>(),
    ) {
        let config = Config { congestion, ..Config::modern() };
        let down = Flow { bytes: 0, ..up };
        let mut pair = Connections::new(&config, &config, network, seed);
        converse(&mut pair, &up, &down);
    }

    /// The payload of a large in-order segment stays in the link's buffer, to which the connection
    /// refers. Out-of-order data is copied. In both cases, the written bytes must be read.
    #[test]
    fn every_byte_arrives_over_a_path_of_large_packets(
        client in config(profile()),
        server in config(profile()),
        network in network(),
        up in flow(),
        down in flow(),
        seed in any::<u64>(),
    ) {
        let pair = Connections::new(&client, &server, network, seed);
        converse(&mut pair.over(&client, Path::ipv4(65_535)), &up, &down);
    }

    /// At some time, the path begins to drop large segments, either for a while or until the end.
    /// All bytes must nevertheless arrive.
    #[test]
    fn every_byte_arrives_over_a_path_that_drops_long_segments(
        congestion in prop::sample::select(CongestionName::ALL.to_vec()),
        always in any::<bool>(),
        switches in any::<[bool; 2]>(),
        (most, from, length) in (
            580_usize..1_480,
            0_u64..300,
            prop_oneof![Just(u64::MAX / 2), 0_u64..300],
        ),
        network in network(),
        (up, down) in (flow(), flow()),
        seed in any::<u64>(),
    ) {
        let config = Config {
            congestion,
            path_search: if always { PathSearch::Always } else { PathSearch::WhenNarrow },
            timestamps: switches[0],
            selective_acks: switches[1],
            ..Config::modern()
        };
        let narrow = Narrow { most, from, until: from + length };
        let network = Network { narrow: Some(narrow), ..network };
        let mut pair = Connections::new(&config, &config, network, seed);
        converse(&mut pair, &up, &down);
    }

    /// A router marks segments instead of dropping them. So nothing is retransmitted, except bytes
    /// that were sent as window probes.
    #[test]
    fn every_byte_arrives_over_a_router_that_marks_every_nth_segment(
        congestion in prop::sample::select(CongestionName::ALL.to_vec()),
        nth in 1_u32..40,
        latency in 1_u64..50_000,
        up in flow(),
        down in flow(),
        seed in any::<u64>(),
    ) {
        let config = Config { congestion, ecn: EcnRule::Request, ..Config::modern() };
        let network = Network::clean(Duration::from_micros(latency));
        let mut pair = Connections::new(&config, &config, network, seed);
        let mut count = 0;
        pair.set_filter(move |_, _, segment| {
            count += u32::from(!segment.payload.is_empty());
            (!segment.payload.is_empty() && count % nth == 0).then_some(Fate::Mark)
        });
        converse(&mut pair, &up, &down);
        for side in [End::Client, End::Server] {
            let statistics = pair.end(side).statistics();
            prop_assert!(
                statistics.retransmitted_segments <= statistics.window_probes,
                "{:?}",
                statistics
            );
        }
    }

    #[test]
    fn a_clean_network_needs_no_retransmission(
        // Both endpoints have one profile. Otherwise retransmissions would occur: the BSD profiles
        // delay acknowledgements for longer than the minimum RTO of the modern profile.
        (client, server) in profile().prop_flat_map(|profile| {
            (config(Just(profile)), config(Just(profile)))
        }),
        up in flow(),
        down in flow(),
        seed in any::<u64>(),
    ) {
        let network = Network::clean(Duration::from_millis(3));
        let mut pair = Connections::new(&client, &server, network, seed);
        converse(&mut pair, &up, &down);
        // Nothing is lost, so nothing may be retransmitted, except bytes that were sent as window
        // probes.
        for side in [End::Client, End::Server] {
            let statistics = pair.end(side).statistics().clone();
            prop_assert_eq!(statistics.retransmission_timeouts, 0);
            prop_assert!(statistics.retransmitted_segments <= statistics.window_probes);
        }
    }

    #[test]
    fn sequence_numbers_wrap_unnoticed(distance in 0_u32..100_000, up in flow(), down in flow()) {
        let config = Config::modern();
        let network = Network::clean(Duration::from_millis(1));
        let iss = [0_u32.wrapping_sub(distance), 0_u32.wrapping_sub(distance / 2)];
        let mut pair = Connections::with_initial_sequences(&config, &config, network, iss);
        converse(&mut pair, &up, &down);
    }
}
