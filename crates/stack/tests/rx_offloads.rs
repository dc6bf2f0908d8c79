//! Tests of received frames for which the link reports metadata: a partial checksum, or the segment
//! size of a GRO frame.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Capabilities, Offloads, PartialChecksum, RxChecksum, TcpHandle};
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Fate, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{EthernetHeader, Ipv4Header, TcpHeader};
use std::cell::RefCell;
use std::num::NonZeroU16;
use std::rc::Rc;

const TCP: usize = EthernetHeader::LENGTH + Ipv4Header::LENGTH;
const DATA: usize = 1_000;

/// Returns two hosts with a connection, the handle of this connection on the right host, and a data
/// frame of the left host. The frame has a partial checksum, and has not been delivered to the
/// right host.
fn with_an_incomplete_frame() -> (Pair, TcpHandle, Vec<u8>) {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let caught = Rc::new(RefCell::new(Vec::new()));
    let catch = Rc::clone(&caught);
    pair.set_filter(move |_, side, frame| {
        let is_data = side == Side::Left && frame.len() > DATA;
        is_data.then(|| {
            *catch.borrow_mut() = frame.to_vec();
            Fate::Lose
        })
    });
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, left, &[7; DATA]).unwrap();
    pair.run_for(Duration::from_millis(1));
    let mut frame = caught.take();
    let field = TCP + TcpHeader::CHECKSUM_OFFSET;
    frame[field] = !frame[field];
    (pair, right, frame)
}

fn arrive(pair: &mut Pair, frame: Vec<u8>, checksum: RxChecksum, segment: Option<NonZeroU16>) {
    let now = pair.now;
    pair.host(Side::Right).link_mut().put_as(now, frame, checksum, segment);
    pair.turn();
}

fn partial() -> RxChecksum {
    let [start, offset] =
        [TCP, TcpHeader::CHECKSUM_OFFSET].map(|place| u16::try_from(place).unwrap());
    RxChecksum::Partial(PartialChecksum { start, offset })
}

#[test]
fn a_partial_checksum_is_accepted_only_with_metadata() {
    let (mut pair, right, frame) = with_an_incomplete_frame();
    arrive(&mut pair, frame.clone(), RxChecksum::Unverified, None);
    assert_eq!(pair.stack(Side::Right).counters().tcp.in_checksum_errors, 1);
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().readable_bytes(), 0);
    arrive(&mut pair, frame, partial(), None);
    assert_eq!(pair.stack(Side::Right).counters().tcp.in_checksum_errors, 1);
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().readable_bytes(), DATA);
}

#[test]
fn a_gro_frame_counts_as_one_frame_and_many_segments() {
    let (mut pair, right, frame) = with_an_incomplete_frame();
    let before = pair.stack(Side::Right).counters();
    arrive(&mut pair, frame, partial(), NonZeroU16::new(100));
    let after = pair.stack(Side::Right).counters();
    assert_eq!(after.tcp.in_segments - before.tcp.in_segments, 10);
    assert_eq!(after.receive.packets - before.receive.packets, 1);
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().readable_bytes(), DATA);
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().statistics().prediction.data, 1);
}

/// On a link with offloads, the host sends the acknowledgement of a GRO frame in the turn after
/// that in which the frame arrives. If the application reads the data between these turns, the
/// acknowledgement advertises the whole window.
#[test]
fn the_ack_of_a_gro_frame_follows_the_read_of_the_application() {
    let offered = [true, false].map(|reads| {
        let (mut pair, right, frame) = with_an_incomplete_frame();
        let now = pair.now;
        let host = pair.host(Side::Right);
        let offloads = Offloads { checksums: true, gso_max_size: 65_535 };
        let capabilities = Capabilities { offloads, ..host.stack().capabilities() };
        host.stack_mut().attach(capabilities);
        host.link_mut().put_as(now, frame, partial(), NonZeroU16::new(100));
        let turn = host.turn(now).unwrap();
        assert_eq!((turn.received, turn.transmitted, turn.more, turn.next), (1, 0, true, now));
        if reads {
            assert_eq!(host.stack_mut().tcp_read(now, right, &mut [0; DATA]), Ok(DATA));
        }
        let turn = host.turn(now).unwrap();
        assert_eq!((turn.received, turn.transmitted, turn.more), (0, 1, false));
        host.stack().tcp(right).unwrap().information().receive_window as usize
    });
    // If the application has read the `DATA` bytes, the advertised window is larger by this number
    // than if it has not. The window is a multiple of 2^(window scale) bytes, so the difference may
    // deviate by less than 128 bytes.
    assert!((offered[0] - offered[1]).abs_diff(DATA) < 128, "{offered:?}");
}
