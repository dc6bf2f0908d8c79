//! Tests of [`MemoryLink`], a link between hosts of one process.

use super::*;
use crate::testing::{SingleFrame, send};
use crate::{ManualClock, Waiter};
use linerate_units::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::thread;

fn take<C: Clock>(link: &mut MemoryLink<C>) -> Vec<(Vec<u8>, Instant)> {
    let mut frames = Vec::new();
    link.receive(usize::MAX, |frame| frames.push((frame.bytes.to_vec(), frame.arrived))).unwrap();
    frames
}

/// Creates a link that holds one frame in each direction.
fn narrow() -> (MemoryLink, MemoryLink) {
    pair(MemoryConfig { capacity: 1, ..MemoryConfig::default() }).unwrap()
}

/// Returns whether the event that wakes this endpoint has been set.
fn is_signalled(link: &MemoryLink) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(link.fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

#[test]
fn frames_arrive_at_the_other_end_with_the_time_of_sending() {
    let clock = ManualClock::new(Instant::from_nanos(100));
    let (mut left, mut right) = pair_with_clock(MemoryConfig::default(), clock.clone()).unwrap();
    assert_eq!(send(&mut left, [b"to the right"]), Ok(1));
    assert_eq!(send(&mut right, [&b"to the left"[..], b"again"]), Ok(2));
    clock.advance(Duration::from_nanos(11));
    assert_eq!(take(&mut right), [(b"to the right".to_vec(), Instant::from_nanos(100))]);
    assert_eq!(take(&mut left).len(), 2);
    assert!(take(&mut left).is_empty());
}

#[test]
fn frames_of_a_host_are_stamped_with_the_time_of_its_turn() {
    let clock = ManualClock::new(Instant::from_nanos(100));
    let (mut left, mut right) = pair_with_clock(MemoryConfig::default(), clock).unwrap();
    assert_eq!(
        left.transmit_from(9, &mut SingleFrame(Instant::from_nanos(70), Some(b"now"))),
        Ok(1)
    );
    assert_eq!(take(&mut right), [(b"now".to_vec(), Instant::from_nanos(70))]);
}

#[test]
fn a_full_link_offers_no_slot_and_budgets_are_respected() {
    let config = MemoryConfig { capacity: 4, ..MemoryConfig::default() };
    let (mut left, mut right) = pair(config).unwrap();
    assert_eq!(left.transmit(3, |_| Some(TxFrame::whole(60))), Ok(3));
    assert_eq!(left.transmit(3, |_| Some(TxFrame::whole(60))), Ok(1));
    assert_eq!(left.transmit(3, |_| panic!("there is no room")), Ok(0));
    assert_eq!(right.receive(3, |_| ()), Ok(3));
    assert_eq!(right.receive(3, |_| ()), Ok(1));
}

#[test]
fn a_slot_has_room_for_the_largest_packet_with_a_tagged_header() {
    for medium in [Medium::Ethernet, Medium::Ip] {
        let (mut left, _right) = pair(MemoryConfig { medium, ..MemoryConfig::default() }).unwrap();
        let capabilities = left.capabilities();
        let mut room = 0;
        left.transmit(1, |bytes| {
            room = bytes.len();
            None
        })
        .unwrap();
        assert_eq!(room, capabilities.frame_length() + 4);
    }
}

#[test]
fn the_link_is_down_after_the_last_frame_of_a_dropped_end() {
    let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
    send(&mut left, [b"last words"]).unwrap();
    drop(left);
    let mut waiter = Waiter::new().unwrap();
    assert!(waiter.wait(&mut right, Instant::NEVER).unwrap().link);
    assert_eq!(take(&mut right).len(), 1);
    assert!(waiter.wait(&mut right, Instant::NEVER).unwrap().link);
    assert!(right.is_ready(), "to say so");
    assert_eq!(right.receive(1, |_| ()), Err(LinkError::Down));
    assert_eq!(right.transmit(1, |_| None), Err(LinkError::Down));
}

#[test]
fn invalid_configurations_are_refused_with_the_valid_range() {
    let mtu = MemoryConfig { mtu: 87, ..MemoryConfig::default() };
    let error = pair(mtu).unwrap_err();
    assert!(error == MemoryError::Mtu(87) && error.to_string().contains("88 to 65535"), "{error}");
    let capacity = MemoryConfig { capacity: 0, ..MemoryConfig::default() };
    assert!(pair(capacity).unwrap_err().to_string().contains("1 to 65536"));
}

#[test]
fn the_limits_of_the_configuration_are_accepted() {
    for (mtu, capacity) in [(88, 1), (65_535, 1), (88, 65_536)] {
        pair(MemoryConfig { mtu, capacity, ..MemoryConfig::default() }).unwrap();
    }
    for (mtu, capacity) in [(65_536, 1), (88, 65_537)] {
        pair(MemoryConfig { mtu, capacity, ..MemoryConfig::default() }).unwrap_err();
    }
}

#[test]
fn frames_have_the_configured_checksum_status() {
    for checksum in [RxChecksum::Unverified, RxChecksum::Verified] {
        let config = MemoryConfig { checksum, ..MemoryConfig::default() };
        let clock = ManualClock::new(Instant::from_nanos(3));
        let (mut left, mut right) = pair_with_clock(config, clock).unwrap();
        send(&mut left, [b"summed"]).unwrap();
        let mut received = None;
        right.receive(1, |frame| received = Some((frame.checksum, frame.arrived))).unwrap();
        assert_eq!(received, Some((checksum, Instant::from_nanos(3))));
    }
}

#[test]
fn prefetched_frames_are_in_order_and_arrive_later() {
    let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
    let prefetched = |link: &mut MemoryLink, budget| {
        let mut frames = Vec::new();
        link.peek(budget, |bytes| frames.push(bytes.to_vec()));
        frames
    };
    assert!(prefetched(&mut right, 9).is_empty());
    send(&mut left, [b"1", b"2", b"3"]).unwrap();
    assert_eq!(prefetched(&mut right, 2), [b"1", b"2"]);
    assert_eq!(right.receive(1, |frame| assert_eq!(frame.bytes, b"1")), Ok(1));
    assert_eq!(prefetched(&mut right, 9), [b"2", b"3"]);
    assert_eq!(take(&mut right).len(), 2);
    assert!(prefetched(&mut right, 9).is_empty());
}

#[test]
fn the_first_frames_of_a_long_batch_arrive_while_others_are_written() {
    let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
    let (mut written, mut seen) = (0, 0);
    let sent = left.transmit(2 * PUBLISH_INTERVAL, |_| {
        seen += take(&mut right).len();
        written += 1;
        Some(TxFrame::whole(60))
    });
    assert_eq!(
        (sent, written, seen),
        (Ok(2 * PUBLISH_INTERVAL), 2 * PUBLISH_INTERVAL, PUBLISH_INTERVAL)
    );
}

#[test]
fn a_starved_end_is_ready_while_there_is_room() {
    let (mut left, mut right) = narrow();
    assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
    assert!(!left.is_ready());
    take(&mut right);
    assert!(left.is_ready());
    assert_eq!(left.transmit(1, |_| Some(TxFrame::whole(60))), Ok(1));
    take(&mut right);
    assert!(!left.is_ready(), "the room is not wanted any more");
}

#[test]
fn a_sleeping_end_is_woken_by_a_frame_and_can_sleep_again() {
    let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
    assert!(right.prepare_to_sleep() && !is_signalled(&right));
    send(&mut left, [b"wake up"]).unwrap();
    assert!(is_signalled(&right));
    right.awake(true);
    take(&mut right);
    assert!(right.prepare_to_sleep() && !is_signalled(&right));
}

#[test]
fn an_end_that_sleeps_for_lack_of_room_is_woken_by_room() {
    let (mut left, mut right) = narrow();
    assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
    assert!(left.prepare_to_sleep() && !is_signalled(&left));
    take(&mut right);
    assert!(is_signalled(&left));
}

#[test]
fn a_sleeping_end_is_woken_when_the_other_is_dropped() {
    let (left, mut right) = pair(MemoryConfig::default()).unwrap();
    assert!(right.prepare_to_sleep() && !is_signalled(&right));
    drop(left);
    assert!(is_signalled(&right));
}

#[test]
fn an_end_that_woke_by_itself_is_not_signalled() {
    let (mut left, mut right) = narrow();
    assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
    assert!(left.prepare_to_sleep());
    left.awake(false);
    take(&mut right);
    send(&mut right, [b"3"]).unwrap();
    assert!(!is_signalled(&left));
}

#[test]
fn an_end_that_found_room_before_sleeping_is_not_signalled() {
    let (mut left, mut right) = narrow();
    assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
    take(&mut right);
    assert!(!left.prepare_to_sleep());
    send(&mut right, [b"3"]).unwrap();
    assert!(!is_signalled(&left));
}

#[test]
fn no_wake_up_is_lost_between_two_threads() {
    const FRAMES: u64 = 8_000;
    // The ring holds only two frames, so both threads must sleep often: the sender because the ring
    // is full, and the receiver because it is empty.
    let config = MemoryConfig { capacity: 2, ..MemoryConfig::default() };
    let (mut left, mut right) = pair(config).unwrap();
    let sender = thread::spawn(move || {
        let mut waiter = Waiter::new().unwrap();
        let mut next = 0_u64;
        while next < FRAMES {
            left.transmit(3, |bytes| {
                bytes[..8].copy_from_slice(&next.to_be_bytes());
                next += 1;
                (next <= FRAMES).then_some(TxFrame::whole(60))
            })
            .unwrap();
            if next < FRAMES {
                waiter.wait(&mut left, Instant::NEVER).unwrap();
            }
        }
    });
    let mut waiter = Waiter::new().unwrap().with_spins(2);
    let mut next = 0;
    while next < FRAMES {
        let outcome = right.receive(64, |frame| {
            assert_eq!(frame.bytes[..8], next.to_be_bytes());
            next += 1;
        });
        if outcome == Ok(0) {
            waiter.wait(&mut right, Instant::NEVER).unwrap();
        }
    }
    sender.join().unwrap();
}
