//! Attacks with acknowledgements: too many of them, acknowledgements of data that the peer has not
//! received or that was never sent, and SACK blocks of all kinds.

use crate::{BUFFERS, Baseline, alone, becomes_honest};
use linerate_testkit::attack::{AttackTest, Captured, FRAMES_A_TURN, Peer, TURN};
use linerate_testkit::{Side, pattern};
use linerate_wire::{SackBlock, SackBlocks};
use std::collections::BTreeMap;

/// Returns two values of the connection to the hostile peer: its congestion window, and the number
/// of bytes that the peer has acknowledged.
fn window_and_acknowledged(test: &mut AttackTest) -> (u64, u64) {
    let handle = test.guests()[0].handle;
    let connection = test.pair.stack(Side::Right).tcp(handle).unwrap();
    (
        u64::from(connection.information().congestion_window),
        connection.statistics().bytes_acknowledged,
    )
}

/// RFC 5681 §3.1: the congestion window grows by the number of bytes acknowledged. If a peer
/// acknowledges data in many small steps, the window must not grow faster than with one
/// acknowledgement for all of the data.
#[test]
fn dividing_acknowledgements_opens_the_window_no_further() {
    let _alone = alone();
    let mut baseline = Baseline::new(1);
    let mut peer = baseline.test.connect_intruder(0, u16::MAX);
    let mut acknowledged = peer.expected;
    baseline.attack(BUFFERS, |intruder, captured| {
        peer.note_all(captured);
        for _ in 0..FRAMES_A_TURN {
            if acknowledged.before(peer.expected) {
                acknowledged += 33.min(peer.expected - acknowledged);
                peer.acknowledge(intruder, acknowledged, u16::MAX, SackBlocks::default());
            }
        }
    });
    let (window, acknowledged) = window_and_acknowledged(&mut baseline.test);
    assert!(acknowledged > 100_000, "{acknowledged} bytes");
    assert!(window <= 14_600 + acknowledged + 2_000, "{window} after {acknowledged} bytes");
}

#[test]
fn acknowledgements_of_data_never_sent_are_ignored() {
    let _alone = alone();
    let mut baseline = Baseline::new(2);
    let mut peer = baseline.test.connect_intruder(0, u16::MAX);
    baseline.attack(BUFFERS, |intruder, captured| {
        peer.note_all(captured);
        for _ in 0..FRAMES_A_TURN {
            let ahead = 1 + intruder.below(1 << 20);
            peer.acknowledge(
                intruder,
                peer.highest + ahead + 100_000,
                u16::MAX,
                SackBlocks::default(),
            );
        }
    });
    let (_, acknowledged) = window_and_acknowledged(&mut baseline.test);
    assert_eq!(acknowledged, 0, "the acknowledgements were accepted");
}

/// A peer acknowledges data before it has received it. If the data is lost, it is not
/// retransmitted, so this harms only the peer itself. The other connections must keep their share
/// of the link.
#[test]
fn optimistic_acknowledgements_take_no_share_from_other_connections() {
    let _alone = alone();
    let mut baseline = Baseline::new(3);
    let mut peer = baseline.test.connect_intruder(7, u16::MAX);
    baseline.attack(BUFFERS, |intruder, captured| {
        let before = peer.highest;
        peer.note_all(captured);
        if before != peer.highest {
            peer.acknowledge(intruder, peer.highest, u16::MAX, SackBlocks::default());
        }
    });
}

/// Returns a SACK block with two random edges: in or near the data in flight, or anywhere in the
/// sequence space.
fn any_block(intruder: &mut linerate_testkit::attack::Intruder, peer: &Peer) -> SackBlock {
    let spread = intruder.below(3);
    let mut near = || match spread {
        0 => peer.expected + intruder.below(70_000) - 3_000,
        1 => peer.highest + intruder.below(70_000) - 35_000,
        _ => peer.expected + intruder.below(u32::MAX),
    };
    SackBlock { left: near(), right: near() }
}

#[test]
fn random_sack_blocks_do_no_lasting_harm() {
    let _alone = alone();
    let mut baseline = Baseline::new(4);
    let mut peer = baseline.test.connect_intruder(0, u16::MAX);
    baseline.attack(BUFFERS, |intruder, captured| {
        peer.note_all(captured);
        for index in 0..FRAMES_A_TURN {
            let mut sack = SackBlocks::default();
            for _ in 0..intruder.below(5) {
                sack.push(any_block(intruder, &peer));
            }
            if index == 0 {
                // The first acknowledgement of each turn also carries two SACK blocks that are not
                // random. The first covers all data in flight except for the first byte, and the
                // second is empty.
                sack.push(SackBlock { left: peer.expected + 1, right: peer.highest });
                sack.push(SackBlock { left: peer.highest, right: peer.highest });
            }
            peer.acknowledge(intruder, peer.expected, u16::MAX, sack);
        }
    });
    becomes_honest(&mut baseline.test, &mut peer);
}

/// A receiver that loses one segment of eight, and reports data after a lost segment by SACK. Every
/// 40 turns, it discards all data that it has reported (RFC 2018 §8).
struct Forgetful {
    peer: Peer,
    held: BTreeMap<u32, Vec<u8>>,
    turns: u32,
}

impl Forgetful {
    fn new(peer: Peer) -> Self {
        Self { peer, held: BTreeMap::new(), turns: 0 }
    }

    fn turn(&mut self, intruder: &mut linerate_testkit::attack::Intruder, captured: &[Captured]) {
        self.turns += 1;
        if self.turns.is_multiple_of(40) {
            self.held.clear();
        }
        for segment in captured {
            if self.peer.is_data(segment) && intruder.below(8) > 0 {
                self.take(segment);
                self.peer.acknowledge(intruder, self.peer.expected, u16::MAX, self.blocks());
            }
        }
    }

    fn take(&mut self, segment: &Captured) {
        let first = segment.seq - self.peer.first;
        for (index, &byte) in segment.payload.iter().enumerate() {
            assert_eq!(byte, pattern(first as usize + index), "wrong bytes were sent");
        }
        if segment.seq.after(self.peer.expected) {
            self.held.insert(first, segment.payload.clone());
        }
        self.peer.note(segment);
        while let Some(entry) = self.held.first_entry() {
            let (first, length) = (*entry.key(), u32::try_from(entry.get().len()).unwrap());
            if self.peer.expected.before(self.peer.first + first) {
                break;
            }
            entry.remove();
            self.peer.expected = self.peer.expected.later(self.peer.first + first + length);
        }
    }

    fn blocks(&self) -> SackBlocks {
        let mut sack = SackBlocks::default();
        for (&first, held) in self.held.iter().take(3) {
            let left = self.peer.first + first;
            sack.push(SackBlock { left, right: left + u32::try_from(held.len()).unwrap() });
        }
        sack
    }
}

#[test]
fn data_reneged_after_sack_is_sent_again() {
    let _alone = alone();
    let mut baseline = Baseline::new(5);
    let peer = baseline.test.connect_intruder(0, u16::MAX);
    let mut forgetful = Forgetful::new(peer);
    baseline.attack(BUFFERS + (64 << 10), |intruder, captured| forgetful.turn(intruder, captured));
    baseline.test.run(TURN * 4_000, |intruder, captured| forgetful.turn(intruder, captured));
    let moved = forgetful.peer.expected - peer.expected;
    assert!(moved > 50_000, "{moved} bytes");
}
