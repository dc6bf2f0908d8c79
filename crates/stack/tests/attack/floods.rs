//! Floods: SYNs from random addresses, requests that the host answers by itself, and connections
//! that are opened and never accepted.

use crate::{Baseline, alone};
use linerate_stack::ListenOptions;
use linerate_testkit::Side;
use linerate_testkit::attack::{FRAMES_A_TURN, TURN};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Maximum memory of a half-open connection in bytes. It has no buffers yet. The second term is for
/// three pointers in its state, which refer to shared memory and are not used yet.
const HALF_OPEN: usize = 2_048 + 3 * size_of::<usize>();

#[test]
fn a_syn_flood_fills_only_the_syn_queue_and_honest_peers_connect() {
    let _alone = alone();
    let mut baseline = Baseline::new(1);
    let service = baseline.test.service_address();
    let flood = |intruder: &mut linerate_testkit::attack::Intruder| {
        for _ in 0..FRAMES_A_TURN {
            let source = Ipv4Addr::from_bits(0x0a00_0000 | intruder.below(1 << 24));
            let port = u16::try_from(1_024 + intruder.below(60_000)).unwrap();
            let seq = SeqNum::new(intruder.below(u32::MAX));
            let header =
                TcpHeader { seq, flags: TcpFlags::SYN, window: 1_000, ..TcpHeader::default() };
            let options = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
            intruder.segment(SocketAddrV4::new(source, port), service, header, &options, &[]);
        }
    };
    let queue = ListenOptions::default().syn_backlog * HALF_OPEN;
    baseline.attack(queue, |intruder, _| flood(intruder));
    // A legitimate client can connect during the flood.
    baseline.test.connect_honest();
    baseline.test.run(TURN * 200, |intruder, _| flood(intruder));
    assert_eq!(baseline.test.guests().len(), 1, "the honest connection was refused");
}

/// Floods the host with requests that it answers by itself: ICMP echo requests, and segments to
/// closed ports. The answers must leave the connections their share of the link.
#[test]
fn a_flood_of_requests_gets_only_its_share_of_the_link() {
    let _alone = alone();
    let mut baseline = Baseline::new(2);
    baseline.attack(256 << 10, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let source = Ipv4Addr::from_bits(0x0a00_0000 | intruder.below(1 << 24));
            if index % 2 == 0 {
                let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 1];
                echo.extend_from_slice(&[0x5a; 1_000]);
                let sum = Sum::of(&echo).finish();
                echo[2..4].copy_from_slice(&sum.to_be_bytes());
                intruder
                    .packet(Ipv4Header::new(source, Side::Right.address(), Protocol::ICMP), &echo);
            } else {
                let header = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
                let closed = SocketAddrV4::new(Side::Right.address(), 4_000);
                intruder.segment(
                    SocketAddrV4::new(source, 9),
                    closed,
                    header,
                    &TcpOptions::default(),
                    &[],
                );
            }
        }
    });
}

/// RFC 9293 sets no limit for connections that are opened and never accepted. This host limits them
/// by the sizes of the SYN queue and of the accept queue.
#[test]
fn connections_not_accepted_are_limited_by_the_backlog() {
    let _alone = alone();
    let mut baseline = Baseline::new(3);
    let address = SocketAddrV4::new(Side::Right.address(), 11);
    let options = ListenOptions { backlog: 16, ..ListenOptions::default() };
    let listener = baseline.test.pair.stack(Side::Right).tcp_listen(address, &options).unwrap();
    let mut port = 1_024;
    let limit = (options.syn_backlog + options.backlog) * HALF_OPEN;
    baseline.attack(limit, |intruder, captured| {
        for answer in
            captured.iter().filter(|captured| captured.flags.contains(TcpFlags::SYN)).take(16)
        {
            let header = TcpHeader {
                seq: answer.ack,
                ack: answer.seq + 1,
                flags: TcpFlags::ACK,
                window: 1_000,
                ..TcpHeader::default()
            };
            intruder.segment(answer.to, address, header, &TcpOptions::default(), &[]);
        }
        for _ in 0..16 {
            port = if port == u16::MAX { 1_024 } else { port + 1 };
            let header = TcpHeader { flags: TcpFlags::SYN, window: 1_000, ..TcpHeader::default() };
            let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port);
            intruder.segment(from, address, header, &TcpOptions::default(), &[]);
        }
    });
    let accepted =
        std::iter::from_fn(|| baseline.test.pair.stack(Side::Right).tcp_accept(listener)).count();
    assert!((1..=16).contains(&accepted), "{accepted}");
}
