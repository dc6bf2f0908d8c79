//! Helpers for tests that send corrupted frames: a host with sockets in many states, genuine frames
//! of every kind to corrupt, and a function that recomputes the checksums of corrupted frames.

use crate::pair::{Pair, Setup, Side};
use crate::test_link::TestLink;
use linerate_stack::{
    Capabilities, ConnectOptions, Host, ListenOptions, Medium, Stack, StackConfig, UdpOptions,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{EthernetFrame, EthernetHeader, Ipv4Header, Ipv4Packet, Protocol, Sum};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

const fn at(side: Side, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(), port)
}

/// Returns the right host of a pair, with low limits and with sockets in many states. It listens,
/// has connections that wait to be accepted, waits for an ARP reply that never comes, has bound a
/// UDP port, and answers echo requests, even to the broadcast address.
///
/// # Panics
/// If a host refuses a request that it must grant.
#[must_use]
pub fn busy_host() -> Host<TestLink> {
    let mut pair = Pair::new(&Setup::default(), |_, config| make_small(config));
    let now = pair.now;
    let right = pair.stack(Side::Right);
    let options = ListenOptions { backlog: 4, syn_backlog: 8, ..ListenOptions::default() };
    assert!(right.tcp_listen(at(Side::Right, 9), &options).is_ok(), "the port is free");
    assert!(right.udp_bind(at(Side::Right, 5), &UdpOptions::default()).is_ok(), "the port is free");
    let open = |pair: &mut Pair, side, remote| {
        let opened = pair.stack(side).tcp_connect(now, remote, &ConnectOptions::default());
        assert!(opened.is_ok(), "there is a way");
    };
    (0..3).for_each(|_| open(&mut pair, Side::Left, at(Side::Right, 9)));
    pair.run_for(Duration::from_millis(1));
    open(&mut pair, Side::Right, SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 99), 9));
    let capabilities = Capabilities::new(Medium::Ethernet, Setup::default().mtu);
    let spare =
        Host::new(Stack::new(Side::Left.config(), [0; 32]), TestLink::new(capabilities, 256));
    std::mem::replace(pair.host(Side::Right), spare)
}

fn make_small(config: &mut StackConfig) {
    config.limits.sockets = 40;
    config.limits.neighbors.entries = 12;
    config.limits.neighbors.unresolved = 8;
    config.limits.time_wait = 4;
    config.limits.orphans = 4;
    config.answer_broadcast_echo = true;
}

/// Delivers a frame to a host, runs a turn, and checks all invariants of the host. Discards the
/// frames that the host sends, and its events.
///
/// # Panics
/// If an invariant is violated.
pub fn feed(host: &mut Host<TestLink>, now: Instant, frame: Vec<u8>) {
    host.link_mut().put(now, frame);
    assert!(host.turn(now).is_ok(), "the link is up");
    while host.link_mut().fetch().is_some() {}
    while host.stack_mut().poll_event().is_some() {}
    host.stack().check();
}

/// Returns the frames of an exchange between two hosts: ARP, an echo, a datagram and the ICMP error
/// that answers it, a refused connection, and a connection with data in both directions.
///
/// # Panics
/// If a host refuses a request that it must grant.
#[must_use]
pub fn real_frames() -> Vec<Vec<u8>> {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let frames = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&frames);
    pair.observe(move |_, _, frame| log.borrow_mut().push(frame.to_vec()));
    let listener =
        pair.stack(Side::Right).tcp_listen(at(Side::Right, 9), &ListenOptions::default());
    let (now, left) = (pair.now, pair.stack(Side::Left));
    let socket = left.udp_bind(at(Side::Left, 5), &UdpOptions::default());
    let sent = socket
        .and_then(|socket| left.udp_send_to(now, socket, at(Side::Right, 7), b"no socket here"));
    let asked = left.echo_send(now, Side::Right.address(), 1, 1, b"ping");
    let refused = left.tcp_connect(now, at(Side::Right, 8), &ConnectOptions::default());
    let client = left.tcp_connect(now, at(Side::Right, 9), &ConnectOptions::default());
    let (Ok(()), Ok(()), Ok(_), Ok(client), Ok(listener)) =
        (sent, asked, refused, client, listener)
    else {
        panic!("there is a way and room");
    };
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    let Some((server, _)) = pair.stack(Side::Right).tcp_accept(listener) else {
        panic!("no connection was accepted")
    };
    let written = pair.stack(Side::Left).tcp_write(now, client, &[7; 3_000]);
    let closed = pair.stack(Side::Left).tcp_close(now, client);
    let answered = pair.stack(Side::Right).tcp_write(now, server, &[8; 3_000]);
    assert_eq!(
        (written, closed, answered),
        (Ok(3_000), Ok(()), Ok(3_000)),
        "the connection is open"
    );
    pair.run_for(Duration::from_millis(1));
    frames.take()
}

/// Recomputes the checksums of a corrupted frame. If a header cannot be parsed, the checksums of
/// this header and of those behind it are left unchanged.
pub fn mend_checksums(frame: &mut [u8]) {
    const IP: usize = EthernetHeader::LENGTH;
    let is_whole = frame.len() >= IP + Ipv4Header::LENGTH && EthernetFrame::parse(frame).is_ok();
    let header_length = if is_whole { usize::from(frame[IP] & 15) * 4 } else { return };
    if header_length < Ipv4Header::LENGTH || frame.len() < IP + header_length {
        return;
    }
    mend(&mut frame[IP..IP + header_length], 10, Sum::default());
    let Ok(packet) = Ipv4Packet::parse(&frame[IP..]) else { return };
    let (header, length) = (packet.header, packet.payload.len());
    let (place, pseudo) = match header.protocol {
        Protocol::TCP => (16, header.pseudo_header(length)),
        Protocol::UDP => (6, header.pseudo_header(length)),
        Protocol::ICMP => (2, Sum::default()),
        _ => return,
    };
    mend(&mut frame[IP + header_length..IP + header_length + length], place, pseudo);
}

/// Writes the checksum over `bytes` and the pseudo-header sum `pseudo` at offset `place`. Does
/// nothing if the bytes end before that field.
fn mend(bytes: &mut [u8], place: usize, pseudo: Sum) {
    if bytes.len() < place + 2 {
        return;
    }
    bytes[place..place + 2].fill(0);
    let checksum = (pseudo + Sum::of(bytes)).finish();
    bytes[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
}
