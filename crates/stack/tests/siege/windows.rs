//! Windows that shrink, close, and open by single bytes.

use crate::{BUFFERS, Peace, alone, becomes_honest};
use linerate_testkit::Side;
use linerate_testkit::siege::Siege;
use linerate_wire::SackBlocks;

fn sent_to_guest(siege: &mut Siege) -> u64 {
    let handle = siege.guests()[0].handle;
    siege.pair.stack(Side::Right).tcp(handle).unwrap().statistics().segments_sent
}

#[test]
fn a_window_that_opens_by_single_bytes_gets_no_storm_of_small_segments() {
    let _alone = alone();
    let mut peace = Peace::new(1);
    let mut peer = peace.siege.let_in(0, 0);
    let before = sent_to_guest(&mut peace.siege);
    let mut frames = 0;
    peace.withstand(BUFFERS, |intruder, heard| {
        peer.listen(heard);
        for window in 0..32 {
            peer.acknowledge(intruder, peer.expected, window % 2, SackBlocks::default());
            frames += 1;
        }
    });
    // Probes, and what overrides the avoidance of silly windows: every 200 ms at the most.
    let sent = sent_to_guest(&mut peace.siege) - before;
    assert!(sent < 20, "{sent} segments for {frames} windows of a byte");
    becomes_honest(&mut peace.siege, &mut peer);
}

#[test]
fn a_window_that_shrinks_below_what_was_sent_breaks_nothing() {
    let _alone = alone();
    let mut peace = Peace::new(2);
    let mut peer = peace.siege.let_in(0, u16::MAX);
    let mut turn = 0_u16;
    peace.withstand(BUFFERS, |intruder, heard| {
        peer.listen(heard);
        turn += 1;
        // Open for a turn, and then less and less, far below what is under way.
        for step in 0..16 {
            let window = if turn.is_multiple_of(8) { 20_000 } else { 1_000 - step * 60 };
            peer.acknowledge(intruder, peer.expected, window, SackBlocks::default());
        }
    });
    becomes_honest(&mut peace.siege, &mut peer);
}
