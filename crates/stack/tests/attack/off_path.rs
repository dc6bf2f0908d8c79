//! Off-path attackers that try to end a connection. They guess resets, SYNs and data segments, and
//! send ICMP errors that quote invented segments.

use crate::{Baseline, alone};
use linerate_testkit::attack::{AttackTest, FRAMES_A_TURN, Intruder};
use linerate_testkit::{Side, ipv4_end};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Returns, for each connection of the legitimate transfers, the address of the legitimate host and
/// that of the host under attack, in this order.
fn honest_ends(test: &mut AttackTest) -> Vec<[SocketAddrV4; 2]> {
    let honest = test.honest(Side::Left);
    let stack = test.pair.stack(Side::Left);
    honest
        .iter()
        .map(|&handle| {
            [stack.tcp_local_addr(handle), stack.tcp_peer_addr(handle)]
                .map(|end| ipv4_end(end.unwrap()))
        })
        .collect()
}

fn established(test: &mut AttackTest) -> u64 {
    test.pair.stack(Side::Right).counters().tcp.currently_established
}

/// RFC 5961 §3 to §5: a reset ends a connection only if its sequence number is exactly the next
/// expected one. A guess is right with a probability of one in 2^32. A wrong guess within the
/// window causes a challenge ACK.
#[test]
fn guessed_resets_syns_and_data_end_no_connection() {
    let _alone = alone();
    for flags in [TcpFlags::RST, TcpFlags::SYN, TcpFlags::RST | TcpFlags::ACK, TcpFlags::ACK] {
        let mut baseline = Baseline::new(1);
        let ends = honest_ends(&mut baseline.test);
        baseline.attack(64 << 10, |intruder, _| {
            for index in 0..FRAMES_A_TURN {
                let [from, to] = ends[index % ends.len()];
                let header = any_header(intruder, flags);
                let data: &[u8] = if flags == TcpFlags::ACK { b"forged data" } else { b"" };
                intruder.segment(from, to, header, &TcpOptions::default(), data);
            }
        });
        assert_eq!(established(&mut baseline.test), 4, "{flags:?}");
    }
}

fn any_header(intruder: &mut Intruder, flags: TcpFlags) -> TcpHeader {
    let (seq, ack) = (SeqNum::new(intruder.below(u32::MAX)), SeqNum::new(intruder.below(u32::MAX)));
    TcpHeader { seq, ack, flags, window: 0, ..TcpHeader::default() }
}

/// The attacker knows the receive window, but not the next expected sequence number. The host
/// answers its resets by challenge ACKs, whose rate it limits (RFC 5961 §7), and the connection
/// stays open.
#[test]
fn resets_in_the_window_get_rate_limited_challenge_acks() {
    let _alone = alone();
    let mut baseline = Baseline::new(2);
    let ends = honest_ends(&mut baseline.test);
    let seen = baseline.test.overheard.clone();
    let mut sent = 0;
    baseline.attack(64 << 10, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let [from, to] = ends[index % ends.len()];
            // The host expects a sequence number at or shortly after its most recent
            // acknowledgement number, which the test has recorded. So `seq` is in the window, but
            // is not the expected sequence number.
            let Some(next) = seen.last_ack(from.port()) else { continue };
            let seq = next + 20_000 + intruder.below(10_000);
            let header = TcpHeader { seq, flags: TcpFlags::RST, ..TcpHeader::default() };
            intruder.segment(from, to, header, &TcpOptions::default(), &[]);
            sent += 1;
        }
    });
    assert!(sent > 10_000, "{sent}");
    assert_eq!(established(&mut baseline.test), 4);
    let mut challenges = 0;
    for handle in baseline.test.honest(Side::Right) {
        challenges +=
            baseline.test.pair.stack(Side::Right).tcp(handle).unwrap().statistics().challenge_acks;
    }
    assert!((1..sent / 20).contains(&challenges), "{challenges} challenges to {sent} resets");
}

/// Sends an ICMP error that quotes `quote`.
fn icmp(intruder: &mut Intruder, kind: u8, code: u8, value: u32, quote: &[u8]) {
    let mut bytes = vec![kind, code, 0, 0];
    bytes.extend_from_slice(&value.to_be_bytes());
    bytes.extend_from_slice(quote);
    let sum = Sum::of(&bytes).finish();
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    let router = Ipv4Addr::from_bits(0xc633_6400 | intruder.below(256));
    intruder.packet(Ipv4Header::new(router, Side::Right.address(), Protocol::ICMP), &bytes);
}

/// Returns the first bytes of a packet that the host might have sent, for an ICMP error to quote.
fn quote(from: SocketAddrV4, to: SocketAddrV4, seq: u32) -> Vec<u8> {
    let mut quote = vec![0; Ipv4Header::LENGTH];
    Ipv4Header::new(*from.ip(), *to.ip(), Protocol::TCP).emit(1_000, &mut quote);
    quote.extend_from_slice(&from.port().to_be_bytes());
    quote.extend_from_slice(&to.port().to_be_bytes());
    quote.extend_from_slice(&seq.to_be_bytes());
    quote
}

/// RFC 5927 §4.1: the host ignores an ICMP error that quotes a sequence number which is not in
/// flight. A router of the path could not send such an error.
#[test]
fn icmp_errors_with_invented_quotes_have_no_effect() {
    let _alone = alone();
    // Each ICMP error quotes a random sequence number. About one in ten thousand of these numbers
    // is in flight by chance, so that the host would have to accept the error. With this seed, none
    // is.
    let mut baseline = Baseline::new(4);
    let ends = honest_ends(&mut baseline.test);
    baseline.attack(64 << 10, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let [to, from] = ends[index % ends.len()];
            let seq = intruder.below(u32::MAX);
            let real = quote(from, to, seq);
            let elsewhere = SocketAddrV4::new(Ipv4Addr::from_bits(seq), 80);
            match index % 8 {
                // "Fragmentation needed" with an MTU of 68 bytes. Cases 0 and 1 quote the addresses
                // of a real connection, and case 2 quotes those of an invented one.
                0 | 1 => icmp(intruder, 3, 4, 68, &real),
                2 => icmp(intruder, 3, 4, 68, &quote(from, elsewhere, seq)),
                // Port, protocol and host unreachable. The third quotes an invented connection.
                3 => icmp(intruder, 3, 3, 0, &real),
                4 => icmp(intruder, 3, 2, 0, &real),
                5 => icmp(intruder, 3, 1, 0, &quote(from, elsewhere, seq)),
                // Source quench, and "fragmentation needed" with a truncated quote.
                6 => icmp(intruder, 4, 0, 0, &real),
                _ => icmp(intruder, 3, 4, 68, &real[..14]),
            }
        }
    });
    assert_eq!(established(&mut baseline.test), 4);
    for handle in baseline.test.honest(Side::Right) {
        let connection = baseline.test.pair.stack(Side::Right).tcp(handle).unwrap();
        assert_eq!(connection.effective_mss(), 1_448, "a path MTU was accepted");
    }
}
