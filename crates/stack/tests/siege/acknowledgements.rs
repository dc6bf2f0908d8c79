//! Acknowledgements that lie: too many, too early, of what was lost, of what was never sent.

use crate::{BUFFERS, Peace, alone, becomes_honest};
use linerate_testkit::siege::{FRAMES_A_TURN, Heard, Peer, Siege, TURN};
use linerate_testkit::{Side, pattern};
use linerate_wire::{SackBlock, SackBlocks};
use std::collections::BTreeMap;

/// The congestion window of the guest's connection, and the bytes that it has acknowledged.
fn window_and_acknowledged(siege: &mut Siege) -> (u64, u64) {
    let handle = siege.guests()[0].handle;
    let connection = siege.pair.stack(Side::Right).tcp(handle).unwrap();
    (
        u64::from(connection.information().congestion_window),
        connection.statistics().bytes_acknowledged,
    )
}

/// RFC 5681 §3.1: the window grows by bytes acknowledged, not by acknowledgements.
#[test]
fn an_acknowledgement_in_thirty_parts_opens_the_window_no_further_than_one() {
    let _alone = alone();
    let mut peace = Peace::new(1);
    let mut peer = peace.siege.let_in(0, u16::MAX);
    let mut told = peer.expected;
    peace.withstand(BUFFERS, |intruder, heard| {
        peer.listen(heard);
        for _ in 0..FRAMES_A_TURN {
            if told.before(peer.expected) {
                told += 33.min(peer.expected - told);
                peer.acknowledge(intruder, told, u16::MAX, SackBlocks::default());
            }
        }
    });
    let (window, acknowledged) = window_and_acknowledged(&mut peace.siege);
    assert!(acknowledged > 100_000, "{acknowledged} bytes");
    assert!(window <= 14_600 + acknowledged + 2_000, "{window} after {acknowledged} bytes");
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_not_believed() {
    let _alone = alone();
    let mut peace = Peace::new(2);
    let mut peer = peace.siege.let_in(0, u16::MAX);
    peace.withstand(BUFFERS, |intruder, heard| {
        peer.listen(heard);
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
    let (_, acknowledged) = window_and_acknowledged(&mut peace.siege);
    assert_eq!(acknowledged, 0, "the host believed it");
}

/// Whoever acknowledges what it has not got cheats itself; the others keep their share all the same.
#[test]
fn a_peer_that_acknowledges_everything_unseen_does_not_push_the_others_aside() {
    let _alone = alone();
    let mut peace = Peace::new(3);
    let mut peer = peace.siege.let_in(7, u16::MAX);
    peace.withstand(BUFFERS, |intruder, heard| {
        let before = peer.highest;
        peer.listen(heard);
        if before != peer.highest {
            peer.acknowledge(intruder, peer.highest, u16::MAX, SackBlocks::default());
        }
    });
}

/// Any two numbers, around what is in flight or not.
fn any_block(intruder: &mut linerate_testkit::siege::Intruder, peer: &Peer) -> SackBlock {
    let spread = intruder.below(3);
    let mut near = || match spread {
        0 => peer.expected + intruder.below(70_000) - 3_000,
        1 => peer.highest + intruder.below(70_000) - 35_000,
        _ => peer.expected + intruder.below(u32::MAX),
    };
    SackBlock { left: near(), right: near() }
}

#[test]
fn selective_acknowledgements_of_everything_and_of_nothing_break_nothing() {
    let _alone = alone();
    let mut peace = Peace::new(4);
    let mut peer = peace.siege.let_in(0, u16::MAX);
    peace.withstand(BUFFERS, |intruder, heard| {
        peer.listen(heard);
        for index in 0..FRAMES_A_TURN {
            let mut sack = SackBlocks::default();
            for _ in 0..intruder.below(5) {
                sack.push(any_block(intruder, &peer));
            }
            if index == 0 {
                // Everything, and the same number twice.
                sack.push(SackBlock { left: peer.expected + 1, right: peer.highest });
                sack.push(SackBlock { left: peer.highest, right: peer.highest });
            }
            peer.acknowledge(intruder, peer.expected, u16::MAX, sack);
        }
    });
    becomes_honest(&mut peace.siege, &mut peer);
}

/// A receiver that loses one segment of eight, says what it holds beyond the holes, and forgets all of
/// that from time to time (RFC 2018 §8).
struct Forgetful {
    peer: Peer,
    held: BTreeMap<u32, Vec<u8>>,
    turns: u32,
}

impl Forgetful {
    fn new(peer: Peer) -> Self {
        Self { peer, held: BTreeMap::new(), turns: 0 }
    }

    fn turn(&mut self, intruder: &mut linerate_testkit::siege::Intruder, heard: &[Heard]) {
        self.turns += 1;
        if self.turns.is_multiple_of(40) {
            self.held.clear();
        }
        for segment in heard {
            if self.peer.is_data(segment) && intruder.below(8) > 0 {
                self.take(segment);
                self.peer.acknowledge(intruder, self.peer.expected, u16::MAX, self.blocks());
            }
        }
    }

    fn take(&mut self, segment: &Heard) {
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
fn a_peer_that_forgets_what_it_has_acknowledged_selectively_gets_it_again() {
    let _alone = alone();
    let mut peace = Peace::new(5);
    let peer = peace.siege.let_in(0, u16::MAX);
    let mut forgetful = Forgetful::new(peer);
    peace.withstand(BUFFERS + (64 << 10), |intruder, heard| forgetful.turn(intruder, heard));
    peace.siege.run(TURN * 4_000, |intruder, heard| forgetful.turn(intruder, heard));
    let moved = forgetful.peer.expected - peer.expected;
    assert!(moved > 50_000, "{moved} bytes");
}
