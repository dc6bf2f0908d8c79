//! Tests of an AF_XDP socket without a kernel. The tests perform the kernel's operations on the
//! rings, and pass invalid descriptors.

use super::*;
use std::os::unix::net::UnixDatagram;

const SHAPE: Shape = Shape { frames: 4, frame_size: 2_048 };

/// Creates a socket whose rings are in ordinary memory. Its fill ring holds all frames for
/// receiving, and all frames for sending are free. Its system calls have no effect.
fn without_kernel() -> XdpSocket {
    with_calls_to(UnixDatagram::unbound().unwrap())
}

/// Creates a socket whose system calls use `pair`, one end of a pair of datagram sockets. At the
/// other end, a test can observe the calls.
fn with_calls_to(pair: UnixDatagram) -> XdpSocket {
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

/// Takes up to `most` received frames from `socket`, and returns their lengths.
fn lengths(socket: &mut XdpSocket, most: usize) -> Vec<usize> {
    let mut left = most;
    socket.arrived(&mut left).map(<[u8]>::len).collect()
}

const fn of(address: u64, length: u32) -> Descriptor {
    Descriptor { address, length, options: 0 }
}

#[test]
fn frames_are_released_after_the_whole_batch() {
    let mut socket = without_kernel();
    socket.receive.kernel_writes(of(256, 60));
    socket.receive.kernel_writes(of(2_048 + 256, 1_514));
    socket.receive.kernel_writes(of(2 * 2_048 + 256, 0));
    assert_eq!(lengths(&mut socket, 2), [60, 1_514]);
    assert!(socket.fill.kernel_reads().is_empty(), "the frames can still be in use");
    socket.finish_receiving(false);
    assert_eq!(socket.fill.kernel_reads(), [0, 2_048], "the addresses of both frames");
    assert_eq!(lengths(&mut socket, 9), [0]);
    assert!(!socket.has_arrived());
    assert_eq!(socket.malformed(), 0);
}

#[test]
fn invalid_descriptors_are_counted_and_not_accessed() {
    let mut socket = without_kernel();
    let end = 4 * 2_048;
    for (descriptor, given_back) in [
        (of(256, 2_048 - 255), Some(0)),
        (of(2_047, 2), Some(0)),
        (of(end - 1, u32::MAX), Some(3 * 2_048)),
        // None of these four addresses is in a frame for receiving, so no frame is returned to the
        // kernel for them. The first is that of a frame for sending, and the others lie behind all
        // frames.
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
fn only_sent_frames_are_reclaimed() {
    let mut socket = without_kernel();
    for number in 0..4 {
        socket.offer().unwrap()[0] = number;
        socket.commit(60);
    }
    assert!(socket.offer().is_none() && !socket.reclaim(), "all frames are under way");
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
    assert_eq!(socket.free, sent, "no more frames than there are");
}

#[test]
fn unsent_frames_leave_with_further_calls_when_necessary() {
    let (ours, kernel) = UnixDatagram::pair().unwrap();
    kernel.set_nonblocking(true).unwrap();
    let calls = || std::iter::from_fn(|| kernel.recv(&mut [0]).ok()).count();
    let mut socket = with_calls_to(ours);
    assert!(socket.offer().is_some() && !socket.wants_call());
    socket.commit(60);
    socket.transmit.kernel_sleeps(true);
    socket.send().unwrap();
    assert_eq!(calls(), KICKS, "no more calls, although the kernel has taken nothing");
    assert!(socket.has_unsent() && socket.wants_call());
    socket.transmit.kernel_sleeps(false);
    socket.send().unwrap();
    assert!(socket.has_unsent() && !socket.wants_call(), "an active driver needs no call");
    socket.transmit.kernel_sleeps(true);
    assert_eq!((calls(), socket.transmit.kernel_reads().len()), (0, 1));
    assert!(!socket.has_unsent() && !socket.wants_call());
}

#[test]
fn the_kernel_is_called_for_frames_if_it_sleeps_or_polls() {
    let (ours, kernel) = UnixDatagram::pair().unwrap();
    let socket_side = ours.try_clone().unwrap();
    socket_side.set_nonblocking(true).unwrap();
    let mut socket = with_calls_to(ours);
    // `finish_receiving` calls `recvfrom` on one end of the pair, if it makes its system call. The
    // call takes the message that `kernel` has sent, so afterwards there is none left to receive.
    let is_called = |socket: &mut XdpSocket, polls| {
        kernel.send(&[0]).unwrap();
        socket.finish_receiving(polls);
        socket_side.recv(&mut [0]).is_err()
    };
    assert!(!is_called(&mut socket, false));
    assert!(is_called(&mut socket, true));
    socket.fill.kernel_sleeps(true);
    assert!(is_called(&mut socket, false));
}
