//! A socket whose kernel is the test, which names places that are none.

use super::*;
use std::os::unix::net::UnixDatagram;

const SHAPE: Shape = Shape { frames: 4, frame_size: 2_048 };

/// A socket over rings in memory of their own, with all frames in their places, which nobody hears call.
fn alone() -> XdpSocket {
    calling(UnixDatagram::unbound().unwrap())
}

/// The same, whose calls are empty messages to the other end of `pair`.
fn calling(pair: UnixDatagram) -> XdpSocket {
    let mut socket = XdpSocket {
        socket: pair.into(),
        receive: Incoming(Ring::alone(SHAPE.frames)),
        fill: Outgoing(Ring::alone(SHAPE.frames)),
        transmit: Outgoing(Ring::alone(SHAPE.frames)),
        completion: Incoming(Ring::alone(SHAPE.frames)),
        free: (SHAPE.frames..2 * SHAPE.frames).map(|frame| SHAPE.beginning(frame)).collect(),
        memory: Mapping::anonymous(2 * 4 * 2_048).unwrap(),
        shape: SHAPE,
        malformed: 0,
    };
    (0..SHAPE.frames).for_each(|frame| socket.fill.push(SHAPE.beginning(frame)));
    socket.fill.publish();
    assert_eq!(socket.fill.kernel_reads().len(), 4);
    socket
}

/// The lengths of what has arrived.
fn lengths(socket: &mut XdpSocket, most: usize) -> Vec<usize> {
    let mut left = most;
    socket.arrived(&mut left).map(<[u8]>::len).collect()
}

const fn of(address: u64, length: u32) -> Descriptor {
    Descriptor { address, length, options: 0 }
}

#[test]
fn a_frame_is_given_back_when_all_that_came_with_it_have_been_looked_at() {
    let mut socket = alone();
    socket.receive.kernel_writes(of(256, 60));
    socket.receive.kernel_writes(of(2_048 + 256, 1_514));
    socket.receive.kernel_writes(of(2 * 2_048 + 256, 0));
    assert_eq!(lengths(&mut socket, 2), [60, 1_514]);
    assert!(socket.fill.kernel_reads().is_empty(), "they may still be looked at");
    socket.finish_receiving(false);
    assert_eq!(socket.fill.kernel_reads(), [0, 2_048], "their beginnings");
    assert_eq!(lengths(&mut socket, 9), [0]);
    assert!(!socket.has_arrived());
    assert_eq!(socket.malformed(), 0);
}

#[test]
fn what_has_arrived_where_no_frame_is_or_is_longer_than_one_is_counted_and_not_looked_at() {
    let mut socket = alone();
    let end = 4 * 2_048;
    for (descriptor, given_back) in [
        (of(256, 2_048 - 255), Some(0)),
        (of(2_047, 2), Some(0)),
        (of(end - 1, u32::MAX), Some(3 * 2_048)),
        // Frames for what leaves, and behind all of them.
        (of(end, 60), None),
        (of(2 * end, 60), None),
        (of(u64::MAX, u32::MAX), None),
        (of(1 << 48, 0), None),
    ] {
        let before = socket.malformed();
        socket.receive.kernel_writes(descriptor);
        socket.receive.kernel_writes(of(2_048, 2_048));
        assert_eq!(lengths(&mut socket, 2), [2_048], "{descriptor:?}");
        assert_eq!(socket.malformed() - before, 1, "{descriptor:?}");
        socket.finish_receiving(false);
        let expected: Vec<u64> = given_back.into_iter().chain([2_048]).collect();
        assert_eq!(socket.fill.kernel_reads(), expected, "{descriptor:?}");
    }
}

#[test]
fn what_was_sent_is_taken_back_and_what_was_not_is_not() {
    let mut socket = alone();
    for number in 0..4 {
        socket.offer().unwrap()[0] = number;
        socket.commit(60);
    }
    assert!(socket.offer().is_none() && !socket.reclaim(), "all are on their way");
    socket.transmit.publish();
    let sent: Vec<u64> = socket.transmit.kernel_reads().iter().map(|frame| frame.address).collect();
    assert_eq!(sent, [7 * 2_048, 6 * 2_048, 5 * 2_048, 4 * 2_048]);
    for nothing_sent in [0, 3 * 2_048, 8 * 2_048, u64::MAX] {
        socket.completion.kernel_writes(nothing_sent);
        assert!(!socket.reclaim());
    }
    sent.iter().for_each(|&address| socket.completion.kernel_writes(address + 5));
    assert!(socket.reclaim());
    socket.completion.kernel_writes(sent[0]);
    assert!(socket.reclaim());
    assert_eq!(socket.free, sent, "no more than there are");
}

#[test]
fn what_the_kernel_has_not_taken_leaves_when_it_is_called_again_and_it_is_known_when_it_has_to_be()
{
    let (ours, kernel) = UnixDatagram::pair().unwrap();
    kernel.set_nonblocking(true).unwrap();
    let calls = || std::iter::from_fn(|| kernel.recv(&mut [0]).ok()).count();
    let mut socket = calling(ours);
    assert!(socket.offer().is_some() && !socket.wants_call());
    socket.commit(60);
    socket.transmit.kernel_sleeps(true);
    socket.send().unwrap();
    assert_eq!(calls(), KICKS, "no more of them, though it has taken nothing");
    assert!(socket.has_unsent() && socket.wants_call());
    socket.transmit.kernel_sleeps(false);
    socket.send().unwrap();
    assert!(socket.has_unsent() && !socket.wants_call(), "a driver at work goes on by itself");
    socket.transmit.kernel_sleeps(true);
    assert_eq!((calls(), socket.transmit.kernel_reads().len()), (0, 1));
    assert!(!socket.has_unsent() && !socket.wants_call());
}

#[test]
fn the_kernel_is_called_for_frames_if_it_sleeps_or_works_only_then() {
    let (ours, kernel) = UnixDatagram::pair().unwrap();
    let heard = ours.try_clone().unwrap();
    heard.set_nonblocking(true).unwrap();
    let mut socket = calling(ours);
    // A call takes the message that it finds.
    let is_called = |socket: &mut XdpSocket, polls| {
        kernel.send(&[0]).unwrap();
        socket.finish_receiving(polls);
        heard.recv(&mut [0]).is_err()
    };
    assert!(!is_called(&mut socket, false));
    assert!(is_called(&mut socket, true));
    socket.fill.kernel_sleeps(true);
    assert!(is_called(&mut socket, false));
}
