//! Who is no party to a connection and wants to end it: resets, handshakes and data by guess, and ICMP
//! that quotes nothing real.

use crate::{Peace, alone};
use linerate_testkit::Side;
use linerate_testkit::siege::{FRAMES_A_TURN, Intruder, Siege};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};
use std::net::{Ipv4Addr, SocketAddrV4};

/// The ends of the honest connections, the honest host's first.
fn honest_ends(siege: &mut Siege) -> Vec<[SocketAddrV4; 2]> {
    let honest = siege.honest(Side::Left);
    let stack = siege.pair.stack(Side::Left);
    honest
        .iter()
        .map(|&handle| {
            [stack.tcp_local_addr(handle).unwrap(), stack.tcp_peer_addr(handle).unwrap()]
        })
        .collect()
}

fn established(siege: &mut Siege) -> u64 {
    siege.pair.stack(Side::Right).counters().tcp.currently_established
}

/// RFC 5961: a number by guess is right once in four thousand million times, and one that lies in the
/// window is answered by a challenge.
#[test]
fn resets_handshakes_and_data_by_guess_end_no_connection() {
    let _alone = alone();
    for flags in [TcpFlags::RST, TcpFlags::SYN, TcpFlags::RST | TcpFlags::ACK, TcpFlags::ACK] {
        let mut peace = Peace::new(1);
        let ends = honest_ends(&mut peace.siege);
        peace.withstand(64 << 10, |intruder, _| {
            for index in 0..FRAMES_A_TURN {
                let [from, to] = ends[index % ends.len()];
                let header = any_header(intruder, flags);
                let data: &[u8] = if flags == TcpFlags::ACK { b"believe me" } else { b"" };
                intruder.segment(from, to, header, &TcpOptions::default(), data);
            }
        });
        assert_eq!(established(&mut peace.siege), 4, "{flags:?}");
    }
}

fn any_header(intruder: &mut Intruder, flags: TcpFlags) -> TcpHeader {
    let (seq, ack) = (SeqNum::new(intruder.below(u32::MAX)), SeqNum::new(intruder.below(u32::MAX)));
    TcpHeader { seq, ack, flags, window: 0, ..TcpHeader::default() }
}

/// Who has seen the window and not the next number: a challenge each, but not a flood of them (RFC 5961
/// §7), and no end.
#[test]
fn resets_into_the_window_end_no_connection_and_are_answered_now_and_then() {
    let _alone = alone();
    let mut peace = Peace::new(2);
    let ends = honest_ends(&mut peace.siege);
    let seen = peace.siege.overheard.clone();
    let mut sent = 0;
    peace.withstand(64 << 10, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let [from, to] = ends[index % ends.len()];
            // What the host acknowledged last is next, or was a moment ago.
            let Some(next) = seen.last_ack(from.port()) else { continue };
            let seq = next + 20_000 + intruder.below(10_000);
            let header = TcpHeader { seq, flags: TcpFlags::RST, ..TcpHeader::default() };
            intruder.segment(from, to, header, &TcpOptions::default(), &[]);
            sent += 1;
        }
    });
    assert!(sent > 10_000, "{sent}");
    assert_eq!(established(&mut peace.siege), 4);
    let mut challenges = 0;
    for handle in peace.siege.honest(Side::Right) {
        challenges +=
            peace.siege.pair.stack(Side::Right).tcp(handle).unwrap().statistics().challenge_acks;
    }
    assert!((1..sent / 20).contains(&challenges), "{challenges} challenges to {sent} resets");
}

/// An ICMP error about `quote`.
fn icmp(intruder: &mut Intruder, kind: u8, code: u8, value: u32, quote: &[u8]) {
    let mut bytes = vec![kind, code, 0, 0];
    bytes.extend_from_slice(&value.to_be_bytes());
    bytes.extend_from_slice(quote);
    let sum = Sum::of(&bytes).finish();
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    let router = Ipv4Addr::from_bits(0xc633_6400 | intruder.below(256));
    intruder.packet(Ipv4Header::new(router, Side::Right.address(), Protocol::ICMP), &bytes);
}

/// The first bytes of a segment that the host might have sent.
fn quote(from: SocketAddrV4, to: SocketAddrV4, seq: u32) -> Vec<u8> {
    let mut quote = vec![0; Ipv4Header::LENGTH];
    Ipv4Header::new(*from.ip(), *to.ip(), Protocol::TCP).emit(1_000, &mut quote);
    quote.extend_from_slice(&from.port().to_be_bytes());
    quote.extend_from_slice(&to.port().to_be_bytes());
    quote.extend_from_slice(&seq.to_be_bytes());
    quote
}

/// RFC 5927 §4.1: who does not know what is in flight is no router on the way.
#[test]
fn icmp_that_quotes_nothing_real_slows_nobody_down() {
    let _alone = alone();
    // One guess in some ten thousand hits what is in flight, and is then as good as real; with this seed
    // none does.
    let mut peace = Peace::new(4);
    let ends = honest_ends(&mut peace.siege);
    peace.withstand(64 << 10, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let [to, from] = ends[index % ends.len()];
            let seq = intruder.below(u32::MAX);
            let real = quote(from, to, seq);
            let elsewhere = SocketAddrV4::new(Ipv4Addr::from_bits(seq), 80);
            match index % 8 {
                // Too big for 68 bytes, of a real connection and of any.
                0 | 1 => icmp(intruder, 3, 4, 68, &real),
                2 => icmp(intruder, 3, 4, 68, &quote(from, elsewhere, seq)),
                // Port, protocol and host unreachable.
                3 => icmp(intruder, 3, 3, 0, &real),
                4 => icmp(intruder, 3, 2, 0, &real),
                5 => icmp(intruder, 3, 1, 0, &quote(from, elsewhere, seq)),
                // Source quench, and a quote that breaks off.
                6 => icmp(intruder, 4, 0, 0, &real),
                _ => icmp(intruder, 3, 4, 68, &real[..14]),
            }
        }
    });
    assert_eq!(established(&mut peace.siege), 4);
    for handle in peace.siege.honest(Side::Right) {
        let connection = peace.siege.pair.stack(Side::Right).tcp(handle).unwrap();
        assert_eq!(connection.effective_mss(), 1_448, "a path MTU was believed");
    }
}
