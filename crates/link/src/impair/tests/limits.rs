//! Tests of the limits of an impaired link: its maximum number of frames, its bottleneck, and the
//! receiver's budget.

use super::*;

#[test]
fn held_and_ready_frames_count_as_under_way() {
    let mut aside = ends("reorder=100%,reorder-by=9,limit=2", 1, 64);
    assert!(aside.received(5).is_empty());
    assert_eq!((aside.ours.received().reordered, aside.ours.received().overflowed), (2, 3));
    let mut duplicated = ends("duplicate=100%,limit=3", 1, 64);
    send(&mut duplicated.theirs, 0..8);
    assert_eq!(take(&mut duplicated.ours)[..4], [0, 0, 1, 1], "the first frame is not held");
    assert!(duplicated.ours.received().overflowed > 0);
}

#[test]
fn no_more_due_frames_are_received_than_the_budget() {
    let mut ends = ends("delay=1ms", 1, 64);
    send(&mut ends.theirs, 0..5);
    assert!(take(&mut ends.ours).is_empty());
    ends.pass(1);
    for (first, expected) in [(0, 2), (2, 2), (4, 1)] {
        let mut next = first;
        let received = ends.ours.receive(2, |frame| {
            assert_eq!(number(frame.bytes), next);
            next += 1;
        });
        assert_eq!(received, Ok(expected));
        let more = next < 5;
        assert_eq!((ends.ours.is_ready(), ends.ours.prepare_to_sleep()), (more, !more));
    }
}

/// Returns a link that receives two GRO frames, each with 250 bytes of data in segments of 100
/// bytes, and then nothing.
fn gro_frames() -> ReceivesFrames {
    let mut bytes = packet(EtherType::IPV4, Ecn::NotEct);
    bytes.resize(40 + 250, 0);
    let addresses = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    Ipv4Header::new(addresses[0], addresses[1], Protocol::TCP).emit(270, &mut bytes);
    bytes[32] = 0x50;
    for (byte, number) in bytes[40..].iter_mut().zip(0..) {
        *byte = number;
    }
    ReceivesFrames { frames: vec![bytes; 2], segment: std::num::NonZeroU16::new(100) }
}

#[test]
fn a_gro_frame_is_cut_and_segments_beyond_the_budget_are_kept() {
    let mut link =
        Impair::with_clock(gro_frames(), Impairments::default(), 1, ManualClock::default());
    let (mut data, mut lengths) = (Vec::new(), Vec::new());
    let mut receive = |budget| {
        link.receive(budget, |frame| {
            assert_eq!((frame.checksum, frame.segment), (RxChecksum::Verified, None));
            assert_eq!(frame.arrived, Instant::from_nanos(7));
            data.extend_from_slice(&frame.bytes[40..]);
            lengths.push(frame.bytes.len());
        })
    };
    assert_eq!([1, 1, 1, 1, 9, 9].map(&mut receive), [1, 1, 1, 1, 2, 0].map(Ok));
    assert_eq!(lengths, [140, 140, 90, 140, 140, 90]);
    assert!(data.into_iter().eq((0..250).chain(0..250)));
}

#[test]
fn an_impaired_link_has_no_offloads() {
    let link = Impair::with_clock(gro_frames(), Impairments::default(), 1, ManualClock::default());
    assert_eq!(link.capabilities(), Capabilities::new(Medium::Ip, 1_500));
}

#[test]
fn readiness_of_the_impaired_link_is_passed_on() {
    check_readiness_is_passed_on(|link| Impair::new(link, Impairments::default(), 1));
}

#[test]
fn frames_beyond_the_limit_are_dropped_and_counted() {
    let mut ends = ends("delay=1ms,limit=5", 1, 64);
    assert_eq!(send(&mut ends.ours, 0..8), 8);
    ends.pass(1);
    assert_eq!(send(&mut ends.ours, []), 0);
    assert_eq!(take(&mut ends.theirs), [0, 1, 2, 3, 4]);
    let counted = ends.ours.transmitted();
    assert_eq!((counted.delayed, counted.overflowed), (5, 3), "a dropped frame is not under way");
}

#[test]
fn a_dropped_frame_does_not_occupy_the_bottleneck() {
    let mut ends = ends("rate=8Mb/s,limit=2", 1, 64);
    assert_eq!(send(&mut ends.ours, 0..5), 5);
    ends.clock.advance(Duration::from_micros(200));
    assert_eq!(send(&mut ends.ours, []), 0);
    assert_eq!(take(&mut ends.theirs), [0, 1]);
    send(&mut ends.ours, [5]);
    ends.clock.advance(Duration::from_micros(100));
    assert_eq!(send(&mut ends.ours, []), 0);
    assert_eq!(take(&mut ends.theirs), [5]);
}

#[test]
fn an_overflowing_frame_is_counted_only_as_overflow() {
    for (text, originals, overflowed) in
        [("limit=3", 2, 3), ("rate=80Gb/s,queue=99", 1, 3), ("reorder=100%,limit=3", 2, 3)]
    {
        let mut ends = ends(&format!("delay=1ms,duplicate=100%,corrupt=100%,{text}"), 1, 64);
        send(&mut ends.ours, 0..4);
        let counted = *ends.ours.transmitted();
        assert_eq!(
            (counted.delayed, counted.corrupted, counted.duplicated),
            (originals, originals, 1),
            "{text}"
        );
        assert_eq!(counted.overflowed, overflowed, "{text}");
    }
    let mut ends = ends("reorder=100%,reorder-by=9,duplicate=100%,corrupt=100%,limit=2", 1, 64);
    send(&mut ends.theirs, 0..4);
    assert_eq!(ends.ours.receive(64, |_| ()), Ok(1));
    let counted = *ends.ours.received();
    assert_eq!(
        (counted.reordered, counted.corrupted, counted.duplicated, counted.overflowed),
        (1, 1, 1, 3)
    );
}

#[test]
fn budgets_are_respected_and_no_frame_is_left() {
    let mut ends = ends("duplicate=100%", 1, 64);
    send(&mut ends.theirs, [1, 2]);
    assert_eq!(ends.ours.receive(1, |frame| assert_eq!(number(frame.bytes), 1)), Ok(1));
    assert!(!ends.ours.prepare_to_sleep(), "the copy is ready");
    assert_eq!(ends.ours.receive(2, |_| ()), Ok(2));
    assert_eq!(ends.ours.receive(9, |frame| assert_eq!(number(frame.bytes), 2)), Ok(1));
    assert_eq!(ends.ours.transmit(3, |_| Some(TxFrame::whole(60))), Ok(3));
    assert_eq!(ends.theirs.receive(9, |_| ()), Ok(6));
}

#[test]
fn frames_without_room_wait_and_the_link_wants_room() {
    let mut ends = ends("tx.delay=1ms", 1, 2);
    assert_eq!(send(&mut ends.ours, 0..5), 5, "a delayed frame needs no room yet");
    ends.pass(1);
    assert_eq!(send(&mut ends.ours, [9]), 0, "there is room for two, and three wait");
    assert_eq!(ends.ours.next_deadline(), Instant::NEVER);
    assert_eq!(take(&mut ends.theirs), [0, 1]);
    let mut waiter = Waiter::new().unwrap();
    assert!(waiter.wait(&mut ends.ours, Instant::NEVER).unwrap().link, "there is room");
    assert!(take(&mut ends.ours).is_empty());
    assert_eq!(take(&mut ends.theirs), [2, 3]);
}

#[test]
fn a_link_is_down_after_its_delayed_frames_have_arrived() {
    let mut ends = ends("delay=1ms", 1, 64);
    send(&mut ends.theirs, [1]);
    assert!(take(&mut ends.ours).is_empty());
    let Ends { mut ours, theirs, clock } = ends;
    drop(theirs);
    assert_eq!(ours.receive(9, |_| ()), Ok(0));
    clock.advance(Duration::from_millis(1));
    assert_eq!(ours.receive(9, |_| ()), Ok(1));
    assert_eq!(ours.receive(9, |_| ()), Err(LinkError::Down));
}

/// At 8 Mb/s, each frame of 100 bytes takes 100 µs. A frame is dropped if the bottleneck still has
/// to send more than 450 bytes when it arrives. All 20 frames arrive at the same time, so the sixth
/// finds 500 bytes, and only five pass.
#[test]
fn a_bottleneck_serialises_frames_and_limits_its_queue() {
    let mut ends = ends("rate=8Mb/s,queue=450,delay=1ms", 1, 64);
    assert_eq!(send(&mut ends.ours, 0..20), 20);
    let mut arrived = Vec::new();
    for _ in 0..100 {
        ends.clock.advance(Duration::from_micros(100));
        let mut none = std::iter::empty();
        let _ = send(&mut ends.ours, &mut none);
        let now = take(&mut ends.theirs);
        assert!(now.len() <= 1, "{now:?} at once");
        arrived.extend(now);
    }
    assert_eq!(arrived, [0, 1, 2, 3, 4]);
    assert_eq!(ends.ours.transmitted().overflowed, 15);
}

/// The frames in this test have 100 bytes. So `longest=100` drops none of them, and `longest=99`
/// drops all except the first `longest-after` frames.
#[test]
fn too_long_frames_are_dropped_after_the_given_number() {
    let mut wide = ends("longest=100", 1, 64);
    assert_eq!(wide.sent(20).len(), 20);
    let mut narrow = ends("tx.longest=99,tx.longest-after=5", 1, 64);
    assert_eq!(narrow.sent(20), [0, 1, 2, 3, 4]);
    assert_eq!(narrow.ours.transmitted().too_long, 15);
    assert_eq!(narrow.received(20).len(), 20);
}
