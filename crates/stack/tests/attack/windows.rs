//! Attacks by a peer that lets its receive window shrink, close, or open by single bytes.

use crate::{BUFFERS, Baseline, alone, becomes_honest};
use linerate_testkit::Side;
use linerate_testkit::attack::AttackTest;
use linerate_wire::SackBlocks;

fn sent_to_guest(test: &mut AttackTest) -> u64 {
    let handle = test.guests()[0].handle;
    test.pair.stack(Side::Right).tcp(handle).unwrap().statistics().segments_sent
}

#[test]
fn a_window_that_opens_by_single_bytes_causes_no_flood_of_small_segments() {
    let _alone = alone();
    let mut baseline = Baseline::new(1);
    let mut peer = baseline.test.connect_intruder(0, 0);
    let before = sent_to_guest(&mut baseline.test);
    let mut frames = 0;
    baseline.attack(BUFFERS, |intruder, captured| {
        peer.note_all(captured);
        for window in 0..32 {
            peer.acknowledge(intruder, peer.expected, window % 2, SackBlocks::default());
            frames += 1;
        }
    });
    // The host must not answer a window of one byte with a segment of one byte. It may only send
    // window probes, and small segments after the override timeout of RFC 9293 §3.8.6.2.1. Two such
    // segments are at least 200 ms apart.
    let sent = sent_to_guest(&mut baseline.test) - before;
    assert!(sent < 20, "{sent} segments for {frames} windows of a byte");
    becomes_honest(&mut baseline.test, &mut peer);
}

#[test]
fn a_window_that_shrinks_below_the_data_in_flight_does_no_harm() {
    let _alone = alone();
    let mut baseline = Baseline::new(2);
    let mut peer = baseline.test.connect_intruder(0, u16::MAX);
    let mut turn = 0_u16;
    baseline.attack(BUFFERS, |intruder, captured| {
        peer.note_all(captured);
        turn += 1;
        // In every eighth turn, the peer advertises a large window. In the other turns, it
        // advertises smaller and smaller windows, far below the amount of data in flight.
        for step in 0..16 {
            let window = if turn.is_multiple_of(8) { 20_000 } else { 1_000 - step * 60 };
            peer.acknowledge(intruder, peer.expected, window, SackBlocks::default());
        }
    });
    becomes_honest(&mut baseline.test, &mut peer);
}
