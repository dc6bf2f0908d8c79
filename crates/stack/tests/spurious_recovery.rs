//! Tests of the detection of spurious recoveries (RFC 3522, RFC 3708). On a path with random loss
//! and without reordering, the sender must regard no recovery as spurious. On a path with
//! reordering and without loss, it must detect nearly all spurious recoveries.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::TcpHandle;
use linerate_tcp::{CongestionName, Statistics};
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Fate, Line, Network, Pair, Setup, Side, Transfer};
use linerate_units::{Duration, Rate};

const CONTROLS: [CongestionName; 3] =
    [CongestionName::Bbr, CongestionName::Cubic, CongestionName::NewReno];

/// Number of bytes in each transfer.
const AMOUNT: usize = 20_000_000;

/// Runs a transfer over a path of 200 Mbit/s with a round-trip time of 20 ms. The impairments of
/// `network` apply only to data segments, and not to acknowledgements. Returns the statistics of
/// the sender and of the receiver.
fn transfer(congestion: CongestionName, network: Network) -> [Statistics; 2] {
    let line = Line { rate: Rate::from_bits_per_second(200_000_000), queue: 8 << 20 };
    let network = Network { line: Some(line), latency: Duration::from_millis(10), ..network };
    let mut pair = Pair::new(&Setup { network, ..Setup::default() }, |_, config| {
        config.tcp.congestion = congestion;
        config.tcp.send_buffer = (4 << 20).into();
        config.tcp.receive_buffer = (4 << 20).into();
    });
    pair.set_filter(|_, from, _| (from == Side::Right).then_some(Fate::Arrive));
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), AMOUNT);
    assert!(pair.run_until(Duration::from_secs(600), |pair| transfer.advance(pair)));
    [(Side::Left, left), (Side::Right, right)]
        .map(|(side, handle)| counted(&mut pair, side, handle))
}

fn counted(pair: &mut Pair, side: Side, handle: TcpHandle) -> Statistics {
    pair.stack(side).tcp(handle).unwrap().statistics().clone()
}

/// RFC 3522 §3.2: a recovery is recognised as spurious only by the acknowledgement of its oldest
/// retransmission. Here, every retransmission repairs a loss, so the sender must regard no recovery
/// as spurious.
#[test]
fn recoveries_from_real_losses_are_not_undone() {
    for congestion in CONTROLS {
        for loss in [10, 50] {
            let [sender, receiver] =
                transfer(congestion, Network { loss, ..Network::clean(Duration::ZERO) });
            let lost = sender.segments_sent - receiver.segments_received;
            let what = format!("{congestion}, {loss} of 1,000 lost, {lost} in all: {sender:?}");
            assert!(lost > 100 && sender.fast_retransmissions > 10, "{what}");
            assert_eq!(sender.duplicates_reported, 0, "{what}");
            assert_eq!(sender.spurious_recoveries, 0, "{what}");
        }
    }
}

/// One segment in fifty is delayed by up to 20 ms, which can exceed the reordering window. No
/// segment is lost, so every recovery is spurious. The sender must detect at least nine of ten
/// spurious recoveries.
#[test]
fn recoveries_from_reordering_are_undone() {
    for congestion in CONTROLS {
        let lateness = Duration::from_millis(20);
        let network = Network { reordering: 20, lateness, ..Network::clean(Duration::ZERO) };
        let [sender, _] = transfer(congestion, network);
        let recoveries = sender.fast_retransmissions;
        assert!(
            recoveries > 0 && sender.spurious_recoveries * 10 >= recoveries * 9,
            "{congestion}: {sender:?}"
        );
    }
}
