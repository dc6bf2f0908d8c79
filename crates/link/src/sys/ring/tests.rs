//! Tests of a ring whose endpoints are used by one thread or by two.

use super::producer::START_OVER_AFTER;
use super::shared::LINE;
use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of frames in a test. It is small under miri, which is a thousand times slower.
const FRAMES: u64 = if cfg!(miri) { 300 } else { 30_000 };

fn put(producer: &mut Producer, text: &[u8], stamp: u64) -> bool {
    let Some(mut slot) = producer.offer() else { return false };
    slot.frame()[..text.len()].copy_from_slice(text);
    slot.commit(text.len(), stamp);
    true
}

#[test]
fn slots_begin_in_all_sets_of_a_cache() {
    for room in [60, 1_500, 1_514, 1_518, 9_018] {
        let (producer, _consumer) = ring(64, room);
        let first = producer.shared.slot_start(0).addr();
        let mut sets: Vec<_> = (0..64)
            .map(|slot| (producer.shared.slot_start(slot).addr() - first) / LINE % 64)
            .collect();
        sets.sort_unstable();
        assert!(sets.into_iter().eq(0..64), "frames of {room} bytes");
    }
}

#[test]
fn frames_arrive_unchanged_once_they_are_published() {
    let (mut producer, mut consumer) = ring(4, 100);
    assert!(put(&mut producer, b"one", 1));
    assert!(put(&mut producer, b"", 2));
    assert!(consumer.next().is_none());
    assert!(!producer.publish());
    assert_eq!(consumer.next(), Some((&b"one"[..], 1)));
    assert_eq!(consumer.next(), Some((&b""[..], 2)));
    assert!(consumer.next().is_none());
    assert!(consumer.next().is_none());
}

#[test]
fn a_full_ring_offers_no_slot_until_one_is_released() {
    let (mut producer, mut consumer) = ring(3, 8);
    let filled = (0..10).take_while(|&n| put(&mut producer, &[n], 0)).count();
    assert_eq!(filled, 4, "the capacity is rounded up to a power of two");
    assert!(producer.offer().is_none());
    assert!(!producer.publish());
    assert_eq!(consumer.next().unwrap().0, [0]);
    assert!(!producer.has_room(), "read, but not released yet");
    assert!(!consumer.release());
    assert!(put(&mut producer, b"x", 0));
    assert!(!producer.has_room());
}

#[test]
fn a_slot_has_the_requested_room_and_an_aligned_packet() {
    let (mut producer, _consumer) = ring(2, 1_518);
    let mut slot = producer.offer().unwrap();
    assert_eq!(slot.frame().len(), 1_518);
    assert_eq!(slot.frame()[14..].as_ptr() as usize % 32, 0);
    assert_eq!(producer.shared.stride, 25 * LINE, "an odd number of lines");
}

#[test]
fn a_sleeping_end_is_woken_once_and_no_end_sleeps_while_there_is_a_frame() {
    let (mut producer, mut consumer) = ring(2, 8);
    assert!(consumer.fall_asleep());
    put(&mut producer, b"1", 0);
    assert!(producer.publish());
    put(&mut producer, b"2", 0);
    assert!(!producer.publish());
    assert!(!consumer.fall_asleep());
    assert!(producer.fall_asleep(), "the ring is full");
    assert!(consumer.next().is_some());
    assert!(consumer.release());
    assert!(!producer.fall_asleep());
    assert!(consumer.next().is_some());
    assert!(!consumer.release(), "the producer is awake");
}

#[test]
fn a_producer_that_fills_the_ring_after_an_unchecked_release_is_woken() {
    let (mut producer, mut consumer) = ring(2, 8);
    put(&mut producer, b"1", 0);
    assert!(!producer.publish());
    assert!(consumer.next().is_some());
    assert!(!consumer.release(), "the ring was not full");
    put(&mut producer, b"2", 0);
    put(&mut producer, b"3", 0);
    assert!(!producer.publish());
    assert!(producer.fall_asleep(), "and now it is");
    assert!(consumer.next().is_some());
    assert!(consumer.release());
}

#[test]
fn a_producer_that_refills_the_ring_is_woken_once() {
    let (mut producer, mut consumer) = ring(2, 8);
    put(&mut producer, b"1", 0);
    put(&mut producer, b"2", 0);
    assert!(!producer.publish());
    assert!(consumer.next().is_some());
    assert!(!consumer.release(), "the check found the producer awake");
    put(&mut producer, b"3", 0);
    assert!(!producer.publish());
    assert!(producer.fall_asleep());
    assert!(consumer.next().is_some());
    let woken = consumer.release();
    assert!(consumer.next().is_some());
    assert_ne!(consumer.release(), woken, "once");
}

#[test]
fn a_length_beyond_the_room_is_reduced_to_the_room() {
    let (mut producer, mut consumer) = ring(2, 8);
    producer.offer().unwrap().commit(9, 1);
    put(&mut producer, b"2", 2);
    assert!(!producer.publish());
    assert_eq!(consumer.next(), Some((&[0; 8][..], 1)));
    assert_eq!(consumer.next(), Some((&b"2"[..], 2)));
}

#[test]
fn an_end_that_does_not_fall_asleep_is_not_woken() {
    let (mut producer, mut consumer) = ring(1, 8);
    put(&mut producer, b"1", 0);
    assert!(!producer.publish());
    assert!(!consumer.fall_asleep());
    assert!(consumer.next().is_some());
    assert!(!consumer.release());
    assert!(!producer.fall_asleep());
    put(&mut producer, b"2", 0);
    assert!(!producer.publish());
    assert!(consumer.next().is_some());
    assert!(!consumer.release());
}

#[test]
fn an_end_that_has_withdrawn_its_announcement_is_not_woken() {
    let (mut producer, mut consumer) = ring(1, 8);
    assert!(consumer.fall_asleep());
    consumer.awake();
    put(&mut producer, b"1", 0);
    assert!(!producer.publish());
    assert!(producer.fall_asleep());
    producer.awake();
    assert!(consumer.next().is_some());
    assert!(!consumer.release());
}

#[test]
fn only_seen_frames_can_be_peeked_at() {
    let (mut producer, mut consumer) = ring(4, 8);
    put(&mut producer, b"1", 0);
    assert!(!producer.publish());
    put(&mut producer, b"2", 0);
    assert!(consumer.has_frame());
    assert_eq!(
        (consumer.peek(0), consumer.peek(1)),
        (Some(&b"1"[..]), None),
        "the second frame is not published"
    );
    assert_eq!(consumer.next().unwrap().0, b"1");
    assert!(!producer.publish());
    assert_eq!(consumer.peek(0), None, "not seen yet");
    assert!(consumer.has_frame());
    assert_eq!(consumer.peek(0), Some(&b"2"[..]));
}

/// Passes `count` frames through the ring one by one, and returns the addresses of their slots.
fn pass(producer: &mut Producer, consumer: &mut Consumer, count: usize) -> Vec<usize> {
    let pass_one = |_| {
        producer.start_over();
        let place = producer.offer().unwrap().frame().as_ptr().addr();
        put(producer, b"passes", 1);
        assert!(!producer.publish());
        assert_eq!(consumer.next(), Some((&b"passes"[..], 1)));
        assert!(!consumer.release());
        place
    };
    (0..count).map(pass_one).collect()
}

#[test]
fn a_ring_with_few_frames_under_way_uses_few_slots() {
    let (mut producer, mut consumer) = ring(1_024, 8);
    let mut places = pass(&mut producer, &mut consumer, 10 * START_OVER_AFTER);
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), START_OVER_AFTER);
    assert!(consumer.fall_asleep());
    consumer.awake();
    let mut places = pass(&mut producer, &mut consumer, 1_024);
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 1_024, "all slots in turn, since two threads alternate");
}

#[test]
fn a_ring_does_not_start_over_before_the_last_slot_is_released() {
    let (mut producer, mut consumer) = ring(4 * START_OVER_AFTER, 8);
    let first = pass(&mut producer, &mut consumer, START_OVER_AFTER)[0];
    for number in 0..2 * START_OVER_AFTER as u64 {
        producer.start_over();
        assert_eq!(
            producer.offer().unwrap().frame().as_ptr().addr() == first,
            number == 0,
            "{number}"
        );
        put(&mut producer, &[1], number);
        assert!(!producer.publish());
    }
    assert!(consumer.has_frame());
    assert_eq!(
        consumer.peek(2 * START_OVER_AFTER - 1),
        Some(&[1][..]),
        "the first slot is taken into account"
    );
    assert!(
        consumer.frames(usize::MAX).map(|(_, number)| number).eq(0..2 * START_OVER_AFTER as u64)
    );
    producer.start_over();
    assert_ne!(
        producer.offer().unwrap().frame().as_ptr().addr(),
        first,
        "all frames are read, but none is released"
    );
    assert!(!consumer.release());
    assert!(pass(&mut producer, &mut consumer, START_OVER_AFTER + 1).contains(&first));
}

#[test]
fn each_end_sees_that_the_other_is_dropped_and_no_frame_is_lost() {
    let (mut producer, mut consumer) = ring(2, 8);
    put(&mut producer, b"last", 0);
    assert!(!producer.publish());
    drop(producer);
    assert!(consumer.is_abandoned());
    assert_eq!(consumer.next().unwrap().0, b"last");

    let (producer, consumer) = ring(2, 8);
    assert!(!producer.is_abandoned());
    drop(consumer);
    assert!(producer.is_abandoned());
}

/// Returns the contents of frame `number`, whose bytes and length depend on the number.
fn contents(number: u64) -> Vec<u8> {
    let length = number % 61;
    (0..length).map(|at| (number * 31 + at).to_le_bytes()[0]).collect()
}

fn expect(consumer: &mut Consumer, number: u64) -> bool {
    let Some((frame, stamp)) = consumer.next() else { return false };
    assert_eq!(stamp, number);
    assert_eq!(frame, contents(number));
    true
}

#[test]
fn two_threads_exchange_frames_in_order_and_intact() {
    let (mut producer, mut consumer) = ring(8, 64);
    let writer = thread::spawn(move || {
        let mut next = 0;
        while next < FRAMES {
            let before = next;
            producer.start_over();
            while next < FRAMES && next - before < 5 && put(&mut producer, &contents(next), next) {
                next += 1;
            }
            let _ = producer.publish();
            thread::yield_now();
        }
    });
    let mut next = 0;
    while next < FRAMES {
        while expect(&mut consumer, next) {
            next += 1;
        }
        let _ = consumer.release();
        thread::yield_now();
    }
    writer.join().unwrap();
    assert!(consumer.next().is_none());
}

/// The test makes many rings. In each, the producer publishes a frame by a release store, just
/// while the consumer is about to sleep for the first time. Either the consumer must see the frame,
/// or the producer must be told to wake it. The two threads are synchronized before each ring.
#[test]
fn the_first_sleep_misses_no_frame() {
    let rings: Vec<_> = (0..FRAMES).map(|_| ring(1, 8)).collect();
    let (producers, consumers): (Vec<_>, Vec<_>) = rings.into_iter().unzip();
    let arrived = Arc::new(AtomicUsize::new(0));
    let meet = |arrived: &AtomicUsize, round: usize| {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < 2 * (round + 1) {
            thread::yield_now();
        }
    };
    let same = Arc::clone(&arrived);
    let writer = thread::spawn(move || {
        let mut wakes = Vec::new();
        let mut kept = Vec::new();
        for (round, mut producer) in producers.into_iter().enumerate() {
            put(&mut producer, b"1", 0);
            meet(&same, round);
            wakes.push(producer.publish());
            kept.push(producer);
        }
        wakes
    });
    let mut sleeps = Vec::new();
    for (round, mut consumer) in consumers.into_iter().enumerate() {
        meet(&arrived, round);
        sleeps.push(consumer.fall_asleep());
    }
    let wakes = writer.join().unwrap();
    let forgotten = sleeps.iter().zip(wakes).filter(|&(&sleeps, wakes)| sleeps && !wakes).count();
    assert_eq!(forgotten, 0);
}

#[test]
fn two_sleeping_threads_are_woken_whenever_necessary() {
    let (mut producer, mut consumer) = ring(2, 64);
    let reader = thread::current();
    let writer = thread::spawn(move || {
        for number in 0..FRAMES / 10 {
            producer.start_over();
            while !put(&mut producer, &contents(number), number) {
                if producer.fall_asleep() {
                    // `park` can return without reason, so the loop waits until the flag is
                    // cleared.
                    while producer.shared.flags.0.producer_asleep.load(Ordering::Relaxed) {
                        thread::park();
                    }
                }
            }
            if producer.publish() {
                reader.unpark();
            }
        }
    });
    let mut next = 0;
    while next < FRAMES / 10 {
        if expect(&mut consumer, next) {
            next += 1;
            if consumer.release() {
                writer.thread().unpark();
            }
        } else if consumer.fall_asleep() {
            while consumer.shared.flags.0.consumer_asleep.load(Ordering::Relaxed) {
                thread::park();
            }
        }
    }
    writer.join().unwrap();
}
