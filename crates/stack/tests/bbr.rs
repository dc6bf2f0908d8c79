//! Tests of BBR between two hosts over a bottleneck with a queue: throughput, fairness, and the
//! response to losses and marks.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::TcpHandle;
use linerate_tcp::{CongestionName, EcnRule, Information};
use linerate_testkit::loss_grid::Cell;
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Line, Network, Pair, Setup, Side, Transfer};
use linerate_units::{Bytes, Duration, Rate};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Creates two hosts on a path of 20 Mbit/s with a round-trip time of 40 ms. The queue of the path
/// holds as many bytes as the path carries in 400 ms.
fn long_queue(congestion: CongestionName) -> Pair {
    let line = Line { rate: Rate::from_bits_per_second(20_000_000), queue: 1_000_000 };
    let network = Network { line: Some(line), ..Network::clean(ms(20)) };
    Pair::new(&Setup { network, ..Setup::default() }, |_, config| {
        config.tcp.congestion = congestion;
        config.tcp.ecn = EcnRule::Request;
        config.tcp.send_buffer = (4 << 20).into();
        config.tcp.receive_buffer = (4 << 20).into();
    })
}

/// Opens `count` connections, each with an endless transfer. Returns, for each connection, its
/// handle on the left host and its transfer.
fn endless(pair: &mut Pair, count: usize) -> Vec<(TcpHandle, Transfer)> {
    let listener = listen(pair);
    (0..count)
        .map(|_| {
            let (left, right) = established(pair, listener);
            (left, Transfer::new((Side::Left, left), (Side::Right, right), 1 << 40))
        })
        .collect()
}

fn run(pair: &mut Pair, transfers: &mut [(TcpHandle, Transfer)], span: Duration) {
    pair.run_until(span, |pair| {
        for (_, transfer) in &mut *transfers {
            transfer.advance(pair);
        }
        false
    });
}

fn information(pair: &mut Pair, handle: TcpHandle) -> Information {
    pair.stack(Side::Left).tcp(handle).unwrap().information()
}

#[test]
fn bbr_fills_the_link_but_not_the_queue() {
    let mut round_trips = Vec::new();
    for congestion in [CongestionName::Bbr, CongestionName::Cubic] {
        let mut pair = long_queue(congestion);
        let mut transfers = endless(&mut pair, 1);
        run(&mut pair, &mut transfers, Duration::from_secs(10));
        let before = transfers[0].1.read();
        run(&mut pair, &mut transfers, Duration::from_secs(10));
        let read = transfers[0].1.read() - before;
        assert!(read > 22_000_000, "{congestion}: {read} bytes of 25,000,000 and their headers");
        round_trips.push(information(&mut pair, transfers[0].0).smoothed_round_trip.unwrap());
    }
    assert!(round_trips[0] < ms(70) && round_trips[1] > ms(120), "{round_trips:?}");
}

#[test]
fn two_percent_loss_does_not_stop_bbr() {
    let goodput = |congestion| {
        let buffer = Bytes::new(4 << 20);
        Cell { round_trip: ms(10), loss: 20, buffer, congestion }.run(1).goodput
    };
    let (bbr, reno) = (goodput(CongestionName::Bbr), goodput(CongestionName::NewReno));
    assert!(bbr > reno * 5, "{bbr} and {reno} bytes a second");
}

#[test]
fn a_late_flow_gets_its_share() {
    let mut pair = long_queue(CongestionName::Bbr);
    let mut transfers = endless(&mut pair, 2);
    let mut late = transfers.split_off(1);
    run(&mut pair, &mut transfers, Duration::from_secs(8));
    transfers.append(&mut late);
    // At first, the late flow measures round-trip times that include the queue which the first flow
    // has built. It gets its share only after both flows have drained this queue. The shares are
    // therefore measured after 22 seconds.
    run(&mut pair, &mut transfers, Duration::from_secs(22));
    let before: Vec<_> = transfers.iter().map(|(_, transfer)| transfer.read()).collect();
    run(&mut pair, &mut transfers, Duration::from_secs(20));
    let read: Vec<_> =
        transfers.iter().zip(before).map(|((_, transfer), read)| transfer.read() - read).collect();
    let sum: usize = read.iter().sum();
    assert!(sum > 42_000_000, "{read:?} of 50,000,000");
    assert!(read.iter().all(|&bytes| bytes * 4 > sum), "{read:?}");
    let round_trip = information(&mut pair, transfers[0].0).smoothed_round_trip.unwrap();
    assert!(round_trip < ms(140), "{round_trip}");
}

/// BBR responds to ECN marks in the way in which it responds to losses: it limits the data in
/// flight to the amount that was delivered recently.
#[test]
fn ecn_marks_reduce_the_window() {
    let mut pair = long_queue(CongestionName::Bbr);
    let mut transfers = endless(&mut pair, 1);
    run(&mut pair, &mut transfers, Duration::from_secs(4));
    let handle = transfers[0].0;
    let before = information(&mut pair, handle).congestion_window;
    pair.wire.network.marking = 100;
    run(&mut pair, &mut transfers, ms(1_000));
    let after = information(&mut pair, handle).congestion_window;
    let statistics = pair.stack(Side::Left).tcp(handle).unwrap().statistics().clone();
    assert!(
        statistics.mark_reductions > 3 && statistics.retransmission_timeouts == 0,
        "{statistics:?}"
    );
    assert!(after * 4 < before * 3, "{before} before and {after} after");
}
