//! Nothing that arrives can panic a host, break its invariants, or make it grow without bound.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Host, ListenOptions, Medium, UdpOptions};
use linerate_testkit::{Pair, Setup, Side, TestLink};
use linerate_units::{Duration, Instant};
use linerate_wire::{EthernetFrame, Ipv4Packet};
use proptest::prelude::*;
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

fn at(side: Side, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(), port)
}

/// Real frames of every kind, to be spoilt: ARP, echoes, datagrams, errors, and a connection's life.
fn real_frames() -> Vec<Vec<u8>> {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let frames = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&frames);
    pair.observe(move |_, _, frame| log.borrow_mut().push(frame.to_vec()));
    let now = pair.now;
    let listener = pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default());
    let left = pair.stack(Side::Left);
    let socket = left.udp_bind(at(Side::Left, 5), &UdpOptions::default());
    let _ = left.udp_send_to(now, socket.unwrap(), at(Side::Right, 7), b"nobody is there");
    let _ = left.echo_send(now, Side::Right.address(), 1, 1, b"ping");
    let _ = left.tcp_connect(now, at(Side::Right, 8), &ConnectOptions::default());
    let client = left.tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default()).unwrap();
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener.unwrap()).unwrap();
    pair.stack(Side::Left).tcp_write(now, client, &[7; 3_000]).unwrap();
    pair.stack(Side::Left).tcp_close(now, client).unwrap();
    pair.stack(Side::Right).tcp_write(now, server, &[8; 3_000]).unwrap();
    pair.run_for(Duration::from_millis(1));
    frames.take()
}

/// A host in the middle of everything: it listens, is connected, connects, and has bound a port.
fn busy_host() -> Host<TestLink> {
    let mut pair = Pair::new(&Setup::default(), |_, config| {
        config.limits.sockets = 40;
        config.limits.neighbors.entries = 12;
        config.limits.neighbors.unresolved = 8;
        config.limits.time_wait = 4;
        config.answer_broadcast_echo = true;
    });
    let now = pair.now;
    let options = ListenOptions { backlog: 4, syn_backlog: 8, config: None };
    pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &options).unwrap();
    pair.stack(Side::Right).udp_bind(at(Side::Right, 5), &UdpOptions::default()).unwrap();
    for _ in 0..3 {
        pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default()).unwrap();
    }
    pair.run_for(Duration::from_millis(1));
    let silent = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 99), 9);
    pair.stack(Side::Right).tcp_connect(now, silent, &ConnectOptions::default()).unwrap();
    let setup = Setup::default();
    let capabilities = linerate_stack::Capabilities { medium: Medium::Ethernet, mtu: setup.mtu, rate: None };
    let link = TestLink::new(capabilities, setup.capacity);
    let spare = Host::new(linerate_stack::Stack::new(Side::Left.config(), [0; 32]), link);
    std::mem::replace(pair.host(Side::Right), spare)
}

/// Has a frame arrive, and some time pass.
fn feed(host: &mut Host<TestLink>, now: &mut Instant, frame: Vec<u8>, wait: u64) {
    host.link_mut().put(*now, frame);
    *now += Duration::from_micros(wait);
    host.turn(*now).unwrap();
    while host.link_mut().fetch().is_some() {}
    host.stack().check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn noise_changes_nothing(
        frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..120), 0_u64..100_000), 1..60),
    ) {
        let mut host = busy_host();
        let mut now = Instant::ZERO + Duration::from_secs(2_000);
        for (frame, wait) in frames {
            feed(&mut host, &mut now, frame, wait);
        }
    }

    /// Frames that are nearly right: some bytes of real ones differ, and the checksums are made to
    /// fit again, so that they get as deep as frames can.
    #[test]
    fn nearly_real_frames_break_nothing(
        spoilt in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
             any::<prop::sample::Index>(), any::<bool>(), 0_u64..3_000_000),
            1..80,
        ),
    ) {
        let real = real_frames();
        let mut host = busy_host();
        let mut now = Instant::ZERO + Duration::from_secs(2_000);
        for (which, changes, end, cut, wait) in spoilt {
            let mut frame = which.get(&real).clone();
            // Whoever sent it, now it is for the host.
            frame[..6].copy_from_slice(&Side::Right.mac().octets());
            for (place, value) in changes {
                let place = place.index(frame.len());
                frame[place] = value;
            }
            if cut {
                frame.truncate(end.index(frame.len()) + 1);
            }
            mend_checksums(&mut frame);
            feed(&mut host, &mut now, frame, wait);
            while host.stack_mut().poll_event().is_some() {}
        }
    }
}

/// Makes the checksums of a frame fit what it says.
fn mend_checksums(frame: &mut [u8]) {
    use linerate_wire::{Protocol, Sum};
    if frame.len() < 34 || EthernetFrame::parse(frame).is_err() {
        return;
    }
    let header_length = usize::from(frame[14] & 15) * 4;
    if header_length < 20 || frame.len() < 14 + header_length {
        return;
    }
    frame[24..26].fill(0);
    let sum = Sum::of(&frame[14..14 + header_length]).finish();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let Ok(packet) = Ipv4Packet::parse(&frame[14..]) else { return };
    let (header, length) = (packet.header, packet.payload.len());
    let at = match header.protocol {
        Protocol::TCP => 16,
        Protocol::UDP => 6,
        Protocol::ICMP => 2,
        _ => return,
    };
    if length < at + 2 {
        return;
    }
    let payload = &mut frame[14 + header_length..14 + header_length + length];
    payload[at..at + 2].fill(0);
    let pseudo =
        if header.protocol == Protocol::ICMP { Sum::default() } else { header.pseudo_header(length) };
    let sum = (pseudo + Sum::of(payload)).finish();
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn real_frames_are_of_every_kind() {
    let frames = real_frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|frame| Ipv4Packet::parse(&frame[14..]).map_or(0, |packet| packet.header.protocol.number()))
        .collect();
    for protocol in [0, 1, 6, 17] {
        assert!(kinds.contains(&protocol), "{kinds:?}");
    }
    assert!(frames.len() >= 20, "{}", frames.len());
}
