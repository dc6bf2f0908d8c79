//! Tests of path MTU discovery over a path that drops long packets without an ICMP error (a black
//! hole). The host caches the path MTU that it has found, and later connections start with it (RFC
//! 4821 §5.2).

use linerate_stack::Medium;
use linerate_tcp::Statistics;
use linerate_testkit::transfer::{Transfer, established, listen};
use linerate_testkit::{Fate, Pair, Setup, Side};
use linerate_units::Duration;

/// Creates two hosts. The path between them drops packets of more than `width` bytes without an
/// ICMP error.
fn pair(mtu: usize, width: usize) -> Pair {
    let setup = Setup { medium: Medium::Ip, mtu, ..Setup::default() };
    let mut pair = Pair::new(&setup, |_, _| {});
    pair.set_filter(move |_, _, packet| (packet.len() > width).then_some(Fate::Lose));
    pair
}

/// Transfers `bytes` bytes from the left to the right host over a new connection. Returns the
/// statistics of the sender's connection, and the path MTU that it has found.
fn transfer(
    pair: &mut Pair,
    listener: linerate_stack::ListenHandle,
    bytes: usize,
) -> (Statistics, usize) {
    let (left, right) = established(pair, listener);
    let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), bytes);
    assert!(
        pair.run_until(Duration::from_secs(600), |pair| transfer.advance(pair)),
        "the transfer ends"
    );
    let connection = pair.stack(Side::Left).tcp(left).expect("an application holds it");
    (connection.statistics().clone(), connection.path_mtu())
}

#[test]
fn the_next_connection_starts_with_the_path_mtu_found() {
    let mut pair = pair(1_500, 1_400);
    let listener = listen(&mut pair);
    let (first, found) = transfer(&mut pair, listener, 20_000_000);
    assert_eq!((first.black_holes, found), (1, 1_400));
    let (next, found) = transfer(&mut pair, listener, 2_000_000);
    assert_eq!(
        (next.black_holes, next.retransmitted_segments, next.path_probes, found),
        (0, 0, 0, 1_400)
    );
}

#[test]
fn the_next_connection_continues_an_unfinished_search() {
    let mut pair = pair(1_500, 1_400);
    let listener = listen(&mut pair);
    let (first, found) = transfer(&mut pair, listener, 3_000);
    assert_eq!((first.black_holes, first.path_probes), (1, 0), "too little to send for a probe");
    assert_eq!(found, 1_076);
    let (next, found) = transfer(&mut pair, listener, 20_000_000);
    assert_eq!((next.black_holes, next.retransmission_timeouts, found), (0, 0, 1_400));
    assert!(next.path_probes_failed > 0);
}

/// The cached path MTU expires after ten minutes (RFC 1191 §6.3). A connection that is opened after
/// that discovers the path MTU once more.
#[test]
fn a_path_mtu_expires() {
    let mut pair = pair(1_500, 1_400);
    let listener = listen(&mut pair);
    transfer(&mut pair, listener, 20_000_000);
    pair.set_filter(|_, _, _| None);
    pair.run_for(Duration::from_secs(601));
    let (next, found) = transfer(&mut pair, listener, 100_000);
    assert_eq!((next.retransmitted_segments, next.path_probes, found), (0, 0, 1_500));
}

#[test]
fn a_black_hole_behind_a_jumbo_link_is_detected() {
    let mut pair = pair(9_000, 1_500);
    let listener = listen(&mut pair);
    let (counted, found) = transfer(&mut pair, listener, 50_000_000);
    assert_eq!((counted.black_holes, found), (1, 1_500));
}
