//! Data that contradicts itself, and data in crumbs.

use crate::{BUFFERS, Peace, alone};
use linerate_testkit::Side;
use linerate_testkit::siege::{FRAMES_A_TURN, TURN};
use linerate_wire::{Ipv4Header, Protocol, SackBlocks};
use std::net::Ipv4Addr;

/// What the buffers of a host's connections may hold, of all that these guests could ask for twice.
const BUDGET: usize = 4 << 20;
const GUESTS: usize = 100;

/// What else a connection takes: its state, and what a segment under way is remembered by.
const CONNECTION: usize = 32 << 10;

/// Every byte that an application reads was sent for that place, whichever of those sent it is; and once
/// there is no hole any more, it reads on.
#[test]
fn overlapping_data_that_disagrees_is_read_once_and_never_invented() {
    let _alone = alone();
    let mut peace = Peace::new(1);
    let peer = peace.siege.let_in(0, u16::MAX);
    const STREAM: usize = 40_000;
    // Which bytes were sent for a place: a bit for each of eight.
    let mut sent = vec![0_u8; STREAM];
    let start = peer.next;
    let mut filled = 0_usize;
    peace.withstand(BUFFERS + 2 * STREAM, |intruder, _| {
        for index in 0..FRAMES_A_TURN {
            let last = index == FRAMES_A_TURN - 1;
            let length = 1 + intruder.below(if last { 40 } else { 900 }) as usize;
            let ahead = if last { 0 } else { 1 + intruder.below(5_000) as usize };
            let first = (filled + ahead).min(STREAM - 1);
            let length = length.min(STREAM - first);
            let value = u8::try_from(intruder.below(8)).unwrap();
            sent[first..first + length].iter_mut().for_each(|place| *place |= 1 << value);
            peer.send(intruder, start + u32::try_from(first).unwrap(), &vec![value; length]);
            if last {
                filled = (filled + length).min(STREAM);
            }
        }
    });
    let said = &peace.siege.guests()[0].said;
    assert!(said.len() > 30_000, "{} bytes", said.len());
    for (place, &value) in said.iter().enumerate() {
        assert!(sent[place] & (1 << value) != 0, "byte {place} was never {value}");
    }
}

/// Every second byte of the window, backwards, so that no two touch; nobody reads.
#[test]
fn a_window_in_crumbs_costs_no_more_memory_than_a_window() {
    let _alone = alone();
    let mut peace = Peace::new(2);
    let peer = peace.siege.let_in(0, u16::MAX);
    peace.siege.guests_are_heard = false;
    let mut place = 60_000_u32;
    peace.withstand(BUFFERS, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            place = if place < 4 { 60_000 } else { place - 2 };
            peer.send(intruder, peer.next + place, &[1]);
        }
    });
    let handle = peace.siege.guests()[0].handle;
    let full =
        peace.siege.pair.stack(Side::Right).tcp(handle).unwrap().statistics().reassembly_full;
    assert!(full > 10_000, "only {full} crumbs were refused");
    // The window is as good as ever.
    peace.siege.guests_are_heard = true;
    let mut next = peer.next;
    peace.siege.run(TURN * 300, |intruder, _| {
        for _ in 0..8 {
            peer.send(intruder, next, &[7; 500]);
            next += 500;
        }
        peer.acknowledge(intruder, peer.expected, u16::MAX, SackBlocks::default());
    });
    assert!(peace.siege.guests()[0].said.len() > 500_000, "{}", peace.siege.guests()[0].said.len());
}

/// A byte at the far end of each window takes the memory of a whole one.
#[test]
fn a_byte_at_the_end_of_each_of_many_windows_takes_no_memory_from_the_honest() {
    let _alone = alone();
    let mut peace = Peace::with(4, |config| config.limits.buffer_bytes = BUDGET);
    let peers: Vec<_> = (0..GUESTS).map(|_| peace.siege.let_in(0, 0)).collect();
    peace.siege.guests_are_heard = false;
    peace.withstand(BUDGET + GUESTS * CONNECTION, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            let peer = &peers[intruder.below(GUESTS.try_into().unwrap()) as usize];
            let place = 30_000 + intruder.below(30_000);
            peer.send(intruder, peer.next + place, &[1]);
        }
    });
    let host = peace.siege.pair.stack(Side::Right);
    assert!(host.counters().tcp_extra.memory_refusals > 10_000, "{}", host.counters().tcp_extra);
}

/// Applications write all they can to guests that take nothing of it.
#[test]
fn guests_that_ask_for_much_and_take_nothing_leave_memory_to_the_honest() {
    let _alone = alone();
    let mut peace = Peace::with(5, |config| config.limits.buffer_bytes = BUDGET);
    for _ in 0..GUESTS {
        peace.siege.let_in(0, u16::MAX);
    }
    peace.withstand(BUDGET + GUESTS * CONNECTION, |_, _| {});
    let host = peace.siege.pair.stack(Side::Right);
    assert!(host.counters().tcp_extra.memory_pressures > 0, "{}", host.counters().tcp_extra);
}

#[test]
fn fragments_that_never_become_a_packet_cost_nothing() {
    let _alone = alone();
    let mut peace = Peace::new(3);
    peace.withstand(4_096, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            let source = Ipv4Addr::from_bits(0xc633_6400 | intruder.below(256));
            let mut ip = Ipv4Header::new(source, Side::Right.address(), Protocol::TCP);
            ip.identification = u16::try_from(intruder.below(65_536)).unwrap();
            ip.fragment_offset = u16::try_from(intruder.below(8_000) * 8).unwrap();
            ip.more_fragments = intruder.below(2) == 0 || ip.fragment_offset == 0;
            intruder.packet(ip, &[1; 512]);
        }
    });
    let counters = peace.siege.pair.stack(Side::Right).counters().ip;
    assert!(counters.reassembly_required > 10_000);
}
