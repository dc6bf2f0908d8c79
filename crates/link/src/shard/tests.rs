//! Tests of links whose queues are shared among shards.

use super::handed_over_frame::{read, write};
use super::*;
use crate::Waiter;
use crate::memory::{MemoryConfig, MemoryLink, queues};
use crate::testing::{FixedAnswers, ReceivesFrames};
use linerate_stack::{PartialChecksum, RxChecksum};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::SocketAddrV4;
use std::thread;

const SEED: [u8; 32] = [3; 32];

/// Creates a memory link of `count` queues. Returns the queues of the far endpoint, and for the
/// near endpoint one link for each of `count` shards.
fn cable(config: MemoryConfig, count: usize) -> (Vec<MemoryLink>, Vec<ShardLink<MemoryLink>>) {
    let (far, near) = queues(config, count).unwrap();
    (far, share(near, SEED).unwrap())
}

fn bare() -> MemoryConfig {
    MemoryConfig { medium: Medium::Ip, ..MemoryConfig::default() }
}

/// Returns a segment that the peer sends from port `port`, and the number of the shard to which it
/// belongs if the host has `count` shards.
fn segment(port: u16, count: u16) -> (Vec<u8>, usize) {
    let mut packet = vec![0; 60];
    (packet[0], packet[9]) = (0x45, 6);
    packet[12..20].copy_from_slice(&[192, 0, 2, 2, 192, 0, 2, 1]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..24].copy_from_slice(&80_u16.to_be_bytes());
    let ends = ["192.0.2.2", "192.0.2.1"].map(|address| address.parse().unwrap());
    let [peer, local] = [SocketAddrV4::new(ends[0], port), SocketAddrV4::new(ends[1], 80)];
    let owner = Steering::new(SEED, NonZeroU16::new(count).unwrap()).of_connection(local, peer);
    (packet, usize::from(owner))
}

fn send(link: &mut impl Link, frame: &[u8]) {
    let sent = link.transmit(1, |bytes| {
        bytes[..frame.len()].copy_from_slice(frame);
        Some(TxFrame::whole(frame.len()))
    });
    assert_eq!(sent, Ok(1));
}

fn take(link: &mut impl Link) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link.receive(64, |frame| frames.push(frame.bytes.to_vec())).unwrap();
    frames
}

#[test]
fn a_segment_reaches_its_shard_from_any_queue() {
    let (mut far, mut near) = cable(bare(), 3);
    for port in 0..40 {
        let (packet, owner) = segment(port, 3);
        for queue in 0..3 {
            send(&mut far[queue], &packet);
            let arrived = take(&mut near[queue]);
            assert_eq!(arrived.len(), usize::from(queue == owner));
            if queue != owner {
                assert_eq!(take(&mut near[owner]), std::slice::from_ref(&packet));
            }
        }
    }
    let given: u64 = near.iter().map(|shard| shard.handovers().given).sum();
    let taken: u64 = near.iter().map(|shard| shard.handovers().taken).sum();
    assert_eq!((given, taken), (80, 80));
}

#[test]
fn a_frame_of_the_host_itself_is_handed_over() {
    let (_far, mut near) = cable(bare(), 3);
    let (packet, _) = segment(1, 3);
    near[0].hand_over(2, RxFrame::plain(&packet, Instant::from_nanos(7)));
    assert_eq!(take(&mut near[1]), [[0; 0]; 0]);
    assert_eq!(take(&mut near[2]), std::slice::from_ref(&packet));
    let counted =
        [0, 1, 2].map(|shard| (near[shard].handovers().given, near[shard].handovers().taken));
    assert_eq!(counted, [(1, 0), (0, 0), (0, 1)]);
    // Shard 0 has no ring to itself, and shard 3 does not exist. So neither call hands a frame
    // over, and the counter does not increase.
    near[0].hand_over(0, RxFrame::plain(&packet, Instant::ZERO));
    near[0].hand_over(3, RxFrame::plain(&packet, Instant::ZERO));
    assert_eq!(near[0].handovers().given, 1);
}

#[test]
fn offload_information_is_handed_over_with_the_frame() {
    let (packet, _) = segment(1, 2);
    let partial = RxChecksum::Partial(PartialChecksum { start: 34, offset: 16 });
    for checksum in [RxChecksum::Unverified, RxChecksum::Verified, partial] {
        for segment in [None, NonZeroU16::new(1_448)] {
            let frame =
                RxFrame { checksum, segment, ..RxFrame::plain(&packet, Instant::from_nanos(5)) };
            let mut prefixed = vec![0; PREFIX + packet.len()];
            write(&frame, &mut prefixed);
            let read = read(&prefixed, frame.arrived);
            assert_eq!((read.bytes, read.checksum, read.segment), (&packet[..], checksum, segment));
        }
    }
}

#[test]
fn arp_reaches_every_shard() {
    let (mut far, mut near) = cable(MemoryConfig::default(), 3);
    let mut request = vec![0; 60];
    request[12..14].copy_from_slice(&[8, 6]);
    send(&mut far[1], &request);
    for shard in [1, 0, 2] {
        assert_eq!(take(&mut near[shard]), std::slice::from_ref(&request));
    }
}

#[test]
fn frames_for_a_slow_shard_are_dropped_and_counted() {
    let (mut far, mut near) = cable(bare(), 2);
    let (packet, owner) =
        (0..).map(|port| segment(port, 2)).find(|(_, owner)| *owner == 1).unwrap();
    for _ in 0..2_000 {
        send(&mut far[0], &packet);
        assert!(take(&mut near[0]).is_empty());
    }
    let Handovers { given, dropped, .. } = near[0].handovers();
    assert_eq!((given + dropped, dropped > 0), (2_000, true));
    let mut taken = 0;
    while let count @ 1.. = take(&mut near[owner]).len() {
        taken += count as u64;
    }
    assert_eq!(taken, given);
}

#[test]
fn a_flood_of_handed_over_frames_does_not_starve_the_queue() {
    let (mut far, mut near) = cable(bare(), 2);
    let of =
        |wanted| (0..).map(|port| segment(port, 2)).find(|&(_, owner)| owner == wanted).unwrap().0;
    for _ in 0..64 {
        send(&mut far[1], &of(0));
    }
    take(&mut near[1]);
    send(&mut far[0], &of(0));
    let before = near[0].handovers().taken;
    assert_eq!(near[0].receive(2, |_| ()), Ok(2));
    assert_eq!(near[0].handovers().taken - before, 1, "one from each side");
}

/// Returns a packet that belongs to shard number `shard` of two shards.
fn packet_of(shard: usize) -> Vec<u8> {
    (0..).map(|port| segment(port, 2)).find(|&(_, owner)| owner == shard).unwrap().0
}

#[test]
fn a_flood_on_the_queue_does_not_starve_handed_over_frames() {
    let (mut far, mut near) = cable(bare(), 2);
    send(&mut far[1], &packet_of(0));
    take(&mut near[1]);
    for _ in 0..64 {
        send(&mut far[0], &packet_of(0));
    }
    assert_eq!(near[0].receive(2, |_| ()), Ok(2));
    assert_eq!(near[0].handovers().taken, 1, "one from each side");
}

#[test]
fn a_budget_of_one_alternates_between_queue_and_inboxes() {
    let (mut far, mut near) = cable(bare(), 2);
    for _ in 0..8 {
        send(&mut far[0], &packet_of(0));
        send(&mut far[1], &packet_of(0));
    }
    take(&mut near[1]);
    for turns in 1..=4 {
        assert_eq!([(); 2].map(|()| near[0].receive(1, |_| ())), [Ok(1); 2]);
        assert_eq!(near[0].handovers().taken, turns);
    }
}

#[test]
fn the_budget_is_used_up_while_there_are_frames() {
    let (mut far, mut near) = cable(bare(), 2);
    for _ in 0..5 {
        send(&mut far[1], &packet_of(0));
    }
    take(&mut near[1]);
    send(&mut far[0], &packet_of(0));
    assert_eq!(near[0].receive(8, |_| ()), Ok(6));
    assert_eq!(near[0].receive(8, |_| ()), Ok(0));
}

#[test]
fn inboxes_take_turns() {
    let (mut far, mut near) = cable(bare(), 3);
    let (packet, owner) = segment(1, 3);
    let others: Vec<_> = (0..3).filter(|&other| other != owner).collect();
    for &other in &others {
        for _ in 0..8 {
            send(&mut far[other], &[&packet[..], &[u8::try_from(other).unwrap()]].concat());
        }
        take(&mut near[other]);
    }
    let mut from = Vec::new();
    for _ in 0..4 {
        near[owner].receive(1, |frame| from.push(usize::from(frame.bytes[60]))).unwrap();
    }
    from.sort_unstable();
    assert_eq!(from, [others[0], others[0], others[1], others[1]]);
}

#[test]
fn the_longest_tagged_frame_is_handed_over_with_its_time_of_arrival() {
    let clock = crate::ManualClock::new(Instant::from_nanos(11));
    let pairs = [(); 2].map(|()| crate::memory::pair_with_clock(bare(), clock.clone()).unwrap());
    let (mut far, near): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut near = share(near, SEED).unwrap();
    let mut packet = packet_of(1);
    packet.resize(1_504, 7);
    send(&mut far[0], &packet);
    take(&mut near[0]);
    clock.advance(linerate_units::Duration::from_nanos(5));
    let mut seen = Vec::new();
    near[1].receive(9, |frame| seen.push((frame.bytes.to_vec(), frame.arrived))).unwrap();
    assert_eq!(seen, [(packet, Instant::from_nanos(11))]);
}

#[test]
fn a_frame_longer_than_the_links_maximum_is_dropped_and_counted() {
    let mut packet = packet_of(1);
    packet.resize(1_505, 7);
    let mut near = share(
        [(); 2].map(|()| ReceivesFrames { frames: vec![packet.clone()], segment: None }).into(),
        SEED,
    )
    .unwrap();
    assert_eq!(near[0].receive(1, |_| ()), Ok(1));
    assert_eq!(near[0].handovers(), Handovers { dropped: 1, ..Handovers::default() });
}

#[test]
fn a_watch_sees_the_counters_of_its_shard() {
    let (mut far, mut near) = cable(bare(), 2);
    let watches = [near[0].watch(), near[1].watch()];
    send(&mut far[0], &packet_of(1));
    take(&mut near[0]);
    take(&mut near[1]);
    for (watch, shard) in watches.iter().zip(&near) {
        assert_eq!(watch.look(), shard.handovers());
    }
    assert_eq!((watches[0].look().given, watches[1].look().taken), (1, 1));
}

#[test]
fn room_and_deadline_are_those_of_the_queue() {
    for answer in [false, true] {
        let shards =
            share(vec![FixedAnswers::new(answer), FixedAnswers::new(answer)], SEED).unwrap();
        assert_eq!(shards[0].wants_room(), answer);
        assert_eq!(shards[0].next_deadline(), shards[0].queue().next_deadline());
    }
}

#[test]
fn a_shard_is_ready_for_frames_of_its_queue_and_of_its_inboxes() {
    let (mut far, mut near) = cable(bare(), 2);
    assert!(!near[0].is_ready());
    send(&mut far[0], &packet_of(0));
    assert!(near[0].is_ready());
    take(&mut near[0]);
    send(&mut far[1], &packet_of(0));
    take(&mut near[1]);
    assert!(near[0].is_ready());
    take(&mut near[0]);
    assert!(!near[0].is_ready());
}

/// Returns whether the event that wakes this shard has been set.
fn is_signalled(link: &ShardLink<MemoryLink>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(link.wakeup.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

#[test]
fn a_sleeping_shard_is_woken_by_another_and_can_sleep_again() {
    let (mut far, mut near) = cable(bare(), 2);
    assert!(near[0].prepare_to_sleep() && !is_signalled(&near[0]));
    send(&mut far[1], &packet_of(0));
    take(&mut near[1]);
    assert!(is_signalled(&near[0]));
    near[0].awake(true);
    take(&mut near[0]);
    assert!(near[0].prepare_to_sleep() && !is_signalled(&near[0]));
}

#[test]
fn a_shard_that_is_awake_is_not_signalled() {
    let (mut far, mut near) = cable(bare(), 2);
    assert!(near[0].prepare_to_sleep());
    near[0].awake(false);
    send(&mut far[1], &packet_of(0));
    take(&mut near[1]);
    assert!(!is_signalled(&near[0]));
    take(&mut near[0]);
    send(&mut far[0], &packet_of(0));
    assert!(!near[0].prepare_to_sleep(), "there is a frame on its queue");
    send(&mut far[1], &packet_of(0));
    take(&mut near[1]);
    assert!(!is_signalled(&near[0]));
}

#[test]
fn a_shard_with_a_frame_in_an_inbox_does_not_sleep() {
    let (packet, owner) = segment(1, 3);
    for other in (0..3).filter(|&other| other != owner) {
        let (mut far, mut near) = cable(bare(), 3);
        send(&mut far[other], &packet);
        take(&mut near[other]);
        assert!(!near[owner].prepare_to_sleep());
    }
}

#[test]
fn a_shard_that_was_woken_by_its_queue_can_sleep_again() {
    let (mut far, mut near) = cable(bare(), 2);
    let mut waiter = Waiter::new().unwrap();
    assert!(near[0].prepare_to_sleep());
    send(&mut far[0], &packet_of(0));
    near[0].awake(true);
    take(&mut near[0]);
    assert!(!waiter.wait(&mut near[0], Instant::ZERO).unwrap().link);
}

#[test]
fn sharing_no_queue_is_refused() {
    assert_eq!(share(Vec::<MemoryLink>::new(), SEED).unwrap_err(), ShardError::Queues(0));
}

#[test]
fn no_wake_up_is_lost_between_two_shards() {
    const FRAMES: usize = 4_000;
    let (mut far, mut near) = cable(bare(), 2);
    let (packet, _) = (0..).map(|port| segment(port, 2)).find(|(_, owner)| *owner == 1).unwrap();
    let (mut sleeper, mut giver) = (near.remove(1), near.remove(0));
    let taking = thread::spawn(move || {
        let (mut waiter, mut taken) = (Waiter::new().unwrap(), 0);
        while taken < FRAMES {
            let count = sleeper.receive(64, |_| ()).unwrap();
            taken += count;
            if count == 0 {
                waiter.wait(&mut sleeper, Instant::NEVER).unwrap();
            }
        }
    });
    let mut given = 0;
    while given < FRAMES {
        send(&mut far[0], &packet);
        giver.receive(64, |_| ()).unwrap();
        // If the ring between the shards is full, the frame is dropped. It then does not count as
        // given, and the loop sends one more frame.
        given = usize::try_from(giver.handovers().given).unwrap();
    }
    taking.join().unwrap();
}
