//! Floods: of SYNs from everywhere, of connections that say nothing, of questions.

use crate::{Peace, alone};
use linerate_stack::ListenOptions;
use linerate_testkit::Side;
use linerate_testkit::siege::{FRAMES_A_TURN, TURN};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};
use std::net::{Ipv4Addr, SocketAddrV4};

/// What a half-open connection may take; it has no buffers yet. Three pointers of it are for memory that is shared
/// later.
const HALF_OPEN: usize = 2_048 + 3 * size_of::<usize>();

#[test]
fn a_flood_of_syns_takes_the_listener_s_queue_and_no_more_and_shuts_nobody_out() {
    let _alone = alone();
    let mut peace = Peace::new(1);
    let service = peace.siege.service_address();
    let flood = |intruder: &mut linerate_testkit::siege::Intruder| {
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
    peace.withstand(queue, |intruder, _| flood(intruder));
    // An honest peer gets through while it goes on.
    peace.siege.knock();
    peace.siege.run(TURN * 200, |intruder, _| flood(intruder));
    assert_eq!(peace.siege.guests().len(), 1, "a guest was shut out");
}

/// Questions that the host answers itself: echoes, segments for nobody.
#[test]
fn a_flood_of_questions_gets_its_share_of_the_link_and_no_more() {
    let _alone = alone();
    let mut peace = Peace::new(2);
    peace.withstand(256 << 10, |intruder, _| {
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
                let nobody = SocketAddrV4::new(Side::Right.address(), 4_000);
                intruder.segment(
                    SocketAddrV4::new(source, 9),
                    nobody,
                    header,
                    &TcpOptions::default(),
                    &[],
                );
            }
        }
    });
}

/// RFC 9293 says nothing of peers that open and fall silent; the accept queue does.
#[test]
fn connections_that_nobody_accepts_are_as_many_as_the_listener_says() {
    let _alone = alone();
    let mut peace = Peace::new(3);
    let door = SocketAddrV4::new(Side::Right.address(), 11);
    let options = ListenOptions { backlog: 16, ..ListenOptions::default() };
    let listener = peace.siege.pair.stack(Side::Right).tcp_listen(door, &options).unwrap();
    let mut port = 1_024;
    let limit = (options.syn_backlog + options.backlog) * HALF_OPEN;
    peace.withstand(limit, |intruder, heard| {
        for answer in heard.iter().filter(|heard| heard.flags.contains(TcpFlags::SYN)).take(16) {
            let header = TcpHeader {
                seq: answer.ack,
                ack: answer.seq + 1,
                flags: TcpFlags::ACK,
                window: 1_000,
                ..TcpHeader::default()
            };
            intruder.segment(answer.to, door, header, &TcpOptions::default(), &[]);
        }
        for _ in 0..16 {
            port = if port == u16::MAX { 1_024 } else { port + 1 };
            let header = TcpHeader { flags: TcpFlags::SYN, window: 1_000, ..TcpHeader::default() };
            let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port);
            intruder.segment(from, door, header, &TcpOptions::default(), &[]);
        }
    });
    let accepted =
        std::iter::from_fn(|| peace.siege.pair.stack(Side::Right).tcp_accept(listener)).count();
    assert!((1..=16).contains(&accepted), "{accepted}");
}
