//! Attacks with data: overlapping segments with different contents, single bytes out of order,
//! incomplete IP fragments, and buffers that are filled and never read.

use crate::{BUFFERS, Baseline, alone};
use linerate_testkit::Side;
use linerate_testkit::attack::{FRAMES_A_TURN, TURN};
use linerate_wire::{Ipv4Header, Protocol, SackBlocks};
use std::net::Ipv4Addr;

/// Limit of the memory for the buffers of all connections of the host, in bytes. The buffers of all
/// hostile peers could hold three times as much.
const BUDGET: usize = 4 << 20;
const GUESTS: usize = 100;

/// Memory that a connection needs beside its buffers, in bytes: for its state, and for the records
/// of segments in flight.
const CONNECTION: usize = 32 << 10;

/// Overlapping segments carry different values for the same position of the stream. At each
/// position, the application must read one of the values that were sent for it. The holes before
/// the segments are filled later, so the application must be able to read all data.
#[test]
fn contradictory_overlapping_data_is_read_once() {
    let _alone = alone();
    let mut baseline = Baseline::new(1);
    let peer = baseline.test.connect_intruder(0, u16::MAX);
    const STREAM: usize = 40_000;
    // For each position of the stream, the set of the values (0 to 7) that were sent for it. Bit n
    // is set if the value n was sent.
    let mut sent = vec![0_u8; STREAM];
    let start = peer.next;
    let mut filled = 0_usize;
    baseline.attack(BUFFERS + 2 * STREAM, |intruder, _| {
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
    let received = &baseline.test.guests()[0].received;
    assert!(received.len() > 30_000, "{} bytes", received.len());
    for (place, &value) in received.iter().enumerate() {
        assert!(sent[place] & (1 << value) != 0, "byte {place} was never {value}");
    }
}

/// The peer sends every second byte of the window, in descending order, and the application does
/// not read. So no two ranges of received bytes touch, and each needs a record. The host must limit
/// the number of ranges, so that they take no more memory than a full window.
#[test]
fn single_bytes_out_of_order_cost_no_more_memory_than_a_window() {
    let _alone = alone();
    let mut baseline = Baseline::new(2);
    let peer = baseline.test.connect_intruder(0, u16::MAX);
    baseline.test.guests_read = false;
    let mut place = 60_000_u32;
    baseline.attack(BUFFERS, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            place = if place < 4 { 60_000 } else { place - 2 };
            peer.send(intruder, peer.next + place, &[1]);
        }
    });
    let handle = baseline.test.guests()[0].handle;
    let full =
        baseline.test.pair.stack(Side::Right).tcp(handle).unwrap().statistics().reassembly_full;
    assert!(full > 10_000, "only {full} fragments were refused");
    // From now on, the applications read, so that the receive window opens. The peer must then be
    // able to transfer data, as if the attack had not taken place.
    baseline.test.guests_read = true;
    let mut next = peer.next;
    baseline.test.run(TURN * 300, |intruder, _| {
        for _ in 0..8 {
            peer.send(intruder, next, &[7; 500]);
            next += 500;
        }
        peer.acknowledge(intruder, peer.expected, u16::MAX, SackBlocks::default());
    });
    assert!(
        baseline.test.guests()[0].received.len() > 500_000,
        "{}",
        baseline.test.guests()[0].received.len()
    );
}

/// If the byte at the end of a receive window arrives, the host allocates memory for the whole
/// window. The hostile peers send such bytes for more memory than `BUDGET` permits, so the host
/// must refuse most of the bytes. Legitimate peers must keep their goodput.
#[test]
fn a_byte_at_the_end_of_many_windows_leaves_memory_to_honest_peers() {
    let _alone = alone();
    let mut baseline = Baseline::with(4, |config| config.limits.buffer_bytes = BUDGET);
    let peers: Vec<_> = (0..GUESTS).map(|_| baseline.test.connect_intruder(0, 0)).collect();
    baseline.test.guests_read = false;
    baseline.attack(BUDGET + GUESTS * CONNECTION, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            let peer = &peers[intruder.below(GUESTS.try_into().unwrap()) as usize];
            let place = 30_000 + intruder.below(30_000);
            peer.send(intruder, peer.next + place, &[1]);
        }
    });
    let host = baseline.test.pair.stack(Side::Right);
    assert!(host.counters().tcp_extra.memory_refusals > 10_000, "{}", host.counters().tcp_extra);
}

/// The host's applications write as much as they can to hostile peers, which never acknowledge the
/// data. Memory becomes scarce, but the legitimate peers must keep their goodput.
#[test]
fn guests_that_never_read_leave_memory_to_honest_peers() {
    let _alone = alone();
    let mut baseline = Baseline::with(5, |config| config.limits.buffer_bytes = BUDGET);
    for _ in 0..GUESTS {
        baseline.test.connect_intruder(0, u16::MAX);
    }
    baseline.attack(BUDGET + GUESTS * CONNECTION, |_, _| {});
    let host = baseline.test.pair.stack(Side::Right);
    assert!(host.counters().tcp_extra.memory_pressures > 0, "{}", host.counters().tcp_extra);
}

#[test]
fn incomplete_fragments_cost_as_much_memory_as_their_limit() {
    const LIMIT: usize = 64 << 10;
    let _alone = alone();
    let mut baseline = Baseline::with(3, |config| config.limits.reassembly.bytes = LIMIT);
    baseline.attack(LIMIT, |intruder, _| {
        for _ in 0..FRAMES_A_TURN {
            let source = Ipv4Addr::from_bits(0xc633_6400 | intruder.below(256));
            let mut ip = Ipv4Header::new(source, Side::Right.address(), Protocol::TCP);
            ip.identification = u16::try_from(intruder.below(65_536)).unwrap();
            ip.fragment_offset = u16::try_from(intruder.below(8_000) * 8).unwrap();
            ip.more_fragments = intruder.below(2) == 0 || ip.fragment_offset == 0;
            intruder.packet(ip, &[1; 512]);
        }
    });
    let counters = baseline.test.pair.stack(Side::Right).counters().ip;
    assert!(counters.reassembly_evictions > 10_000);
}
