//! Tests of a host that consists of several stacks (shards). Each shard has its own connections,
//! but to other hosts all shards together must appear as one host.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    ConnectOptions, Error, Limits, ListenOptions, Medium, RxFrame, Shard, Stack, StackConfig,
    Steered, Steering,
};
use linerate_units::Instant;
use linerate_wire::{Ipv4Header, Ipv4Packet, Ipv6Fragment, Ipv6Header, Ipv6Packet, Protocol};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::NonZeroU16;

const SHARDS: NonZeroU16 = NonZeroU16::new(4).unwrap();
const SEED: [u8; 32] = [9; 32];
const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 80);
const NOW: Instant = Instant::ZERO;

fn config(number: u8) -> StackConfig {
    let mac = format!("02:00:00:00:00:{number:02x}").parse().unwrap();
    StackConfig::new(mac, format!("192.0.2.{number}/24").parse().unwrap())
}

/// Creates the shards of the host under test, and another host, which consists of a single stack.
fn hosts() -> (Vec<Stack>, Stack) {
    let shards = (0..SHARDS.get()).map(|number| {
        let limits = Limits::default().among(SHARDS);
        Stack::new(
            StackConfig { shard: Shard { number, count: SHARDS }, limits, ..config(1) },
            SEED,
        )
    });
    (shards.collect(), Stack::new(config(2), [2; 32]))
}

/// Carries frames between the shards and the other host until all stacks are idle. For each frame
/// of the other host, the steering function determines the shard that receives it. Returns the
/// number of frames that the shards have sent.
fn carry(shards: &mut [Stack], other: &mut Stack) -> usize {
    carry_changed(shards, other, |frame| vec![frame.to_vec()])
}

/// Carries frames like [`carry`], but replaces each frame of the other host by the frames that
/// `change` returns for it.
fn carry_changed(
    shards: &mut [Stack],
    other: &mut Stack,
    change: impl Fn(&[u8]) -> Vec<Vec<u8>>,
) -> usize {
    let mut steering = Steering::new(SEED, SHARDS);
    let (mut frame, mut sent, mut idle) = ([0; 1_514], 0, false);
    while !idle {
        idle = true;
        for shard in shards.iter_mut() {
            while let Some(out) = shard.poll_transmit(NOW, &mut frame) {
                other.handle_frame(NOW, RxFrame::plain(&frame[..out.length], NOW));
                (sent, idle) = (sent + 1, false);
            }
        }
        while let Some(back) = other.poll_transmit(NOW, &mut frame) {
            idle = false;
            for frame in change(&frame[..back.length]) {
                let frame = RxFrame::plain(&frame, NOW);
                match steering.steer(Medium::Ethernet, frame.bytes) {
                    Steered::To(shard) => shards[usize::from(shard)].handle_frame(NOW, frame),
                    Steered::ToAll => {
                        shards.iter_mut().for_each(|shard| shard.handle_frame(NOW, frame));
                    }
                }
            }
        }
        while let Some((shard, frame)) = shards[0].poll_handover() {
            shards[usize::from(shard)].handle_frame(NOW, RxFrame::plain(&frame, NOW));
        }
    }
    shards.iter().for_each(Stack::check);
    sent
}

#[test]
fn segments_return_to_the_shard_that_opened_the_connection() {
    let (mut shards, mut server) = hosts();
    let listener = server.tcp_listen(SERVER, &ListenOptions::default()).unwrap();
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let shard = number % shards.len();
            (shard, shards[shard].tcp_connect(NOW, SERVER, &ConnectOptions::default()).unwrap())
        })
        .collect();
    carry(&mut shards, &mut server);
    for (shard, client) in clients {
        let state = shards[shard].tcp(client).unwrap().state();
        assert_eq!(state, linerate_tcp::State::Established);
    }
    assert_eq!(std::iter::from_fn(|| server.tcp_accept(listener)).count(), 20);
}

#[test]
fn a_listener_on_every_shard_gets_every_connection_once() {
    let (mut shards, mut client) = hosts();
    let local = SocketAddrV4::new(HERE, 80);
    let listeners: Vec<_> = shards
        .iter_mut()
        .map(|shard| shard.tcp_listen(local, &ListenOptions::default()).unwrap())
        .collect();
    for _ in 0..40 {
        client.tcp_connect(NOW, local, &ConnectOptions::default()).unwrap();
    }
    carry(&mut shards, &mut client);
    let accepted = shards
        .iter_mut()
        .zip(listeners)
        .map(|(shard, listener)| std::iter::from_fn(|| shard.tcp_accept(listener)).count());
    let accepted: Vec<_> = accepted.collect();
    assert_eq!(accepted.iter().sum::<usize>(), 40);
    assert!(accepted.iter().all(|&count| count > 0), "{accepted:?}");
    assert_eq!(shards.iter().map(|shard| shard.counters().tcp.out_resets).sum::<u64>(), 0);
}

/// Splits a packet of at least 600 bytes into two fragments, and returns the second fragment before
/// the first. Returns a shorter packet unchanged.
fn in_fragments(frame: &[u8]) -> Vec<Vec<u8>> {
    const SPLIT: usize = 512;
    const IDENTIFICATION: u32 = 7;
    if frame.len() < 600 {
        return vec![frame.to_vec()];
    }
    let (ethernet, packet) = frame.split_at(14);
    let halves = |payload: &[u8]| {
        [(SPLIT, payload[SPLIT..].to_vec(), false), (0, payload[..SPLIT].to_vec(), true)]
    };
    let emit = |length: usize, write: &dyn Fn(&mut [u8])| {
        let mut fragment = ethernet.to_vec();
        fragment.resize(ethernet.len() + length, 0);
        write(&mut fragment[ethernet.len()..]);
        fragment
    };
    if packet[0] >> 4 == 6 {
        let whole = Ipv6Packet::parse(packet).unwrap();
        let header = Ipv6Header { next_header: Protocol::FRAGMENT, ..whole.header };
        let fragments = halves(whole.payload).map(|(offset, part, more)| {
            emit(48 + part.len(), &|into| {
                let at = header.emit(8 + part.len(), into);
                let offset = u16::try_from(offset).unwrap();
                Ipv6Fragment { offset, more, identification: IDENTIFICATION }
                    .emit(whole.protocol, &mut into[at..]);
                into[at + 8..].copy_from_slice(&part);
            })
        });
        return fragments.to_vec();
    }
    let whole = Ipv4Packet::parse(packet).unwrap();
    let fragments = halves(whole.payload).map(|(offset, part, more)| {
        emit(20 + part.len(), &|into| {
            let header = Ipv4Header {
                dont_fragment: false,
                more_fragments: more,
                fragment_offset: u16::try_from(offset).unwrap(),
                identification: u16::try_from(IDENTIFICATION).unwrap(),
                ..whole.header
            };
            let at = header.emit(part.len(), into);
            into[at..].copy_from_slice(&part);
        })
    });
    fragments.to_vec()
}

/// The segments of a connection arrive in fragments, and must reach the shard of the connection.
/// This occurs because routers fragment IPv4 packets without DF, and some IPv6 hosts send segments
/// in fragments.
#[test]
fn a_segment_in_fragments_reaches_the_shard_of_its_connection() {
    for local in ["192.0.2.1", "2001:db8::1"] {
        let with_ipv6 = |number: u8, shard| {
            let mut config = StackConfig { shard, ..config(number) };
            config.addresses.push(format!("2001:db8::{number}/64").parse().unwrap());
            config
        };
        let mut shards: Vec<_> = (0..SHARDS.get())
            .map(|number| Stack::new(with_ipv6(1, Shard { number, count: SHARDS }), SEED))
            .collect();
        let mut client = Stack::new(with_ipv6(2, Shard::ONLY), [2; 32]);
        let local = SocketAddr::new(local.parse().unwrap(), 80);
        let listeners: Vec<_> = shards
            .iter_mut()
            .map(|shard| shard.tcp_listen(local, &ListenOptions::default()).unwrap())
            .collect();
        let connections: Vec<_> = (0..20)
            .map(|_| client.tcp_connect(NOW, local, &ConnectOptions::default()).unwrap())
            .collect();
        carry(&mut shards, &mut client);
        for &connection in &connections {
            assert_eq!(client.tcp_write(NOW, connection, &[5; 1_000]), Ok(1_000));
        }
        carry_changed(&mut shards, &mut client, in_fragments);
        let mut readers = [0; 4];
        for ((shard, listener), readers) in shards.iter_mut().zip(listeners).zip(&mut readers) {
            while let Some((connection, _)) = shard.tcp_accept(listener) {
                let mut bytes = [0; 2_000];
                assert_eq!(shard.tcp_read(NOW, connection, &mut bytes), Ok(1_000));
                assert!(bytes[..1_000] == [5; 1_000]);
                *readers += 1;
            }
        }
        assert!(readers.iter().all(|&count| count > 0), "{readers:?}");
        assert_eq!(readers.iter().sum::<usize>(), 20);
        let first = shards[0].counters().ip;
        assert_eq!((first.reassembly_ok, first.in_discards), (20, 0));
    }
}

#[test]
fn a_port_of_another_shard_is_refused() {
    let (mut shards, _) = hosts();
    let local = SocketAddrV4::new(HERE, 5_000);
    let owner = Steering::new(SEED, SHARDS).of_connection(local, SERVER);
    let options = ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
    for (number, shard) in (0..).zip(&mut shards) {
        match shard.tcp_connect(NOW, SERVER, &options) {
            Ok(_) => assert_eq!(number, owner),
            Err(error) => {
                assert_eq!(error, Error::OtherShard { local: local.into(), shard: owner });
            }
        }
    }
}

#[test]
fn an_arp_request_is_answered_once_and_learnt_by_all_shards() {
    let (mut shards, mut server) = hosts();
    server.echo_send(NOW, HERE, 1, 1, b"are you there?").unwrap();
    // All shards receive the ARP request, but only one of them may reply. So the shards send two
    // frames: this reply, and the echo reply.
    assert_eq!(carry(&mut shards, &mut server), 2);
    assert_eq!(server.counters().icmp.in_echo_replies, 1);
    let answers: Vec<_> =
        shards.iter().map(|shard| shard.counters().neighbor.out_replies).collect();
    assert_eq!(answers, [1, 0, 0, 0]);
    server.tcp_listen(SERVER, &ListenOptions::default()).unwrap();
    for shard in &mut shards {
        shard.tcp_connect(NOW, SERVER, &ConnectOptions::default()).unwrap();
    }
    carry(&mut shards, &mut server);
    let requests: Vec<_> =
        shards.iter().map(|shard| shard.counters().neighbor.out_requests).collect();
    assert_eq!(requests, [0; 4], "all shards have learnt from the request");
}

#[test]
fn loopback_connections_stay_in_their_shard() {
    let (mut shards, _) = hosts();
    for shard in &mut shards {
        let local = SocketAddrV4::new(HERE, 80);
        let listener = shard.tcp_listen(local, &ListenOptions::default()).unwrap();
        shard.tcp_connect(NOW, local, &ConnectOptions::default()).unwrap();
        while shard.handle_local(NOW, 64) > 0 {}
        assert!(shard.tcp_accept(listener).is_some());
    }
}

#[test]
fn a_syn_cookie_is_valid_in_the_shard_of_its_flow() {
    let (mut shards, mut client) = hosts();
    let local = SocketAddrV4::new(HERE, 80);
    let options = ListenOptions {
        syn_cookies: linerate_stack::SynCookies::Always,
        ..ListenOptions::default()
    };
    let listeners: Vec<_> =
        shards.iter_mut().map(|shard| shard.tcp_listen(local, &options).unwrap()).collect();
    for _ in 0..12 {
        client.tcp_connect(NOW, local, &ConnectOptions::default()).unwrap();
    }
    carry(&mut shards, &mut client);
    let accepted: usize = shards
        .iter_mut()
        .zip(listeners)
        .map(|(shard, listener)| std::iter::from_fn(|| shard.tcp_accept(listener)).count())
        .sum();
    assert_eq!(accepted, 12);
}

#[test]
fn limits_are_divided_with_a_minimum_of_one() {
    let all = Limits { challenges: 2, orphans: 3, ..Limits::default() };
    let part = all.among(SHARDS);
    assert_eq!((part.challenges, part.orphans, part.sockets), (1, 1, 16_384));
    assert_eq!(part.buffer_bytes * 4, all.buffer_bytes);
    assert_eq!(all.among(NonZeroU16::MIN), all);
}
