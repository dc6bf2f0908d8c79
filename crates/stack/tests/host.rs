//! Tests of a host as a whole: its link, its limits, and its determinism.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    Budget, ConnectOptions, Error, LinkError, ListenOptions, Medium, SMALLEST_MTU, Stack,
    UdpOptions,
};
use linerate_tcp::{Error as TcpError, State};
use linerate_testkit::transfer::listen;
use linerate_testkit::{Network, Pair, Setup, Side, Transfer};
use linerate_units::Duration;
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

fn at(side: Side, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(), port)
}

/// Runs a transfer over a network that loses, duplicates, reorders and corrupts frames. Returns
/// each frame sent, with its time of sending in nanoseconds.
fn record_transfer(seed: u64) -> Vec<(u64, Vec<u8>)> {
    let network = Network {
        loss: 50,
        duplication: 50,
        reordering: 50,
        corruption: 50,
        lateness: Duration::from_micros(300),
        ..Setup::default().network
    };
    let mut pair = Pair::new(&Setup { seed, network, ..Setup::default() }, |_, _| {});
    let frames = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&frames);
    pair.observe(move |at, _, frame| log.borrow_mut().push((at.as_nanos(), frame.to_vec())));
    let listener =
        pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default());
    let now = pair.now;
    let options = ConnectOptions::default();
    let client = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
    pair.run_for(Duration::from_secs(5));
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener.unwrap()).unwrap();
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, &[7; 50_000]).unwrap();
    pair.run_for(Duration::from_secs(60));
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, client).unwrap();
    pair.stack(Side::Right).tcp_close(now, server).unwrap();
    pair.run_for(Duration::from_secs(300));
    frames.take()
}

#[test]
fn equal_seeds_give_equal_frames_at_equal_times() {
    let first = record_transfer(42);
    assert!(first.len() > 60, "{}", first.len());
    assert!(first == record_transfer(42), "two runs with one seed differ");
    assert!(first != record_transfer(43), "the seed changes nothing");
}

#[test]
fn a_host_continues_after_a_link_failure() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let listener =
        pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default());
    let now = pair.now;
    let options = ConnectOptions::default();
    pair.host(Side::Left).link_mut().down = true;
    let client = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
    assert_eq!(pair.host(Side::Left).turn(now), Err(LinkError::Down));
    pair.run_for(Duration::from_secs(2));
    pair.host(Side::Left).link_mut().down = false;
    pair.run_for(Duration::from_secs(2));
    assert!(pair.stack(Side::Right).tcp_accept(listener.unwrap()).is_some());
    assert!(pair.stack(Side::Left).tcp(client).unwrap().error().is_none());
}

#[test]
fn sockets_are_limited() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.sockets = 3);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let full = Error::TooManySockets { limit: 3 };
    stack.udp_bind(at(Side::Left, 1), &UdpOptions::default()).unwrap();
    let listener = stack.tcp_listen(at(Side::Left, 2), &ListenOptions::default()).unwrap();
    stack.tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default()).unwrap();
    assert_eq!(stack.udp_bind(at(Side::Left, 3), &UdpOptions::default()), Err(full));
    assert_eq!(stack.tcp_listen(at(Side::Left, 3), &ListenOptions::default()), Err(full));
    assert_eq!(stack.tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default()), Err(full));
    // The host has reached its maximum number of sockets. A connection would need a further socket,
    // so the host does not answer the SYN of the peer.
    let options = ConnectOptions::default();
    pair.stack(Side::Right).tcp_connect(now, at(Side::Left, 2), &options).unwrap();
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.stack(Side::Left).counters().tcp_extra.listen_drops, 1);
    pair.stack(Side::Left).tcp_listen_close(now, listener).unwrap();
    assert!(pair.stack(Side::Left).udp_bind(at(Side::Left, 3), &UdpOptions::default()).is_ok());
}

#[test]
fn an_orphan_beyond_the_limit_is_reset() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.orphans = 2);
    let listener =
        pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default());
    let now = pair.now;
    for _ in 0..3 {
        let options = ConnectOptions::default();
        pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
    }
    pair.run_for(Duration::from_millis(10));
    let now = pair.now;
    // The host closes its ends of all three connections, but the peers do not close theirs. The
    // connections would therefore stay in FIN-WAIT-2 without an application (orphans). The limit
    // permits two orphans, so the host resets the third connection.
    while let Some((server, _)) = pair.stack(Side::Right).tcp_accept(listener.unwrap()) {
        pair.stack(Side::Right).tcp_close(now, server).unwrap();
    }
    pair.run_for(Duration::from_millis(10));
    let counters = pair.stack(Side::Right).counters();
    assert_eq!((counters.tcp_extra.orphans_reset, counters.tcp.out_resets), (1, 1));
}

#[test]
fn aborting_orphans_resets_their_peers() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let now = pair.now;
    let listener =
        pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default()).unwrap();
    let connect =
        |stack: &mut Stack| stack.tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default());
    let [left, held, waiting] = [(); 3].map(|()| connect(pair.stack(Side::Left)).unwrap());
    pair.run_for(Duration::from_millis(10));
    let now = pair.now;
    let stack = pair.stack(Side::Right);
    let accepted = [(); 3].map(|()| stack.tcp_accept(listener).unwrap().0);
    stack.tcp_close(now, accepted[0]).unwrap();
    stack.tcp_close(now, accepted[2]).unwrap();
    pair.run_for(Duration::from_millis(10));
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, waiting).unwrap();
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.stack(Side::Right).orphans(), 1);
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort_orphans(now);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(
        (pair.stack(Side::Right).orphans(), pair.stack(Side::Right).counters().tcp.out_resets),
        (0, 1)
    );
    let stack = pair.stack(Side::Left);
    assert_eq!(stack.tcp(left).unwrap().error(), Some(TcpError::Reset));
    assert_eq!(stack.tcp(held).unwrap().state(), State::Established);
}

/// In the smallest MTU, a segment must still have room for data if its options include timestamps
/// and SACK blocks.
#[test]
fn the_smallest_mtu_carries_a_transfer_with_all_options() {
    let network = Network { loss: 50, ..Setup::default().network };
    for medium in [Medium::Ethernet, Medium::Ip] {
        let mut pair =
            Pair::new(&Setup { mtu: SMALLEST_MTU, medium, network, ..Setup::default() }, |_, _| {});
        let listener = listen(&mut pair);
        let now = pair.now;
        let client =
            pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default());
        pair.run_for(Duration::from_secs(20));
        let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        let mut transfer =
            Transfer::new((Side::Left, client.unwrap()), (Side::Right, server), 20_000);
        assert!(
            pair.run_until(Duration::from_secs(600), |pair| transfer.advance(pair)),
            "{medium:?}"
        );
    }
}

#[test]
fn a_turn_keeps_its_budget_and_reports_more_work() {
    let mut pair = Pair::new(&Setup { capacity: 3, ..Setup::default() }, |_, _| {});
    let now = pair.now;
    let socket =
        pair.stack(Side::Left).udp_bind(at(Side::Left, 1), &UdpOptions::default()).unwrap();
    // The echo request makes the left host resolve the MAC address of the right host. The datagrams
    // that are sent afterwards therefore need not wait for the resolution.
    pair.stack(Side::Left).echo_send(now, Side::Right.address(), 1, 1, b"").unwrap();
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    for _ in 0..6 {
        pair.stack(Side::Left).udp_send_to(now, socket, at(Side::Right, 9), b"").unwrap();
    }
    let spare = linerate_testkit::TestLink::new(pair.host(Side::Left).stack().capabilities(), 1);
    let spare = linerate_stack::Host::new(Stack::new(Side::Left.config(), [0; 32]), spare);
    let host = std::mem::replace(pair.host(Side::Left), spare);
    let mut host = host.with_budget(Budget { transmit: 2, ..Budget::default() });
    let turn = host.turn(now).unwrap();
    assert_eq!((turn.transmitted, turn.more, turn.blocked), (2, true, false));
    let turn = host.turn(now).unwrap();
    assert_eq!(
        (turn.transmitted, turn.more, turn.blocked),
        (1, false, true),
        "the link has no room"
    );
    while host.link_mut().fetch().is_some() {}
    let turn = host.turn(now).unwrap();
    assert_eq!((turn.transmitted, turn.more), (2, true));
    let turn = host.turn(now).unwrap();
    assert_eq!((turn.transmitted, turn.more, turn.blocked), (1, false, false));
}

#[test]
fn an_echo_flood_leaves_a_connection_its_share() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let listener = pair.stack(Side::Left).tcp_listen(at(Side::Left, 9), &ListenOptions::default());
    let now = pair.now;
    let options = ConnectOptions::default();
    let client = pair.stack(Side::Right).tcp_connect(now, at(Side::Left, 9), &options).unwrap();
    pair.run_for(Duration::from_millis(10));
    let (server, _) = pair.stack(Side::Left).tcp_accept(listener.unwrap()).unwrap();
    let mut read = 0;
    let mut into = [0; 65_536];
    for _ in 0..1_000 {
        let now = pair.now;
        while pair.stack(Side::Left).tcp_write(now, server, &[1; 4_096]).unwrap() > 0 {}
        for sequence in 0..200 {
            let _ = pair.stack(Side::Right).echo_send(
                now,
                Side::Left.address(),
                1,
                sequence,
                &[0; 1_000],
            );
        }
        pair.run_for(Duration::from_micros(50));
        while let Ok(count) = pair.stack(Side::Right).tcp_read(now, client, &mut into) {
            read += count;
        }
        while pair.stack(Side::Right).poll_event().is_some() {}
    }
    assert!(read > 10 << 20, "{read} bytes got through");
}

#[test]
fn a_destination_without_a_route_is_an_error() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let now = pair.now;
    let unknown = Ipv4Addr::new(198, 51, 100, 1);
    assert_eq!(
        pair.stack(Side::Left).echo_send(now, unknown, 1, 1, b""),
        Err(Error::NoRoute(unknown.into()))
    );
}
