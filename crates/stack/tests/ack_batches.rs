//! Tests of ACK batches. If several acknowledgements of one connection are received together, the
//! host processes them as one acknowledgement. The congestion window must grow as if they were
//! processed one by one, and duplicate ACKs in a batch must be counted. The host must handle each
//! batch completely in the turn in which it arrives.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    Budget, Capabilities, ConnectOptions, Host, ListenOptions, Medium, Stack, StackConfig,
    TcpHandle,
};
use linerate_tcp::{Config, CongestionName, Information, Statistics};
use linerate_testkit::TestLink;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ipv4Packet, MacAddress, Sum};
use std::net::{Ipv4Addr, SocketAddrV4};

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 80);
/// Maximum number of frames that the server receives in a turn. It sends an acknowledgement after
/// each turn, so it acknowledges every second segment.
const BEFORE_ANSWER: usize = 2;

fn host(number: u8, congestion: CongestionName, receive: usize) -> Host<TestLink> {
    let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
    let mut config = StackConfig::new(mac, format!("192.0.2.{number}/24").parse().unwrap());
    config.tcp = Config { congestion, ..Config::modern() };
    let link = TestLink::new(Capabilities::new(Medium::Ethernet, 1_500), 1_000);
    Host::new(Stack::new(config, [number; 32]), link).with_budget(Budget {
        receive,
        transmit: 1_000,
        ..Budget::default()
    })
}

/// A client with a connection to a server.
struct Scene {
    now: Instant,
    client: Host<TestLink>,
    server: Host<TestLink>,
    handle: TcpHandle,
}

impl Scene {
    fn new(congestion: CongestionName) -> Self {
        let (mut client, mut server) =
            (host(1, congestion, 1_000), host(2, congestion, BEFORE_ANSWER));
        server.stack_mut().tcp_listen(SERVER, &ListenOptions::default()).unwrap();
        let handle = open(&mut client);
        let mut scene = Self { now: Instant::from_nanos(1), client, server, handle };
        (0..4).for_each(|_| scene.exchange());
        scene
    }

    /// Carries all frames of the client to the server, and then all acknowledgements of the server
    /// to the client, in one batch.
    fn exchange(&mut self) {
        let answers = self.answers();
        self.deliver(answers);
    }

    /// Delivers all frames of the client to the server. Returns the acknowledgements of the server,
    /// one for every two frames.
    fn answers(&mut self) -> Vec<Vec<u8>> {
        self.client.turn(self.now).unwrap();
        self.now += Duration::from_millis(5);
        while let Some(frame) = self.client.link_mut().fetch() {
            self.server.link_mut().put(self.now, frame);
        }
        while self.server.link_mut().has_arrived() {
            self.server.turn(self.now).unwrap();
        }
        self.now += Duration::from_millis(5);
        std::iter::from_fn(|| self.server.link_mut().fetch()).collect()
    }

    fn deliver(&mut self, frames: Vec<Vec<u8>>) {
        for frame in frames {
            self.client.link_mut().put(self.now, frame);
        }
        self.client.turn(self.now).unwrap();
        self.client.stack().check();
    }

    fn write(&mut self, length: usize) {
        assert_eq!(
            self.client.stack_mut().tcp_write(self.now, self.handle, &vec![7; length]),
            Ok(length)
        );
    }

    fn statistics(&self) -> Statistics {
        self.client.stack().tcp(self.handle).unwrap().statistics().clone()
    }

    fn information(&self) -> Information {
        self.client.stack().tcp(self.handle).unwrap().information()
    }
}

fn open(client: &mut Host<TestLink>) -> TcpHandle {
    client
        .stack_mut()
        .tcp_connect(Instant::from_nanos(1), SERVER, &ConnectOptions::default())
        .unwrap()
}

#[test]
fn the_last_ack_of_a_batch_covers_all() {
    let mut scene = Scene::new(CongestionName::Cubic);
    scene.write(10 * 1_448);
    let answers = scene.answers();
    assert_eq!(answers.len(), 5);
    let before = scene.statistics();
    scene.deliver(answers);
    let after = scene.statistics();
    assert_eq!(after.segments_received - before.segments_received, 5);
    assert_eq!(after.prediction.acks - before.prediction.acks, 5);
    assert_eq!(after.acks_superseded - before.acks_superseded, 4);
    assert_eq!(after.bytes_acknowledged - before.bytes_acknowledged, 10 * 1_448);
}

#[test]
fn the_window_grows_as_for_single_acks() {
    for congestion in [CongestionName::Reno, CongestionName::NewReno, CongestionName::Cubic] {
        let [together, apart] = [true, false].map(|together| {
            let mut scene = Scene::new(congestion);
            // The client writes more data than its congestion window, so that it is cwnd-limited.
            scene.write(40 * 1_448);
            for _ in 0..2 {
                let answers = scene.answers();
                if together {
                    scene.deliver(answers);
                } else {
                    answers.into_iter().for_each(|answer| scene.deliver(vec![answer]));
                }
            }
            (scene.information().congestion_window, scene.statistics().acks_superseded)
        });
        assert_eq!(together.0, apart.0, "{congestion:?}");
        assert!(together.1 >= 8 && apart.1 == 0, "{congestion:?}: {together:?} {apart:?}");
    }
}

#[test]
fn a_duplicate_ack_is_not_coalesced() {
    let mut scene = Scene::new(CongestionName::Cubic);
    scene.write(10 * 1_448);
    let mut answers = scene.answers();
    answers.insert(2, answers[1].clone());
    let before = scene.statistics();
    scene.deliver(answers);
    let after = scene.statistics();
    // Six acknowledgements arrive at once, of which the third is a duplicate. The client processes
    // the duplicate alone, so the others form two groups: the two before it and the three after it.
    // In each group, the final acknowledgement supersedes the others.
    assert_eq!(after.duplicate_acks - before.duplicate_acks, 1);
    assert_eq!(after.acks_superseded - before.acks_superseded, 1 + 2);
    assert_eq!(after.bytes_acknowledged - before.bytes_acknowledged, 10 * 1_448);
}

/// Returns a copy of an acknowledgement. Its acknowledgement number is larger by `more`, and its
/// checksum is valid.
fn acknowledging(mut frame: Vec<u8>, more: u32) -> Vec<u8> {
    const TCP: usize = 14 + 20;
    let ack = frame[TCP + 8..].first_chunk_mut().unwrap();
    *ack = (u32::from_be_bytes(*ack) + more).to_be_bytes();
    frame[TCP + 16..TCP + 18].fill(0);
    let packet = Ipv4Packet::parse(&frame[14..]).unwrap();
    let checksum =
        (packet.header.pseudo_header(packet.payload.len()) + Sum::of(packet.payload)).finish();
    frame[TCP + 16..TCP + 18].copy_from_slice(&checksum.to_be_bytes());
    frame
}

#[test]
fn an_ack_of_unsent_data_does_not_replace_others() {
    let mut scene = Scene::new(CongestionName::Cubic);
    scene.write(10 * 1_448);
    let mut answers = scene.answers();
    answers.push(acknowledging(answers[4].clone(), 1));
    let before = scene.statistics();
    scene.deliver(answers);
    let after = scene.statistics();
    assert_eq!(after.bytes_acknowledged - before.bytes_acknowledged, 10 * 1_448);
    assert_eq!(after.acks_superseded - before.acks_superseded, 4);
}

#[test]
fn a_corrupt_ack_does_not_replace_others() {
    let mut scene = Scene::new(CongestionName::Cubic);
    scene.write(10 * 1_448);
    let mut answers = scene.answers();
    answers[3][14 + 20 + 11] ^= 1;
    let before = scene.statistics();
    scene.deliver(answers);
    let after = scene.statistics();
    assert_eq!(after.acks_superseded - before.acks_superseded, 3);
    assert_eq!(scene.client.stack().counters().tcp.in_checksum_errors, 1);
}

#[test]
fn acks_of_two_connections_are_not_coalesced() {
    let mut scene = Scene::new(CongestionName::Cubic);
    let first = scene.handle;
    scene.handle = open(&mut scene.client);
    (0..4).for_each(|_| scene.exchange());
    let second = std::mem::replace(&mut scene.handle, first);
    scene.write(4 * 1_448);
    let of_first = scene.answers();
    scene.handle = second;
    scene.write(4 * 1_448);
    let of_second = scene.answers();
    let (left, right) = (of_first.into_iter(), of_second.into_iter());
    scene.deliver(left.zip(right).flat_map(|(left, right)| [left, right]).collect());
    for handle in [first, second] {
        scene.handle = handle;
        let counted = scene.statistics();
        assert_eq!((counted.bytes_acknowledged, counted.acks_superseded), (4 * 1_448, 0));
    }
}
